//! What stands behind the lock classes: node and memory cgroup, who held, who kept whom waiting, how far locks travelled.
//!
//! These tables are told with their intervals and not tested: the classes are the family of tests.

use std::collections::BTreeMap;

use super::align::{self, Class};
use super::locks::{LockRow, Per, Run, rows_kept};
use super::observed::{Observed, Waits, cell, count, real, text};
use super::stats::{Comparison, MIN_EVENTS, compare_runs};
use crate::model::{Model, Row, Table, TableId, Value};

/// What waits or holds are told by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    /// Waits for `lru_lock` and zone locks by NUMA node and memory cgroup.
    Places,
    /// Holds of `mmap_lock` by system call and process.
    Holders,
    /// Waits for `mmap_lock` by what the waiter was at and what the holder was.
    Blockers,
    /// Holds of `lru_lock` by NUMA node and memory cgroup.
    LruHolds,
    /// Regions of `lru_lock` by function.
    LruRegions,
}

impl Aspect {
    /// Every one, in the order they are told.
    pub const ALL: [Self; 5] = [
        Self::Places,
        Self::Holders,
        Self::Blockers,
        Self::LruHolds,
        Self::LruRegions,
    ];

    /// Name in JSON and CSV.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Places => "places",
            Self::Holders => "holders",
            Self::Blockers => "blockers",
            Self::LruHolds => "lru_holds",
            Self::LruRegions => "lru_regions",
        }
    }

    /// What it is, as a title.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Places => "lock waits by node and memory cgroup",
            Self::Holders => "mmap_lock holds by call and process",
            Self::Blockers => "mmap_lock waits: what waited <- what held, for what, where",
            Self::LruHolds => "lru_lock holds by node and memory cgroup",
            Self::LruRegions => "lru_lock regions by function",
        }
    }

    /// What is counted.
    #[must_use]
    pub const fn counted(self) -> &'static str {
        match self {
            Self::Places | Self::Blockers => "waits",
            Self::Holders | Self::LruHolds => "holds",
            Self::LruRegions => "regions",
        }
    }

    /// Signal that it comes from.
    const fn signal(self) -> &'static str {
        match self {
            Self::Places => "contention",
            Self::Holders => "mmap_lock_hold",
            Self::Blockers => "blocked",
            Self::LruHolds => "lru_lock_exact_hold",
            Self::LruRegions => "lru_lock_hold",
        }
    }

    /// Its rows in a model, by name.
    fn table(self, model: &Model) -> BTreeMap<Class, Waits> {
        let named = |lock: &str, mode: &str, site: String| Class {
            site,
            ..Class::new(lock, mode, "")
        };
        match self {
            Self::Places => {
                let table = model.table(TableId::Locks);
                let class = |row: &Row| {
                    let node = count(table, row, "node")?;
                    let owner = text(table, row, "owner");
                    let site = format!("node {node} {owner}").trim_end().to_owned();
                    Some(named(&text(table, row, "lock"), "", site))
                };
                waits(table, &class, ["waits", "wait_ns", "wait_p99_ns"])
            }
            Self::Holders => {
                let table = model.table(TableId::LockHolders);
                let class = |row: &Row| {
                    let process = text(table, row, "taker");
                    let site = format!("by {} of {}", text(table, row, "syscall"), bare(&process));
                    Some(named("mmap_lock", &text(table, row, "mode"), site))
                };
                waits(table, &class, ["acquisitions", "hold_ns", ""])
            }
            Self::Blockers => {
                let table = model.table(TableId::LockBlocked);
                let class = |row: &Row| {
                    let place = align::function(&text(table, row, "holder_site"));
                    let words = [
                        text(table, row, "waiter_syscall"),
                        "<-".to_owned(),
                        text(table, row, "holder_syscall"),
                        text(table, row, "held_for"),
                        place,
                    ];
                    let given: Vec<String> = words.into_iter().filter(|w| !w.is_empty()).collect();
                    Some(named(
                        "mmap_lock",
                        &text(table, row, "mode"),
                        given.join(" "),
                    ))
                };
                waits(table, &class, ["blocked_waits", "blocked_ns", ""])
            }
            Self::LruHolds | Self::LruRegions => {
                let way = if self == Self::LruHolds {
                    "exact"
                } else {
                    "region"
                };
                let table = model.table(TableId::LruHolds);
                let class = |row: &Row| {
                    (text(table, row, "hold_way") == way).then_some(())?;
                    let site = match count(table, row, "node") {
                        Some(node) => format!("node {node} {}", text(table, row, "owner")),
                        None => align::function(&text(table, row, "subject")),
                    };
                    Some(named("lru_lock", "", site))
                };
                waits(
                    table,
                    &class,
                    ["lru_holds", "lru_hold_ns", "lru_hold_p99_ns"],
                )
            }
        }
    }
}

