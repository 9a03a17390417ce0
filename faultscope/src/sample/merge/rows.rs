//! How two rows of one identity become one.

use crate::sample::{
    blocked::BlockedWaits,
    delta::{
        Cgroup, Cpu, CpuTime, Lock, LruHold, Madvise, Moves, Own, Passes, Process, ProcessPasses,
        Program, Space, Taker, Thread,
    },
    refault::Refault,
};
use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
    sync::Arc,
};

/// Rows with an identity of their own.
pub(super) trait Row: Clone {
    /// Adds increments; the greater maximum stays.
    fn add(&mut self, other: &Self);

    /// Takes over what is a level or a name from a row of a later interval.
    fn follow(&mut self, _later: &Self) {}
}

/// Rows by identity, each with the end of the latest interval that had it.
#[derive(Debug)]
pub(super) struct Rows<K, V>(HashMap<K, (u64, V)>);

impl<K, V> Default for Rows<K, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash, V: Row> Rows<K, V> {
    /// Adds a row of the interval that ended at `t_mono_ns`.
    pub(super) fn add(&mut self, t_mono_ns: u64, key: K, row: &V) {
        match self.0.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert((t_mono_ns, row.clone()));
            }
            Entry::Occupied(mut occupied) => {
                let (at, sum) = occupied.get_mut();
                sum.add(row);
                if t_mono_ns >= *at {
                    *at = t_mono_ns;
                    sum.follow(row);
                }
            }
        }
    }

    /// The sums.
    pub(super) fn into_rows(self) -> impl Iterator<Item = (K, V)> {
        self.0.into_iter().map(|(key, (_, row))| (key, row))
    }
}

/// Adds what may not have been measured: nothing stays nothing.
pub(super) fn add_some(sum: &mut Option<u64>, other: Option<u64>) {
    if let Some(n) = other {
        *sum = Some(sum.unwrap_or(0).saturating_add(n));
    }
}

/// Adds word by word.
pub(super) fn add_all(sum: &mut [u64], other: &[u64]) {
    for (a, b) in sum.iter_mut().zip(other) {
        *a = a.saturating_add(*b);
    }
}

fn add_to(sum: &mut u64, n: u64) {
    *sum = sum.saturating_add(n);
}

impl Row for Thread {
    fn add(&mut self, other: &Self) {
        self.counters += &other.counters;
    }

    fn follow(&mut self, later: &Self) {
        self.process = later.process;
        self.comm = later.comm.clone();
        self.cgroup = later.cgroup;
    }
}

impl Row for Process {
    fn add(&mut self, other: &Self) {
        self.counters += &other.counters;
        self.is_workload |= other.is_workload;
    }

    fn follow(&mut self, later: &Self) {
        self.threads = later.threads;
        self.cgroup = later.cgroup;
    }
}

impl Row for Cgroup {
    fn add(&mut self, other: &Self) {
        self.counters += &other.counters;
    }

    fn follow(&mut self, later: &Self) {
        self.threads = later.threads;
    }
}

impl Row for Cpu {
    fn add(&mut self, other: &Self) {
        self.counters += &other.counters;
        add_all(&mut self.rss, &other.rss);
        add_to(&mut self.lru_insertions, other.lru_insertions);
        add_to(&mut self.lru_activations, other.lru_activations);
        let (lru, more) = (&mut self.lru, &other.lru);
        add_to(&mut lru.mark_accessed, more.mark_accessed);
        add_to(&mut lru.workingset_activations, more.workingset_activations);
        add_to(&mut lru.refaults, more.refaults);
        add_to(&mut lru.drains, more.drains);
        add_to(&mut self.mmap_handoffs, other.mmap_handoffs);
        add_all(&mut self.mmap_failed, &other.mmap_failed);
        add_to(&mut self.mmap_downgraded, other.mmap_downgraded);
        if let Some(time) = other.time {
            let CpuTime {
                busy_ns,
                idle_ns,
                iowait_ns,
                steal_ns,
            } = self.time.get_or_insert_default();
            add_to(busy_ns, time.busy_ns);
            add_to(idle_ns, time.idle_ns);
            add_to(iowait_ns, time.iowait_ns);
            add_to(steal_ns, time.steal_ns);
        }
        self.passes.add(&other.passes);
    }

    fn follow(&mut self, later: &Self) {
        self.place = later.place;
    }
}

impl Row for Passes {
    fn add(&mut self, other: &Self) {
        Self::add(self, other);
    }
}

