//! What is forbidden, hidden or refused is planned around.

use super::*;

#[test]
fn forbidden_program_uses_the_alternative() {
    let request = Request {
        forbidden: ["fault_user".to_owned()].into(),
        ..Request::default()
    };
    let plan = plan(&newest(), &request);
    assert!(plan.has("fault_software"));
    assert_eq!(omission(&plan, "fault_user").why, Why::Forbidden);
}

#[test]
fn hidden_symbols_take_the_budget_and_refuse_nothing() {
    let mut facts = newest();
    facts.symbols = Fact::no("addresses are hidden (kptr_restrict)");
    let plan = plan(&facts, &Request::everything());
    let hidden = omission(&plan, "budget");
    assert_eq!(hidden.why, Why::KernelLacks);
    assert!(!hidden.is_refusal());
    assert!(hidden.reason.contains("kptr_restrict"), "{}", hidden.reason);
    assert!(plan.has("contention_begin"));
}

#[test]
fn refused_program_is_planned_around_with_the_kernels_reason() {
    let request = Request {
        refused: [("fault_user".to_owned(), "EPERM".to_owned())].into(),
        ..Request::everything()
    };
    let plan = plan(&newest(), &request);
    assert!(plan.has("fault_software"));
    let refused = omission(&plan, "fault_user");
    assert_eq!(refused.why, Why::Refused);
    assert!(refused.reason.contains("EPERM"), "{}", refused.reason);
    assert!(refused.is_refusal());
}

#[test]
fn without_fentry_a_kprobe_counts_passes_and_their_outcome_is_missing() {
    let eperm = |program: &str| (program.to_owned(), "EPERM".to_owned());
    let mut request = Request {
        refused: [eperm("mm_fault_end"), eperm("mm_fault_begin")].into(),
        ..Request::everything()
    };
    let mut facts = newest();
    let lacks = |plan: &Plan| -> Vec<(&str, String)> {
        missing(plan, &[])
            .into_iter()
            .filter(|m| ["fault_latency", "populate_faults"].contains(&m.signal))
            .map(|m| (m.signal, m.reason))
            .collect()
    };
    let with = plan(&facts, &request);
    assert!(with.has("mm_fault_entry") && !with.has("mm_fault_begin"));
    let reasons = lacks(&with);
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(reasons[0].0 == "fault_latency" && reasons[0].1.contains("EPERM"));
    let limits = with.degradations.iter().map(|d| d.lost);
    assert!(limits.into_iter().any(|lost| lost.contains("no times")));

    facts.has_kprobes = false;
    let without = plan(&facts, &request);
    assert_eq!(lacks(&without).len(), 2);
    request.refused.clear();
    let whole = plan(&facts, &request);
    assert!(whole.has("mm_fault_begin") && lacks(&whole).is_empty());
}

#[test]
fn refused_attach_makes_its_signal_missing() {
    let plan = plan(&newest(), &Request::everything());
    let refused = |program: &'static str| Attached {
        program,
        outcome: Err("EACCES".into()),
    };
    let signals = |attached: &[Attached]| {
        let untraced = [
            "mark_accessed",
            "fault_latency",
            "populate_faults",
            "lru_lock_hold",
            "drains",
        ];
        let names: Vec<_> = missing(&plan, attached)
            .into_iter()
            .map(|entry| entry.signal)
            .collect();
        names
            .into_iter()
            .filter(|name| !untraced.contains(name))
            .collect::<Vec<_>>()
    };
    assert_eq!(signals(&[]), [] as [&str; 0]);
    assert_eq!(signals(&[refused("contention_end")]), ["contention"]);
    // One of two independent parts is left.
    assert_eq!(signals(&[refused("lru_activate")]), [] as [&str; 0]);
    assert_eq!(
        signals(&[refused("lru_activate"), refused("lru_insertion")]),
        ["lru"]
    );
}
