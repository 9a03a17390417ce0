//! A run of a server, for tests of reports.

use crate::host::usage::Usage;
use crate::model::Missing;
use crate::sample::{
    Budget, Delta, Interval, Scope,
    blocked::{BlockedId, BlockedWaits, Held},
    counters::MMAP_LOCK,
    delta::{
        CallChain, Cpu, CpuTime, Lock, LockId, Loss, Madvise, MadviseId, Own, Passes, Process,
        ProcessId, Program, Space, Taker, TakerId,
    },
    refault::Refault,
    run::{End, Ended, LossKind, Run, RunFact, Workload},
};
use crate::symbol::FaultPart;
use std::sync::Arc;

/// Names as a process might choose them.
pub(crate) const HOSTILE: [&str; 4] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(2)>",
    "a|b`*_,\"\n=cmd()",
    "x\u{1b}[31m\u{202e}y",
];

/// Interval `t` of a server with two CPUs, `names` its processes and functions.
pub(crate) fn interval(t: u64, names: &[&str; 4]) -> Interval {
    let mut d = Delta {
        t_mono_ns: 100_000_000_000 + t * 1_000_000_000,
        t_real_ns: 1_700_000_000_000_000_000 + t * 1_000_000_000,
        interval_ns: 1_000_000_000,
        is_first: t == 1,
        losses: vec![Loss::default(); 2],
        own: Own {
            cpu_ns: Some(4_000_000),
            rss_bytes: Some(24_000_000),
            map_bytes: Some(12_000_000),
            ..Own::default()
        },
        refault_window_ns: 1_000_000_000,
        ..Delta::default()
    };
    let faults = [4_000 * t, 1_000];
    for (cpu, n) in (0..).zip(faults) {
        let mut row = Cpu {
            cpu,
            place: Some((cpu, 0, 0)),
            time: Some(CpuTime {
                busy_ns: 500_000_000,
                idle_ns: 500_000_000,
                ..CpuTime::default()
            }),
            ..Cpu::default()
        };
        row.counters[Scope::User(1)] = n;
        row.counters[Scope::Waits(MMAP_LOCK)] = 20;
        row.counters[Scope::WaitNs(MMAP_LOCK)] = 2_000_000 * t;
        d.cpus.push(row);
    }
    for (tgid, name, n) in [(10, names[0], faults[0]), (20, names[1], faults[1])] {
        let mut process = Process {
            comm: name.into(),
            cgroup: 7,
            threads: 4,
            is_workload: tgid == 20,
            ..Process::default()
        };
        process.counters[Scope::User(1)] = n;
        process.counters[Scope::Waits(MMAP_LOCK)] = 20;
        process.counters[Scope::WaitNs(MMAP_LOCK)] = 2_000_000 * t;
        let id = ProcessId { tgid, start_ns: 1 };
        d.processes.insert(id, process);
        d.names.insert(tgid, name.into());
        let space = Space {
            process: Some(id),
            by_cpu: [(0, n / 2), (1, n / 2)].into(),
            ..Space::default()
        };
        d.spaces.insert(u64::from(tgid), space);
    }
    d.cgroup_paths.insert(7, format!("/{}", names[2]).into());
    let mut passes = Passes {
        began: faults[0],
        faults: faults[0],
        ns: faults[0] * 1_200,
        max_ns: 9_000_000,
        ..Passes::default()
    };
    passes.histogram.0[5] = faults[0] - 10;
    passes.histogram.0[30] = 10;
    d.passes.insert((0, 0), passes);
    waits(&mut d, t, names);
    d.madvise.insert(
        MadviseId {
            tgid: 10,
            advice: 4,
            is_remote: false,
        },
        Madvise {
            calls: 50,
            bytes: 50 << 20,
            ns: 5_000_000,
            max_ns: 900_000,
            ..Madvise::default()
        },
    );
    d.refaults.insert(
        MadviseId {
            tgid: 10,
            advice: 4,
            is_remote: false,
        },
        Refault {
            ranges: 50,
            bytes: 50 << 20,
            refaults: 900,
            ns: 900_000,
            ..Refault::default()
        },
    );
    d.programs.push(Program {
        name: "fault_user".into(),
        place: names[3].into(),
        is_attached: true,
        ..Program::default()
    });
    Interval {
        delta: Arc::new(d),
        missing: Arc::new([Missing {
            signal: "rss_stat".into(),
            reason: "the kernel has no tracepoint kmem:rss_stat".into(),
        }]),
        notes: vec!["a note".into()],
        ..Interval::default()
    }
}

