//! Reads the maps and the machine each tick and makes one `Delta`.
//!
//! Increments are taken row by row, so that exits, execs and cgroup moves
//! between two reads neither lose nor double an event. Wire types stop here.

mod blocked;
mod budget;
mod driver;
mod loss;
mod lru;
mod machine;
mod mm_faults;
mod names;
mod refaults;
mod rows;
mod slowpath;
mod tables;
mod threads;
mod workload;

pub use driver::{Collector, DEFAULT_REFAULT_WINDOW_NS, Now, Settings};
pub use loss::CATALOG;
