//! From numbers to one of four verdicts.

use super::shift::{paired_differences, scale};
use super::{
    ALPHA, Design, Scale, Shift, Test, mann_whitney, median, paired_shift, shift, signed_rank,
};

/// Which way a metric should go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// More is better, as for throughput.
    HigherIsBetter,
    /// Less is better, as for latency.
    LowerIsBetter,
    /// Neither: there is no verdict on it.
    None,
}

/// What the runs allow to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Better, beyond chance and beyond the margin.
    Improved,
    /// Worse, beyond chance and beyond the margin.
    Regressed,
    /// The whole interval lies inside the margin.
    Unchanged,
    /// Different beyond chance and margin, of a metric without a direction.
    Moved,
    /// None of these can be said.
    Inconclusive,
}

impl Verdict {
    /// In one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::Regressed => "regressed",
            Self::Unchanged => "unchanged",
            Self::Moved => "moved",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// The smallest difference that matters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Margin {
    /// As a ratio: 0.03 for 3 %.
    relative: f64,
    /// In the metric's unit, for differences.
    absolute: f64,
    /// Whether it is what a value can tell, and not what was asked for.
    is_coarse: bool,
}

/// Share of a margin by which a change may miss its end and still be on it: values are logarithms of printed figures.
const ROUNDING: f64 = 1e-9;

impl Margin {
    /// A margin of `min_effect` (0.03 for 3 %), never below what a value can tell: `resolution`, in the metric's unit.
    ///
    /// `typical` is the median the ratio is of.
    #[must_use]
    pub fn new(min_effect: f64, resolution: f64, typical: f64) -> Self {
        let typical = typical.abs();
        let step = if typical > 0.0 {
            resolution / typical
        } else {
            0.0
        };
        Self {
            relative: min_effect.max(step),
            absolute: (min_effect * typical).max(resolution),
            is_coarse: resolution > min_effect * typical,
        }
    }

    /// The margin as a ratio.
    #[must_use]
    pub fn relative(self) -> f64 {
        self.relative
    }

    /// Whether values cannot tell a difference of `min_effect`: then no change is shown to be smaller than that.
    #[must_use]
    pub fn is_coarse(self) -> bool {
        self.is_coarse
    }

    /// The ends of the margin on a scale.
    fn ends(self, scale: Scale) -> (f64, f64) {
        match scale {
            Scale::Ratio => {
                let floor = if self.relative < 1.0 {
                    (-self.relative).ln_1p()
                } else {
                    f64::NEG_INFINITY
                };
                (floor, self.relative.ln_1p())
            }
            Scale::Difference => (-self.absolute, self.absolute),
        }
    }
}

/// One metric of two sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Numbers of runs.
    pub design: Design,
    /// Median before.
    pub before: f64,
    /// Median after.
    pub after: f64,
    /// How far the sides lie apart.
    pub shift: Shift,
    /// Whether chance does that.
    pub test: Test,
}

/// Compares two independent sides; `None` if one is empty or a value is not finite.
#[must_use]
pub fn compare(before: &[f64], after: &[f64]) -> Option<Comparison> {
    Some(Comparison {
        design: Design::Sides(before.len(), after.len()),
        before: median(before)?,
        after: median(after)?,
        shift: shift(before, after)?,
        test: mann_whitney(before, after)?,
    })
}

/// Compares pairs of runs; `None` if there is none or a value is not finite.
#[must_use]
pub fn compare_pairs(pairs: &[(f64, f64)]) -> Option<Comparison> {
    let (before, after): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let scale = scale(&[before.as_slice(), &after].concat())?;
    Some(Comparison {
        design: Design::Pairs(pairs.len()),
        before: median(&before)?,
        after: median(&after)?,
        shift: paired_shift(pairs)?,
        test: signed_rank(&paired_differences(scale, pairs))?,
    })
}

/// Compares two sides of runs: by `pairs` of their places if there are any, else as independent ones.
///
/// A pair with a place that a side does not have does not count. `None` as by [`compare_pairs`] and [`compare`].
#[must_use]
pub fn compare_runs(
    values: &[Vec<f64>; 2],
    pairs: Option<&[(usize, usize)]>,
) -> Option<Comparison> {
    let Some(pairs) = pairs else {
        return compare(&values[0], &values[1]);
    };
    let pair = |(a, b): &(usize, usize)| Some((*values[0].get(*a)?, *values[1].get(*b)?));
    compare_pairs(&pairs.iter().filter_map(pair).collect::<Vec<_>>())
}

impl Comparison {
    /// The verdict for a p that was adjusted for its family, significant up to `level`: [`ALPHA`] for headline
    /// metrics, [`super::FDR`] among lock classes.
    ///
    /// A change of just the margin is within it, up as down.
    #[must_use]
    pub fn verdict(
        &self,
        adjusted_p: f64,
        level: f64,
        direction: Direction,
        margin: Margin,
    ) -> Verdict {
        let (low, high) = margin.ends(self.shift.scale);
        let slack = ROUNDING * (high - low).min(1.0);
        let estimate = self.shift.estimate;
        let is_significant = adjusted_p <= level && self.shift.interval.is_some();
        if is_significant && (estimate < low - slack || estimate > high + slack) {
            return match (direction, estimate > 0.0) {
                (Direction::None, _) => Verdict::Moved,
                (Direction::HigherIsBetter, true) | (Direction::LowerIsBetter, false) => {
                    Verdict::Improved
                }
                _ => Verdict::Regressed,
            };
        }
        let is_inside =
            |(from, to): (f64, f64)| !margin.is_coarse && from >= low - slack && to <= high + slack;
        if self.shift.interval.is_some_and(is_inside) {
            Verdict::Unchanged
        } else {
            Verdict::Inconclusive
        }
    }

    /// Whether it is a regression beyond a gate: the whole interval is worse than `percent`, and p is at most .05.
    ///
    /// A metric without a direction, and one whose change is no ratio unless it got worse from 0, is none.
    #[must_use]
    pub fn is_beyond_gate(&self, adjusted_p: f64, direction: Direction, percent: f64) -> bool {
        let Some((from, to)) = self.shift.interval.filter(|_| adjusted_p <= ALPHA) else {
            return false;
        };
        let (low, high) = Margin::new(percent / 100.0, 0.0, self.before).ends(self.shift.scale);
        match direction {
            Direction::HigherIsBetter => to < low,
            Direction::LowerIsBetter => from > high,
            Direction::None => false,
        }
    }
}
