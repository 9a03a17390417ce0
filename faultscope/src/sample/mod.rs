//! Increments over one interval, and the arithmetic on them. Pure data: no I/O,
//! no clock, no wire types.

pub mod blocked;
pub mod budget;
pub mod counters;
pub mod delta;
pub mod histogram;
pub mod interval;
pub mod merge;
mod named;
pub mod refault;
pub mod run;
pub mod series;

pub use budget::Budget;
pub use counters::{Counters, Scope};
pub use delta::Delta;
pub use interval::{ATTACHED_ONLY, Interval, Missing, Spinlock};
