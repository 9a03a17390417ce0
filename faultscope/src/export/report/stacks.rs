//! Call stacks with a time each: lock wait, lock hold, and the time of faults.

use crate::model::syscall;
use crate::render::flame::Stacks;
use crate::sample::{Delta, counters::LOCK_CLASS_NAMES, delta::LockId, merge::Merged};
use std::collections::BTreeMap;

/// Which time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Contended waits, ns, by class and call chain.
    Wait,
    /// mmap_lock holds, ns, by process, system call and sampled call chain.
    Hold,
    /// CPU time of the fault path, ns, by part and function, from samples.
    Fault,
}

impl Of {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Wait, Self::Hold, Self::Fault];

    /// Name on the command line.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Hold => "hold",
            Self::Fault => "fault",
        }
    }

    /// What a graph of it shows.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Wait => "lock wait by call chain",
            Self::Hold => "mmap_lock hold by process, system call and sampled call chain",
            Self::Fault => "CPU time of faults by part and function",
        }
    }

    /// The signal it comes from.
    pub(super) fn signal(self) -> &'static str {
        match self {
            Self::Wait => "contention",
            Self::Hold => "mmap_lock",
            Self::Fault => "fault_budget",
        }
    }

    /// The stacks of a sum of intervals.
    #[must_use]
    pub fn stacks(self, merged: &Merged) -> Stacks {
        match self {
            Self::Wait => wait(&merged.delta),
            Self::Hold => hold(merged),
            Self::Fault => fault(merged),
        }
    }
}

/// Frames of a chain, outermost first, behind those given.
fn frames(delta: &Delta, mut behind: Vec<String>, slot: u32, none: &str) -> Vec<String> {
    match delta.chains.get(&slot) {
        Some(chain) if chain.chain.is_empty() => behind.push(chain.site.clone()),
        Some(chain) => behind.extend(chain.chain.iter().rev().cloned()),
        None if slot == 0 => behind.push(none.to_owned()),
        None => behind.push("[stack lost]".to_owned()),
    }
    behind
}

fn class(id: &LockId) -> String {
    let class = LOCK_CLASS_NAMES.get(id.class).copied().unwrap_or("lock");
    match id.mode {
        2 => format!("{class} (read)"),
        4 => format!("{class} (write)"),
        _ => class.to_owned(),
    }
}

/// Every wait is in it: what has no call site stands under its class.
fn wait(delta: &Delta) -> Stacks {
    let mut stacks = Stacks::default();
    let mut rest: BTreeMap<String, u64> = BTreeMap::new();
    for (id, lock) in delta.locks.iter().filter(|(id, _)| !id.is_site) {
        let sum = rest.entry(class(id)).or_default();
        *sum = sum.saturating_add(lock.wait_ns);
    }
    for (id, lock) in delta.locks.iter().filter(|(id, _)| id.is_site) {
        let class = class(id);
        if let Some(sum) = rest.get_mut(&class) {
            *sum = sum.saturating_sub(lock.wait_ns);
        }
        let frames = frames(delta, vec![class], id.stack, "[no call chain]");
        stacks.add(frames, lock.wait_ns);
    }
    for (class, ns) in rest {
        stacks.add(vec![class, "[no call chain]".to_owned()], ns);
    }
    stacks
}

fn hold(merged: &Merged) -> Stacks {
    let delta = &merged.delta;
    let mut stacks = Stacks::default();
    for (id, site, ns) in &merged.holds {
        let process = match delta.names.get(&id.tgid) {
            Some(name) if !name.is_empty() => format!("{name}({})", id.tgid),
            _ => format!("({})", id.tgid),
        };
        let mode = if id.is_write { "write" } else { "read" };
        let behind = vec![process, format!("{} ({mode})", syscall::name(id.syscall))];
        stacks.add(frames(delta, behind, *site, "[no hold sampled]"), *ns);
    }
    stacks
}

/// Parts and, in each, the functions that most of the samples of an interval hit.
fn fault(merged: &Merged) -> Stacks {
    let mut stacks = Stacks::default();
    let period_ns = merged.delta.budget.as_ref().map_or(0, |b| b.period_ns);
    for (part, function, samples) in &merged.functions {
        let function = function.as_deref().unwrap_or("[unknown]");
        stacks.add(
            vec![part.id().to_owned(), format!("{function} [most hit]")],
            samples.saturating_mul(period_ns),
        );
    }
    stacks
}
