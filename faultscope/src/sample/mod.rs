//! Increments over one interval, and the arithmetic on them. Pure data: no I/O,
//! no clock, no wire types.

pub mod counters;
pub mod delta;
pub mod histogram;

pub use counters::{Counters, Scope};
pub use delta::Delta;
