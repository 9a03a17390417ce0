//! The plan on made-up kernels.

mod refusals;

use std::collections::BTreeSet;

use faultscope_common::config::{ABSENT, OFFSETS};
use proptest::prelude::*;

use super::facts::DERIVED;
use super::*;
use crate::host::Fact;

fn args(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("t{index}")).collect()
}

/// A kernel with everything and the newest prototypes.
fn newest() -> ProbeFacts {
    let tracepoints = [
        ("sched_process_exit", 2),
        ("sched_process_exec", 3),
        ("sched_process_fork", 2),
        ("cgroup_attach_task", 4),
        ("task_rename", 2),
        ("page_fault_user", 3),
        ("page_fault_kernel", 3),
        ("mmap_lock_start_locking", 2),
        ("mmap_lock_acquire_returned", 3),
        ("mmap_lock_released", 2),
        ("mm_page_alloc", 4),
        ("contention_begin", 2),
        ("contention_end", 2),
        ("mm_lru_insertion", 1),
        ("mm_lru_activate", 1),
        ("rss_stat", 2),
        ("sys_enter", 2),
        ("sys_exit", 2),
    ];
    ProbeFacts {
        tracepoints: tracepoints.map(|(name, count)| (name, args(count))).into(),
        values: OFFSETS
            .iter()
            .map(|(global, _, _)| *global)
            .chain(DERIVED)
            .zip(8..)
            .collect(),
        functions: PROBES
            .iter()
            .filter_map(|probe| match probe.attach {
                Attach::Function { names, args, .. } => {
                    Some((*names.first()?, args.first().copied().unwrap_or_default()))
                }
                _ => None,
            })
            .collect(),
        has_kprobes: true,
        perf_software: Fact::Yes(()),
        symbols: Fact::Yes(()),
    }
}

/// The prototypes that carry the path of the memory cgroup, and the older rss_stat.
fn with_memcg_path() -> ProbeFacts {
    let mut facts = newest();
    for (name, count) in [
        ("mmap_lock_start_locking", 3),
        ("mmap_lock_acquire_returned", 4),
        ("mmap_lock_released", 3),
        ("sched_process_exit", 1),
        ("rss_stat", 3),
    ] {
        facts.tracepoints.insert(name, args(count));
    }
    facts
}

fn without(facts: ProbeFacts, globals: &[&str]) -> ProbeFacts {
    let mut facts = facts;
    facts.values.retain(|global, _| !globals.contains(global));
    facts
}

fn programs(plan: &Plan) -> Vec<&'static str> {
    plan.chosen.iter().map(|probe| probe.program).collect()
}

fn omission<'a>(plan: &'a Plan, program: &str) -> &'a Omission {
    plan.omissions
        .iter()
        .find(|omission| omission.program == Some(program))
        .unwrap_or_else(|| panic!("{program} is not among {:?}", plan.omissions))
}

fn global(plan: &Plan, name: &str) -> u64 {
    let (_, value) = plan
        .globals
        .iter()
        .find(|(global, _)| *global == name)
        .expect("every global has a value");
    *value
}

fn reason(plan: &Plan, signal: &str) -> Option<String> {
    missing(plan, &[])
        .into_iter()
        .find(|entry| entry.signal == signal)
        .map(|entry| entry.reason)
}

#[test]
fn core_set_in_attach_order() {
    assert_eq!(
        programs(&plan(&newest(), &Request::core())),
        [
            "task_exit",
            "task_exec",
            "task_rename",
            "cgroup_move",
            "fault_user",
            "fault_kernel",
            "fault_major",
            "contention_end",
            "contention_begin"
        ]
    );
}

#[test]
fn a_set_brings_what_it_needs() {
    let request = Request {
        sets: [Set::Blocked].into(),
        ..Request::core()
    };
    let plan = plan(&newest(), &request);
    for program in ["blocked_begin", "mmap_start", "mmap_released", "mmap_taken"] {
        assert!(plan.has(program), "{program}");
    }
    assert!(!plan.has("sys_enter"));
}

#[test]
fn ends_are_attached_before_begins() {
    let plan = plan(&newest(), &Request::everything());
    let at = |program: &str| {
        programs(&plan)
            .iter()
            .position(|name| *name == program)
            .expect("chosen")
    };
    for (end, begin) in [
        ("contention_end", "contention_begin"),
        ("mmap_released", "mmap_acquired"),
        ("mmap_acquired", "mmap_start"),
        // Who acquires is noted first by the program that counts it.
        ("mmap_taken", "mmap_acquired"),
        ("sys_exit", "sys_enter"),
    ] {
        assert!(at(end) < at(begin), "{end} after {begin}");
    }
}

