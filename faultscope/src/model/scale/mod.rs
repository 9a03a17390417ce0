//! Scalability: what a further thread brings, from the throughput at several numbers of threads.
//!
//! Everything is computed from observations alone. Efficiency is the primary result and needs no theory; the universal
//! scalability law is fitted where the points allow it, and where they do not the reason is a sentence.

mod doubt;
mod efficiency;
mod law;
mod resample;
mod scaling;
mod series;
#[cfg(test)]
mod tests;

pub use doubt::{Doubt, FEWEST, KNEE, Limit, MOST_RESIDUAL, SOUND};
pub use efficiency::{ABOVE_LINEAR, Curve, Observation, Point};
pub use law::Law;
pub use resample::{DRAWS, Interval};
pub use scaling::{Fit, Scaling, Unfitted};
pub use series::{AllSeries, MOST_SERIES, OVER, Series, singular};
