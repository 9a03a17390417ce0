//! Locks, takers, call sites and waiters.

use super::{Cells, average, cgroup_path, process_name, ratio};
use crate::{
    model::{Value, field as f},
    sample::{
        Delta, Scope,
        counters::{DISTANCES, LOCK_CLASS_NAMES, LOCK_CLASSES, LRU_LOCK, MMAP_LOCK},
        delta::{Lock, LockId},
    },
};

/// Whether the class spins; on PREEMPT_RT most of these sleep.
pub(super) fn is_spin(class: usize) -> bool {
    matches!(
        LOCK_CLASS_NAMES.get(class),
        Some(&("lru_lock" | "zone_lock" | "page_table_lock" | "spinlock"))
    )
}

fn mode(id: &LockId) -> &'static str {
    match (LOCK_CLASS_NAMES[id.class], id.mode) {
        (_, 2) => "read",
        (_, 4) => "write",
        ("mutex", _) => "mutex",
        ("rt_mutex", _) => "rt",
        (_, 0) if is_spin(id.class) => "spin",
        _ => "-",
    }
}

fn handoffs(cells: Cells, by_distance: &[u64; DISTANCES]) -> Cells {
    cells
        .count(&f::HANDOFF_SAME, by_distance[0])
        .count(&f::HANDOFF_SMT, by_distance[1])
        .count(&f::HANDOFF_LLC, by_distance[2])
        .count(&f::HANDOFF_NODE, by_distance[3])
        .count(&f::HANDOFF_REMOTE, by_distance[4])
}

fn waits(cells: Cells, lock: &Lock) -> Cells {
    cells
        .count(&f::WAITS, lock.waits)
        .count(&f::WAIT_NS, lock.wait_ns)
        .set(&f::WAIT_AVG_NS, average(lock.wait_ns, lock.waits))
        .count(&f::WAIT_MAX_NS, lock.max_ns)
        .set(
            &f::WAIT_P99_NS,
            Value::count(lock.histogram.quantile_ns(0.99)),
        )
}

fn site(delta: &Delta, stack: u32) -> Value {
    match delta.chains.get(&stack) {
        Some(chain) => Value::Text(chain.site.clone()),
        None if stack == 0 => Value::Absent,
        None => Value::Text("[stack lost]".into()),
    }
}

/// One row per lock.
pub(super) fn locks(delta: &Delta) -> Vec<Cells> {
    delta
        .locks
        .iter()
        .filter(|(id, _)| !id.is_site)
        .map(|(id, lock)| {
            let owner = match id.class {
                MMAP_LOCK => Value::Text(process_name(delta, id.owner)),
                LRU_LOCK if id.memcg == 0 => Value::Text("system".into()),
                LRU_LOCK => cgroup_path(delta, id.memcg),
                _ => Value::Absent,
            };
            let has_node = matches!(LOCK_CLASS_NAMES[id.class], "lru_lock" | "zone_lock");
            let cells = Cells::new(id)
                .text(&f::LOCK, LOCK_CLASS_NAMES[id.class])
                .text(&f::MODE, mode(id))
                .set(&f::OWNER, owner)
                .set(&f::SITE, site(delta, id.stack))
                .set(
                    &f::NODE,
                    Value::count(has_node.then_some(u64::from(id.node))),
                )
                .set(
                    &f::CGROUP_ID,
                    Value::count((id.class == LRU_LOCK && id.memcg != 0).then_some(id.memcg)),
                )
                .set(
                    &f::ADDRESS,
                    if lock.address == 0 {
                        Value::Absent
                    } else {
                        Value::Text(format!("{:#x}", lock.address))
                    },
                );
            handoffs(waits(cells, lock), &lock.handoffs)
        })
        .collect()
}

/// One row per call site of contended waits.
pub(super) fn sites(delta: &Delta) -> Vec<Cells> {
    delta
        .locks
        .iter()
        .filter(|(id, _)| id.is_site)
        .map(|(id, lock)| {
            let chain = delta.chains.get(&id.stack).map(|c| c.chain.join(" < "));
            let cells = Cells::new(id)
                .set(&f::SITE, site(delta, id.stack))
                .text(&f::LOCK, LOCK_CLASS_NAMES[id.class])
                .text(&f::MODE, mode(id))
                .set(&f::STACK, chain.map_or(Value::Absent, Value::Text));
            waits(cells, lock)
        })
        .collect()
}

/// One row per process and class that waited.
pub(super) fn waiters(delta: &Delta) -> Vec<Cells> {
    delta
        .processes
        .iter()
        .flat_map(|(id, process)| {
            (0..LOCK_CLASSES)
                .map(move |class| (id, process, class))
                .filter(|(_, process, class)| process.counters[Scope::Waits(*class)] > 0)
        })
        .map(|(id, process, class)| {
            let n = process.counters[Scope::Waits(class)];
            let ns = process.counters[Scope::WaitNs(class)];
            Cells::new((id, class))
                .count(&f::PID, u64::from(id.tgid))
                .text(&f::COMM, &*process.comm)
                .text(&f::LOCK, LOCK_CLASS_NAMES[class])
                .count(&f::WAITS, n)
                .count(&f::WAIT_NS, ns)
                .set(&f::WAIT_AVG_NS, average(ns, n))
                .set(&f::CGROUP, cgroup_path(delta, process.cgroup))
        })
        .collect()
}

/// One row per mm, taker, system call and mode.
pub(super) fn takers(delta: &Delta) -> Vec<Cells> {
    delta
        .takers
        .iter()
        .map(|(id, taker)| {
            let moved: u64 = taker.handoffs[1..5].iter().sum();
            let known: u64 = taker.handoffs[..5].iter().sum();
            let cells = Cells::new(id)
                .text(&f::HOLDER, process_name(delta, id.tgid))
                .count(&f::PID, u64::from(id.tgid))
                .text(&f::OWNER, process_name(delta, taker.owner))
                .text(&f::SYSCALL, super::super::syscall::name(id.syscall))
                .text(&f::MODE, if id.is_write { "write" } else { "read" })
                .count(&f::ACQUISITIONS, taker.taken)
                .count(&f::HOLD_NS, taker.hold_ns)
                .set(&f::HOLD_AVG_NS, average(taker.hold_ns, taker.holds))
                .count(&f::HOLD_MAX_NS, taker.hold_max_ns)
                .count(&f::TAKER_WAIT_NS, taker.take_ns)
                .count(&f::MM_WAITS, taker.slow_takes)
                .count(&f::WAIT_MAX_NS, taker.take_max_ns)
                .count(&f::DOWNGRADES, taker.downgraded)
                .count(&f::FAILURES, taker.failed)
                .real(&f::HANDOFF_RATIO, ratio(moved, known));
            handoffs(cells, &taker.handoffs)
        })
        .collect()
}
