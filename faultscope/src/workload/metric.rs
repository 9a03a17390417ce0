//! A figure that a workload reports about itself.

use super::found::Format;
use super::number::Printed;

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

/// Key that says how often the work was repeated inside one measurement; it does not set configurations apart.
pub const REPETITIONS: &str = "rep";

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

impl Metric {
    /// A figure of `format` as printed, without direction, kind of work and keys.
    pub(super) fn printed(format: Format, name: &str, value: Printed, unit: &str) -> Self {
        Self {
            name: name.to_owned(),
            value: value.value,
            unit: unit.to_owned(),
            direction: None,
            work: None,
            resolution: value.resolution(),
            format: format.id().to_owned(),
            keys: Vec::new(),
        }
    }

    /// The same with a direction.
    pub(super) fn better(mut self, direction: Direction) -> Self {
        self.direction = Some(direction);
        self
    }

    /// The same with a smallest difference of its own.
    pub(super) const fn resolved(mut self, resolution: f64) -> Self {
        self.resolution = resolution;
        self
    }

    /// The keys that set its configuration apart: all but [`REPETITIONS`].
    pub fn configuration(&self) -> impl Iterator<Item = &(String, String)> {
        self.keys.iter().filter(|(key, _)| key != REPETITIONS)
    }

    /// What two measurements of the same thing share.
    pub(super) fn identity(&self) -> String {
        let mut text = format!("{}\u{1f}{}", self.format, self.name);
        for (key, value) in self.configuration() {
            text.push('\u{1f}');
            text.push_str(key);
            text.push('\u{1f}');
            text.push_str(value);
        }
        text
    }
}
