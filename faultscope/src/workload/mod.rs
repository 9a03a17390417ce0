//! Results of workloads: one pure parser per output format.

mod metric;
mod number;
mod rule;

pub use metric::{Direction, Metric, Work};
pub use rule::MetricRule;

/// Takes what a workload says about itself from what it wrote: one run, so one value for each name and keys.
///
/// The second part holds a sentence for each figure that was there, or asked for, and could not be taken. Output in no
/// known format gives neither.
#[must_use]
pub fn results(output: &str, rules: &[MetricRule]) -> (Vec<Metric>, Vec<String>) {
    let (mut metrics, mut reasons) = (Vec::new(), Vec::new());
    for rule in rules {
        match rule.apply(output) {
            Ok(metric) => metrics.push(metric),
            Err(reason) => reasons.push(reason),
        }
    }
    (metrics, reasons)
}
