//! Rules about the LRU, memory given back, and memory that is short.

use super::{
    FEWEST_EVENTS, Look, Match, OF_CPU, bytes, count, ns, part, percent, real, share, text,
};
use crate::sample::{Scope, refault::Refault};
use crate::units::{format_bytes, format_ns, format_si};
use std::collections::HashMap;

/// Fewest marks, or insertions, without which zero activations say nothing.
const FEWEST_MARKS: u64 = 1_000;
/// Marks for one activation from which there are none to speak of.
const MARKS_AN_ACTIVATION: u64 = 1_000;

/// Activations stay away because the LRU has generations.
pub(super) fn mglru(look: &Look<'_>) -> Option<Match> {
    // Bit 0 is the main switch (Documentation/admin-guide/mm/multigen_lru.rst).
    let is_on = |bits: Option<u32>| bits.is_some_and(|bits| bits & 1 != 0);
    let [before, after] = look.delta.mglru;
    if !look.has("lru") || !is_on(before) || !is_on(after) {
        return None;
    }
    let cpus = &look.delta.cpus;
    let activations: u64 = cpus.iter().map(|cpu| cpu.lru_activations).sum();
    let (n, what, evidence) = if look.has("mark_accessed") {
        let marks = cpus.iter().map(|cpu| cpu.lru.mark_accessed).sum();
        (marks, "marks of a page as accessed", "mark_accessed")
    } else {
        let insertions = cpus.iter().map(|cpu| cpu.lru_insertions).sum();
        (insertions, "insertions", "lru_insertions")
    };
    if n < FEWEST_MARKS || activations.saturating_mul(MARKS_AN_ACTIVATION) > n {
        return None;
    }
    let bits = after.unwrap_or(0);
    let sentence = format!(
        "{} activations for {} {what}: multi-generational LRU is on ({bits:#06x}) and ages pages by generation; do not \
         compare with a kernel that has it off.",
        format_si(real(activations)),
        format_si(real(n)),
    );
    let evidence = vec![
        count("lru_activations", activations),
        count(evidence, n),
        text("mglru", format!("{bits:#06x}")),
    ];
    Some(Match::new(sentence, evidence))
}

/// `MADV_DONTNEED` (include/uapi/asm-generic/mman-common.h).
const DONTNEED: i32 = 4;
/// Bytes of a base page on x86-64.
const PAGE_BYTES: u64 = 4096;
/// Share of what was given back from which touching it again is found.
const TOUCHED_AGAIN: f64 = 0.25;
/// Share of the process's faults.
const OF_FAULTS: f64 = 0.05;

/// Memory is given back and touched again at once.
pub(super) fn refaults(look: &Look<'_>) -> Option<Match> {
    if !look.has("refaults") {
        return None;
    }
    let mut processes: HashMap<u32, Refault> = HashMap::new();
    for (id, refault) in &look.delta.refaults {
        if id.advice == DONTNEED {
            processes.entry(id.tgid).or_default().add(refault);
        }
    }
    let (tgid, sum) = processes
        .into_iter()
        .max_by_key(|(tgid, refault)| (refault.refaults, *tgid))?;
    let again = sum.refaults * PAGE_BYTES;
    if sum.refaults < FEWEST_EVENTS || share(again, sum.bytes) < TOUCHED_AGAIN {
        return None;
    }
    let processes = look.delta.processes.iter();
    let faults: u64 = processes
        .filter(|(id, _)| id.tgid == tgid)
        .map(|(_, process)| process.counters.faults())
        .sum();
    let has_faults = look.has("faults") && faults > 0;
    if has_faults && share(sum.refaults, faults) < OF_FAULTS {
        return None;
    }
    let who = look.process(tgid);
    let least = if sum.lost_bytes > 0 { "at least " } else { "" };
    let mut sentence = format!(
        "{who} touched {least}{} of {} again that it had given back with MADV_DONTNEED, {} pages",
        percent(again, sum.bytes),
        format_bytes(real(sum.bytes)),
        format_si(real(sum.refaults)),
    );
    let mut evidence = vec![
        text("process", who),
        count("refaults", sum.refaults),
        bytes("refaulted_bytes", again),
        bytes("given_back_bytes", sum.bytes),
        bytes("given_back_lost_bytes", sum.lost_bytes),
        ns("refault_window_ns", look.delta.refault_window_ns),
    ];
    if let Some(median) = sum.after.quantile_ns(0.5) {
        sentence.push_str(&format!(
            ", half of them within {}",
            format_ns(real(median))
        ));
        evidence.push(ns("refault_p50_ns", median));
    }
    if has_faults {
        let of = percent(sum.refaults, faults);
        sentence.push_str(&format!("; that is {of} of its faults"));
        evidence.push(part("of_faults_ratio", share(sum.refaults, faults)));
    }
    sentence.push('.');
    Some(Match::new(sentence, evidence))
}

/// Fewest major faults that are found.
const FEWEST_MAJORS: u64 = 10;

/// Major faults come while memory is short.
pub(super) fn pressure(look: &Look<'_>) -> Option<Match> {
    let (some_ns, full_ns) = look.delta.memory_pressure_ns?;
    let majors = look.delta.total()[Scope::Major];
    let seconds = crate::model::units_secs(look.delta.interval_ns);
    let a_second = real(majors) / seconds;
    let is_enough = majors >= FEWEST_MAJORS && a_second >= 1.0;
    if !look.has("major_faults") || !is_enough || look.of_cpu(some_ns) < OF_CPU {
        return None;
    }
    let vmstat = |name: &str| look.delta.vmstat.get(name).copied();
    let mut evidence = vec![
        count("major_faults", majors),
        ns("pressure_some_ns", some_ns),
        ns("pressure_full_ns", full_ns),
    ];
    let mut sentence = format!(
        "{} major faults a second while tasks stalled for memory {} of the time",
        format_si(a_second),
        percent(some_ns, look.delta.interval_ns),
    );
    let back = [
        vmstat("workingset_refault_anon"),
        vmstat("workingset_refault_file"),
    ];
    if back.iter().any(Option::is_some) {
        let back = back.iter().flatten().sum();
        sentence.push_str(&format!(
            "; {} pages came back that reclaim had evicted",
            format_si(real(back))
        ));
        evidence.push(count("workingset_refaults", back));
    }
    for (name, key) in [("pswpin", "pswpin"), ("pgscan_direct", "pgscan_direct")] {
        evidence.extend(vmstat(key).map(|n| count(name, n)));
    }
    let processes = look.delta.processes.iter();
    let most = processes.max_by_key(|(id, p)| (p.counters[Scope::Major], id.tgid));
    if let Some((id, process)) = most.filter(|(_, p)| p.counters[Scope::Major] > 0) {
        let who = look.process(id.tgid);
        let n = process.counters[Scope::Major];
        sentence.push_str(&format!("; {who} took {} of them", percent(n, majors)));
        evidence.push(text("process", who));
        evidence.push(count("process_major_faults", n));
    }
    sentence.push('.');
    Some(Match::new(sentence, evidence))
}