#[test]
fn prototype_is_chosen_by_argument_count() {
    let plan = plan(&with_memcg_path(), &Request::everything());
    for program in [
        "mmap_taken_memcg",
        "mmap_start_memcg",
        "mmap_acquired_memcg",
        "mmap_released_memcg",
        "rss_stat",
        "task_exit",
    ] {
        assert!(plan.has(program), "{program}: {:?}", plan.omissions);
    }
    assert!(!plan.has("mmap_start") && !plan.has("mmap_taken"));
    assert_eq!(reason(&plan, "mmap_lock"), None);
    assert_eq!(reason(&plan, "mmap_lock_hold"), None);
}

#[test]
fn unknown_argument_list_is_declined_and_quoted() {
    let mut facts = newest();
    facts.tracepoints.insert(
        "contention_begin",
        vec!["void *".into(), "uint".into(), "bool".into()],
    );
    let plan = plan(&facts, &Request::core());
    let found = omission(&plan, "contention_begin");
    assert_eq!(found.why, Why::KernelLacks);
    assert!(
        found.reason.contains("3 arguments (void *, uint, bool)"),
        "{}",
        found.reason
    );
    assert_eq!(omission(&plan, "contention_end").why, Why::Incomplete);
    assert!(
        !plan.has("contention_end"),
        "one half of a pair would miscount"
    );
    assert!(
        reason(&plan, "contention")
            .expect("missing")
            .contains("3 arguments")
    );
}

#[test]
fn without_fault_tracepoints_the_software_event_counts() {
    for absent in ["page_fault_user", "page_fault_kernel"] {
        let mut facts = newest();
        facts.tracepoints.remove(absent);
        let plan = plan(&facts, &Request::core());
        assert!(plan.has("fault_software") && !plan.has("fault_user") && !plan.has("fault_kernel"));
        assert_eq!(reason(&plan, "faults"), None);
        assert!(
            plan.degradations
                .iter()
                .any(|entry| entry.signal == "faults" && entry.lost.contains("fixed-up")),
            "{:?}",
            plan.degradations
        );
    }
    let whole = plan(&newest(), &Request::core());
    assert_eq!(omission(&whole, "fault_software").why, Why::OtherWay);
}

#[test]
fn kernel_without_any_tracepoint_counts_faults_alone() {
    let mut facts = newest();
    facts.tracepoints.clear();
    facts.functions.clear();
    let plan = plan(&facts, &Request::everything());
    assert_eq!(programs(&plan), ["fault_software", "fault_major", "budget"]);
    for signal in ["mmap_lock", "contention", "lru", "rss_stat", "madvise"] {
        assert!(
            reason(&plan, signal)
                .expect("missing")
                .contains("no tracepoint"),
            "{signal}"
        );
    }
}

#[test]
fn perf_refusal_is_told_from_perf_absence() {
    for (text, why) in [
        ("needs CAP_PERFMON", Why::NotPermitted),
        ("this kernel has no perf events", Why::KernelLacks),
    ] {
        let mut facts = newest();
        facts.perf_software = Fact::no(text);
        let plan = plan(&facts, &Request::core());
        assert_eq!(omission(&plan, "fault_major").why, why);
        assert_eq!(reason(&plan, "major_faults").as_deref(), Some(text));
        assert!(plan.has("fault_user"));
    }
}

#[test]
fn required_member_declines_optional_one_degrades() {
    let plan_of = |globals: &[&str]| plan(&without(newest(), globals), &Request::everything());

    let no_mark = plan_of(&["OFF_TASK_PF_DISABLED"]);
    assert!(
        omission(&no_mark, "fault_kernel")
            .reason
            .contains("task_struct.pagefault_disabled")
    );
    assert!(
        no_mark.has("fault_software"),
        "the fall-back needs no such member"
    );

    let no_lruvec = plan_of(&["OFF_LRUVEC_PGDAT"]);
    assert!(no_lruvec.has("contention_begin"));
    assert_eq!(global(&no_lruvec, "OFF_LRUVEC_PGDAT"), ABSENT);
    let lost: Vec<_> = no_lruvec
        .degradations
        .iter()
        .map(|entry| (entry.signal, entry.lost))
        .collect();
    assert_eq!(
        lost,
        [(
            "contention",
            "contended waits for lru_lock are shown as \"spinlock\""
        )]
    );

    let no_status = plan_of(&["OFF_TASK_STATUS"]);
    assert!(no_status.has("sys_enter"));
    assert!(no_status.degradations[0].lost.contains("32-bit"));

    let no_row = plan_of(&["OFF_TASK_START"]);
    assert!(!no_row.has("fault_user") && !no_row.has("fault_software"));
    assert!(
        no_row.has("lru_insertion"),
        "per-CPU counters need no thread"
    );
}

