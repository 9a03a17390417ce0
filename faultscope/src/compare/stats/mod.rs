//! The statistics behind a verdict: rank tests, exact intervals, families, flags. Pure.
//!
//! The run is the unit: every list of values here holds one value per run. Nothing reads a file or a clock, and
//! what draws at random does so from a fixed seed, so the same runs give the same words. Formulas cite their source;
//! `faultscope/tests/stats.rs` checks them against SciPy.

mod design;
mod family;
mod flags;
mod geomean;
mod mann_whitney;
mod normal;
mod order;
mod poisson;
mod random;
mod rank;
mod shift;
mod signed_rank;
mod small;
#[cfg(test)]
mod tests;
mod verdict;

pub use design::Design;
pub use family::{Blind, Filtered, benjamini_hochberg, filter_blind, holm, too_small};
pub use flags::{Clusters, Outlier, clusters, outliers};
pub use geomean::{Cell, Geomean, MIN_RESAMPLED, geomean};
pub use mann_whitney::mann_whitney;
pub use order::{Drift, Order, drift, order};
pub use poisson::{PoissonInterval, Presence, poisson_interval, poisson_upper, presence};
pub use shift::{Scale, Shift, paired_shift, shift};
pub use signed_rank::signed_rank;
pub use small::{MIN_ALIKE, aa_floor, single_floor, small_n};
pub use verdict::{Comparison, Direction, Margin, Verdict, compare, compare_pairs, compare_runs};

/// Pairwise values that were made, for tests that hold the work to a bound.
#[cfg(test)]
pub(super) mod work {
    use std::cell::Cell;

    thread_local! {
        static PAIRWISE: Cell<usize> = const { Cell::new(0) };
    }

    /// Counts `n` more.
    pub(super) fn add(n: usize) {
        PAIRWISE.set(PAIRWISE.get() + n);
    }

    /// Those of this thread since the last call.
    pub(in crate::compare) fn take() -> usize {
        PAIRWISE.take()
    }
}

/// Probability of a false alarm that a single test may have, and the complement of every interval's coverage.
pub const ALPHA: f64 = 0.05;

/// False discovery rate among lock classes.
pub const FDR: f64 = 0.10;

/// Runs per side, or pairs, up to which distributions are counted; above it they are approximated.
pub const EXACT_MAX: usize = 20;

/// Fewest events per run whose difference is told in percent.
pub const MIN_EVENTS: u64 = 20;

/// How a p value or an interval was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By counting every arrangement.
    Exact,
    /// By the normal approximation, corrected for ties and continuity.
    Normal,
}

impl Method {
    /// In one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Normal => "normal",
        }
    }
}

/// A two-sided test of no difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Test {
    /// Probability of a difference at least this large between identical sides, 0 to 1.
    pub p: f64,
    /// How it was found.
    pub method: Method,
}

/// Median of sorted or unsorted values; `None` if there are none.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_sorted(&sorted)
}

/// Median of values in ascending order.
fn median_sorted(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len() % 2 == 1 {
        upper
    } else {
        // The lower half is not empty: the length is even and not 0.
        f64::midpoint(sorted[sorted.len() / 2 - 1], upper)
    })
}

/// A count as a number to calculate with.
#[expect(
    clippy::cast_precision_loss,
    reason = "runs, classes and events: far below 2^52"
)]
fn real(count: usize) -> f64 {
    count as f64
}
