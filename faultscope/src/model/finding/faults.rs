//! Rules about faults: their path, their CPUs, their time.

use super::{FEWEST_EVENTS, Look, Match, OF_CPU, count, ns, part, percent, real, share, text};
use crate::sample::budget::interval;
use crate::sample::delta::{FALL_BACK, FAULT_BACKINGS, Passes, Space};
use crate::symbol::FaultPart;
use crate::units::{format_ns, format_ratio, format_si};
use std::collections::BTreeMap;

/// Share of the faults from user mode from which falling back is found.
const FALL_BACKS: f64 = 0.05;

/// Faults are taken again under mmap_lock after the VMA lock.
pub(super) fn fall_backs(look: &Look<'_>) -> Option<Match> {
    if !look.has("fault_latency") {
        return None;
    }
    let mut paths: [Passes; FALL_BACK + 1] = std::array::from_fn(|_| Passes::default());
    let mut backings: BTreeMap<usize, u64> = BTreeMap::new();
    for ((path, backing), passes) in &look.delta.passes {
        if let Some(sum) = paths.get_mut(*path) {
            sum.add(passes);
        }
        if *path == FALL_BACK {
            *backings.entry(*backing).or_default() += passes.faults;
        }
    }
    let fallen = paths[FALL_BACK].faults;
    let user: u64 = paths.iter().map(|passes| passes.faults).sum();
    if fallen < FEWEST_EVENTS || share(fallen, user) < FALL_BACKS {
        return None;
    }
    let mean = |passes: &Passes| passes.ns.checked_div(passes.faults);
    let mut evidence = vec![
        count("fall_backs", fallen),
        count("user_faults", user),
        part("fall_back_ratio", share(fallen, user)),
    ];
    let mut sentence = format!(
        "{} of {} faults from user mode fell back from the VMA lock to mmap_lock",
        percent(fallen, user),
        format_si(real(user)),
    );
    let process = look.delta.process_passes.iter();
    let most = process.max_by_key(|(tgid, p)| (p.paths[FALL_BACK], **tgid));
    if let Some((tgid, passes)) = most.filter(|(_, p)| p.paths[FALL_BACK] > 0) {
        let who = look.process(*tgid);
        let n = passes.paths[FALL_BACK];
        sentence.push_str(&format!(", {} of these in {who}", percent(n, fallen)));
        evidence.push(text("process", who));
        evidence.push(count("process_fall_backs", n));
    }
    let most = backings.into_iter().max_by_key(|(_, n)| *n);
    if let Some((backing, n)) = most
        && look.has("fault_backing")
    {
        let name = FAULT_BACKINGS.get(backing).copied().unwrap_or("other");
        sentence.push_str(&format!(", {} on {name}", percent(n, fallen)));
        evidence.push(text("backing", name));
    }
    if let (Some(slow), Some(fast)) = (mean(&paths[FALL_BACK]), mean(&paths[0])) {
        sentence.push_str(&format!(
            "; they took {} on average, {} under the VMA lock",
            format_ns(real(slow)),
            format_ns(real(fast))
        ));
        evidence.push(ns("fall_back_avg_ns", slow));
        evidence.push(ns("vma_lock_avg_ns", fast));
    }
    sentence.push('.');
    Some(Match::new(sentence, evidence))
}

/// Fewest faults of an address space whose sharing is told.
const FEWEST_SHARED: u64 = 1_000;
/// Least share of the machine's faults.
const OF_FAULTS: f64 = 0.1;
/// Least probability that successive faults land on different CPUs: that of 1.5
/// equal CPUs.
const SPREAD: f64 = 1.0 / 3.0;
/// Least share of measured successive faults that changed CPU.
const MEASURED: f64 = 0.1;
/// Share of the space's faults that makes a thread one of those that share it.
const OF_SPACE: f64 = 0.05;

