//! Findings: rules over one model, each with its numbers and the next command.
//!
//! [`RULES`] is the one table; screens, reports, JSON and `docs/findings.md`
//! come from it. A rule is a pure function of increments and context. It looks
//! at shares and at least counts, never at totals alone, so that it means the
//! same for one interval and for a whole recording merged into one. Where its
//! signal is missing it says nothing: absence is not zero.

mod faults;
mod locks;
mod memory;
mod partial;
#[cfg(test)]
mod tests;

use super::build::{has, process_name, ratio};
use super::{Context, Unit, Value};
use crate::sample::Delta;
use crate::units::format_ratio;

/// A rule that matched, with evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Id of the rule.
    pub id: &'static str,
    /// What was found, without numbers.
    pub title: &'static str,
    /// One sentence with its numbers.
    pub text: String,
    /// The numbers behind it, the weightiest first.
    pub evidence: Vec<Evidence>,
    /// The command that shows more.
    pub next: &'static str,
}

/// One number of a finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// JSON key, with the unit as its suffix.
    pub name: &'static str,
    /// The number, or a name.
    pub value: Value,
    /// Unit of the value.
    pub unit: Unit,
}

/// One rule of the table.
#[derive(Debug)]
pub struct Rule {
    /// Name in JSON and documents.
    pub id: &'static str,
    /// What it finds, at most 44 characters.
    pub title: &'static str,
    /// When it holds, one sentence.
    pub threshold: &'static str,
    /// Why there, one sentence.
    pub reason: &'static str,
    /// Signals without which it says nothing.
    pub needs: &'static str,
    /// The command that shows more.
    pub next: &'static str,
    check: fn(&Look<'_>) -> Option<Match>,
}

/// Fewest waits a rule speaks of: one long wait is chance.
const FEWEST_WAITS: u64 = 20;
/// Fewest faults, pages or calls a rule speaks of.
const FEWEST_EVENTS: u64 = 100;
/// Share of one CPU's time below which waiting is not worth a line.
const OF_CPU: f64 = 0.01;
/// What most of something is.
const MOST: f64 = 0.5;

/// Every rule, in the order in which findings are shown.
pub static RULES: &[Rule] = &[
    Rule {
        id: "mmap_lock_writers_block_faults",
        title: "mmap_lock writers block faults",
        threshold: "Faults from user mode waited for mmap_lock at least 20 times and 1 % of one CPU's time, and half of \
                    that or more while a writer held it; without `blocked`, half or more of an address space's slow \
                    acquisitions for read were faults, and there were writers.",
        reason: "A single wait is chance, less time is not worth a look, and without writers no reader of a \
                 reader-writer semaphore waits.",
        needs: "`blocked`, or `mmap_lock_hold` and `contention`",
        next: "faultscope top --view blocked",
        check: locks::writers_block_faults,
    },
    Rule {
        id: "vma_lock_fall_backs",
        title: "faults fall back from the VMA lock",
        threshold: "At least 100 faults from user mode, and 5 % of them or more, were taken again under mmap_lock after \
                    the VMA lock.",
        reason: "The fall-back pays for two passes and waits for writers; a few come with every new mapping, whose first \
                 fault needs mmap_lock.",
        needs: "`fault_latency`",
        next: "faultscope top --view faulters",
        check: faults::fall_backs,
    },
    Rule {
        id: "lru_lock_waits_from_drain",
        title: "lru_lock waits come from add-drain",
        threshold: "lru_lock was waited for at least 20 times and 1 % of one CPU's time, and half of that or more where a \
                    CPU drains its batch of pages new on the LRU.",
        reason: "Then batches, and not reclaim, contend for the lock; call sites without names count against it.",
        needs: "`contention`, with call sites (the Locks views take them)",
        next: "faultscope top --view sites",
        check: locks::lru_waits_from_drain,
    },
    Rule {
        id: "mglru_no_activations",
        title: "MGLRU explains zero activations",
        threshold: "Multi-generational LRU was on, at least 1,000 marks (without `mark_accessed`, insertions) were made, and \
                    at most one activation for a thousand of them.",
        reason: "With it on, a page that is marked ages by generation and is not activated, so zero says nothing about \
                 reuse; a thousand marks without one activation are no chance.",
        needs: "`lru`",
        next: "faultscope top --view lru",
        check: memory::mglru,
    },
    Rule {
        id: "mm_shared_by_cpus",
        title: "CPUs share one address space's faults",
        threshold: "One address space of several faulting threads has at least 1,000 faults and a tenth of all, spread as \
                    evenly as over 1.5 CPUs or more; where the handoffs were measured, a tenth of them or more changed CPU.",
        reason: "Its counters and locks then move between caches; a single thread that migrates shares nothing at any \
                 one time.",
        needs: "`faults`",
        next: "faultscope top --view spaces",
        check: faults::shared_space,
    },
    Rule {
        id: "refaults_after_dontneed",
        title: "re-faults after MADV_DONTNEED",
        threshold: "At least 100 pages given back by MADV_DONTNEED, a quarter of them or more, were touched again within the \
                    window, and these are 5 % or more of the process's faults.",
        reason: "Each costs a fault and a cleared page that keeping the memory would have saved; MADV_FREE saves both \
                 while memory is free.",
        needs: "`refaults`",
        next: "faultscope top --view refaults",
        check: memory::refaults,
    },
    Rule {
        id: "major_faults_under_pressure",
        title: "major faults under memory pressure",
        threshold: "At least 10 major faults, one a second or more, while tasks stalled for memory 1 % of the time or more.",
        reason: "Without stalls, major faults are a program that starts or a file read for the first time.",
        needs: "`major_faults`, and pressure stall information",
        next: "faultscope top --view lru",
        check: memory::pressure,
    },
    Rule {
        id: "outside_reader_holds_mmap_lock",
        title: "an outside reader holds mmap_lock",
        threshold: "A process, or several of one name, held the mmap_lock of another one for read at least 10 times, 1 % of \
                    the time or more, in read, pread64, process_vm_readv, ptrace, process_madvise, move_pages or their kin.",
        reason: "That is how /proc/PID/smaps and its like are read; writers, and the faults behind them, wait for it.",
        needs: "`mmap_lock_hold`",
        next: "faultscope top --view holders",
        check: locks::outside_reader,
    },
    Rule {
        id: "page_clearing_dominates",
        title: "page clearing dominates the budget",
        threshold: "Of at least 100 samples in the fault path, which are 1 % of the CPU time or more, page clearing has most, \
                    and the lower end of its share's 95 % interval is a third or more.",
        reason: "With fewer samples the interval is too wide; then fewer or larger faults save more than cheaper locks.",
        needs: "`fault_budget`",
        next: "faultscope top --view budget",
        check: faults::page_clearing,
    },
    Rule {
        id: "partial_numbers",
        title: "these numbers are partial",
        threshold: "Events were lost, a signal is missing that no view would bring, or spinlock waits are not seen whole.",
        reason: "Any of them may hide a cause, so it is said however small.",
        needs: "nothing",
        next: "faultscope doctor",
        check: partial::partial,
    },
];

/// What a check found; the table has the rest.
struct Match {
    text: String,
    evidence: Vec<Evidence>,
    /// In place of the rule's.
    next: Option<&'static str>,
}

impl Match {
    fn new(text: String, evidence: Vec<Evidence>) -> Self {
        Self {
            text,
            evidence,
            next: None,
        }
    }
}

/// Everything a rule may look at.
struct Look<'a> {
    delta: &'a Delta,
    context: &'a Context,
}

