//! Each rule just above its threshold, just below it, and without its signal.

mod locks;

use super::*;
use crate::model::{Missing, Spinlock};
use crate::sample::Scope;
use crate::sample::blocked::{BlockedId, BlockedWaits, Held};
use crate::sample::budget::Budget;
use crate::sample::counters::{LRU_LOCK, MMAP_LOCK};
use crate::sample::delta::{
    CallChain, Cpu, FALL_BACK, Lock, LockId, Loss, MadviseId, Moves, Passes, ProcessId,
    ProcessPasses, Space, Taker, TakerId, Thread, ThreadId,
};
use crate::sample::refault::Refault;
use crate::symbol::FaultPart;
use std::sync::Arc;

const SECOND: u64 = 1_000_000_000;

fn missing(signals: &[&'static str]) -> Context {
    Context {
        missing: signals
            .iter()
            .map(|signal| Missing {
                signal: (*signal).into(),
                reason: format!("{} while another view is open", crate::model::ATTACHED_ONLY),
            })
            .collect(),
        ..Context::default()
    }
}

fn second() -> Delta {
    let mut delta = Delta {
        interval_ns: SECOND,
        ..Delta::default()
    };
    for (tgid, name) in [(10, "mysqld"), (20, "monitor")] {
        delta.names.insert(tgid, name.into());
    }
    delta
}

fn find(id: &str, delta: &Delta, context: &Context) -> Option<Finding> {
    findings(delta, context).into_iter().find(|f| f.id == id)
}

/// Holds with these increments, and not where any of the signals is missing.
fn holds(id: &str, delta: &Delta, signals: &[&'static str]) -> Finding {
    for signal in signals {
        let found = find(id, delta, &missing(&[signal]));
        assert!(found.is_none(), "{id} without {signal}: {found:?}");
    }
    find(id, delta, &Context::default()).unwrap_or_else(|| panic!("{id} is not found"))
}

fn fails(id: &str, delta: &Delta) {
    let found = find(id, delta, &Context::default());
    assert!(found.is_none(), "{found:?}");
}

fn says(found: &Finding, words: &[&str]) {
    for word in words {
        assert!(found.text.contains(word), "{word:?} in {:?}", found.text);
    }
}

fn process(delta: &mut Delta, tgid: u32, set: &[(Scope, u64)]) {
    let id = ProcessId { tgid, start_ns: 1 };
    let process = delta.processes.entry(id).or_default();
    for (scope, n) in set {
        process.counters[*scope] = *n;
    }
}

fn cpu(set: &[(Scope, u64)]) -> Cpu {
    let mut cpu = Cpu::default();
    for (scope, n) in set {
        cpu.counters[*scope] = *n;
    }
    cpu
}

#[test]
fn the_table_is_complete_and_short_enough() {
    assert_eq!(RULES.len(), 10);
    for (i, rule) in RULES.iter().enumerate() {
        assert!(RULES[..i].iter().all(|other| other.id != rule.id));
        assert!(rule.title.len() <= 44, "{}", rule.title);
        for text in [rule.threshold, rule.reason] {
            assert!(text.ends_with('.'), "{text}");
        }
        for signal in rule.needs.split('`').skip(1).step_by(2) {
            let known = crate::plan::SIGNALS.iter().any(|s| s.id == signal);
            assert!(known, "{}: no signal {signal}", rule.id);
        }
    }
}

#[test]
fn an_empty_interval_has_no_findings() {
    assert_eq!(findings(&Delta::default(), &Context::default()), []);
    assert_eq!(findings(&second(), &Context::default()), []);
}

fn marked(marks: u64, activations: u64, mglru: [Option<u32>; 2]) -> Delta {
    let mut delta = second();
    let mut cpu = Cpu {
        lru_activations: activations,
        lru_insertions: 5_000,
        ..Cpu::default()
    };
    cpu.lru.mark_accessed = marks;
    delta.cpus.push(cpu);
    delta.mglru = mglru;
    delta
}

#[test]
fn generations_explain_zero_activations() {
    let id = "mglru_no_activations";
    let on = [Some(7), Some(7)];
    let found = holds(id, &marked(1_000, 1, on), &["lru"]);
    says(&found, &["1 activations for 1.00k marks", "0x0007"]);
    let by_insertions = find(id, &marked(0, 5, on), &missing(&["mark_accessed"]));
    says(&by_insertions.expect("found"), &["5.00k insertions"]);
    fails(id, &marked(999, 0, on));
    fails(id, &marked(1_000, 2, on));
    for not_on in [[Some(6), Some(6)], [Some(7), Some(0)], [None, None]] {
        fails(id, &marked(1_000, 0, not_on));
    }
}

/// An address space of two threads whose faults fall on two CPUs.
fn shared(faults: [u64; 2], others: u64) -> Delta {
    let mut delta = second();
    let process = ProcessId {
        tgid: 10,
        start_ns: 1,
    };
    for (tid, n) in [(10, faults[0]), (11, faults[1])] {
        let mut thread = Thread {
            process,
            comm: "worker".into(),
            cgroup: 0,
            counters: Default::default(),
        };
        thread.counters[Scope::User(0)] = n;
        delta.threads.insert(ThreadId { tid, start_ns: 1 }, thread);
    }
    let space = Space {
        process: Some(process),
        by_cpu: [(0, faults[0]), (1, faults[1])].into(),
        ..Space::default()
    };
    delta.spaces.insert(1, space);
    let all = faults[0] + faults[1] + others;
    delta.cpus.push(cpu(&[(Scope::User(0), all)]));
    delta
}

#[test]
fn cpus_share_an_address_space() {
    let id = "mm_shared_by_cpus";
    let mut delta = shared([500, 500], 9_000);
    let found = holds(id, &delta, &["faults"]);
    says(
        &found,
        &["2 CPUs share the 1.00k faults of mysqld(10)", "50%"],
    );
    fails(id, &shared([500, 499], 0));
    fails(id, &shared([500, 500], 9_001));
    fails(id, &shared([2_000, 100], 0));
    // Measured handoffs outweigh what is expected.
    let space = delta.spaces.get_mut(&1).expect("the space");
    space.window_faults = 100;
    space.window_handoffs = 9;
    fails(id, &delta);
    let space = delta.spaces.get_mut(&1).expect("the space");
    space.window_handoffs = 10;
    says(&holds(id, &delta, &[]), &["measured 10%"]);
}

#[test]
fn a_thread_that_migrates_shares_nothing() {
    let mut delta = shared([600, 600], 0);
    delta.threads.remove(&ThreadId {
        tid: 11,
        start_ns: 1,
    });
    fails("mm_shared_by_cpus", &delta);
}

fn given_back(refaults: u64, pages: u64, faults: u64, advice: i32) -> Delta {
    let mut delta = second();
    let id = MadviseId {
        tgid: 10,
        advice,
        is_remote: false,
    };
    let refault = Refault {
        ranges: 1,
        bytes: pages * 4096,
        refaults,
        ..Refault::default()
    };
    delta.refaults.insert(id, refault);
    process(&mut delta, 10, &[(Scope::User(1), faults)]);
    delta
}

#[test]
fn memory_given_back_is_touched_again() {
    let id = "refaults_after_dontneed";
    let mut delta = given_back(100, 400, 2_000, 4);
    let found = holds(id, &delta, &["refaults"]);
    says(
        &found,
        &[
            "mysqld(10) touched 25% of 1.56MiB",
            "100 pages",
            "5% of its faults",
        ],
    );
    fails(id, &given_back(99, 300, 1_000, 4));
    fails(id, &given_back(100, 401, 1_000, 4));
    fails(id, &given_back(100, 400, 2_001, 4));
    fails(id, &given_back(100, 400, 1_000, 8));
    // Without fault counts nothing is set against them.
    assert!(find(id, &given_back(100, 400, 2_001, 4), &missing(&["faults"])).is_some());
    for refault in delta.refaults.values_mut() {
        refault.lost_bytes = 4096;
    }
    says(&holds(id, &delta, &[]), &["at least 25%"]);
}

fn short_of_memory(majors: u64, some_ns: u64) -> Delta {
    let mut delta = second();
    delta.memory_pressure_ns = Some((some_ns, 0));
    delta.cpus.push(cpu(&[(Scope::Major, majors)]));
    delta.vmstat.insert("workingset_refault_file".into(), 77);
    process(&mut delta, 10, &[(Scope::Major, majors)]);
    delta
}

#[test]
fn major_faults_come_with_pressure() {
    let id = "major_faults_under_pressure";
    let mut delta = short_of_memory(10, 10_000_000);
    let found = holds(id, &delta, &["major_faults"]);
    says(
        &found,
        &[
            "10 major faults a second",
            "1% of the time",
            "77 pages",
            "mysqld(10)",
        ],
    );
    fails(id, &short_of_memory(9, 10_000_000));
    fails(id, &short_of_memory(10, 9_900_000));
    delta.interval_ns = 11 * SECOND;
    fails(id, &delta);
    delta.interval_ns = SECOND;
    delta.memory_pressure_ns = None;
    fails(id, &delta);
}

fn read_outside(holds: u64, hold_ns: u64, id: TakerId) -> Delta {
    let mut delta = second();
    let taker = Taker {
        owner: 10,
        taken: holds,
        holds,
        hold_ns,
        ..Taker::default()
    };
    delta.takers.insert(id, taker);
    delta
}

#[test]
fn an_outside_reader_holds_the_lock() {
    let rule = "outside_reader_holds_mmap_lock";
    let reader = TakerId {
        mm: 7,
        tgid: 20,
        syscall: 0,
        is_write: false,
    };
    let mut delta = read_outside(10, 10_000_000, reader);
    let found = holds(rule, &delta, &["mmap_lock_hold"]);
    says(
        &found,
        &[
            "monitor(20) held mmap_lock of mysqld(10)",
            "1% of the time",
            "in read",
        ],
    );
    fails(rule, &read_outside(9, 10_000_000, reader));
    fails(rule, &read_outside(10, 9_900_000, reader));
    for other in [
        TakerId { tgid: 10, ..reader },
        // execve of a vfork child, and khugepaged.
        TakerId {
            syscall: 59,
            ..reader
        },
        TakerId {
            syscall: -2,
            ..reader
        },
        TakerId {
            is_write: true,
            ..reader
        },
    ] {
        fails(rule, &read_outside(100, SECOND / 2, other));
    }
    // A second process of the same name.
    let mut several = read_outside(6, 6_000_000, reader);
    let other = TakerId { tgid: 21, ..reader };
    several
        .takers
        .extend(read_outside(6, 6_000_000, other).takers);
    several.names.insert(21, "monitor".into());
    let found = holds(rule, &several, &[]);
    says(&found, &["monitor(20) and 1 more held", "12 times"]);
    delta.blocked = locks::blocked(20, 0, 5_000_000).blocked;
    let found = holds(rule, &delta, &[]);
    says(&found, &["others waited 0ns for it"]);
}

fn cleared(clearing: u64, rest: u64, user: u64) -> Delta {
    let mut delta = second();
    let mut budget = Budget {
        period_ns: 1_000_000,
        user,
        kernel: clearing + rest,
        ..Budget::default()
    };
    budget.parts[FaultPart::PageClearing as usize][0] = clearing;
    budget.parts[FaultPart::Rest as usize][0] = rest;
    delta.budget = Some(budget);
    delta
}

#[test]
fn clearing_dominates_the_budget() {
    let id = "page_clearing_dominates";
    let found = holds(id, &cleared(50, 50, 9_900), &["fault_budget"]);
    says(
        &found,
        &[
            "50% of the fault time (40.4% to 59.6%, 100 samples)",
            "1% of the CPU",
        ],
    );
    // Too few samples, too small a share of the CPU, not the greatest, too wide an interval.
    fails(id, &cleared(50, 49, 0));
    fails(id, &cleared(50, 50, 9_901));
    fails(id, &cleared(490, 510, 0));
    let mut wide = cleared(42, 29, 0);
    if let Some(budget) = &mut wide.budget {
        budget.parts[FaultPart::Copy as usize][0] = 29;
    }
    fails(id, &wide);
    let mut none = cleared(50, 50, 0);
    none.budget = None;
    fails(id, &none);
}

#[test]
fn partial_numbers_name_what_is_lost_missing_or_unseen() {
    let id = "partial_numbers";
    let mut delta = second();
    delta.losses = vec![
        Loss {
            total: 9,
            increment: 0,
        },
        Loss {
            total: 3,
            increment: 2,
        },
    ];
    let mut context = Context {
        losses: crate::sample::run::LossKind::list(&[("a_full", "A."), ("b_full", "B.")]),
        ..Context::default()
    };
    let found = find(id, &delta, &context).expect("found");
    says(&found, &["2 events were lost, most by b_full"]);
    assert_eq!(found.next, "faultscope top --view losses");
    // What was lost before this interval is in no number of it.
    delta.losses[1].increment = 0;
    assert_eq!(find(id, &delta, &context), None);
    assert_eq!(find(id, &delta, &missing(&["lru", "madvise"])), None);
    context.missing = ["a", "b", "c", "d"]
        .map(|signal| Missing {
            signal: signal.into(),
            reason: "fentry is refused".into(),
        })
        .into();
    let found = find(id, &delta, &context).expect("found");
    says(&found, &["this host does not give a, b, c and 1 more"]);
    assert_eq!(found.next, "faultscope doctor");
}

#[test]
fn unseen_spinlock_waits_make_numbers_partial() {
    let id = "partial_numbers";
    let with = |mode: &str, is_exact| Context {
        spinlock: Spinlock {
            mode: Some(mode.into()),
            is_exact,
            sentence: "spinlocks: so and so".into(),
        },
        ..Context::default()
    };
    let quiet = second();
    let mut waits = second();
    waits.cpus.push(cpu(&[(Scope::Waits(LRU_LOCK), 1)]));
    let mut others = second();
    others.cpus.push(cpu(&[(Scope::Waits(MMAP_LOCK), 1)]));
    for (mode, is_exact, delta, expected) in [
        ("pv", false, &waits, false),
        ("native", false, &quiet, false),
        ("native", false, &others, false),
        ("native", false, &waits, true),
        ("native", true, &waits, false),
        ("test-and-set", false, &quiet, true),
    ] {
        let found = find(id, delta, &with(mode, is_exact));
        assert_eq!(found.is_some(), expected, "{mode}, exact: {is_exact}");
    }
}

#[test]
fn the_same_increments_give_the_same_words() {
    let delta = locks::taken(30, SECOND, 20);
    let context = missing(&["blocked"]);
    let first = findings(&delta, &context);
    assert!(!first.is_empty());
    for _ in 0..20 {
        assert_eq!(findings(&delta.clone(), &context), first);
    }
}
