//! Scalability: what a further thread brings, from the throughput at several numbers of threads.
//!
//! Everything is computed from observations alone. Efficiency is the primary result; it needs no theory.

mod efficiency;
#[cfg(test)]
mod tests;

pub use efficiency::{ABOVE_LINEAR, Curve, Observation, Point};