#[test]
fn kernel_without_memory_controller_has_no_cgroups() {
    for absent in ["MEMCG_SUBSYS", "OFF_CSS_SET_SUBSYS", "OFF_KN_ID"] {
        let plan = plan(&without(newest(), &[absent]), &Request::core());
        assert!(plan.has("fault_user"));
        // The program must not start a walk it cannot finish.
        assert_eq!(global(&plan, "MEMCG_SUBSYS"), ABSENT, "{absent}");
        let lost = plan
            .degradations
            .iter()
            .find(|entry| entry.lost.contains("Cgroups"))
            .expect("said");
        assert_eq!(lost.absent, [absent]);
    }
}

#[test]
fn sizes_fall_back_to_what_matches_nothing() {
    let plan = plan(
        &without(newest(), &["SIZE_RWSEM", "SIZE_PAGE"]),
        &Request::core(),
    );
    assert_eq!(global(&plan, "SIZE_RWSEM"), 0);
    assert_eq!(global(&plan, "OFF_PAGE_PTL"), ABSENT);
}

#[test]
fn sets_attach_on_demand_and_are_not_missing_until_then() {
    let core = plan(&newest(), &Request::core());
    assert_eq!(omission(&core, "sys_enter").why, Why::NotRequested);
    assert_eq!(reason(&core, "madvise"), None);
    // What the kernel lacks is known before it is asked for.
    let mut facts = newest();
    facts.tracepoints.remove("sys_exit");
    assert!(
        reason(&plan(&facts, &Request::core()), "madvise")
            .expect("missing")
            .contains("sys_exit")
    );

    let request = Request {
        sets: [Set::Madvise].into(),
        ..Request::default()
    };
    let more = plan(&newest(), &request);
    assert!(more.has("sys_enter") && more.has("sys_exit") && !more.has("rss_stat"));
}

#[test]
fn identity_is_compared_in_full_where_its_changes_are_not_traced() {
    let traced = |facts| {
        let plan = plan(&facts, &Request::core());
        let value = plan
            .globals
            .iter()
            .find(|(name, _)| *name == "SCOPES_TRACED");
        value.expect("the global is always set").1
    };
    assert_eq!(traced(newest()), 1);
    for name in ["sched_process_exit", "sched_process_exec", "task_rename"] {
        let mut facts = newest();
        facts.tracepoints.remove(name);
        assert_eq!(traced(facts), 0, "{name}");
    }
}

#[test]
fn named_program_brings_its_part_or_is_reported() {
    let request = Request {
        named: ["sys_enter".to_owned()].into(),
        ..Request::default()
    };
    let whole = plan(&newest(), &request);
    assert!(whole.has("sys_enter") && whole.has("sys_exit"));
    assert_eq!(whole.named_missing().count(), 0);
    let mut facts = newest();
    facts.tracepoints.remove("sys_enter");
    let broken = plan(&facts, &request);
    let reasons: Vec<_> = broken
        .named_missing()
        .map(|entry| entry.reason.as_str())
        .collect();
    assert_eq!(reasons, ["this kernel has no tracepoint \"sys_enter\""]);
}

#[test]
fn status_line_names_signals_and_where_to_ask() {
    assert_eq!(status_line(&[]), None);
    let one = [MissingSignal {
        signal: "drains",
        reason: "x".into(),
    }];
    let line = status_line(&one).expect("one is missing");
    assert!(
        line.contains("drains") && line.contains("faultscope doctor"),
        "{line}"
    );
}

#[test]
fn catalogue_is_consistent() {
    let known: BTreeSet<_> = OFFSETS
        .iter()
        .map(|(global, _, _)| *global)
        .chain(DERIVED)
        .collect();
    let mut seen = BTreeSet::new();
    for entry in PROBES {
        assert!(seen.insert(entry.program), "{} stands twice", entry.program);
        assert!(SIGNALS.iter().any(|signal| signal.id == entry.signal));
        assert!(entry.purpose.ends_with('.') && !entry.limits.ends_with('.'));
        let optional = entry.optional.iter().flat_map(|degrade| degrade.globals);
        for global in entry.required.iter().chain(optional) {
            assert!(
                known.contains(global),
                "{}: {global} is never read",
                entry.program
            );
        }
        assert_eq!(probe(entry.program), Some(entry));
    }
    for signal in SIGNALS {
        assert!(signal.description.ends_with('.'), "{}", signal.id);
        assert!(!signal.untraced.ends_with('.'), "{}", signal.id);
    }
}

