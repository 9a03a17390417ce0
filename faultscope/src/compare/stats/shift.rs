//! The Hodges-Lehmann estimate of a difference, with intervals of exact ranks.
//!
//! Hodges and Lehmann (1963), Annals of Mathematical Statistics 34:598: the estimate is the median of all pairwise
//! differences, the interval runs from the k-th smallest to the k-th largest of them. On log values a difference is
//! a ratio.

use super::{Design, Method, median_sorted};

/// What a difference is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Natural logarithm of after / before: every value is above 0.
    Ratio,
    /// after - before in the metric's unit: a value is 0 or below, and has no logarithm.
    Difference,
}

/// How far one side lies from the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// What the numbers below are.
    pub scale: Scale,
    /// Hodges-Lehmann estimate.
    pub estimate: f64,
    /// 95 % interval; `None` if there are too few runs for one.
    pub interval: Option<(f64, f64)>,
    /// How the interval was found.
    pub method: Method,
}

impl Shift {
    /// The estimate as a change in percent, -100 or more; `None` for a difference.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        self.is_ratio().then(|| percent(self.estimate))
    }

    /// The ends of the interval as changes in percent.
    #[must_use]
    pub fn percent_interval(&self) -> Option<(f64, f64)> {
        let (low, high) = self.interval.filter(|_| self.is_ratio())?;
        Some((percent(low), percent(high)))
    }

    fn is_ratio(&self) -> bool {
        self.scale == Scale::Ratio
    }
}

/// A log ratio as a change in percent.
fn percent(log_ratio: f64) -> f64 {
    100.0 * log_ratio.exp_m1()
}

/// How far `after` lies from `before`; `None` if one is empty or a value is not finite.
#[must_use]
pub fn shift(before: &[f64], after: &[f64]) -> Option<Shift> {
    let scale = scale(&[before, after].concat())?;
    let mut pairwise = Vec::with_capacity(before.len() * after.len());
    let (before, after) = (scaled(scale, before), scaled(scale, after));
    for from in &before {
        pairwise.extend(after.iter().map(|to| to - from));
    }
    estimate(scale, pairwise, Design::Sides(before.len(), after.len()))
}

/// How far the second of each pair lies from the first; `None` if there is no pair or a value is not finite.
///
/// The pairwise values are Walsh averages: the means of any two differences, each with itself too.
#[must_use]
pub fn paired_shift(pairs: &[(f64, f64)]) -> Option<Shift> {
    let flat: Vec<f64> = pairs.iter().flat_map(|(from, to)| [*from, *to]).collect();
    let scale = scale(&flat)?;
    let differences = paired_differences(scale, pairs);
    let mut walsh = Vec::with_capacity(differences.len() * (differences.len() + 1) / 2);
    for (i, a) in differences.iter().enumerate() {
        walsh.extend(differences[i..].iter().map(|b| f64::midpoint(*a, *b)));
    }
    estimate(scale, walsh, Design::Pairs(differences.len()))
}

/// Differences of pairs on the scale that [`paired_shift`] uses for them.
pub(super) fn paired_differences(scale: Scale, pairs: &[(f64, f64)]) -> Vec<f64> {
    pairs
        .iter()
        .map(|(from, to)| match scale {
            Scale::Ratio => (to / from).ln(),
            Scale::Difference => to - from,
        })
        .collect()
}

/// The scale for these values; `None` if there are none or one is not finite.
pub(super) fn scale(values: &[f64]) -> Option<Scale> {
    if values.is_empty() || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let has_log = values.iter().all(|v| *v > 0.0);
    Some(if has_log {
        Scale::Ratio
    } else {
        Scale::Difference
    })
}

fn scaled(scale: Scale, values: &[f64]) -> Vec<f64> {
    match scale {
        Scale::Ratio => values.iter().map(|v| v.ln()).collect(),
        Scale::Difference => values.to_vec(),
    }
}

fn estimate(scale: Scale, mut pairwise: Vec<f64>, design: Design) -> Option<Shift> {
    #[cfg(test)]
    super::work::add(pairwise.len());
    pairwise.sort_unstable_by(f64::total_cmp);
    let estimate = median_sorted(&pairwise)?;
    let rank = design.interval_rank();
    Some(Shift {
        scale,
        estimate,
        interval: rank.map(|(k, _)| (pairwise[k - 1], pairwise[pairwise.len() - k])),
        method: rank.map_or(Method::Exact, |(_, method)| method),
    })
}
