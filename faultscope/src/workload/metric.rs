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

/// Key that says by how many percent the values behind a mean deviate from it; it does not set configurations apart.
pub(super) const DEVIATION: &str = "stddev_pct";

/// Ends of names that tell a unit, the longer ones first.
const UNITS: [(&str, &str); 9] = [
    ("%", "%"),
    ("_per_sec", "1/s"),
    ("sec", "1/s"),
    ("/s", "1/s"),
    ("_bytes", "bytes"),
    ("_ns", "ns"),
    ("_us", "us"),
    ("_ms", "ms"),
    ("_s", "s"),
];

/// The unit that the end of a name tells, in formats that have no other place for one; empty if it tells none.
#[must_use]
pub fn unit_of(name: &str) -> &'static str {
    let found = UNITS.iter().find(|(end, _)| {
        // `faults/sec`, `fault/wsec`: seconds alone are no rate.
        name.ends_with(end)
            && (*end != "sec" || name.rfind('/').is_some_and(|at| name.len() - at <= 5))
    });
    found.map_or("", |(_, unit)| unit)
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

    /// The keys that set its configuration apart: all but [`REPETITIONS`] and [`DEVIATION`].
    pub fn configuration(&self) -> impl Iterator<Item = &(String, String)> {
        self.keys
            .iter()
            .filter(|(key, _)| key != REPETITIONS && key != DEVIATION)
    }

    /// Whether the value is a mean over runs that its table does not count: LKP and mmtests print such.
    #[must_use]
    pub fn is_summary(&self) -> bool {
        [Format::Lkp, Format::Mmtests]
            .iter()
            .any(|f| f.id() == self.format)
    }

    /// Standard deviation of the values behind a mean, percent of it, where the table tells.
    #[must_use]
    pub fn deviation_pct(&self) -> Option<f64> {
        let (_, percent) = self.keys.iter().find(|(key, _)| key == DEVIATION)?;
        percent.parse().ok().filter(|p: &f64| p.is_finite())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_units_by_their_ends() {
        for (name, unit) in [
            ("faults/s", "1/s"),
            ("fault/wsec", "1/s"),
            ("faults/sec", "1/s"),
            ("faults_per_sec", "1/s"),
            ("wait_per_fault_ns", "ns"),
            ("elapsed_s", "s"),
            ("latency_avg_ms", "ms"),
            ("memory_bytes", "bytes"),
            ("mpstat.cpu.all.sys%", "%"),
            ("elapsed_sec", ""),
            ("will-it-scale.16.threads", ""),
            ("", ""),
        ] {
            assert_eq!(unit_of(name), unit, "{name}");
        }
    }
}
