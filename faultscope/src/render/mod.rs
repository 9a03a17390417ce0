//! Text of numbers, cells, header and tables, shared by batch text and screen.
//!
//! Owns how a value reads. Knows nothing of terminals, colours or files; a
//! [`header::Tone`] names the meaning and the terminal theme gives it a style.

pub mod cell;
pub mod columns;
pub mod finding;
pub mod flame;
pub mod foot;
pub mod header;
pub mod order;
pub mod scale;
pub mod svg;
pub mod text;
pub mod time;

pub use crate::units as number;

#[cfg(test)]
pub(crate) mod browser;
#[cfg(test)]
pub(crate) mod fixture;
