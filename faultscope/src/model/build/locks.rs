//! Locks, takers, call sites and waiters.

use super::{Cells, average, cgroup_path, faults_shown, has, process_name, ratio};
use crate::{
    model::{Context, Value, field as f, syscall},
    sample::{
        Delta, Scope,
        counters::{DISTANCES, LOCK_CLASS_NAMES, LOCK_CLASSES, LRU_LOCK, MMAP_LOCK},
        delta::{CallChain, Lock, LockId, Taker},
    },
};
use std::{cmp::Reverse, collections::HashMap};

/// Whether the class spins; on PREEMPT_RT most of these sleep.
pub(in crate::model) fn is_spin(class: usize) -> bool {
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

pub(super) fn handoffs(cells: Cells, by_distance: &[u64; DISTANCES]) -> Cells {
    cells
        .count(&f::HANDOFF_SAME, by_distance[0])
        .count(&f::HANDOFF_SMT, by_distance[1])
        .count(&f::HANDOFF_LLC, by_distance[2])
        .count(&f::HANDOFF_NODE, by_distance[3])
        .count(&f::HANDOFF_REMOTE, by_distance[4])
}

/// `is_exact`: waits that the tracepoint does not see are among them.
fn waits(cells: Cells, lock: &Lock, is_exact: bool) -> Cells {
    cells
        .count(&f::WAITS, lock.waits)
        .count(&f::WAIT_NS, lock.wait_ns)
        .set(
            &f::TRACED_WAITS,
            Value::count(is_exact.then_some(lock.traced)),
        )
        .set(&f::WAIT_AVG_NS, average(lock.wait_ns, lock.waits))
        .count(&f::WAIT_MAX_NS, lock.max_ns)
        .set(
            &f::WAIT_P99_NS,
            Value::count(lock.histogram.quantile_ns(0.99)),
        )
}

pub(super) fn site(delta: &Delta, stack: u32) -> Value {
    match delta.chains.get(&stack) {
        Some(chain) => Value::Text(chain.site.clone()),
        None if stack == 0 => Value::Absent,
        None => Value::Text("[stack lost]".into()),
    }
}

/// What a lock row shows of its identity; locks that differ in nothing shown are
/// one row, which says how many they are.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Shown<'a> {
    class: usize,
    mode: u8,
    node: u32,
    memcg: u64,
    owner: u32,
    site: Option<&'a str>,
}

fn chain_of(delta: &Delta, stack: u32) -> Option<&CallChain> {
    delta.chains.get(&stack).map(|chain| &**chain)
}

fn add(sum: &mut Lock, lock: &Lock) {
    sum.waits += lock.waits;
    sum.wait_ns += lock.wait_ns;
    sum.traced += lock.traced;
    sum.max_ns = sum.max_ns.max(lock.max_ns);
    sum.histogram.add(&lock.histogram);
    for (a, b) in sum.handoffs.iter_mut().zip(&lock.handoffs) {
        *a += b;
    }
}

/// Rows of one kind, merged by what is shown, with the number of locks or chains
/// and the one waited for longest.
fn merged(delta: &Delta, is_site: bool) -> HashMap<Shown<'_>, (Lock, LockId, u64)> {
    let mut rows: HashMap<Shown<'_>, (Lock, LockId, u64)> = HashMap::new();
    let of_kind = |(id, _): &(&LockId, &Lock)| id.is_site == is_site;
    let mut locks: Vec<_> = delta.locks.iter().filter(of_kind).collect();
    // The same increments show the same chain, whatever the order of a hash map.
    locks.sort_unstable_by_key(|(id, lock)| (Reverse(lock.wait_ns), **id));
    for (id, lock) in locks {
        let shown = Shown {
            class: id.class,
            mode: id.mode,
            node: id.node,
            memcg: id.memcg,
            owner: id.owner,
            site: chain_of(delta, id.stack).map(|c| c.site.as_str()),
        };
        let (sum, _, locks) = rows
            .entry(shown)
            .or_insert_with(|| (Lock::default(), *id, 0));
        *locks += 1;
        add(sum, lock);
        sum.address = lock.address;
    }
    rows
}

