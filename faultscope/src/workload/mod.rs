//! Results of workloads: one pure parser per output format.

mod metric;

pub use metric::{Direction, Metric, Work};
