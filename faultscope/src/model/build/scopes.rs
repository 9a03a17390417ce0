//! Processes, threads and cgroups: the same counters by another key.

use super::{Cells, cgroup_path, given, other_wait_ns, ratio};
use crate::{
    model::{Context, Value, field as f},
    sample::{
        Counters, Delta, Scope,
        counters::{LRU_LOCK, MMAP_LOCK},
    },
};
use std::collections::HashMap;

/// The columns every scope has.
fn scope(cells: Cells, c: &Counters, context: &Context) -> Cells {
    let faults = |n| given(context, "faults", n);
    let mmap = |n| given(context, "mmap_lock", n);
    let hold = |n| given(context, "mmap_lock_hold", n);
    let contention = |n| given(context, "contention", n);
    let major = c[Scope::Major];
    let rss = given(context, "rss_stat", c[Scope::Rss]);
    let rss_ratio = if rss == Value::Absent {
        None
    } else {
        ratio(c[Scope::Rss], c.faults())
    };
    cells
        .set(&f::FAULTS_N, faults(c.faults()))
        .set(&f::FAULTS_MAJOR, given(context, "major_faults", major))
        .set(&f::FAULTS_MINOR, faults(c.faults().saturating_sub(major)))
        .set(&f::FAULTS_READ, faults(c.faults_where(|class| class == 0)))
        .set(&f::FAULTS_WRITE, faults(c.faults_where(|class| class == 1)))
        .set(
            &f::FAULTS_EXEC,
            faults(c.faults_where(|class| class & 2 != 0)),
        )
        .set(
            &f::FAULTS_PROT,
            faults(c.faults_where(|class| class & 6 == 4)),
        )
        .set(&f::FAULTS_USER, faults(c.user()))
        .set(&f::FAULTS_KERNEL, faults(c.kernel()))
        .set(&f::FAULTS_FIXED, faults(c[Scope::FixedUp]))
        .set(&f::MM_WAIT_NS, contention(c[Scope::WaitNs(MMAP_LOCK)]))
        .set(&f::MM_READ_TAKE_NS, hold(c[Scope::MmapTakeNs(0)]))
        .set(&f::MM_WRITE_TAKE_NS, hold(c[Scope::MmapTakeNs(1)]))
        .set(&f::MM_READS, mmap(c[Scope::MmapTaken(0)]))
        .set(&f::MM_WRITES, mmap(c[Scope::MmapTaken(1)]))
        .set(&f::MM_HOLD_R_NS, hold(c[Scope::MmapHoldNs(0)]))
        .set(&f::MM_HOLD_W_NS, hold(c[Scope::MmapHoldNs(1)]))
        .set(&f::LRU_WAIT_NS, contention(c[Scope::WaitNs(LRU_LOCK)]))
        .set(&f::OTHER_WAIT_NS, contention(other_wait_ns(c)))
        .set(&f::LOCK_WAITS, contention(c.waits()))
        .set(&f::RSS_UPDATES, rss)
        .real(&f::RSS_PER_FAULT, rss_ratio)
        .set(
            &f::MADVISE_CALLS,
            given(context, "madvise", c[Scope::Madvise]),
        )
}

/// One row per process with increments.
pub(super) fn processes(delta: &Delta, context: &Context) -> Vec<Cells> {
    let mut sharing: HashMap<u32, f64> = HashMap::new();
    let mut spaces: Vec<_> = delta.spaces.iter().collect();
    // Sums of fractions depend on the order.
    spaces.sort_unstable_by_key(|(mm, _)| **mm);
    for (_, space) in spaces {
        if let Some(process) = space.process {
            *sharing.entry(process.tgid).or_default() +=
                super::faults::expected_per_sec(space, delta);
        }
    }
    delta
        .processes
        .iter()
        .filter(|(_, p)| !p.counters.is_zero())
        .map(|(id, p)| {
            scope(Cells::new(id), &p.counters, context)
                .count(&f::PID, u64::from(id.tgid))
                .text(&f::COMM, &*p.comm)
                .count(&f::THREADS_N, p.threads)
                .set(&f::CGROUP, cgroup_path(delta, p.cgroup))
                .real(&f::SHARE_EXPECTED, sharing.get(&id.tgid).copied())
        })
        .collect()
}

/// One row per thread with increments.
pub(super) fn threads(delta: &Delta, context: &Context) -> Vec<Cells> {
    delta
        .threads
        .iter()
        .map(|(id, t)| {
            scope(Cells::new(id), &t.counters, context)
                .count(&f::TID, u64::from(id.tid))
                .count(&f::PID, u64::from(t.process.tgid))
                .text(&f::COMM, &*t.comm)
                .set(&f::CGROUP, cgroup_path(delta, t.cgroup))
        })
        .collect()
}

/// One row per cgroup with increments.
pub(super) fn cgroups(delta: &Delta, context: &Context) -> Vec<Cells> {
    delta
        .cgroups
        .iter()
        .filter(|(_, c)| !c.counters.is_zero())
        .map(|(id, c)| {
            scope(Cells::new(id), &c.counters, context)
                .set(&f::CGROUP, cgroup_path(delta, *id))
                .count(&f::CGROUP_ID, *id)
                .count(&f::THREADS_N, c.threads)
        })
        .collect()
}
