//! What plots show of a run over time: a bounded number of bins.

use super::{
    Counters, Scope,
    counters::LOCK_CLASSES,
    delta::{Delta, Passes},
    histogram::Histogram,
};
use std::collections::BTreeMap;

/// A piece of the run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bin {
    /// Beginning, monotonic ns.
    pub start_ns: u64,
    /// End, monotonic ns.
    pub end_ns: u64,
    /// Time covered by intervals, ns: less than the length if some are missing.
    pub covered_ns: u64,
    /// Serviced faults by CPU.
    pub faults: BTreeMap<u32, u64>,
    /// Times of faults inside `handle_mm_fault`.
    pub latency: Histogram,
    /// Time in contended waits by lock class, ns.
    pub wait_ns: [u64; LOCK_CLASSES],
}

impl Bin {
    fn of(delta: &Delta) -> Self {
        let mut latency = Histogram::default();
        for Passes { histogram, .. } in delta.passes.values() {
            latency.add(histogram);
        }
        let total = delta.total();
        let faults = |counters: &Counters| counters.faults();
        Self {
            start_ns: delta.t_mono_ns.saturating_sub(delta.interval_ns),
            end_ns: delta.t_mono_ns,
            covered_ns: delta.interval_ns,
            faults: delta
                .cpus
                .iter()
                .map(|cpu| (cpu.cpu, faults(&cpu.counters)))
                .collect(),
            latency,
            wait_ns: std::array::from_fn(|class| total[Scope::WaitNs(class)]),
        }
    }

    fn add(&mut self, other: &Self) {
        self.end_ns = self.end_ns.max(other.end_ns);
        self.covered_ns = self.covered_ns.saturating_add(other.covered_ns);
        for (cpu, n) in &other.faults {
            let sum = self.faults.entry(*cpu).or_default();
            *sum = sum.saturating_add(*n);
        }
        self.latency.add(&other.latency);
        for (a, b) in self.wait_ns.iter_mut().zip(&other.wait_ns) {
            *a = a.saturating_add(*b);
        }
    }
}

/// A run over time.
#[derive(Debug, Clone)]
pub struct Series {
    bins: Vec<Bin>,
    /// Intervals in the bin that is filled last.
    filled: usize,
    /// Intervals for each bin.
    each: usize,
    most: usize,
}

impl Series {
    /// At most `most` bins, an even number of 2 and more.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            bins: Vec::new(),
            filled: 0,
            each: 1,
            most: most.max(2).next_multiple_of(2),
        }
    }

    /// Adds the interval that follows those added; when the bins are full, each two
    /// neighbours become one.
    pub fn add(&mut self, delta: &Delta) {
        let bin = Bin::of(delta);
        match self.bins.last_mut() {
            Some(last) if self.filled < self.each => {
                last.add(&bin);
                self.filled += 1;
                return;
            }
            _ => {}
        }
        if self.bins.len() == self.most {
            self.bins = self
                .bins
                .chunks(2)
                .map(|pair| {
                    let mut sum = pair[0].clone();
                    if let Some(second) = pair.get(1) {
                        sum.add(second);
                    }
                    sum
                })
                .collect();
            self.each *= 2;
        }
        self.bins.push(bin);
        self.filled = 1;
    }

    /// The bins in order of time.
    #[must_use]
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// Intervals in each bin but the last, which may have fewer.
    #[must_use]
    pub fn intervals_a_bin(&self) -> usize {
        self.each
    }

    /// Every CPU that faulted or was read.
    #[must_use]
    pub fn cpus(&self) -> Vec<u32> {
        let mut cpus: Vec<u32> = self
            .bins
            .iter()
            .flat_map(|bin| bin.faults.keys().copied())
            .collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::merge::fixture::interval;

    #[test]
    fn bins_are_bounded_and_keep_every_fault() {
        for n in [1_u64, 7, 8, 9, 64, 1000] {
            let mut series = Series::new(8);
            for t in 1..=n {
                series.add(&interval(t, &[(0, 1, 5), (0, 2, 1), (10, 0, 3)]));
            }
            assert!((1..=8).contains(&series.bins().len()), "{n}");
            let faults: u64 = series.bins().iter().flat_map(|b| b.faults.values()).sum();
            // 16 fault classes of 5 and of 1.
            assert_eq!(faults, n * 16 * 6);
            let latency: u64 = series.bins().iter().map(|b| b.latency.count()).sum();
            // Those of the CPUs are the same faults by another key.
            assert_eq!(latency, n * 3);
            let covered: u64 = series.bins().iter().map(|b| b.covered_ns).sum();
            assert_eq!(covered, n * 1_000_000_000);
            assert_eq!(series.cpus(), [1, 2]);
            assert!(
                series
                    .bins()
                    .windows(2)
                    .all(|w| w[0].end_ns == w[1].start_ns)
            );
        }
    }
}
