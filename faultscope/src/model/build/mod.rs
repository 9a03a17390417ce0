//! Builds each table from the increments.

mod blocked;
mod budget;
mod cpus;
mod faults;
mod findings;
mod latency;
mod locks;
mod lru;
mod machine;
#[cfg(test)]
mod merged;
mod overview;
mod refaults;
mod scopes;
#[cfg(test)]
mod tests;

pub(super) use locks::is_spin;

use super::{Context, Header, Lost, Row, Table, TableId, Value, field::Field, units_secs};
use crate::sample::{
    Counters, Delta, Scope,
    counters::{LRU_LOCK, MMAP_LOCK},
};
use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
    sync::Arc,
};

/// Rows kept of tables that may grow without bound.
const MAX_ROWS: usize = 10_000;
/// A spin wait longer than this is worth a line, ns.
const LONG_SPIN_NS: u64 = 10_000_000;

/// The table called `id`.
pub(super) fn table(id: TableId, delta: &Delta, context: &Context) -> Table {
    let rows = match id {
        TableId::Overview => overview::rows(delta, context),
        TableId::Findings => findings::rows(delta, context),
        TableId::Cpus => cpus::rows(delta, context),
        TableId::Processes => scopes::processes(delta, context),
        TableId::Threads => scopes::threads(delta, context),
        TableId::Cgroups => scopes::cgroups(delta, context),
        TableId::FaultKinds => faults::kinds(delta, context),
        TableId::AddressSpaces => faults::spaces(delta, context),
        TableId::FaultLatency => latency::paths(delta, context),
        TableId::FaultProcesses => latency::processes(delta, context),
        TableId::FaultCpus => latency::cpus(delta, context),
        TableId::Budget => budget::rows(delta, context),
        TableId::Lru => lru::rows(delta, context),
        TableId::Locks => locks::locks(delta),
        TableId::LockClasses => locks::classes(delta, context),
        TableId::LockHolders => locks::takers(delta),
        TableId::LockBlocked => blocked::rows(delta),
        TableId::LockSites => locks::sites(delta),
        TableId::LockWaiters => locks::waiters(delta),
        TableId::LruHolds => lru::holds(delta, context),
        TableId::Madvise => machine::madvise(delta),
        TableId::Refaults => refaults::rows(delta),
        TableId::Programs => machine::programs(delta),
        TableId::Losses => machine::losses(delta, context),
    };
    finish(id, rows)
}

/// Cells of a row before they are put in the order of the columns.
#[derive(Debug, Default)]
struct Cells {
    key: u64,
    values: Vec<(&'static str, Value)>,
}

impl Cells {
    fn new(key: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        Self {
            key: hasher.finish(),
            values: Vec::new(),
        }
    }

    fn set(mut self, field: &'static Field, value: Value) -> Self {
        self.values.push((field.id, value));
        self
    }

    fn text(self, field: &'static Field, text: impl Into<String>) -> Self {
        self.set(field, Value::Text(text.into()))
    }

    fn count(self, field: &'static Field, n: u64) -> Self {
        self.set(field, Value::Count(n))
    }

    fn real(self, field: &'static Field, x: Option<f64>) -> Self {
        self.set(field, Value::real(x))
    }
}

/// Orders cells by column, rows by the default sort, and bounds the table.
fn finish(id: TableId, rows: Vec<Cells>) -> Table {
    let fields = id.fields();
    let mut rows: Vec<Row> = rows
        .into_iter()
        .map(|mut cells| Row {
            key: cells.key,
            cells: fields
                .iter()
                .map(|field| {
                    cells
                        .values
                        .iter_mut()
                        .find(|(id, _)| *id == field.id)
                        .map_or(Value::Absent, |(_, value)| {
                            std::mem::replace(value, Value::Absent)
                        })
                })
                .collect(),
        })
        .collect();
    let sort = fields.iter().position(|f| f.id == id.default_sort());
    if let (Some(sort), true) = (sort, id.is_sorted()) {
        rows.sort_by(|a, b| {
            let number = |row: &Row| row.cells[sort].number().unwrap_or(-1.0);
            number(b).total_cmp(&number(a)).then(a.key.cmp(&b.key))
        });
    }
    let omitted = rows.len().saturating_sub(MAX_ROWS) as u64;
    rows.truncate(MAX_ROWS);
    Table {
        fields,
        rows,
        omitted,
    }
}

/// `n / d`, `None` for nothing.
#[expect(
    clippy::cast_precision_loss,
    reason = "a ratio needs no more than 53 bits"
)]
pub(super) fn ratio(n: u64, d: u64) -> Option<f64> {
    (d > 0).then(|| n as f64 / d as f64)
}

/// `n` per second of the interval.
#[expect(
    clippy::cast_precision_loss,
    reason = "a rate needs no more than 53 bits"
)]
fn per_sec(n: u64, delta: &Delta) -> f64 {
    n as f64 / units_secs(delta.interval_ns)
}

/// Average, rounded down; absent without events.
fn average(total: u64, n: u64) -> Value {
    Value::count(total.checked_div(n))
}

