//! Two sets of runs side by side, with a verdict only where the runs allow one.

pub mod stats;
