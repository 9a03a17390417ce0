//! Latency and wait histograms of two sides by quantile, with intervals over the runs; tails by name.

use std::collections::{BTreeMap, BTreeSet};

use super::align::Class;
use super::observed::Observed;
use super::stats::{ALPHA, Comparison, compare_runs};
use crate::sample::{Delta, counters::LOCK_CLASS_NAMES, delta::FAULT_PATHS, histogram::Histogram};

/// Quantiles that are compared, the tails last.
pub const QUANTILES: [(f64, &str); 4] =
    [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")];

/// Name of the durations of all faults.
pub const FAULT: &str = "fault";

/// Fewest values of which the least and the greatest enclose a quantile with 95 % confidence: with fewer, a run says nothing
/// about it.
///
/// The confidence is 1 - q^n - (1 - q)^n (David and Nagaraja, 2003, Order Statistics, 7.1).
#[must_use]
pub fn least(q: f64) -> u64 {
    let is_enough = |n: &i32| q.powi(*n) + (1.0 - q).powi(*n) <= ALPHA;
    let found = (1..=1_000_000).find(is_enough);
    found.map_or(u64::MAX, |n| u64::from(n.unsigned_abs()))
}

/// One quantile of one histogram on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantile {
    /// Name, as `p99`.
    pub name: &'static str,
    /// Values of which a run needs so many.
    pub needed: u64,
    /// Value of each run, ns (off by at most 25 %), by side.
    pub values: [Vec<f64>; 2],
    /// The sides compared; `None` if a run has too few values.
    pub comparison: Option<Comparison>,
}

/// A histogram on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Durations {
    /// What it is of.
    pub name: String,
    /// Values of the run that has the fewest, of either side.
    pub fewest: u64,
    /// In the order of [`QUANTILES`].
    pub quantiles: Vec<Quantile>,
}

/// Durations of one run by what they are of.
pub(super) fn durations(delta: &Delta, has: &dyn Fn(&str) -> bool) -> BTreeMap<String, Histogram> {
    let mut all: BTreeMap<String, Histogram> = BTreeMap::new();
    let mut add = |name: String, histogram: &Histogram| all.entry(name).or_default().add(histogram);
    if has("fault_latency") {
        for ((path, _), passes) in &delta.passes {
            add(FAULT.to_owned(), &passes.histogram);
            let path = FAULT_PATHS.get(*path).copied().unwrap_or_default();
            add(format!("{FAULT} by {path}"), &passes.histogram);
        }
    }
    if has("contention") {
        for (id, lock) in delta.locks.iter().filter(|(id, _)| !id.is_site) {
            let mode = match id.mode {
                2 => "read",
                4 => "write",
                _ => "",
            };
            let class = Class::new(LOCK_CLASS_NAMES[id.class], mode, "");
            add(format!("wait for {}", class.name()), &lock.histogram);
        }
    }
    if has("lru_lock_exact_hold") {
        for hold in delta.lru_holds.values() {
            add("hold of lru_lock".to_owned(), &hold.histogram);
        }
    }
    if has("lru_lock_hold") {
        for moves in delta.moves.values() {
            add("region of lru_lock".to_owned(), &moves.histogram);
        }
    }
    all.retain(|_, histogram| histogram.count() > 0);
    all
}

fn of_run(run: &Observed) -> Option<&BTreeMap<String, Histogram>> {
    run.kernel.as_ref().map(|kernel| &kernel.durations)
}

/// The histogram of every run; `None` if one lacks it.
fn of_side<'a>(side: &'a [Observed], name: &str) -> Option<Vec<&'a Histogram>> {
    side.iter().map(|run| of_run(run)?.get(name)).collect()
}

/// Every histogram that all runs of both sides have, faults first, then the fullest.
#[must_use]
pub fn quantiles(sides: [&[Observed]; 2], pairs: Option<&[(usize, usize)]>) -> Vec<Durations> {
    let names: BTreeSet<&String> = sides[0]
        .iter()
        .filter_map(of_run)
        .flat_map(BTreeMap::keys)
        .collect();
    let mut all = Vec::new();
    for name in names {
        let Some((before, after)) = of_side(sides[0], name).zip(of_side(sides[1], name)) else {
            continue;
        };
        let histograms = [before, after];
        let counts = || histograms.iter().flatten().map(|h| h.count());
        let (fewest, sum) = (counts().min().unwrap_or_default(), counts().sum::<u64>());
        // A side of paths that are all the faults says the same twice.
        let is_all = name.starts_with("fault by ")
            && sides.iter().zip(&histograms).all(|(side, of_path)| {
                let whole = side.iter().filter_map(of_run).filter_map(|d| d.get(FAULT));
                whole.zip(of_path).all(|(a, b)| a.count() == b.count())
            });
        if is_all {
            continue;
        }
        let quantiles = QUANTILES
            .iter()
            .map(|(q, word)| quantile(*q, word, &histograms, fewest, pairs))
            .collect();
        let durations = Durations {
            name: name.clone(),
            fewest,
            quantiles,
        };
        all.push((sum, durations));
    }
    all.sort_by_key(|(sum, d)| (d.name != FAULT, std::cmp::Reverse(*sum)));
    all.into_iter().map(|(_, d)| d).collect()
}

fn quantile(
    q: f64,
    name: &'static str,
    histograms: &[Vec<&Histogram>; 2],
    fewest: u64,
    pairs: Option<&[(usize, usize)]>,
) -> Quantile {
    let needed = least(q);
    let values = [0, 1].map(|i| -> Vec<f64> {
        let value = |h: &&Histogram| h.quantile_ns(q).map(super::observed::real);
        histograms[i].iter().filter_map(value).collect()
    });
    let compared = || compare_runs(&values, pairs);
    Quantile {
        name,
        needed,
        comparison: (fewest >= needed).then(compared).flatten(),
        values,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_needs_more_values_than_a_median() {
        let needed: Vec<u64> = QUANTILES.iter().map(|(q, _)| least(*q)).collect();
        assert_eq!(needed, [6, 29, 299, 2995]);
    }
}