/// Whether a signal is given here.
pub(super) fn has(context: &Context, signal: &str) -> bool {
    !context.missing.iter().any(|m| &*m.signal == signal)
}

/// Trapped faults of the threads shown.
pub(super) fn faults_shown(delta: &Delta, context: &Context) -> u64 {
    if context.filter.is_empty() {
        delta.total().faults()
    } else {
        delta.processes.values().map(|p| p.counters.faults()).sum()
    }
}

/// A count of a signal, absent where the signal is.
fn given(context: &Context, signal: &str, n: u64) -> Value {
    if has(context, signal) {
        Value::Count(n)
    } else {
        Value::Absent
    }
}

/// Figures of the two header lines.
pub(super) fn header(delta: &Delta, context: &Context) -> Header {
    let total = delta.total();
    let major = total[Scope::Major];
    let rate = |signal: &str, n: u64| has(context, signal).then(|| per_sec(n, delta));
    let run_ns: Option<u64> = delta
        .programs
        .iter()
        .filter(|p| p.is_attached)
        .map(|p| p.run_ns)
        .sum();
    Header {
        minor_per_sec: rate("faults", total.faults().saturating_sub(major)),
        major_per_sec: rate("major_faults", major),
        mmap_lock_wait_ns_per_sec: rate("contention", total[Scope::WaitNs(MMAP_LOCK)]),
        lru_lock_wait_ns_per_sec: rate("contention", total[Scope::WaitNs(LRU_LOCK)]),
        own_cpu_ratio: delta.own.cpu_ns.and_then(|ns| ratio(ns, delta.interval_ns)),
        own_bpf_ratio: run_ns
            .filter(|_| delta.programs.iter().any(|p| p.is_attached))
            .and_then(|ns| ratio(ns, delta.interval_ns)),
        own_rss_bytes: delta.own.rss_bytes,
        own_map_bytes: delta.own.map_bytes,
        filter: context.filter.clone(),
        spinlock: context.spinlock.clone(),
        overruns: delta.own.overruns,
    }
}

/// Every loss counter.
pub(super) fn lost(delta: &Delta, context: &Context) -> Vec<Lost> {
    context
        .losses
        .iter()
        .zip(&delta.losses)
        .map(|(kind, loss)| Lost {
            id: Arc::clone(&kind.id),
            description: Arc::clone(&kind.description),
            total: loss.total,
            increment: loss.increment,
        })
        .collect()
}

/// Sentences for every screen.
pub(super) fn notes(delta: &Delta, context: &Context) -> Vec<String> {
    let mut notes = context.notes.clone();
    if delta.unpaired_ends > 0 {
        let edge = if delta.is_first {
            " (attach edge: they began before we did)"
        } else {
            ""
        };
        notes.push(format!(
            "{} lock waits ended without a known begin{edge}",
            delta.unpaired_ends
        ));
    }
    let steal_ns: u64 = delta
        .cpus
        .iter()
        .filter_map(|c| c.time.map(|t| t.steal_ns))
        .sum();
    for (id, lock) in &delta.locks {
        // Waits of the interval are in its histogram; the maximum is since attach.
        let longest = lock.histogram.quantile_ns(1.0).unwrap_or(0);
        if !id.is_site && id.mode == 0 && longest > LONG_SPIN_NS && is_spin(id.class) {
            notes.push(format!(
                "a spin wait of about {} ms on a {}; the hypervisor took {} ms of CPU time in this interval",
                longest / 1_000_000,
                crate::sample::counters::LOCK_CLASS_NAMES[id.class],
                steal_ns / 1_000_000
            ));
        }
    }
    if delta.compat_madvise > 0 {
        notes.push(format!(
            "{} madvise calls of 32-bit processes are not counted",
            delta.compat_madvise
        ));
    }
    notes.extend(delta.symbols_refused.clone());
    notes.sort_unstable();
    notes
}

/// Name of a process, its number where the name is not known.
pub(super) fn process_name(delta: &Delta, tgid: u32) -> String {
    match delta.names.get(&tgid) {
        Some(name) if !name.is_empty() => format!("{name}({tgid})"),
        _ if tgid == 0 => "-".into(),
        _ => format!("({tgid})"),
    }
}

/// Name of a process without its number, for tables that have a column for it.
fn comm(delta: &Delta, tgid: u32) -> Value {
    match delta.names.get(&tgid) {
        Some(name) if !name.is_empty() => Value::Text(name.to_string()),
        _ => Value::Absent,
    }
}

/// Path of a cgroup, its id where the path is not known.
fn cgroup_path(delta: &Delta, id: u64) -> Value {
    match delta.cgroup_paths.get(&id) {
        Some(path) => Value::Text(path.to_string()),
        None if id == 0 => Value::Absent,
        None => Value::Text(format!("cgroup {id}")),
    }
}

/// Lock waits other than mmap_lock and lru_lock, ns.
fn other_wait_ns(counters: &Counters) -> u64 {
    counters.wait_ns() - counters[Scope::WaitNs(MMAP_LOCK)] - counters[Scope::WaitNs(LRU_LOCK)]
}
