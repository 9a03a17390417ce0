//! Tables from increments made by hand.

use super::*;
use crate::model::{Missing, Model};
use crate::sample::blocked::{BlockedId, BlockedWaits, Held};
use crate::sample::delta::{
    Cpu, Lock, LockId, Loss, Madvise, MadviseId, POPULATE, Passes, Process, ProcessId, Space,
    Taker, TakerId,
};
use crate::sample::run::LossKind;
use std::sync::Arc;

fn context() -> Context {
    Context {
        losses: LossKind::list(&[("a", "A."), ("b", "B.")]),
        ..Context::default()
    }
}

fn model(delta: Delta, context: Context) -> Model {
    Model::new(Arc::new(delta), Arc::new(context))
}

fn cell<'a>(model: &'a Model, table: TableId, row: usize, field: &str) -> &'a Value {
    let table = model.table(table);
    &table.rows[row].cells[table.position(field).expect("field of the table")]
}

fn text(s: &str) -> Value {
    Value::Text(s.into())
}

/// Two processes, one CPU, two seconds.
fn delta() -> Delta {
    let mut delta = Delta {
        interval_ns: 2_000_000_000,
        ..Delta::default()
    };
    for (tgid, faults) in [(10, 4), (20, 100)] {
        let mut process = Process {
            comm: format!("p{tgid}").into(),
            cgroup: 7,
            ..Process::default()
        };
        process.counters[Scope::User(1)] = faults;
        process.counters[Scope::Kernel(5)] = 1;
        process.counters[Scope::Major] = 1;
        process.counters[Scope::Waits(LRU_LOCK)] = 2;
        process.counters[Scope::WaitNs(LRU_LOCK)] = 10;
        delta
            .processes
            .insert(ProcessId { tgid, start_ns: 1 }, process);
    }
    let mut cpu = Cpu::default();
    cpu.counters[Scope::User(1)] = 104;
    cpu.counters[Scope::Kernel(5)] = 2;
    cpu.counters[Scope::Major] = 2;
    delta.cpus.push(cpu);
    delta.cgroup_paths.insert(7, "/a".into());
    delta
}

#[test]
fn processes_are_sorted_by_faults_and_split_by_kind() {
    let m = model(delta(), context());
    let of = |row, field| cell(&m, TableId::Processes, row, field).clone();
    assert_eq!(
        (of(0, "pid"), of(0, "comm")),
        (Value::Count(20), text("p20"))
    );
    assert_eq!(of(0, "faults"), Value::Count(101));
    assert_eq!(of(0, "faults_minor"), Value::Count(100));
    assert_eq!(of(0, "faults_write"), Value::Count(100));
    assert_eq!(of(0, "faults_protection"), Value::Count(1));
    assert_eq!(of(0, "faults_kernel"), Value::Count(1));
    assert_eq!(of(0, "cgroup"), text("/a"));
    assert_eq!(of(1, "pid"), Value::Count(10));
}

#[test]
fn a_signal_that_is_missing_is_absent_everywhere_and_never_zero() {
    let missing = |signal: &str| Missing {
        signal: signal.into(),
        reason: "not here".into(),
    };
    let context = Context {
        missing: [
            "faults",
            "major_faults",
            "rss_stat",
            "madvise",
            "contention",
            "lru",
        ]
        .map(missing)
        .into(),
        ..context()
    };
    let m = model(delta(), context);
    for (table, fields) in [
        (
            TableId::Processes,
            &[
                "faults",
                "faults_major",
                "rss_updates",
                "rss_updates_per_fault",
                "madvise_calls",
                "lock_waits",
            ][..],
        ),
        (
            TableId::Cpus,
            &["faults", "rss_updates", "lru_insertions", "spin_wait_ns"][..],
        ),
    ] {
        for field in fields {
            assert_eq!(*cell(&m, table, 0, field), Value::Absent, "{field}");
        }
    }
    assert_eq!(m.header.minor_per_sec, None);
    assert!(m.table(TableId::FaultKinds).rows.is_empty());
}

#[test]
fn header_rates_are_per_second() {
    let m = model(delta(), context());
    assert_eq!(m.header.minor_per_sec, Some(52.0));
    assert_eq!(m.header.major_per_sec, Some(1.0));
}