/// What the running kernel has must be found: an empty look-up would degrade everything and still be a plan.
#[test]
fn running_kernel_gives_tracepoints_and_offsets() {
    let image = std::fs::read("/sys/kernel/btf/vmlinux").expect("the tests need a kernel with BTF");
    let btf = crate::host::btf::Btf::parse(image).expect("the running kernel's BTF");
    let privilege = crate::host::privilege::PrivilegeFacts::read(std::path::Path::new("/"));
    let facts = ProbeFacts::from_btf(&btf, &privilege, Fact::Yes(()));
    assert!(
        facts.tracepoints.contains_key("page_fault_user"),
        "{:?}",
        facts.tracepoints
    );
    for global in [
        "OFF_TASK_MM",
        "OFF_LRUVEC_LOCK",
        "OFF_MM_LOCK",
        "SIZE_RWSEM",
        "SIZE_PAGE",
        "IS_RT",
    ] {
        assert!(
            facts.values.contains_key(global),
            "{global} is not in {:?}",
            facts.values
        );
    }
    let made = plan(&facts, &Request::everything());
    assert!(made.has("contention_begin"), "{:?}", made.omissions);
    assert_eq!(reason(&made, "mmap_lock"), None, "{:?}", made.omissions);
}

proptest! {
    #[test]
    fn every_signal_is_chosen_or_explained(
        tracepoints in any::<u32>(),
        counts in proptest::collection::vec(0usize..6, 16),
        keep_counts in any::<bool>(),
        values in any::<u64>(),
        sets in any::<u16>(),
        has_perf in any::<bool>(),
        is_older in any::<bool>(),
    ) {
        let mut facts = if is_older { with_memcg_path() } else { newest() };
        let names: Vec<_> = facts.tracepoints.keys().copied().collect();
        for (index, name) in names.into_iter().enumerate() {
            if tracepoints >> index & 1 == 0 {
                facts.tracepoints.remove(name);
            } else if !keep_counts {
                facts.tracepoints.insert(name, args(counts[index % counts.len()]));
            }
        }
        let globals: Vec<_> = facts.values.keys().copied().collect();
        for (index, name) in globals.into_iter().enumerate() {
            // Two bits in three stay, or hardly a program is ever planned.
            if values >> (index % 64) & 0b11 == 0 {
                facts.values.remove(name);
            }
        }
        if !has_perf {
            facts.perf_software = Fact::unknown("not known");
        }
        let request = Request {
            sets: Set::ALL.into_iter().enumerate().filter(|(bit, _)| sets >> bit & 1 == 1).map(|(_, set)| set).collect(),
            ..Request::default()
        };
        let made = plan(&facts, &request);
        for signal in SIGNALS {
            let is_chosen = made.chosen.iter().any(|entry| entry.signal == signal.id);
            let is_explained =
                made.omissions.iter().any(|entry| entry.signal == signal.id && !entry.reason.is_empty());
            prop_assert!(is_chosen || is_explained, "{} is neither", signal.id);
        }
        for entry in &made.chosen {
            let other_ways = made.chosen.iter().filter(|other| other.part == entry.part && other.way != entry.way);
            prop_assert_eq!(other_ways.count(), 0, "{} with an alternative", entry.program);
            let whole = PROBES.iter().filter(|other| (other.part, other.way) == (entry.part, entry.way));
            for member in whole {
                prop_assert!(made.has(member.program), "{} without {}", entry.program, member.program);
            }
            for required in entry.required {
                prop_assert!(facts.values.contains_key(required));
            }
            let is_needed = request.sets.iter().any(|set| *set == entry.set || set.needs().contains(&entry.set));
            prop_assert!(entry.set == Set::Core || is_needed, "{}", entry.program);
        }
        for entry in PROBES {
            let listed = made.omissions.iter().filter(|left| left.program == Some(entry.program)).count();
            prop_assert_eq!(listed + usize::from(made.has(entry.program)), 1, "{}", entry.program);
        }
        // SCOPES_TRACED and SLOWPATH come from the choice itself.
        prop_assert_eq!(made.globals.len(), OFFSETS.len() + DERIVED.len() + 2);
    }
}
