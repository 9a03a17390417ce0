//! The A/A floor: how far apart runs lie by chance that differ in nothing.

use super::Options;
use super::gate;
use super::observed::Observed;
use super::stats::{Comparison, MIN_ALIKE, Margin, aa_floor, single_floor};
use crate::error::Failure;

/// What runs that differ in nothing say of one figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floor {
    /// How many runs had it.
    pub runs: usize,
    /// Two halves of them differ by less, as a ratio (0.03 for 3 %).
    pub halves: f64,
    /// Nineteen of twenty pairs of them differ by no more, as a ratio.
    pub single: f64,
}

impl Floor {
    /// Learns it from values in order of start; `None` for fewer than [`MIN_ALIKE`] or with one that is not positive.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            runs: values.len(),
            halves: aa_floor(values)?,
            single: single_floor(values)?,
        })
    }

    /// What it says of a figure: single runs are held against single runs; of sides it is the margin, if no other is
    /// larger. `None` where single runs differ by no ratio.
    pub(super) fn sentence(&self, comparison: &Comparison, margin: Margin) -> Option<String> {
        if comparison.design.smaller() > 1 {
            let what = if margin.relative() > self.halves {
                format!("below the margin of {:.1} %", 100.0 * margin.relative())
            } else {
                "that is the margin".to_owned()
            };
            return Some(told(self.runs, self.halves, &what));
        }
        let ratio = 1.0 + comparison.shift.percent()? / 100.0;
        let what = if ratio.ln().abs() > self.single.ln_1p() {
            "beyond the floor, not proof"
        } else {
            "within the floor, which chance alone may do"
        };
        Some(told(self.runs, self.single, what))
    }
}

/// The floor in words, and what follows: `floor` as a ratio, from so many runs.
pub(super) fn told(runs: usize, floor: f64, what: &str) -> String {
    format!(
        "floor from {runs} A/A runs is +-{:.1} %: {what}",
        100.0 * floor
    )
}

/// Whether runs can tell what chance does to the side before.
pub(super) fn check(
    alike: &[Observed],
    before: &[Observed],
    options: &Options,
) -> Result<(), Failure> {
    if alike.is_empty() {
        return Ok(());
    }
    if alike.len() < MIN_ALIKE {
        return Err(Failure::Usage(format!(
            "--floor needs at least {MIN_ALIKE} runs that differ in nothing, and there {}; \
             \"faultscope record --repeat 12 -- COMMAND\" makes some",
            if alike.len() == 1 {
                "is 1".to_owned()
            } else {
                format!("are {}", alike.len())
            }
        )));
    }
    let refusals = gate::examine(before, alike, &options.vary).refusals;
    if refusals.is_empty() || options.is_forced {
        return Ok(());
    }
    let told: Vec<String> = refusals
        .iter()
        .map(|d| format!("{} ({} -> {})", d.key, d.before, d.after))
        .collect();
    Err(Failure::Usage(format!(
        "the runs of --floor cannot tell what chance does to the side before: they differ in {}",
        told.join(" and ")
    )))
}