#[test]
fn what_no_tracepoint_sees_is_the_rest_of_vmstat() {
    let mut d = delta();
    d.vmstat.insert("pgfault".into(), 2_106);
    let populated = Passes {
        began: 1_001,
        faults: 1_000,
        retries: 1,
        ..Passes::default()
    };
    d.passes.insert((POPULATE, 0), populated);
    let trapped = Passes {
        faults: 106,
        ..Passes::default()
    };
    d.passes.insert((0, 0), trapped);
    let unseen = |signals: &[&'static str]| {
        let context = Context {
            missing: signals
                .iter()
                .map(|signal| Missing {
                    signal: (*signal).into(),
                    reason: "fentry is refused".into(),
                })
                .collect(),
            ..context()
        };
        let m = model(d.clone(), context);
        let rows = &m.table(TableId::FaultKinds).rows;
        ["populate", "handle_mm_fault", "not seen"].map(|origin| {
            let row = rows.iter().find(|r| r.cells[0] == text(origin));
            row.expect("the row is there").cells[3].clone()
        })
    };
    let count = Value::Count;
    // All, by what handle_mm_fault returned.
    assert_eq!(unseen(&[]), [count(1_000), count(1_106), count(1_000)]);
    // By where it begins, retries included.
    assert_eq!(
        unseen(&["fault_latency"]),
        [count(1_001), Value::Absent, count(999)]
    );
    // By the tracepoints alone.
    assert_eq!(
        unseen(&["fault_latency", "populate_faults"]),
        [Value::Absent, Value::Absent, count(2_000)]
    );
}

#[test]
fn takers_name_the_process_the_call_and_the_owner() {
    let mut d = delta();
    let id = TakerId {
        mm: 1,
        tgid: 20,
        syscall: 11,
        is_write: true,
    };
    let taker = Taker {
        owner: 10,
        taken: 8,
        holds: 8,
        hold_ns: 80,
        handoffs: [2, 0, 6, 0, 0, 1],
        ..Taker::default()
    };
    d.takers.insert(id, taker);
    d.names.insert(10, "victim".into());
    let m = model(d, context());
    let of = |field| cell(&m, TableId::LockHolders, 0, field).clone();
    assert_eq!(
        (of("taker"), of("owner")),
        (text("(20)"), text("victim(10)"))
    );
    assert_eq!((of("syscall"), of("mode")), (text("munmap"), text("write")));
    assert_eq!(of("hold_avg_ns"), Value::Count(10));
    // The acquisition of unknown distance is in no ratio.
    assert_eq!(of("mmap_lock_handoff_ratio"), Value::Real(0.75));
}

#[test]
fn a_blocked_wait_names_the_holder_and_an_unknown_one_is_absent() {
    let mut d = delta();
    let id = |holder_tid| BlockedId {
        tgid: 20,
        syscall: 10,
        is_write: true,
        site: 0,
        held: Held::Read,
        holder: 10,
        holder_tid,
        holder_comm: "worker".into(),
        holder_syscall: Some(9),
        holder_site: 0,
        owner: 20,
    };
    let waits = BlockedWaits {
        waits: 3,
        wait_ns: 300,
        max_ns: 200,
    };
    // Two threads of one name are one row.
    d.blocked.insert(id(11), waits);
    d.blocked.insert(id(12), waits);
    let nobody = BlockedId {
        held: Held::Readers,
        holder: 0,
        holder_tid: 0,
        holder_comm: "".into(),
        holder_syscall: None,
        ..id(0)
    };
    d.blocked.insert(
        nobody,
        BlockedWaits {
            waits: 1,
            wait_ns: 10,
            max_ns: 10,
        },
    );
    d.names.insert(10, "mysqld".into());
    let m = model(d, context());
    assert_eq!(m.table(TableId::LockBlocked).rows.len(), 2);
    let of = |row, field| cell(&m, TableId::LockBlocked, row, field).clone();
    assert_eq!(of(0, "holder"), text("mysqld(10)"));
    assert_eq!(of(0, "holder_thread"), text("worker"));
    assert_eq!(
        (of(0, "holder_syscall"), of(0, "waiter_syscall")),
        (text("mmap"), text("mprotect"))
    );
    assert_eq!(
        (of(0, "blocked_waits"), of(0, "blocked_max_ns")),
        (Value::Count(6), Value::Count(200))
    );
    assert_eq!(of(1, "held_for"), text("readers"));
    for field in ["holder", "holder_thread", "holder_syscall", "holder_site"] {
        assert_eq!(of(1, field), Value::Absent, "{field}");
    }
}

#[test]
fn an_lru_lock_names_its_memcg_and_node_and_the_node_s_own_is_the_system_s() {
    let mut d = delta();
    for (memcg, waits) in [(7, 9), (0, 3)] {
        let id = LockId {
            is_site: false,
            class: LRU_LOCK,
            mode: 0,
            node: 0,
            id: 0,
            memcg,
            stack: 0,
            owner: 0,
        };
        d.locks.insert(
            id,
            Lock {
                waits,
                wait_ns: waits * 100,
                ..Lock::default()
            },
        );
    }
    let m = model(d, context());
    assert_eq!(*cell(&m, TableId::Locks, 0, "owner"), text("/a"));
    assert_eq!(
        *cell(&m, TableId::Locks, 0, "wait_avg_ns"),
        Value::Count(100)
    );
    assert_eq!(*cell(&m, TableId::Locks, 1, "owner"), text("system"));
    assert_eq!(*cell(&m, TableId::Locks, 1, "mode"), text("spin"));
    assert_eq!(m.table(TableId::LockWaiters).rows.len(), 2);
}

