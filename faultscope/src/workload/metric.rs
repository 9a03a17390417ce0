//! A figure that a workload reports about itself.

/// Which way a metric gets better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// More is better: a throughput.
    Higher,
    /// Less is better: a time.
    Lower,
}

/// What the workload keeps constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Work {
    /// The amount of work; totals compare, rates per second follow from the time.
    Fixed,
    /// The time; totals mean nothing but as rates.
    Timed,
}

/// A figure that a workload reports about itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Name, as the workload's community writes it: `transactions/s`.
    pub name: String,
    /// Value; finite.
    pub value: f64,
    /// Unit: `1/s`, `s`, `ms`, `count`.
    pub unit: String,
    /// Which way it gets better; `None`: no verdict is possible.
    pub direction: Option<Direction>,
    /// What the workload keeps constant, where its output tells.
    pub work: Option<Work>,
    /// Smallest difference the output can show, in `unit`; 0 if unknown.
    pub resolution: f64,
    /// Format that gave it: `sysbench`, `pft`, `time`, `regex`.
    pub format: String,
    /// What sets the value apart from others of its name in the same output:
    /// `threads` = `8`, `gib` = `1`.
    pub keys: Vec<(String, String)>,
}