/// Several CPUs fault in one address space at the same time.
pub(super) fn shared_space(look: &Look<'_>) -> Option<Match> {
    if !look.has("faults") {
        return None;
    }
    let all = look.delta.total().faults();
    let sum = |space: &Space| space.by_cpu.values().sum::<u64>();
    let (mm, space) = look
        .delta
        .spaces
        .iter()
        .filter(|(_, space)| is_shared(look, space, all))
        .max_by_key(|(mm, space)| (sum(space), **mm))?;
    let faults = sum(space);
    let spread = different(space);
    let cpus = 1.0 / (1.0 - spread);
    let who = match space.process {
        Some(id) => look.process(id.tgid),
        None => format!("mm {mm:#x}"),
    };
    let n = space.by_cpu.values().filter(|faults| **faults > 0).count() as u64;
    let mut evidence = vec![
        text("process", who.as_str()),
        count("cpus", n),
        count("faults", faults),
        part("of_all_faults_ratio", share(faults, all)),
        part("expected_handoff_ratio", spread),
    ];
    let mut sentence = format!(
        "{n} CPUs share the {} faults of {who}, as evenly as {} would; successive faults change CPU with probability {} \
         if their order is random",
        format_si(real(faults)),
        format_si(cpus),
        format_ratio(spread),
    );
    if space.window_faults >= FEWEST_EVENTS {
        let measured = share(space.window_handoffs, space.window_faults);
        sentence.push_str(&format!(", measured {}", format_ratio(measured)));
        evidence.push(part("measured_handoff_ratio", measured));
        evidence.push(count("measured_faults", space.window_faults));
    }
    sentence.push('.');
    Some(Match::new(sentence, evidence))
}

fn is_shared(look: &Look<'_>, space: &Space, all: u64) -> bool {
    let faults: u64 = space.by_cpu.values().sum();
    if faults < FEWEST_SHARED || share(faults, all) < OF_FAULTS || different(space) < SPREAD {
        return false;
    }
    if space.window_faults >= FEWEST_EVENTS {
        return share(space.window_handoffs, space.window_faults) >= MEASURED;
    }
    let Some(process) = space.process else {
        return false;
    };
    let faulting = look.delta.threads.values().filter(|thread| {
        thread.process == process && share(thread.counters.faults(), faults) >= OF_SPACE
    });
    faulting.count() >= 2
}

/// 1 - sum(p²) over the CPUs' shares of the faults.
fn different(space: &Space) -> f64 {
    let all: u64 = space.by_cpu.values().sum();
    let same: f64 = space.by_cpu.values().map(|n| share(*n, all).powi(2)).sum();
    1.0 - same
}

/// Lower end of the share from which page clearing dominates.
const DOMINANT: f64 = 1.0 / 3.0;

/// Filling pages with zeroes takes most of the fault time.
pub(super) fn page_clearing(look: &Look<'_>) -> Option<Match> {
    if !look.has("fault_budget") {
        return None;
    }
    let budget = look.delta.budget.as_ref()?;
    let all = budget.faults();
    let cleared = budget.part(FaultPart::PageClearing);
    let is_most = FaultPart::ALL.iter().all(|p| budget.part(*p) <= cleared);
    let (low, high) = interval(cleared, all)?;
    let counted = budget.user + budget.kernel;
    if all < FEWEST_EVENTS || share(all, counted) < OF_CPU || !is_most || low < DOMINANT {
        return None;
    }
    let locks = budget.part(FaultPart::PageTableLock) + budget.part(FaultPart::OtherLock);
    let mut evidence = vec![
        part("page_clearing_ratio", share(cleared, all)),
        part("page_clearing_low_ratio", low),
        part("page_clearing_high_ratio", high),
        part("locks_ratio", share(locks, all)),
        count("samples", all),
        part("fault_path_of_cpu_ratio", share(all, counted)),
    ];
    if let Some(name) = &budget.functions[FaultPart::PageClearing as usize] {
        evidence.push(text("function", &**name));
    }
    let sentence = format!(
        "page clearing takes {} of the fault time ({} to {}, {} samples), locks {}; the fault path takes {} of the CPU \
         time.",
        percent(cleared, all),
        format_ratio(low),
        format_ratio(high),
        format_si(real(all)),
        percent(locks, all),
        percent(all, counted),
    );
    Some(Match::new(sentence, evidence))
}
