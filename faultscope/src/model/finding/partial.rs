//! What the numbers leave out.

use super::{Look, Match, count, real, text};
use crate::model::build::is_spin;
use crate::sample::{Scope, counters::LOCK_CLASSES};
use crate::units::format_si;

/// Signals named in the sentence; the evidence has all.
const NAMED: usize = 3;

/// Something was lost, is missing or is seen in part.
pub(super) fn partial(look: &Look<'_>) -> Option<Match> {
    let mut clauses = Vec::new();
    let mut evidence = Vec::new();
    let lost: u64 = look.delta.losses.iter().map(|loss| loss.increment).sum();
    if lost > 0 {
        let causes = look.context.losses.iter().zip(&look.delta.losses);
        let most = causes.max_by_key(|(_, loss)| loss.increment);
        let cause = most.map_or("an unknown cause", |(kind, _)| &*kind.id);
        let n = format_si(real(lost));
        clauses.push(format!("{n} events were lost, most by {cause}"));
        evidence.push(count("lost", lost));
        evidence.push(text("lost_most_by", cause));
    }
    let missing: Vec<&str> = look
        .context
        .missing
        .iter()
        .filter(|missing| !missing.is_by_choice())
        .map(|missing| &*missing.signal)
        .collect();
    if !missing.is_empty() {
        let mut names = missing
            .iter()
            .take(NAMED)
            .copied()
            .collect::<Vec<_>>()
            .join(", ");
        if missing.len() > NAMED {
            names.push_str(&format!(" and {} more", missing.len() - NAMED));
        }
        clauses.push(format!("this host does not give {names}"));
        evidence.push(count("missing_signals", missing.len() as u64));
        evidence.push(text("missing", missing.join(" ")));
    }
    if let Some(clause) = spinlocks(look) {
        clauses.push(clause.to_owned());
        evidence.push(text(
            "spinlock_mode",
            look.context.spinlock.mode.as_deref().unwrap_or("unknown"),
        ));
    }
    if clauses.is_empty() {
        return None;
    }
    let sentence = format!("{}.", clauses.join("; "));
    let next = (lost > 0).then_some("faultscope top --view losses");
    Some(Match {
        text: sentence,
        evidence,
        next,
    })
}

/// What spinlock waits leave out, where there is something to leave out.
fn spinlocks<'a>(look: &Look<'a>) -> Option<&'a str> {
    let spinlock = &look.context.spinlock;
    if spinlock.is_exact || !look.has("contention") {
        return None;
    }
    let total = look.delta.total();
    let waits: u64 = (0..LOCK_CLASSES)
        .filter(|class| is_spin(*class))
        .map(|class| total[Scope::Waits(class)])
        .sum();
    // Native locks hide some of several waits, test-and-set locks all of them.
    let is_partial = match spinlock.mode.as_deref()? {
        "test-and-set" => true,
        "native" => waits > 0,
        _ => false,
    };
    is_partial.then_some(spinlock.sentence.as_str())
}
