//! Intervals made of random rows, for tests of sums.

use super::{Merged, Merger};
use crate::sample::{
    Delta,
    blocked::{BlockedId, BlockedWaits, Held},
    counters::COUNTERS,
    delta::{
        CallChain, Cgroup, Cpu, CpuTime, Lock, LockId, Loss, LruHold, LruLockId, Madvise,
        MadviseId, MapFill, Moves, Own, Passes, Process, ProcessId, ProcessPasses, Program, Space,
        SpinWaits, Taker, TakerId, Thread, ThreadId,
    },
    refault::Refault,
};
use proptest::prelude::*;
use std::sync::Arc;

/// What one random number puts into an interval: a row of a few identities.
pub(crate) type Op = (u8, u8, u64);

/// The interval that ends at second `t`; slots of call chains are shifted by it.
pub(crate) fn interval(t: u64, ops: &[Op]) -> Delta {
    let mut d = Delta {
        t_mono_ns: t * 1_000_000_000,
        t_real_ns: 5_000_000_000 + t * 1_000_000_000,
        interval_ns: 1_000_000_000,
        is_first: t == 1,
        mglru: [Some(u32::try_from(t).expect("small")), Some(7)],
        losses: vec![
            Loss {
                total: t,
                increment: 1
            };
            2
        ],
        levels: vec![("MemFree".into(), t)],
        maps: vec![MapFill {
            name: "M".into(),
            entries: t,
            capacity: 9,
        }],
        refault_window_ns: 1_000,
        own: Own {
            cpu_ns: Some(t),
            overruns: t,
            ..Own::default()
        },
        ..Delta::default()
    };
    for name in ["a", "b"] {
        d.programs.push(Program {
            name: name.into(),
            place: format!("hook {t}"),
            is_attached: true,
            run_ns: Some(3),
            runs: t.is_multiple_of(2).then_some(1),
            misses: None,
        });
    }
    for op in ops {
        put(&mut d, t, *op);
    }
    d
}

/// Slot of chain `k` in the interval `t`; every fourth chain is lost.
fn slot(d: &mut Delta, t: u64, k: u8) -> u32 {
    let slot = u32::from(k) + 1 + u32::try_from(t).expect("small") * 10;
    if k % 4 != 3 {
        let chain = Arc::new(CallChain {
            site: format!("site{k}"),
            chain: vec![format!("site{k}"), "entry".into()],
        });
        Arc::make_mut(&mut d.chains).insert(slot, chain);
    }
    slot
}