impl Row for ProcessPasses {
    fn add(&mut self, other: &Self) {
        self.passes.add(&other.passes);
        add_all(&mut self.paths, &other.paths);
    }
}

impl Row for Space {
    fn add(&mut self, other: &Self) {
        // Known or not; threads that share it after a vfork may name either.
        self.process = self.process.max(other.process);
        for (cpu, n) in &other.by_cpu {
            add_to(self.by_cpu.entry(*cpu).or_default(), *n);
        }
        add_to(&mut self.window_faults, other.window_faults);
        add_to(&mut self.window_handoffs, other.window_handoffs);
        add_to(&mut self.rss, other.rss);
    }
}

impl Row for Taker {
    fn add(&mut self, other: &Self) {
        add_to(&mut self.taken, other.taken);
        add_to(&mut self.downgraded, other.downgraded);
        add_to(&mut self.failed, other.failed);
        add_to(&mut self.take_ns, other.take_ns);
        self.take_max_ns = self.take_max_ns.max(other.take_max_ns);
        add_to(&mut self.slow_takes, other.slow_takes);
        add_to(&mut self.holds, other.holds);
        add_to(&mut self.hold_ns, other.hold_ns);
        self.hold_max_ns = self.hold_max_ns.max(other.hold_max_ns);
        add_all(&mut self.handoffs, &other.handoffs);
    }

    fn follow(&mut self, later: &Self) {
        self.owner = later.owner;
    }
}

impl Row for Lock {
    fn add(&mut self, other: &Self) {
        add_to(&mut self.waits, other.waits);
        add_to(&mut self.wait_ns, other.wait_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        add_all(&mut self.handoffs, &other.handoffs);
        self.histogram.add(&other.histogram);
        add_to(&mut self.traced, other.traced);
    }

    fn follow(&mut self, later: &Self) {
        self.address = later.address;
    }
}

impl Row for BlockedWaits {
    fn add(&mut self, other: &Self) {
        add_to(&mut self.waits, other.waits);
        add_to(&mut self.wait_ns, other.wait_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

impl Row for Moves {
    fn add(&mut self, other: &Self) {
        add_to(&mut self.batches, other.batches);
        add_to(&mut self.folios, other.folios);
        add_all(&mut self.sizes, &other.sizes);
        add_to(&mut self.regions, other.regions);
        add_to(&mut self.region_ns, other.region_ns);
        self.region_max_ns = self.region_max_ns.max(other.region_max_ns);
        self.histogram.add(&other.histogram);
    }
}

impl Row for LruHold {
    fn add(&mut self, other: &Self) {
        add_to(&mut self.holds, other.holds);
        add_to(&mut self.hold_ns, other.hold_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        add_all(&mut self.handoffs, &other.handoffs);
        self.histogram.add(&other.histogram);
    }

    fn follow(&mut self, later: &Self) {
        self.address = later.address;
    }
}

impl Row for Madvise {
    fn add(&mut self, other: &Self) {
        add_to(&mut self.calls, other.calls);
        add_to(&mut self.failures, other.failures);
        add_to(&mut self.bytes, other.bytes);
        add_to(&mut self.ns, other.ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

impl Row for Refault {
    fn add(&mut self, other: &Self) {
        Self::add(self, other);
    }
}

impl Row for Program {
    fn add(&mut self, other: &Self) {
        add_some(&mut self.run_ns, other.run_ns);
        add_some(&mut self.runs, other.runs);
        add_some(&mut self.misses, other.misses);
    }

    fn follow(&mut self, later: &Self) {
        self.place = later.place.clone();
        self.is_attached = later.is_attached;
    }
}

impl Row for Own {
    fn add(&mut self, other: &Self) {
        add_some(&mut self.cpu_ns, other.cpu_ns);
        self.peak_rss_bytes = self.peak_rss_bytes.max(other.peak_rss_bytes);
        self.overruns = self.overruns.max(other.overruns);
    }

    fn follow(&mut self, later: &Self) {
        self.rss_bytes = later.rss_bytes;
        self.map_bytes = later.map_bytes;
    }
}

/// A name that says something.
#[derive(Debug, Clone)]
pub(super) struct Name(pub(super) Arc<str>);

impl Row for Name {
    fn add(&mut self, _other: &Self) {}

    fn follow(&mut self, later: &Self) {
        self.0 = Arc::clone(&later.0);
    }
}