/// Call chains in another slot each time.
fn waits(d: &mut Delta, t: u64, names: &[&str; 4]) {
    let slot = u32::try_from(t).expect("small");
    let chain = |inner: &str| {
        Arc::new(CallChain {
            site: inner.into(),
            chain: vec![
                inner.into(),
                "handle_mm_fault".into(),
                "exc_page_fault".into(),
            ],
        })
    };
    d.chains = Arc::new(
        [
            (slot, chain("do_anonymous_page")),
            (slot + 10, chain(names[3])),
        ]
        .into(),
    );
    let lock = |waits| Lock {
        waits,
        wait_ns: 4_000_000 * t * waits / 40,
        max_ns: 3_000_000,
        ..Lock::default()
    };
    let id = |is_site, stack| LockId {
        is_site,
        class: MMAP_LOCK,
        mode: 2,
        node: 0,
        id: u64::from(!is_site),
        memcg: 0,
        stack,
        owner: 10,
    };
    d.locks.insert(id(false, 0), lock(40));
    d.locks.insert(id(true, slot), lock(25));
    d.locks.insert(id(true, slot + 10), lock(10));
    let taker = Taker {
        owner: 10,
        taken: 300,
        take_ns: 900_000,
        slow_takes: 12,
        holds: 300,
        hold_ns: 6_000_000,
        hold_max_ns: 700_000,
        handoffs: [100, 0, 200, 0, 0, 0],
        site: slot + 10,
        ..Taker::default()
    };
    d.takers.insert(
        TakerId {
            mm: 1,
            tgid: 10,
            syscall: 11,
            is_write: true,
        },
        taker,
    );
    d.blocked.insert(
        BlockedId {
            tgid: 10,
            syscall: -1,
            is_write: false,
            site: slot,
            held: Held::Write,
            holder: 10,
            holder_tid: 11,
            holder_comm: names[0].into(),
            holder_syscall: Some(11),
            holder_site: slot + 10,
            owner: 10,
        },
        BlockedWaits {
            waits: 40,
            wait_ns: 4_000_000 * t,
            max_ns: 3_000_000,
        },
    );
    let mut budget = Budget {
        period_ns: 1_003_009,
        cpus: 2,
        samples: 1_994,
        idle: 994,
        user: 600,
        kernel: 400,
        ..Budget::default()
    };
    budget.parts[FaultPart::PageClearing as usize][0] = 200;
    budget.functions[FaultPart::PageClearing as usize] = Some("clear_page_erms".into());
    budget.parts[FaultPart::Rest as usize][0] = 50;
    budget.functions[FaultPart::Rest as usize] = Some(names[3].into());
    d.budget = Some(budget);
}

pub(crate) fn run(names: &[&str; 4]) -> Run {
    Run {
        id: "0".repeat(32),
        tool_version: "0.1.0".into(),
        host: "build-7".into(),
        kernel: "6.18.0-1-amd64".into(),
        start_real_ns: 1_700_000_000_000_000_000,
        start_mono_ns: 100_000_000_000,
        interval_ns: 1_000_000_000,
        labels: [("patch".into(), names[2].into())].into(),
        facts: vec![
            RunFact {
                id: "cpu_model".into(),
                value: Ok("Example CPU, 2 cores".into()),
            },
            RunFact {
                id: "governor".into(),
                value: Err("no cpufreq".into()),
            },
        ],
        losses: LossKind::list(&[
            (
                "thread_slot_collision",
                "Faults of threads whose slot another thread had.",
            ),
            ("ring_full", "Events that found the ring buffer full."),
        ]),
        workload: Some(Workload {
            argv: vec!["sysbench".into(), "oltp_read_write".into(), names[1].into()],
            directory: "/tmp".into(),
            tgid: 20,
            start_mono_ns: 100_000_000_000,
            ended: Some(Ended {
                mono_ns: 103_000_000_000,
                code: Some(0),
                usage: Usage {
                    user_ns: 900_000_000,
                    system_ns: 100_000_000,
                    max_rss_bytes: 20 << 20,
                    minor_faults: 3_000,
                    ..Usage::default()
                },
                ..Ended::default()
            }),
            ..Workload::default()
        }),
        end: Some(End {
            mono_ns: 103_000_000_000,
            reason: "the command ended".into(),
        }),
        ..Run::default()
    }
}

pub(crate) const PLAIN: [&str; 4] = [
    "mariadbd",
    "sysbench",
    "system.slice/mariadb.service",
    "vma_link",
];