/// One row per lock that can be told from the others by what is shown.
pub(super) fn locks(delta: &Delta) -> Vec<Cells> {
    merged(delta, false)
        .iter()
        .map(|(shown, (lock, id, locks))| {
            let owner = match id.class {
                MMAP_LOCK => Value::Text(process_name(delta, id.owner)),
                LRU_LOCK if id.memcg == 0 => Value::Text("system".into()),
                LRU_LOCK => cgroup_path(delta, id.memcg),
                _ => Value::Absent,
            };
            let has_node = matches!(LOCK_CLASS_NAMES[id.class], "lru_lock" | "zone_lock");
            let memcg = (id.class == LRU_LOCK && id.memcg != 0).then_some(id.memcg);
            let address = match (lock.address, locks) {
                (0, _) | (_, 2..) => Value::Absent,
                (address, _) => Value::Text(format!("{address:#x}")),
            };
            let cells = Cells::new(shown)
                .text(&f::LOCK, LOCK_CLASS_NAMES[id.class])
                .text(&f::MODE, mode(id))
                .set(&f::OWNER, owner)
                .set(&f::SITE, site(delta, id.stack))
                .count(&f::LOCKS_MERGED, *locks)
                .set(
                    &f::NODE,
                    Value::count(has_node.then_some(u64::from(id.node))),
                )
                .set(&f::CGROUP_ID, Value::count(memcg))
                .set(&f::ADDRESS, address);
            let is_exact = delta.spin_waits.is_some();
            handoffs(waits(cells, lock, is_exact), &lock.handoffs)
        })
        .collect()
}

/// One row per class and mode, with the waits of a million faults and of one.
pub(super) fn classes(delta: &Delta, context: &Context) -> Vec<Cells> {
    let mut rows: HashMap<(usize, &str), (Lock, u64)> = HashMap::new();
    for (id, lock) in delta.locks.iter().filter(|(id, _)| !id.is_site) {
        let (sum, locks) = rows.entry((id.class, mode(id))).or_default();
        add(sum, lock);
        *locks += 1;
    }
    let faults = has(context, "faults").then(|| faults_shown(delta, context));
    rows.iter()
        .map(|((class, mode), (lock, locks))| {
            let a_fault = |n: u64| faults.and_then(|faults| ratio(n, faults));
            let cells = Cells::new((class, mode))
                .text(&f::LOCK, LOCK_CLASS_NAMES[*class])
                .text(&f::MODE, *mode)
                .real(&f::WAITS_PER_MFAULT, a_fault(lock.waits).map(|x| x * 1e6))
                .real(&f::WAIT_PER_FAULT, a_fault(lock.wait_ns))
                .count(&f::LOCKS_MERGED, *locks);
            waits(cells, lock, false)
        })
        .collect()
}

/// One row per call site, class and mode of contended waits.
pub(super) fn sites(delta: &Delta) -> Vec<Cells> {
    merged(delta, true)
        .iter()
        .map(|(shown, (lock, id, chains))| {
            let chain = chain_of(delta, id.stack).map(|c| c.chain.join(" < "));
            let cells = Cells::new(shown)
                .set(&f::SITE, site(delta, id.stack))
                .text(&f::LOCK, LOCK_CLASS_NAMES[id.class])
                .text(&f::MODE, mode(id))
                .count(&f::CHAINS_MERGED, *chains)
                .set(&f::STACK, chain.map_or(Value::Absent, Value::Text));
            waits(cells, lock, delta.spin_waits.is_some())
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

/// One row per taker, owner, system call and mode: an exec or fork takes the
/// lock of several address spaces of one process.
pub(super) fn takers(delta: &Delta) -> Vec<Cells> {
    let mut rows: HashMap<(u32, u32, i32, bool), Taker> = HashMap::new();
    for (id, taker) in &delta.takers {
        let sum = rows
            .entry((id.tgid, taker.owner, id.syscall, id.is_write))
            .or_default();
        sum.owner = taker.owner;
        // Any of them will do, but always the same.
        sum.site = sum.site.max(taker.site);
        sum.taken += taker.taken;
        sum.downgraded += taker.downgraded;
        sum.failed += taker.failed;
        sum.take_ns += taker.take_ns;
        sum.take_max_ns = sum.take_max_ns.max(taker.take_max_ns);
        sum.slow_takes += taker.slow_takes;
        sum.holds += taker.holds;
        sum.hold_ns += taker.hold_ns;
        sum.hold_max_ns = sum.hold_max_ns.max(taker.hold_max_ns);
        for (a, b) in sum.handoffs.iter_mut().zip(&taker.handoffs) {
            *a += b;
        }
    }
    rows.iter()
        .map(|(id, taker)| {
            let (tgid, _, syscall, is_write) = *id;
            let moved: u64 = taker.handoffs[1..5].iter().sum();
            let known: u64 = taker.handoffs[..5].iter().sum();
            let cells = Cells::new(id)
                .text(&f::HOLDER, process_name(delta, tgid))
                .count(&f::PID, u64::from(tgid))
                .text(&f::OWNER, process_name(delta, taker.owner))
                .text(&f::SYSCALL, syscall::name(syscall))
                .text(&f::MODE, if is_write { "write" } else { "read" })
                .set(&f::SAMPLED_SITE, site(delta, taker.site))
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
