//! Runs and intervals in which every field says something.

use crate::{
    host::usage::Usage,
    sample::{
        Budget, Counters, Delta, Interval, Missing, Spinlock,
        blocked::{BlockedId, BlockedWaits, Held},
        delta::{
            CallChain, Cgroup, Cpu, CpuTime, Lock, LockId, Loss, LruCalls, LruCoverage, LruHold,
            LruLockId, Madvise, MadviseId, MapFill, Moves, Own, Passes, Process, ProcessId,
            ProcessPasses, Program, Space, SpinWaits, Taker, TakerId, Thread, ThreadId,
        },
        histogram::Histogram,
        refault::Refault,
        run::{End, Ended, LossKind, Output, Round, Run, RunFact, RunProbe, Workload},
    },
    workload::{Direction, Metric, Work},
};
use std::{collections::HashMap, sync::Arc};

/// Random numbers that are the same every time (S. Vigna's splitmix64).
#[derive(Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Mostly small, often zero, at times as large as one counter may be.
    fn count(&mut self) -> u64 {
        match self.below(8) {
            0..3 => 0,
            3..7 => self.below(1000),
            _ => self.next() >> 20,
        }
    }

    /// As a count, or any number of 64 bits.
    fn word(&mut self) -> u64 {
        match self.below(8) {
            0 => self.next(),
            _ => self.count(),
        }
    }

    /// A clock.
    fn reading(&mut self) -> u64 {
        self.next() >> 2
    }

    fn u32(&mut self) -> u32 {
        u32::try_from(self.next() >> 32).expect("32 bits")
    }

    fn small(&mut self, n: u32) -> u32 {
        u32::try_from(self.below(u64::from(n))).expect("below n")
    }

    fn flag(&mut self) -> bool {
        self.next() & 1 == 1
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| make(self))
    }

    fn counts<const N: usize>(&mut self) -> [u64; N] {
        std::array::from_fn(|_| self.count())
    }

    /// Few counts, as a histogram of an interval has.
    fn histogram(&mut self) -> Histogram {
        let mut histogram = Histogram::default();
        for _ in 0..self.below(4) {
            let n = self.count();
            let bucket = self.below(histogram.0.len() as u64);
            histogram.0[usize::try_from(bucket).expect("small")] = n;
        }
        histogram
    }

    fn name(&mut self) -> Arc<str> {
        ["", "mysqld", "kworker/0:1", "größe 数据", "a b\u{FFFD}"][self.small(5) as usize].into()
    }

    fn passes(&mut self) -> Passes {
        Passes {
            began: self.count(),
            faults: 1 + self.below(9),
            retries: self.count(),
            majors: self.count(),
            completed: self.count(),
            errors: self.counts(),
            ns: self.count(),
            max_ns: self.count(),
            pages: self.count(),
            large: self.count(),
            unpaired: self.count(),
            histogram: self.histogram(),
        }
    }

    fn process(&mut self) -> ProcessId {
        ProcessId {
            tgid: 1 + self.small(30),
            start_ns: self.below(3),
        }
    }

    fn advice(&mut self) -> MadviseId {
        MadviseId {
            tgid: 1 + self.small(30),
            advice: [4, 8, -1, i32::MAX][self.small(4) as usize],
            is_remote: self.flag(),
        }
    }

    fn lock(&mut self) -> Lock {
        Lock {
            waits: self.count(),
            wait_ns: self.count(),
            max_ns: self.count(),
            handoffs: self.counts(),
            histogram: self.histogram(),
            traced: self.count(),
            address: self.word(),
        }
    }
}

/// The chain of a slot, the same in every interval.
fn chain(slot: u32) -> Arc<CallChain> {
    Arc::new(CallChain {
        site: format!("site_{slot}"),
        chain: (0..slot % 5).map(|n| format!("function_{n}")).collect(),
    })
}