impl Look<'_> {
    fn has(&self, signal: &str) -> bool {
        has(self.context, signal)
    }

    /// Time as a share of one CPU's; 0 for an empty interval.
    fn of_cpu(&self, ns: u64) -> f64 {
        share(ns, self.delta.interval_ns)
    }

    fn process(&self, tgid: u32) -> String {
        process_name(self.delta, tgid)
    }
}

/// The findings of an interval, or of a recording merged into one.
#[must_use]
pub fn findings(delta: &Delta, context: &Context) -> Vec<Finding> {
    let look = Look { delta, context };
    RULES
        .iter()
        .filter_map(|rule| {
            let found = (rule.check)(&look)?;
            Some(Finding {
                id: rule.id,
                title: rule.title,
                text: found.text,
                evidence: found.evidence,
                next: found.next.unwrap_or(rule.next),
            })
        })
        .collect()
}

/// `n / d`, 0 of nothing.
fn share(n: u64, d: u64) -> f64 {
    ratio(n, d).unwrap_or(0.0)
}

fn percent(n: u64, d: u64) -> String {
    format_ratio(share(n, d))
}

fn count(name: &'static str, n: u64) -> Evidence {
    Evidence {
        name,
        value: Value::Count(n),
        unit: Unit::Events,
    }
}

fn ns(name: &'static str, n: u64) -> Evidence {
    Evidence {
        name,
        value: Value::Count(n),
        unit: Unit::Ns,
    }
}

fn bytes(name: &'static str, n: u64) -> Evidence {
    Evidence {
        name,
        value: Value::Count(n),
        unit: Unit::Bytes,
    }
}

fn part(name: &'static str, ratio: f64) -> Evidence {
    Evidence {
        name,
        value: Value::real(Some(ratio)),
        unit: Unit::Ratio,
    }
}

fn text(name: &'static str, text: impl Into<String>) -> Evidence {
    Evidence {
        name,
        value: Value::Text(text.into()),
        unit: Unit::None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn real(n: u64) -> f64 {
    n as f64
}