/// A process's name without its number.
fn bare(process: &str) -> &str {
    match process.rsplit_once('(') {
        Some((name, number))
            if number
                .strip_suffix(')')
                .is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit())) =>
        {
            name
        }
        _ => process,
    }
}

/// Counts, times and tails of a table's rows by class; rows of one class become one.
pub(super) fn waits(
    table: &Table,
    class: &dyn Fn(&Row) -> Option<Class>,
    [events, ns, p99]: [&str; 3],
) -> BTreeMap<Class, Waits> {
    let mut all: BTreeMap<Class, Waits> = BTreeMap::new();
    for row in &table.rows {
        let Some((class, n)) = class(row).zip(count(table, row, events)) else {
            continue;
        };
        let sum = all.entry(class).or_default();
        sum.waits = sum.waits.saturating_add(n);
        let wait_ns = count(table, row, ns).unwrap_or_default();
        sum.wait_ns = sum.wait_ns.saturating_add(wait_ns);
        // Of rows that become one the longer tail stands for both.
        let p99 = cell(table, row, p99).and_then(Value::number);
        sum.p99_ns = match (sum.p99_ns, p99) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
    }
    all
}

/// The tables of one run that were measured.
pub(super) fn tables(
    model: &Model,
    has: &dyn Fn(&str) -> bool,
) -> BTreeMap<Aspect, BTreeMap<Class, Waits>> {
    let measured = Aspect::ALL.into_iter().filter(|a| has(a.signal()));
    measured.map(|a| (a, a.table(model))).collect()
}

/// Distances that a lock travels from one holder to the next, nearest first.
pub const DISTANCES: [&str; 5] = [
    "same CPU",
    "SMT sibling",
    "same LLC",
    "same node",
    "other node",
];

/// Handoffs of one run by lock and mode: of `mmap_lock` at every take, of other locks at contended takes, of `lru_lock` at
/// every hold where holds are exact.
pub(super) fn handoffs(model: &Model) -> BTreeMap<Class, [u64; 5]> {
    const FIELDS: [&str; 5] = [
        "handoff_same_cpu",
        "handoff_smt",
        "handoff_llc",
        "handoff_node",
        "handoff_remote",
    ];
    let mut all: BTreeMap<Class, [u64; 5]> = BTreeMap::new();
    let mut add = |id, class: &dyn Fn(&Table, &Row) -> Class| {
        let table = model.table(id);
        for row in &table.rows {
            let sums = all.entry(class(table, row)).or_default();
            for (sum, field) in sums.iter_mut().zip(FIELDS) {
                *sum = sum.saturating_add(count(table, row, field).unwrap_or_default());
            }
        }
    };
    add(TableId::LockHolders, &|table, row| {
        Class::new("mmap_lock", &text(table, row, "mode"), "")
    });
    add(TableId::Locks, &|table, row| Class {
        site: "contended".to_owned(),
        ..Class::new(&text(table, row, "lock"), &text(table, row, "mode"), "")
    });
    add(TableId::LruHolds, &|_, _| {
        Class::new("lru_lock", "", "holds")
    });
    all.retain(|_, by_distance| by_distance.iter().any(|n| *n > 0));
    all
}

/// An aspect of both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// What it is.
    pub aspect: Aspect,
    /// Its rows, the greatest time first; none has a verdict.
    pub rows: Vec<LockRow>,
    /// Rows left out because they are small.
    pub filtered: usize,
    /// Their share of the pooled time, 0 to 1.
    pub filtered_share: f64,
}

