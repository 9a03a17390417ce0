//! One row per possible CPU; never filtered.

use super::{Cells, given, ratio};
use crate::{
    model::{Context, Value, field as f},
    sample::{
        Delta, Scope,
        delta::{Cpu, CpuTime},
    },
};

/// Rows in the order of CPU numbers; CPUs that are offline and idle are left out.
pub(super) fn rows(delta: &Delta, context: &Context) -> Vec<Cells> {
    delta
        .cpus
        .iter()
        .filter(|cpu| cpu.time.is_some() || !cpu.counters.is_zero())
        .map(|cpu| row(cpu, delta, context))
        .collect()
}

fn row(cpu: &Cpu, delta: &Delta, context: &Context) -> Cells {
    let c = &cpu.counters;
    let faults = |n| given(context, "faults", n);
    let mmap = |n| given(context, "mmap_lock", n);
    let contention = |n| given(context, "contention", n);
    let lru = |n| given(context, "lru", n);
    let place = |pick: fn((u32, u32, u32)) -> u32| Value::count(cpu.place.map(pick).map(u64::from));
    let share = |pick: fn(CpuTime) -> u64| cpu.time.and_then(|t| ratio(pick(t), delta.interval_ns));
    let spins: Vec<usize> = (0..8)
        .filter(|class| super::locks::is_spin(*class))
        .collect();
    let sum = |f: fn(usize) -> Scope| spins.iter().map(|class| c[f(*class)]).sum();
    let rss = given(context, "rss_stat", c[Scope::Rss]);
    let rss_ratio = if rss == Value::Absent {
        None
    } else {
        ratio(c[Scope::Rss], c.faults())
    };
    let per_busy = cpu
        .time
        .and_then(|t| ratio(c.faults().saturating_mul(1_000_000_000), t.busy_ns));
    Cells::new(cpu.cpu)
        .count(&f::CPU, u64::from(cpu.cpu))
        .set(&f::CORE, place(|p| p.0))
        .set(&f::LLC, place(|p| p.1))
        .set(&f::NODE, place(|p| p.2))
        .set(&f::FAULTS_N, faults(c.faults()))
        .set(
            &f::FAULTS_MAJOR,
            given(context, "major_faults", c[Scope::Major]),
        )
        .set(&f::FAULTS_USER, faults(c.user()))
        .set(&f::FAULTS_KERNEL, faults(c.kernel()))
        .set(&f::FAULTS_FIXED, faults(c[Scope::FixedUp]))
        .real(&f::FAULTS_PER_CPU_SEC, per_busy)
        .set(&f::LOCK_WAITS, contention(c.waits()))
        .set(&f::LOCK_WAIT_NS, contention(c.wait_ns()))
        .set(&f::SPIN_WAITS, contention(sum(Scope::Waits)))
        .set(&f::SPIN_WAIT_NS, contention(sum(Scope::WaitNs)))
        .set(&f::MM_READS, mmap(c[Scope::MmapTaken(0)]))
        .set(&f::MM_WRITES, mmap(c[Scope::MmapTaken(1)]))
        .set(&f::HANDOFFS, mmap(cpu.mmap_handoffs))
        .set(&f::RSS_UPDATES, rss)
        .real(&f::RSS_PER_FAULT, rss_ratio)
        .set(&f::LRU_INSERTIONS, lru(cpu.lru_insertions))
        .set(&f::LRU_ACTIVATIONS, lru(cpu.lru_activations))
        .set(
            &f::LRU_MARKED,
            given(context, "mark_accessed", cpu.lru.mark_accessed),
        )
        .set(
            &f::LRU_REFAULTS,
            given(context, "workingset_refault", cpu.lru.refaults),
        )
        .set(&f::LRU_DRAINS, given(context, "drains", cpu.lru.drains))
        .real(&f::CPU_BUSY, share(|t| t.busy_ns))
        .real(&f::CPU_IDLE, share(|t| t.idle_ns))
        .real(&f::CPU_IOWAIT, share(|t| t.iowait_ns))
        .real(&f::CPU_STEAL, share(|t| t.steal_ns))
}