#[test]
fn lock_classes_are_counted_per_fault() {
    let mut d = delta();
    for id in [1, 2] {
        let id = LockId {
            is_site: false,
            class: MMAP_LOCK,
            mode: 4,
            node: 0,
            id,
            memcg: 0,
            stack: 0,
            owner: 0,
        };
        let lock = Lock {
            waits: 53,
            wait_ns: 5_300,
            ..Lock::default()
        };
        d.locks.insert(id, lock);
    }
    let m = model(d, context());
    let of = |field| cell(&m, TableId::LockClasses, 0, field).clone();
    // 106 faults.
    assert_eq!(
        (of("waits"), of("locks")),
        (Value::Count(106), Value::Count(2))
    );
    assert_eq!(of("waits_per_mfault"), Value::Real(1_000_000.0));
    assert_eq!(of("wait_per_fault_ns"), Value::Real(100.0));
    assert_eq!((of("lock"), of("mode")), (text("mmap_lock"), text("write")));
}

#[test]
fn spaces_hold_the_proxy_beside_its_bound_and_measure() {
    let mut d = delta();
    d.spaces.insert(
        1,
        Space {
            process: Some(ProcessId {
                tgid: 10,
                start_ns: 1,
            }),
            by_cpu: [(0, 50), (1, 50)].into(),
            window_faults: 10,
            window_handoffs: 4,
            rss: 0,
        },
    );
    let m = model(d, context());
    let of = |field| cell(&m, TableId::AddressSpaces, 0, field).clone();
    assert_eq!(of("sharing_expected_ratio"), Value::Real(0.5));
    assert_eq!(of("sharing_bound_ratio"), Value::Real(1.0));
    assert_eq!(of("sharing_measured_ratio"), Value::Real(0.4));
    assert_eq!(of("sharing_expected_per_sec"), Value::Real(25.0));
}

#[test]
fn losses_stand_beside_the_maps_and_in_the_total() {
    let mut d = delta();
    d.losses = vec![
        Loss {
            total: 5,
            increment: 2,
        },
        Loss::default(),
    ];
    let m = model(d, context());
    assert_eq!(m.lost_total(), 5);
    assert_eq!(*cell(&m, TableId::Losses, 0, "lost"), Value::Count(2));
    assert_eq!(*cell(&m, TableId::Losses, 1, "lost"), Value::Count(0));
}

#[test]
fn madvise_rows_name_the_advice() {
    let mut d = delta();
    let id = |advice| MadviseId {
        tgid: 10,
        advice,
        is_remote: false,
    };
    d.madvise.insert(
        id(4),
        Madvise {
            calls: 3,
            failures: 1,
            ns: 30,
            ..Madvise::default()
        },
    );
    d.madvise.insert(
        id(-1),
        Madvise {
            calls: 1,
            failures: 1,
            ..Madvise::default()
        },
    );
    let m = model(d, context());
    assert_eq!(*cell(&m, TableId::Madvise, 0, "advice"), text("DONTNEED"));
    assert_eq!(
        *cell(&m, TableId::Madvise, 0, "madvise_avg_ns"),
        Value::Count(10)
    );
    assert_eq!(*cell(&m, TableId::Madvise, 1, "advice"), text("invalid"));
}

#[test]
fn a_long_spin_wait_is_told_with_the_steal_of_the_interval() {
    let mut d = delta();
    let id = LockId {
        is_site: false,
        class: LRU_LOCK,
        mode: 0,
        node: 0,
        id: 0,
        memcg: 0,
        stack: 0,
        owner: 0,
    };
    let mut lock = Lock {
        waits: 1,
        ..Lock::default()
    };
    lock.histogram.0[faultscope_common::latency::bucket(20_000_000) as usize] = 1;
    d.locks.insert(id, lock);
    let m = model(d, context());
    assert!(
        m.notes
            .iter()
            .any(|n| n.contains("spin wait") && n.contains("lru_lock") && n.contains("hypervisor")),
        "{:?}",
        m.notes
    );
}

#[test]
fn an_empty_interval_makes_every_table() {
    let m = model(Delta::default(), context());
    for id in TableId::ALL {
        assert_eq!(m.table(*id).fields.len(), id.fields().len());
    }
}
