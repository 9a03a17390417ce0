//! Families of tests: what each p is worth beside the others, and what many lock classes allow.

use super::{Design, FDR, MIN_EVENTS, real};

/// Least share of the pooled wait with which a class is tested whatever its number of events.
const MIN_SHARE: f64 = 0.005;

/// Adjusted p values in the order of `p`: at most 5 % of families have a false one at or below .05.
///
/// Holm (1979), Scandinavian Journal of Statistics 6:65.
#[must_use]
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![0.0; p.len()];
    let mut largest = 0.0_f64;
    for (i, index) in ascending(p).into_iter().enumerate() {
        largest = largest.max(p[index] * real(p.len() - i)).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

/// Adjusted p values (q) in the order of `p`: of those at or below q, at most the share q is false on average.
///
/// Benjamini and Hochberg (1995), Journal of the Royal Statistical Society B 57:289.
#[must_use]
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![0.0; p.len()];
    let mut smallest = 1.0_f64;
    for (i, index) in ascending(p).into_iter().enumerate().rev() {
        smallest = smallest.min(p[index] * real(p.len()) / real(i + 1));
        adjusted[index] = smallest;
    }
    adjusted
}

/// Indices of `p` in ascending order of value.
fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    order
}

/// What the filter may know of a class: sums over all runs of both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Blind {
    /// Wait, ns.
    pub wait_ns: f64,
    /// Waits.
    pub events: u64,
}

/// What the filter kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Filtered {
    /// Indices of the classes to test, ascending.
    pub kept: Vec<usize>,
    /// Number of classes left out.
    pub dropped: usize,
    /// Their share of the pooled wait, 0 to 1.
    pub dropped_share: f64,
}

/// Chooses the classes to test without looking at the sides: those with 0.5 % of the pooled wait, or 20 events a run.
///
/// A filter that is blind to the sides leaves the tests after it valid (Bourgon, Gentleman and Huber, 2010), and
/// fewer tests leave more power to each. `runs` is the number of runs of both sides together.
#[must_use]
pub fn filter_blind(classes: &[Blind], runs: usize) -> Filtered {
    let all: f64 = classes.iter().map(|c| c.wait_ns).sum();
    let is_large = |class: &Blind| {
        let enough = MIN_EVENTS.saturating_mul(runs.max(1) as u64);
        class.events >= enough || (all > 0.0 && class.wait_ns >= MIN_SHARE * all)
    };
    let kept: Vec<usize> = (0..classes.len())
        .filter(|&i| is_large(&classes[i]))
        .collect();
    let left: f64 = kept.iter().map(|&i| classes[i].wait_ns).sum();
    Filtered {
        dropped: classes.len() - kept.len(),
        dropped_share: if all > 0.0 {
            (1.0 - left / all).max(0.0)
        } else {
            0.0
        },
        kept,
    }
}

/// Why no class can stand out alone among `classes` tested: even the smallest p is too large. `None` if one can.
#[must_use]
pub fn too_small(design: Design, classes: usize) -> Option<String> {
    if classes == 0 || design.floor() <= FDR / real(classes) {
        return None;
    }
    let need = design
        .least(FDR / real(classes))
        .map_or_else(|| "fewer classes".to_owned(), |n| format!("n={n}"));
    Some(format!(
        "n too small to flag a single class at m={classes}; need {need}"
    ))
}