/// An interval of about `rows` rows a table.
pub(crate) fn interval(seed: u64, rows: u64) -> Interval {
    let r = &mut Random(seed);
    let mut d = Delta {
        t_mono_ns: r.reading(),
        t_real_ns: r.reading(),
        interval_ns: r.count(),
        is_first: r.flag(),
        is_paravirtual: r.maybe(Random::flag),
        symbols_refused: r.maybe(|r| r.name().to_string()),
        spin_waits: r.maybe(|r| SpinWaits {
            ended: r.counts(),
            traced: r.counts(),
        }),
        regions_unpaired: r.count(),
        lru_coverage: LruCoverage {
            acquired: r.count(),
            unended: r.count(),
            releases: r.count(),
            tested: r.count(),
            uncovered: r.count(),
            sample: r.count(),
        },
        mglru: [r.maybe(Random::u32), r.maybe(Random::u32)],
        budget: r.maybe(|r| Budget {
            period_ns: r.count(),
            cpus: r.count(),
            samples: r.count(),
            idle: r.count(),
            user: r.count(),
            kernel: r.count(),
            deep: r.count(),
            interrupted: r.count(),
            parts: std::array::from_fn(|_| r.counts()),
            functions: std::array::from_fn(|_| r.maybe(Random::name)),
        }),
        refault_window_ns: r.count(),
        losses: (0..r.below(4))
            .map(|_| Loss {
                total: r.count(),
                increment: r.count(),
            })
            .collect(),
        unpaired_ends: r.count(),
        mmap_unpaired: r.count(),
        compat_madvise: r.count(),
        context_switches: r.maybe(Random::count),
        memory_pressure_ns: r.maybe(|r| (r.count(), r.count())),
        own: Own {
            cpu_ns: r.maybe(Random::count),
            rss_bytes: r.maybe(Random::count),
            peak_rss_bytes: r.maybe(Random::count),
            map_bytes: r.maybe(Random::count),
            overruns: r.count(),
        },
        ..Delta::default()
    };
    d.levels = ["MemTotal", "Cached"]
        .map(|name| (name.into(), r.count()))
        .into();
    d.maps = ["THREADS", "LOCKS"]
        .map(|name| MapFill {
            name: name.into(),
            entries: r.count(),
            capacity: 1 + r.below(2),
        })
        .into();
    d.programs = ["fault", "lock"]
        .map(|name| Program {
            name: name.into(),
            place: r.name().to_string(),
            is_attached: r.flag(),
            run_ns: r.maybe(Random::count),
            runs: r.maybe(Random::count),
            misses: r.maybe(Random::count),
        })
        .into();
    d.vmstat = (0..rows)
        .map(|n| (format!("counter_{n}").into(), r.count()))
        .collect();
    scopes(r, &mut d, rows);
    locks(r, &mut d, rows);
    for _ in 0..rows {
        d.passes
            .insert((r.small(6) as usize, r.small(8) as usize), r.passes());
        d.process_passes.insert(
            1 + r.small(30),
            ProcessPasses {
                passes: r.passes(),
                paths: r.counts(),
            },
        );
        d.madvise.insert(
            r.advice(),
            Madvise {
                calls: r.count(),
                failures: r.count(),
                bytes: r.count(),
                ns: r.count(),
                max_ns: r.count(),
            },
        );
        d.refaults.insert(
            r.advice(),
            Refault {
                ranges: r.count(),
                bytes: r.count(),
                lost_bytes: r.count(),
                refaults: r.count(),
                ns: r.count(),
                after: r.histogram(),
            },
        );
    }
    for tgid in d.named_processes() {
        if let Some(name) = r.maybe(Random::name) {
            d.names.insert(tgid, name);
        }
    }
    for id in d.named_cgroups() {
        if let Some(path) = r.maybe(Random::name) {
            d.cgroup_paths.insert(id, path);
        }
    }
    // Every fourth chain was lost.
    let chains = d.named_chains().into_iter().filter(|slot| slot % 4 != 0);
    d.chains = Arc::new(
        chains
            .map(|slot| (slot, chain(slot)))
            .collect::<HashMap<_, _>>(),
    );
    Interval {
        delta: Arc::new(d),
        missing: ["lru", "madvise"]
            .into_iter()
            .filter_map(|signal| {
                r.maybe(|r| Missing {
                    signal: signal.into(),
                    reason: r.name().to_string(),
                })
            })
            .collect(),
        spinlock: Spinlock {
            mode: r.maybe(|_| "pv".into()),
            is_exact: r.flag(),
            sentence: r.name().to_string(),
        },
        notes: (0..r.below(3)).map(|n| format!("note {n}")).collect(),
    }
}

