//! Findings, the machine's own counters, and the five greatest rows of each view.

use super::{Cells, faults, finish, given, locks, machine, per_sec, scopes};
use crate::{
    model::{Context, Field, Row, TableId, Unit, Value, field as f, finding::findings},
    sample::{Delta, Scope},
};

const TOP: usize = 5;

/// Rows in the order a reader needs: what was found, the machine, who faults, locks, takers, madvise.
pub(super) fn rows(delta: &Delta, context: &Context) -> Vec<Cells> {
    let mut rows = found(delta, context);
    rows.extend(machine_rows(delta, context));
    let mut top = |id: TableId,
                   built: Vec<Cells>,
                   name: fn(&Row, TableId) -> String,
                   value: &'static Field,
                   comment: &'static Field| {
        let table = finish(id, built);
        let cell = |row: &Row, field: &Field| {
            table
                .position(field.id)
                .map_or(Value::Absent, |i| row.cells[i].clone())
        };
        for row in table.rows.iter().take(TOP) {
            let shown = cell(row, value);
            if shown.number().unwrap_or(0.0) > 0.0 {
                rows.push(
                    Cells::new((id, row.key))
                        .text(&f::OVERVIEW_FROM, id.view().title())
                        .text(&f::SUBJECT, name(row, id))
                        .set(&f::VALUE, rate(&shown, delta))
                        .text(&f::UNIT_NAME, unit(value))
                        .text(
                            &f::COMMENT,
                            format!(
                                "{} {}",
                                comment.title.to_lowercase(),
                                plain(&cell(row, comment))
                            ),
                        ),
                );
            }
        }
    };
    top(
        TableId::Processes,
        scopes::processes(delta, context),
        two,
        &f::FAULTS_N,
        &f::FAULTS_MAJOR,
    );
    top(
        TableId::Cgroups,
        scopes::cgroups(delta, context),
        one,
        &f::FAULTS_N,
        &f::FAULTS_MAJOR,
    );
    top(
        TableId::AddressSpaces,
        faults::spaces(delta, context),
        two,
        &f::FAULTS_N,
        &f::CPUS_USED,
    );
    top(
        TableId::Locks,
        locks::locks(delta),
        four,
        &f::WAIT_NS,
        &f::WAITS,
    );
    top(
        TableId::LockHolders,
        locks::takers(delta),
        taker,
        &f::HOLD_NS,
        &f::ACQUISITIONS,
    );
    top(
        TableId::Madvise,
        machine::madvise(delta),
        madvise,
        &f::CALLS,
        &f::MADV_FAILURES,
    );
    rows
}

/// One row for each finding, whose comment is its sentence.
fn found(delta: &Delta, context: &Context) -> Vec<Cells> {
    findings(delta, context)
        .into_iter()
        .map(|found| {
            Cells::new(found.id)
                .text(&f::OVERVIEW_FROM, TableId::Findings.title())
                .text(&f::SUBJECT, found.title)
                .text(&f::COMMENT, found.text)
        })
        .collect()
}

fn machine_rows(delta: &Delta, context: &Context) -> Vec<Cells> {
    let total = delta.total();
    let row = |subject: &str, value: Value, unit: &str, comment: String| {
        Cells::new(subject.to_owned())
            .text(&f::OVERVIEW_FROM, "Machine")
            .text(&f::SUBJECT, subject)
            .set(&f::VALUE, rate(&value, delta))
            .text(&f::UNIT_NAME, unit)
            .text(&f::COMMENT, comment)
    };
    let taken: u64 = (0..2).map(|side| total[Scope::MmapTaken(side)]).sum();
    let held: u64 = (0..2).map(|side| total[Scope::MmapHoldNs(side)]).sum();
    let refaults: u64 = ["workingset_refault_anon", "workingset_refault_file"]
        .iter()
        .filter_map(|name| delta.vmstat.get(*name))
        .sum();
    let mut rows = vec![
        row(
            "faults",
            given(context, "faults", total.faults()),
            "/s",
            format!("{} fixed up", total[Scope::FixedUp]),
        ),
        row(
            "contended lock waits",
            given(context, "contention", total.waits()),
            "/s",
            context.spinlock.sentence.clone(),
        ),
        row(
            "mmap_lock acquisitions",
            given(context, "mmap_lock", taken),
            "/s",
            reason(context, "mmap_lock")
                .unwrap_or_else(|| format!("{} for write", total[Scope::MmapTaken(1)])),
        ),
        row(
            "refaults (workingset)",
            Value::Count(refaults),
            "/s",
            "vmstat".into(),
        ),
    ];
    if reason(context, "mmap_lock_hold").is_none() {
        rows.push(row(
            "mmap_lock held",
            Value::Count(held),
            "ns/s",
            String::new(),
        ));
    }
    if let Some((some, _)) = delta.memory_pressure_ns {
        rows.push(row(
            "memory pressure, some",
            Value::Count(some),
            "ns/s",
            "PSI".into(),
        ));
    }
    rows
}

/// Why a signal is not there.
fn reason(context: &Context, signal: &str) -> Option<String> {
    let mut missing = context.missing.iter();
    missing
        .find(|m| *m.signal == *signal)
        .map(|m| m.reason.clone())
}

/// Counters per second; ns counters stay ns, now per second.
fn rate(value: &Value, delta: &Delta) -> Value {
    match value {
        Value::Count(n) => Value::real(Some(per_sec(*n, delta))),
        other => other.clone(),
    }
}

fn unit(field: &Field) -> &'static str {
    match field.unit {
        Unit::Ns => "ns/s",
        Unit::Bytes => "bytes/s",
        _ => "/s",
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Count(n) => n.to_string(),
        Value::Real(x) => format!("{x:.3}"),
        Value::Absent => "-".into(),
    }
}

fn named(row: &Row, id: TableId, fields: &[&Field]) -> String {
    let parts: Vec<String> = fields
        .iter()
        .filter_map(|field| id.fields().iter().position(|f| f.id == field.id))
        .map(|i| plain(&row.cells[i]))
        .filter(|text| text != "-")
        .collect();
    parts.join(" ")
}

fn one(row: &Row, id: TableId) -> String {
    named(row, id, &[&f::CGROUP])
}

fn two(row: &Row, id: TableId) -> String {
    named(row, id, &[&f::PID, &f::COMM])
}

fn four(row: &Row, id: TableId) -> String {
    named(row, id, &[&f::LOCK, &f::MODE, &f::OWNER, &f::SITE])
}

fn taker(row: &Row, id: TableId) -> String {
    named(row, id, &[&f::HOLDER, &f::SYSCALL, &f::MODE, &f::OWNER])
}

fn madvise(row: &Row, id: TableId) -> String {
    named(row, id, &[&f::COMM, &f::ADVICE])
}
