//! Recordings: SQLite files of increments.
//!
//! Owns the format (`docs/recording-format.md`), the [`Writer`] and the [`Recording`] that
//! reads. Knows nothing of BPF and nothing of models: what goes in is a
//! [`sample::Run`](crate::sample::run::Run) and one
//! [`sample::Interval`](crate::sample::Interval) after the other, and the same come out.

mod codec;
mod digest;
mod error;
mod open;
mod pack;
mod reader;
mod rows;
pub mod schema;
mod writer;

pub use error::Error;
pub use reader::{IntervalTime, Recording};
pub use writer::Writer;

#[cfg(test)]
pub(crate) mod tests;