fn put(d: &mut Delta, t: u64, (kind, k, n): Op) {
    let k = k % 5;
    let id = u32::from(k) + 10;
    let mut histogram = crate::sample::histogram::Histogram::default();
    histogram.0[usize::from(k)] = n;
    let counters = crate::sample::Counters([n; COUNTERS]);
    let comm: Arc<str> = format!("p{id}-{t}").into();
    let process = ProcessId {
        tgid: id,
        start_ns: 1,
    };
    let passes = Passes {
        began: n,
        faults: n,
        ns: n,
        max_ns: n,
        histogram: histogram.clone(),
        ..Passes::default()
    };
    match kind % 15 {
        0 => {
            d.cpus.retain(|c| c.cpu != u32::from(k));
            d.cpus.push(Cpu {
                cpu: u32::from(k),
                counters,
                place: Some((0, 0, 0)),
                time: (n % 2 == 0).then_some(CpuTime {
                    busy_ns: n,
                    ..CpuTime::default()
                }),
                passes,
                ..Cpu::default()
            });
            d.cpus.sort_by_key(|c| c.cpu);
        }
        1 => {
            let row = Thread {
                process,
                comm,
                cgroup: t,
                counters,
            };
            d.threads.insert(
                ThreadId {
                    tid: id,
                    start_ns: 1,
                },
                row,
            );
        }
        2 => {
            let comm = if n % 3 == 0 { "".into() } else { comm };
            d.processes.insert(
                process,
                Process {
                    comm,
                    cgroup: 1,
                    threads: t,
                    counters,
                    is_workload: n.is_multiple_of(5),
                },
            );
        }
        3 => drop(d.cgroups.insert(
            u64::from(k),
            Cgroup {
                threads: t,
                counters,
            },
        )),
        4 => {
            let space = Space {
                process: (n % 2 == 0).then_some(process),
                by_cpu: [(u32::from(k), n)].into(),
                rss: n,
                ..Space::default()
            };
            d.spaces.insert(u64::from(k), space);
        }
        5 => {
            let site = slot(d, t, k);
            let id = TakerId {
                mm: 1,
                tgid: id % 2,
                syscall: 9,
                is_write: true,
            };
            d.takers.insert(
                id,
                Taker {
                    taken: n,
                    hold_ns: n,
                    hold_max_ns: n,
                    site,
                    ..Taker::default()
                },
            );
        }
        6 => {
            let stack = slot(d, t, k);
            let id = LockId {
                is_site: n % 2 == 0,
                class: 1,
                mode: 0,
                node: 0,
                id: 0,
                memcg: 0,
                stack,
                owner: 0,
            };
            d.locks.insert(
                id,
                Lock {
                    waits: n,
                    wait_ns: n,
                    max_ns: n,
                    histogram,
                    address: t,
                    ..Lock::default()
                },
            );
        }
        7 => {
            let (site, holder_site) = (slot(d, t, k), slot(d, t, (k + 1) % 5));
            let id = BlockedId {
                tgid: id,
                syscall: 9,
                is_write: true,
                site,
                held: Held::Write,
                holder: 3,
                holder_tid: 4,
                holder_comm: "h".into(),
                holder_syscall: None,
                holder_site,
                owner: 3,
            };
            d.blocked.insert(
                id,
                BlockedWaits {
                    waits: n,
                    wait_ns: n,
                    max_ns: n,
                },
            );
        }
        8 => drop(d.madvise.insert(
            MadviseId {
                tgid: id,
                advice: 4,
                is_remote: false,
            },
            Madvise {
                calls: n,
                bytes: n,
                ns: n,
                max_ns: n,
                ..Madvise::default()
            },
        )),
        9 => drop(d.refaults.insert(
            MadviseId {
                tgid: id,
                advice: 4,
                is_remote: false,
            },
            Refault {
                ranges: n,
                bytes: n,
                refaults: n,
                after: histogram,
                ..Refault::default()
            },
        )),
        10 => drop(d.passes.insert((usize::from(k), 0), passes)),
        11 => drop(d.process_passes.insert(
            id,
            ProcessPasses {
                passes,
                paths: [n; 6],
            },
        )),
        12 => {
            d.names.insert(id, comm);
            d.vmstat.insert(format!("v{k}").into(), n);
            d.context_switches = Some(n);
            d.symbols_refused = Some(format!("at {t}"));
            d.spin_waits = Some(SpinWaits {
                ended: [n; 8],
                traced: [n; 8],
            });
            d.memory_pressure_ns = Some((n, n));
            d.is_paravirtual = Some(n % 2 == 0);
        }
        13 => {
            d.moves.insert(
                "lru_add".into(),
                Moves {
                    folios: n,
                    regions: n,
                    histogram: histogram.clone(),
                    ..Moves::default()
                },
            );
            d.lru_holds.insert(
                LruLockId {
                    node: 0,
                    memcg: u64::from(k),
                },
                LruHold {
                    holds: n,
                    hold_ns: n,
                    histogram,
                    address: t,
                    ..LruHold::default()
                },
            );
            d.cgroup_paths.insert(u64::from(k), format!("/{t}").into());
        }
        _ => {
            let b = d.budget.get_or_insert_default();
            (b.period_ns, b.cpus) = (1_003_009, 2);
            b.samples += n;
            b.kernel += n;
            b.parts[usize::from(k)][0] += n + 1;
            b.functions[usize::from(k)] = Some(format!("f{}", n % 3).into());
        }
    }
}

/// The sum of intervals.
pub(crate) fn merge(deltas: &[&Delta]) -> Merged {
    let mut merger = Merger::default();
    for delta in deltas {
        merger.add(delta);
    }
    merger.finish()
}

/// Intervals by reference.
pub(crate) fn all(deltas: &[Delta]) -> Vec<&Delta> {
    deltas.iter().collect()
}

/// One to five intervals, one a second.
pub(crate) fn intervals() -> impl Strategy<Value = Vec<Delta>> {
    let op = (0_u8..15, 0_u8..5, 0_u64..1000);
    let ops = prop::collection::vec(op, 0..30);
    prop::collection::vec(ops, 1..6)
        .prop_map(|all| (1..).zip(all).map(|(t, ops)| interval(t, &ops)).collect())
}
