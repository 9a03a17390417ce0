//! The A/A floor: how far apart runs lie by chance that differ in nothing.

use std::collections::BTreeMap;

use super::Options;
use super::gate;
use super::headline::Row;
use super::observed::Observed;
use super::stats::{MIN_ALIKE, aa_floor, single_floor};
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

/// Why runs that differ in nothing say nothing of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoFloor {
    /// None of them has it.
    Absent,
    /// Fewer than [`MIN_ALIKE`] have it.
    Few,
    /// A value of 0 or below has no ratio.
    NotPositive,
}

impl NoFloor {
    fn reason(self) -> String {
        match self {
            Self::Absent => "the A/A runs do not have it".to_owned(),
            Self::Few => format!("fewer than {MIN_ALIKE} A/A runs have it"),
            Self::NotPositive => "an A/A run has a value of 0 or below".to_owned(),
        }
    }
}

impl Floor {
    /// Learns it from values in order of start.
    ///
    /// # Errors
    /// Fewer than [`MIN_ALIKE`], or one that is not positive.
    pub fn of(values: &[f64]) -> Result<Self, NoFloor> {
        if values.len() < MIN_ALIKE {
            return Err(NoFloor::Few);
        }
        let both = aa_floor(values).zip(single_floor(values));
        let (halves, single) = both.ok_or(NoFloor::NotPositive)?;
        Ok(Self {
            runs: values.len(),
            halves,
            single,
        })
    }
}

/// A floor and the figure it is of.
struct Learnt<'a> {
    row: &'a Row,
    runs: usize,
    /// What counts for the figure: single runs are held against single runs, sides against halves.
    ratio: f64,
}

impl<'a> Learnt<'a> {
    fn new(row: &'a Row) -> Option<Self> {
        let floor = row.floor?;
        Some(Self {
            row,
            runs: floor.runs,
            ratio: if is_single(row) {
                floor.single
            } else {
                floor.halves
            },
        })
    }

    /// As far up as down: of single runs as ratios, so that down is less in percent.
    fn percent(&self) -> String {
        let up = 100.0 * self.ratio;
        let down = 100.0 * (1.0 - 1.0 / (1.0 + self.ratio));
        if is_single(self.row) && format!("{up:.1}") != format!("{down:.1}") {
            format!("-{down:.1}/+{up:.1} %")
        } else {
            format!("+-{up:.1} %")
        }
    }

    /// Whether single runs lie further apart; `None` for sides, and where the change is no ratio.
    fn is_beyond(&self) -> Option<bool> {
        let percent = self
            .row
            .comparison
            .shift
            .percent()
            .filter(|_| is_single(self.row))?;
        Some((percent / 100.0).ln_1p().abs() > self.ratio.ln_1p())
    }
}

fn is_single(row: &Row) -> bool {
    row.comparison.design.smaller() == 1
}

/// What the floors say of the primary figures, in one sentence; `None` if there are none.
///
/// `is_halved` if the sides are themselves the halves they were learnt from.
pub(super) fn sentence(rows: &[&Row], is_halved: bool) -> Option<String> {
    let learnt: Vec<Learnt<'_>> = rows.iter().filter_map(|row| Learnt::new(row)).collect();
    let by_size = |a: &&Learnt<'_>, b: &&Learnt<'_>| a.ratio.total_cmp(&b.ratio);
    let least = learnt.iter().min_by(by_size)?;
    let most = learnt.iter().max_by(by_size)?;
    let is_one = learnt.len() == 1;
    let range = if is_one {
        format!("floor from {} A/A runs is {}", most.runs, most.percent())
    } else {
        format!(
            "floors from at least {} A/A runs each are {} ({}) to {} ({})",
            learnt.iter().map(|l| l.runs).min().unwrap_or_default(),
            least.percent(),
            least.row.cell,
            most.percent(),
            most.row.cell
        )
    };
    let margin = most.row.margin.relative();
    let of = |is_it: Option<bool>| -> Vec<&str> {
        let those = learnt.iter().filter(|l| l.is_beyond() == is_it);
        those.map(|l| l.row.cell.as_str()).collect()
    };
    let (beyond, within, others) = (of(Some(true)), of(Some(false)), of(None));
    let what = if is_halved {
        "a change within it may be chance".to_owned()
    } else if is_one && is_single(most.row) {
        match most.is_beyond() {
            Some(true) => "beyond the floor, not proof".to_owned(),
            Some(false) => "within the floor, which chance alone may do".to_owned(),
            None => "a change to or from 0 is no ratio to hold against it".to_owned(),
        }
    } else if learnt.iter().any(|l| is_single(l.row)) {
        let told = [
            ("beyond, which is no proof", beyond),
            ("within, which chance alone may do", within),
            ("not held against it", others),
        ];
        let told = told.iter().filter(|(_, cells)| !cells.is_empty());
        let told: Vec<String> = told
            .map(|(what, cells)| format!("{what}: {}", cells.join(", ")))
            .collect();
        told.join("; ")
    } else if !is_one {
        "each is the margin of its configuration, if no other is larger".to_owned()
    } else if margin > most.ratio {
        format!("below the margin of {:.1} %", 100.0 * margin)
    } else {
        "that is the margin".to_owned()
    };
    Some(format!("{range}: {what}"))
}

/// Which figures have no floor, by reason, a sentence for each.
pub(super) fn without(missing: &BTreeMap<NoFloor, Vec<String>>) -> Vec<String> {
    missing
        .iter()
        .map(|(why, figures)| format!("no floor for {}: {}", figures.join("; "), why.reason()))
        .collect()
}

/// Whether runs can tell what chance does to the side before.
pub(super) fn check(
    alike: &[Observed],
    [before, after]: [&[Observed]; 2],
    options: &Options,
) -> Result<(), Failure> {
    if alike.is_empty() {
        return Ok(());
    }
    let compared = |run: &&Observed| before.iter().chain(after).any(|o| o.run.id == run.run.id);
    if let Some(run) = alike.iter().find(compared) {
        return Err(Failure::Usage(format!(
            "\"{}\" is among the runs that are compared: a floor is learnt from others, which differ in nothing",
            run.file
        )));
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