fn scopes(r: &mut Random, d: &mut Delta, rows: u64) {
    for cpu in 0..r.small(4) {
        d.cpus.push(Cpu {
            cpu: cpu * 3,
            place: r.maybe(|r| (r.u32(), r.u32(), r.u32())),
            counters: Counters(r.counts()),
            rss: r.counts(),
            lru_insertions: r.count(),
            lru_activations: r.count(),
            lru: LruCalls {
                mark_accessed: r.count(),
                workingset_activations: r.count(),
                refaults: r.count(),
                drains: r.count(),
            },
            mmap_handoffs: r.count(),
            mmap_failed: r.counts(),
            mmap_downgraded: r.count(),
            time: r.maybe(|r| CpuTime {
                busy_ns: r.count(),
                idle_ns: r.count(),
                iowait_ns: r.count(),
                steal_ns: r.count(),
            }),
            passes: r.maybe(Random::passes).unwrap_or_default(),
        });
    }
    for _ in 0..rows {
        let process = r.process();
        let counters = Counters(r.counts());
        d.processes.insert(
            process,
            Process {
                comm: r.name(),
                cgroup: r.word(),
                threads: r.count(),
                is_workload: r.flag(),
                counters,
            },
        );
        // None, one with the same increments, or several.
        for n in 0..r.below(3) {
            let counters = match n {
                0 if r.flag() => counters,
                _ => Counters(r.counts()),
            };
            d.threads.insert(
                ThreadId {
                    tid: r.u32(),
                    start_ns: r.reading(),
                },
                Thread {
                    process,
                    comm: r.name(),
                    cgroup: r.word(),
                    counters,
                },
            );
        }
        d.cgroups.insert(
            r.word(),
            Cgroup {
                threads: r.count(),
                counters: Counters(r.counts()),
            },
        );
        let cpus = r.below(4);
        d.spaces.insert(
            r.next(),
            Space {
                process: r.maybe(Random::process),
                by_cpu: (0..cpus).map(|_| (r.u32(), 1 + r.below(9))).collect(),
                window_faults: r.count(),
                window_handoffs: r.count(),
                rss: r.count(),
            },
        );
    }
}

fn locks(r: &mut Random, d: &mut Delta, rows: u64) {
    for _ in 0..rows {
        d.takers.insert(
            TakerId {
                mm: r.next(),
                tgid: 1 + r.small(30),
                syscall: [-2, -1, 9, 11][r.small(4) as usize],
                is_write: r.flag(),
            },
            Taker {
                owner: r.small(30),
                taken: r.count(),
                downgraded: r.count(),
                failed: r.count(),
                take_ns: r.count(),
                take_max_ns: r.count(),
                slow_takes: r.count(),
                holds: r.count(),
                hold_ns: r.count(),
                hold_max_ns: r.count(),
                handoffs: r.counts(),
                site: r.small(20),
            },
        );
        let id = LockId {
            is_site: r.flag(),
            class: r.small(8) as usize,
            mode: [0, 2, 4][r.small(3) as usize],
            node: r.small(2),
            id: r.word(),
            memcg: r.word(),
            stack: r.small(20),
            owner: r.small(30),
        };
        d.locks.insert(id, r.lock());
        d.blocked.insert(
            BlockedId {
                tgid: r.small(30),
                syscall: 9,
                is_write: r.flag(),
                site: r.small(20),
                held: [Held::Unknown, Held::Write, Held::Read, Held::Readers][r.small(4) as usize],
                holder: r.small(30),
                holder_tid: r.u32(),
                holder_comm: r.name(),
                holder_syscall: r.maybe(|_| -1),
                holder_site: r.small(20),
                owner: r.small(30),
            },
            BlockedWaits {
                waits: r.count(),
                wait_ns: r.count(),
                max_ns: r.count(),
            },
        );
        d.moves.insert(
            format!("move_{}", r.small(9)).into(),
            Moves {
                batches: r.count(),
                folios: r.count(),
                sizes: r.counts(),
                regions: r.count(),
                region_ns: r.count(),
                region_max_ns: r.count(),
                histogram: r.histogram(),
            },
        );
        d.lru_holds.insert(
            LruLockId {
                node: r.small(2),
                memcg: r.word(),
            },
            LruHold {
                holds: r.count(),
                hold_ns: r.count(),
                max_ns: r.count(),
                handoffs: r.counts(),
                histogram: r.histogram(),
                address: r.word(),
            },
        );
    }
}