/// How far a lock went from one holder to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounce {
    /// Lock and mode.
    pub class: Class,
    /// One of [`DISTANCES`].
    pub distance: &'static str,
    /// Share of the handoffs of each run, 0 to 1, by side.
    pub shares: [Vec<f64>; 2],
    /// Handoffs at any distance, of all runs of each side.
    pub handoffs: [u64; 2],
    /// The shares compared.
    pub comparison: Comparison,
}

/// Everything behind the classes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details {
    /// Aspects that every run measured and that have a row.
    pub told: Vec<Told>,
    /// Aspects that some run did not measure.
    pub unmeasured: Vec<Aspect>,
    /// Handoffs by distance.
    pub bounces: Vec<Bounce>,
}

/// Compares what stands behind the lock classes.
#[must_use]
pub fn details(sides: [&[Observed]; 2], pairs: Option<&[(usize, usize)]>, per: Per) -> Details {
    let mut found = Details::default();
    for aspect in Aspect::ALL {
        match told(aspect, sides, pairs, per) {
            None => found.unmeasured.push(aspect),
            Some(told) if told.rows.is_empty() => {}
            Some(told) => found.told.push(told),
        }
    }
    found.bounces = bounces(sides, pairs);
    found
}

/// `None` unless every run measured it and has what it is divided by.
fn told(
    aspect: Aspect,
    sides: [&[Observed]; 2],
    pairs: Option<&[(usize, usize)]>,
    per: Per,
) -> Option<Told> {
    let runs = sides.map(|side| -> Vec<Run<'_>> {
        side.iter().filter_map(|o| run_of(o, aspect, per)).collect()
    });
    if runs[0].len() < sides[0].len() || runs[1].len() < sides[1].len() {
        return None;
    }
    // Much time makes a row, not many short events.
    let (rows, filtered) = rows_kept(&runs, pairs, per, |class| class.wait_ns > 0.0);
    Some(Told {
        aspect,
        rows,
        filtered: filtered.dropped,
        filtered_share: filtered.dropped_share,
    })
}

fn run_of(observed: &Observed, aspect: Aspect, per: Per) -> Option<Run<'_>> {
    Run::new(
        observed.kernel.as_ref()?.aspects.get(&aspect)?,
        observed,
        per,
    )
}

/// Share of a distance below which it is not told.
const MIN_SHARE: f64 = 0.01;

fn bounces(sides: [&[Observed]; 2], pairs: Option<&[(usize, usize)]>) -> Vec<Bounce> {
    let of_run = |o: &Observed, class: &Class| -> [u64; 5] {
        let kernel = o.kernel.as_ref();
        kernel
            .and_then(|k| k.handoffs.get(class).copied())
            .unwrap_or_default()
    };
    let mut classes: Vec<&Class> = sides
        .iter()
        .flat_map(|side| side.iter())
        .filter_map(|o| o.kernel.as_ref())
        .flat_map(|k| k.handoffs.keys())
        .collect();
    classes.sort_unstable();
    classes.dedup();
    let mut all = Vec::new();
    for class in classes {
        let counts = sides.map(|side| side.iter().map(|o| of_run(o, class)).collect::<Vec<_>>());
        // A share of few handoffs is chance.
        let least = |side: &[[u64; 5]]| {
            side.iter()
                .map(|c| c.iter().sum::<u64>())
                .min()
                .unwrap_or_default()
        };
        if counts.iter().any(|side| least(side) < MIN_EVENTS) {
            continue;
        }
        let handoffs = [0, 1].map(|i| counts[i].iter().flatten().sum());
        for (at, distance) in DISTANCES.into_iter().enumerate() {
            let shares = [0, 1].map(|i| {
                let share = |c: &[u64; 5]| real(c[at]) / real(c.iter().sum());
                counts[i].iter().map(share).collect::<Vec<f64>>()
            });
            let Some(comparison) = compare_runs(&shares, pairs) else {
                continue;
            };
            if comparison.before.max(comparison.after) >= MIN_SHARE {
                all.push(Bounce {
                    class: class.clone(),
                    distance,
                    shares,
                    handoffs,
                    comparison,
                });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_name() {
        for (process, name) in [
            ("sysbench(123)", "sysbench"),
            ("(sd-pam)(7)", "(sd-pam)"),
            ("(sd-pam)", "(sd-pam)"),
            ("-", "-"),
            ("", ""),
        ] {
            assert_eq!(bare(process), name);
        }
    }
}
