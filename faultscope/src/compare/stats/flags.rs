//! Flags on the values of one side. They drop nothing.

use super::{median, median_sorted};

/// Distance from the median, in median absolute deviations, beyond which a run is flagged.
const MAX_DEVIATIONS: f64 = 5.0;

/// Fewest runs of which one can lie apart.
const MIN_RUNS: usize = 4;

/// Fewest runs that can be two clusters.
const MIN_CLUSTERED: usize = 6;

/// How much wider the gap between two clusters is than the wider of them.
const MIN_GAP: f64 = 2.0;

/// A run far from the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlier {
    /// Its place among the values.
    pub index: usize,
    /// Its value.
    pub value: f64,
}

/// Runs farther than 5 median absolute deviations from the median; none of fewer than four.
///
/// `resolution` is the step of the values in their unit: a deviation below half of it counts as half of it, so that
/// equal readings and one next to them are no finding.
#[must_use]
pub fn outliers(values: &[f64], resolution: f64) -> Vec<Outlier> {
    let Some(middle) = median(values).filter(|_| values.len() >= MIN_RUNS) else {
        return Vec::new();
    };
    let off: Vec<f64> = values.iter().map(|v| (v - middle).abs()).collect();
    let spread = median(&off).unwrap_or_default().max(resolution / 2.0);
    (0..values.len())
        .filter(|&i| off[i] > MAX_DEVIATIONS * spread)
        .map(|index| Outlier {
            index,
            value: values[index],
        })
        .collect()
}

/// Two groups of runs with nothing between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clusters {
    /// Number of runs and their median, of the larger group and of the smaller.
    pub groups: [(usize, f64); 2],
}

impl Clusters {
    /// As `bimodal: 7 runs near 100, 3 near 112`.
    #[must_use]
    pub fn sentence(&self, format: impl Fn(f64) -> String) -> String {
        let [(many, most), (few, other)] = self.groups;
        format!(
            "bimodal: {many} runs near {}, {few} near {}",
            format(most),
            format(other)
        )
    }
}

/// Finds two clusters: at least two runs each, and a gap between them twice as wide as the wider one.
///
/// Values above `resolution` apart count as different; none of fewer than six runs.
#[must_use]
pub fn clusters(values: &[f64], resolution: f64) -> Option<Clusters> {
    if values.len() < MIN_CLUSTERED {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let gap = |at: usize| sorted[at] - sorted[at - 1];
    let at = (2..=sorted.len() - 2).max_by(|&a, &b| gap(a).total_cmp(&gap(b)))?;
    let (low, high) = sorted.split_at(at);
    let width = |part: &[f64]| part[part.len() - 1] - part[0];
    let widest = width(low).max(width(high)).max(resolution);
    if gap(at) <= MIN_GAP * widest {
        return None;
    }
    let mut groups = [
        (low.len(), median_sorted(low)?),
        (high.len(), median_sorted(high)?),
    ];
    groups.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    Some(Clusters { groups })
}
