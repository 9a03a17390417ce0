//! The order of the runs in time, and whether values follow it.

use super::rank::count_inversions;
use super::{ALPHA, EXACT_MAX, normal, real};

/// How the runs of two sides lie in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One side wholly before the other: what drifted in between cannot be told from what was changed.
    Blocked,
    /// Each two runs in a row are one of either side, as in A B B A.
    Alternating,
    /// Mixed in another way.
    Mixed,
}

impl Order {
    /// What a reader must know of it, if anything.
    #[must_use]
    pub fn warning(self) -> Option<&'static str> {
        (self == Self::Blocked)
            .then_some("order: blocked, drift cannot be separated from the patch")
    }
}

/// The order of runs that started at these times; `None` if a side is empty or a time is 0, which is unknown.
#[must_use]
pub fn order(before: &[u64], after: &[u64]) -> Option<Order> {
    let (first, last) = (before.iter().min()?, before.iter().max()?);
    let (other_first, other_last) = (after.iter().min()?, after.iter().max()?);
    if *first == 0 || *other_first == 0 {
        return None;
    }
    if last < other_first || other_last < first {
        return Some(Order::Blocked);
    }
    let mut all: Vec<(u64, bool)> = before.iter().map(|t| (*t, false)).collect();
    all.extend(after.iter().map(|t| (*t, true)));
    all.sort_unstable();
    let is_alternating = before.len() == after.len()
        && all
            .chunks(2)
            .all(|two| two.iter().filter(|(_, is_after)| *is_after).count() == 1);
    Some(if is_alternating {
        Order::Alternating
    } else {
        Order::Mixed
    })
}

/// How values of one side follow their start times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Kendall's tau, -1 (each later run is lower) to 1 (higher).
    pub tau: f64,
    /// Two-sided p of no relation.
    pub p: f64,
}

impl Drift {
    /// Whether it is worth a warning; four runs cannot give one.
    #[must_use]
    pub fn is_flagged(&self) -> bool {
        self.p <= ALPHA
    }
}

/// Rank correlation of values with the start times of their runs; `None` for fewer than three, for lists of unlike
/// length and for an unknown time (0).
///
/// Kendall (1938), Biometrika 30:81: exact by counting inversions up to 20 runs, his normal approximation above.
/// A tie counts as half a pair in order; the distribution without ties is wider than that with them, so ties make a
/// flag less likely, never more.
#[must_use]
pub fn drift(values: &[f64], starts: &[u64]) -> Option<Drift> {
    let n = values.len();
    if n < 3 || n != starts.len() || starts.contains(&0) {
        return None;
    }
    let (mut falls, mut ties) = (0_usize, 0_usize);
    for i in 0..n {
        for j in 0..i {
            let by_time = starts[i].cmp(&starts[j]);
            let by_value = values[i].total_cmp(&values[j]);
            if by_time.is_eq() || by_value.is_eq() {
                ties += 1;
            } else if by_time != by_value {
                falls += 1;
            }
        }
    }
    let pairs = n * (n - 1) / 2;
    let rises = pairs - ties - falls;
    // Half of the ties each, a half pair rounded to the larger tail.
    let tail = rises.min(falls) + ties.div_ceil(2);
    let p = if n <= EXACT_MAX {
        let counts = count_inversions(n);
        let all: f64 = counts.iter().sum();
        let below: f64 = counts.iter().take(tail + 1).sum();
        (2.0 * below / all).min(1.0)
    } else {
        let variance = real(n * (n - 1) * (2 * n + 5)) / 18.0;
        normal::two_sided((real(pairs) - 2.0 * real(tail)).max(0.0) / variance.sqrt())
    };
    Some(Drift {
        tau: (real(rises) - real(falls)) / real(pairs),
        p,
    })
}