/// A run in which every field says something.
pub(super) fn run() -> Run {
    Run {
        id: "0123456789abcdef0123456789abcdef".into(),
        tool_version: "0.1.0".into(),
        host: "host".into(),
        kernel: "6.12.0".into(),
        mglru: "on (0x0007)".into(),
        start_real_ns: 1_700_000_000_000_000_000,
        start_mono_ns: 5,
        interval_ns: 1_000_000_000,
        filter: "--comm x".into(),
        labels: [("k".into(), "v".into()), ("a".into(), String::new())].into(),
        round: Some(Round {
            series: "s".into(),
            number: 3,
            side: "B".into(),
        }),
        facts: vec![
            RunFact {
                id: "cpu_model".into(),
                value: Ok("QEMU".into()),
            },
            RunFact {
                id: "governor".into(),
                value: Err("there is no such file".into()),
            },
        ],
        kernel_config: vec![("CONFIG_LRU_GEN".into(), "y".into())],
        losses: (0..4)
            .map(|n| LossKind {
                id: format!("loss_{n}").into(),
                description: format!("Loss {n}.").into(),
            })
            .collect(),
        probes: vec![RunProbe {
            program: "fault".into(),
            signal: "faults".into(),
            is_attached: true,
            place: "tp_btf/page_fault_user".into(),
            substitutes: Some("other".into()),
        }],
        workload: Some(workload()),
        end: None,
    }
}

/// A workload that was killed.
pub(super) fn workload() -> Workload {
    Workload {
        argv: vec!["sysbench".into(), "--threads=4".into(), String::new()],
        directory: "/tmp".into(),
        environment: vec![("MALLOC_ARENA_MAX".into(), "1".into())],
        tgid: 1234,
        start_mono_ns: 6,
        output: Output {
            text: "transactions:\t10 (1.00 per sec.)\n\nqueries: 3\n".into(),
            dropped_bytes: 7,
        },
        refused: vec!["metric \"tps\": its expression matches nothing in the output".into()],
        ended: Some(Ended {
            mono_ns: 99,
            code: None,
            signal: Some(9),
            usage: Usage {
                user_ns: 1,
                system_ns: 2,
                max_rss_bytes: 3,
                minor_faults: 4,
                major_faults: 5,
                voluntary_switches: 6,
                involuntary_switches: 7,
            },
        }),
    }
}

/// Figures with and without what may be unknown.
pub(super) fn metrics() -> Vec<Metric> {
    let metric = |name: &str, direction, work, keys| Metric {
        name: name.into(),
        value: 1234.5,
        unit: "1/s".into(),
        direction,
        work,
        resolution: 0.01,
        format: "sysbench".into(),
        keys,
    };
    vec![
        metric(
            "transactions/s",
            Some(Direction::Higher),
            Some(Work::Timed),
            vec![("threads".into(), "4".into()), ("rep".into(), "1".into())],
        ),
        metric(
            "elapsed",
            Some(Direction::Lower),
            Some(Work::Fixed),
            Vec::new(),
        ),
        metric("other", None, None, Vec::new()),
    ]
}

/// How it ended.
pub(super) fn end() -> End {
    End {
        mono_ns: 100,
        reason: "the command ended".into(),
    }
}
