//! LRU movement beside the machine's own counters, and holds of lru_lock.

use super::{Cells, average, cgroup_path, given, locks::handoffs};
use crate::{
    model::{Context, Value, field as f},
    sample::{
        Delta,
        delta::{LruCoverage, Moves},
        histogram::Histogram,
    },
};

/// Source of what a program on a kernel function counts.
const FUNCTION: &str = "function";

/// RSS members in the kernel's order (include/linux/mm_types_task.h).
const RSS_MEMBERS: [&str; 4] = ["file", "anon", "swap", "shmem"];

/// vmstat counters that are shown even at 0; the rest is shown once it moves.
const ALWAYS: [&str; 10] = [
    "pgfault",
    "pgmajfault",
    "pgactivate",
    "pgdeactivate",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "workingset_refault_anon",
    "workingset_refault_file",
];

/// LRU tracepoints, RSS counters, then vmstat, pressure and memory.
pub(super) fn rows(delta: &Delta, context: &Context) -> Vec<Cells> {
    let row = |subject: String, events: Value, source: &str, comment: &str| {
        Cells::new(subject.clone())
            .text(&f::SUBJECT, subject)
            .set(&f::EVENTS, events)
            .text(&f::SOURCE, source)
            .text(&f::COMMENT, comment)
    };
    let sum =
        |pick: fn(&crate::sample::delta::Cpu) -> u64| delta.cpus.iter().map(pick).sum::<u64>();
    let calls = |signal: &str, subject: &str, n: u64, comment: &str| {
        let comment = reason(context, signal).unwrap_or(comment);
        row(subject.into(), given(context, signal, n), FUNCTION, comment)
    };
    let mglru = mglru(delta, context);
    let mut rows = vec![
        row(
            "folio insertions".into(),
            given(context, "lru", sum(|c| c.lru_insertions)),
            "tracepoint",
            "counted where the batch was drained, not where the page was touched",
        ),
        row(
            "folio activations".into(),
            given(context, "lru", sum(|c| c.lru_activations)),
            "tracepoint",
            &mglru,
        ),
        calls(
            "mark_accessed",
            "mark accessed",
            sum(|c| c.lru.mark_accessed),
            "folio_mark_accessed: read(2), the end of a mapping, the kernel's own users",
        ),
        calls(
            "workingset_activation",
            "workingset activations",
            sum(|c| c.lru.workingset_activations),
            "asked for by a second mark; the activation itself comes with the drain",
        ),
        calls(
            "workingset_refault",
            "workingset refaults",
            sum(|c| c.lru.refaults),
            "folios that came back; vmstat's workingset_refault_* counts pages",
        ),
        calls(
            "drains",
            "drains",
            sum(|c| c.lru.drains),
            "lru_add_drain_cpu: all batches of one CPU",
        ),
    ];
    match reason(context, "batches") {
        Some(why) => rows.push(row("batches".into(), Value::Absent, FUNCTION, why)),
        None => rows.extend(delta.moves.iter().filter(|(_, m)| m.batches > 0).map(
            |(name, moves)| {
                row(
                    format!("batches, {name}"),
                    Value::Count(moves.batches),
                    FUNCTION,
                    &sizes(moves),
                )
            },
        )),
    }
    for (member, name) in RSS_MEMBERS.iter().enumerate() {
        let n = delta.cpus.iter().map(|c| c.rss[member]).sum();
        rows.push(row(
            format!("RSS updates, {name}"),
            given(context, "rss_stat", n),
            "tracepoint",
            "",
        ));
    }
    // Of some hundred counters those that moved, and these.
    for (name, n) in &delta.vmstat {
        if *n > 0 || ALWAYS.contains(&&**name) {
            rows.push(row(name.to_string(), Value::Count(*n), "vmstat", ""));
        }
    }
    if let Some(n) = delta.context_switches {
        rows.push(row(
            "context switches".into(),
            Value::Count(n),
            "/proc/stat",
            "",
        ));
    }
    if let Some((some, full)) = delta.memory_pressure_ns {
        rows.push(row(
            "memory pressure, some".into(),
            Value::Count(some / 1000),
            "PSI",
            "us stalled",
        ));
        rows.push(row(
            "memory pressure, full".into(),
            Value::Count(full / 1000),
            "PSI",
            "us stalled",
        ));
    }
    for (name, bytes) in &delta.levels {
        rows.push(
            row(
                name.to_string(),
                Value::Absent,
                "meminfo",
                "bytes, at the end of the interval",
            )
            .count(&f::TOTAL, *bytes),
        );
    }
    rows
}

/// Why a signal is missing, if it is.
fn reason<'a>(context: &'a Context, signal: &str) -> Option<&'a str> {
    let missing = context.missing.iter().find(|m| *m.signal == *signal)?;
    Some(missing.reason.as_str())
}

/// What multi-generational LRU does to activations; it can be switched at run
/// time, so its state is part of the interval. Bit 0 is the main switch
/// (Documentation/admin-guide/mm/multigen_lru.rst).
fn mglru(delta: &Delta, context: &Context) -> String {
    let is_on = |bits: u32| bits & 1 != 0;
    match delta.mglru {
        [Some(before), Some(bits)] if is_on(before) != is_on(bits) => format!(
            "multi-generational LRU was switched {} in this interval; activations are counted while it is off",
            if is_on(bits) { "on" } else { "off" }
        ),
        [_, Some(bits)] if is_on(bits) => format!(
            "multi-generational LRU is on ({bits:#06x}): mark-accessed returns before activation, so activations stay 0"
        ),
        [_, Some(_)] => {
            "multi-generational LRU is off: what is marked accessed twice is activated".into()
        }
        _ => context.mglru.clone(),
    }
}

/// Folios of a move function's batches, and how many batches had which size.
fn sizes(moves: &Moves) -> String {
    let mut text = format!("{} folios; batches by size:", moves.folios);
    for (size, n) in moves.sizes.iter().enumerate().filter(|(_, n)| **n > 0) {
        text.push_str(&format!(" {size}:{n}"));
    }
    text
}

/// Holds of lru_lock: by region, exactly, and what the exact ones do not cover.
pub(super) fn holds(delta: &Delta, context: &Context) -> Vec<Cells> {
    let mut rows = Vec::new();
    let absent = |way: &'static str, why: &str| {
        Cells::new(way)
            .text(&f::HOLD_WAY, way)
            .text(&f::SUBJECT, "-")
            .text(&f::COMMENT, why)
    };
    match reason(context, "lru_lock_hold") {
        Some(why) => rows.push(absent("region", why)),
        None => {
            for (name, moves) in delta.moves.iter().filter(|(_, m)| m.regions > 0) {
                let cells = Cells::new(("region", name))
                    .text(&f::HOLD_WAY, "region")
                    .text(&f::SUBJECT, &**name)
                    .text(
                        &f::COMMENT,
                        "a call of folio_batch_move_lru: also the time before, between and after its holds",
                    );
                rows.push(times(
                    cells,
                    moves.regions,
                    moves.region_ns,
                    moves.region_max_ns,
                    &moves.histogram,
                ));
            }
        }
    }
    if let Some(why) = reason(context, "lru_lock_exact_hold") {
        rows.push(absent("exact", why));
        return rows;
    }
    for (id, lock) in &delta.lru_holds {
        let owner = match id.memcg {
            0 => Value::Text("system".into()),
            memcg => cgroup_path(delta, memcg),
        };
        let address = match lock.address {
            0 => Value::Absent,
            address => Value::Text(format!("{address:#x}")),
        };
        let cells = Cells::new(("exact", id))
            .text(&f::HOLD_WAY, "exact")
            .text(&f::SUBJECT, "folio_lruvec_lock*")
            .set(&f::OWNER, owner)
            .count(&f::NODE, u64::from(id.node))
            .set(
                &f::CGROUP_ID,
                Value::count((id.memcg != 0).then_some(id.memcg)),
            )
            .set(&f::ADDRESS, address);
        let cells = times(
            cells,
            lock.holds,
            lock.hold_ns,
            lock.max_ns,
            &lock.histogram,
        );
        rows.push(handoffs(cells, &lock.handoffs));
    }
    rows.push(uncovered(&delta.lru_coverage));
    rows
}

fn times(cells: Cells, holds: u64, ns: u64, max_ns: u64, histogram: &Histogram) -> Cells {
    cells
        .count(&f::LRU_HOLDS, holds)
        .count(&f::LRU_HOLD_NS, ns)
        .set(&f::LRU_HOLD_AVG_NS, average(ns, holds))
        .count(&f::LRU_HOLD_MAX_NS, max_ns)
        .set(
            &f::LRU_HOLD_P99_NS,
            Value::count(histogram.quantile_ns(0.99)),
        )
}

/// lru_locks that reclaim and others take by open-coded locking: an estimate,
/// with what it was made from.
fn uncovered(coverage: &LruCoverage) -> Cells {
    let estimate = coverage.uncovered.saturating_mul(coverage.sample);
    let share = super::ratio(estimate, estimate.saturating_add(coverage.acquired));
    let comment = format!(
        "estimate: of {} releases that end no tracked hold, 1 in {} tested, {} were lru_locks; {} of all lru_lock \
         holds are not in the rows above",
        coverage.tested,
        coverage.sample,
        coverage.uncovered,
        share.map_or_else(
            || "an unknown share".into(),
            |share| format!("{:.0} %", share * 100.0)
        ),
    );
    Cells::new("not covered")
        .text(&f::HOLD_WAY, "not covered")
        .text(&f::SUBJECT, "open-coded locking")
        .count(&f::LRU_HOLDS, estimate)
        .text(&f::COMMENT, comment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Missing, Model, TableId};
    use crate::sample::delta::{Cpu, LruHold, LruLockId};
    use std::sync::Arc;

    fn model(delta: &Delta, missing: &[&'static str]) -> Model {
        let missing = missing.iter().map(|signal| Missing {
            signal: (*signal).into(),
            reason: format!("no {signal}"),
        });
        let context = Context {
            missing: missing.collect(),
            mglru: "not built".into(),
            ..Context::default()
        };
        Model::new(Arc::new(delta.clone()), Arc::new(context))
    }

    /// Text of the row whose first cells are these.
    fn find(model: &Model, table: TableId, wanted: &[&str], field: &str) -> Value {
        let table = model.table(table);
        let is_it = |cells: &[Value]| {
            wanted
                .iter()
                .zip(cells)
                .all(|(text, cell)| *cell == Value::Text((*text).into()))
        };
        let row = table.rows.iter().find(|row| is_it(&row.cells));
        let row = row.unwrap_or_else(|| panic!("no row {wanted:?}"));
        row.cells[table.position(field).expect("a column")].clone()
    }

    fn comment(model: &Model, subject: &str) -> String {
        match find(model, TableId::Lru, &[subject], "comment") {
            Value::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn activations_say_what_mglru_does_to_them() {
        let of = |mglru| {
            let delta = Delta {
                mglru,
                ..Delta::default()
            };
            comment(&model(&delta, &[]), "folio activations")
        };
        assert!(of([Some(7), Some(7)]).contains("is on (0x0007)"));
        assert!(of([Some(0), Some(0)]).contains("is off"));
        assert!(
            of([Some(6), Some(6)]).contains("is off"),
            "bit 0 is the switch"
        );
        assert!(of([Some(7), Some(0)]).contains("was switched off"));
        assert_eq!(of([None, None]), "not built");
    }

    #[test]
    fn calls_are_summed_over_cpus_and_a_missing_one_says_why() {
        let mut delta = Delta::default();
        for n in [2, 3] {
            let mut cpu = Cpu::default();
            cpu.lru.mark_accessed = n;
            cpu.lru.refaults = n;
            delta.cpus.push(cpu);
        }
        let m = model(&delta, &["workingset_refault", "batches"]);
        let events = |subject| find(&m, TableId::Lru, &[subject], "events");
        assert_eq!(events("mark accessed"), Value::Count(5));
        assert_eq!(events("workingset refaults"), Value::Absent);
        assert_eq!(comment(&m, "workingset refaults"), "no workingset_refault");
        assert_eq!(comment(&m, "batches"), "no batches");
    }

    #[test]
    fn batches_show_their_sizes() {
        let mut moves = Moves {
            batches: 3,
            folios: 32,
            ..Moves::default()
        };
        moves.sizes[1] = 1;
        moves.sizes[31] = 2;
        let delta = Delta {
            moves: [("lru_add".into(), moves)].into(),
            ..Delta::default()
        };
        let text = comment(&model(&delta, &[]), "batches, lru_add");
        assert_eq!(text, "32 folios; batches by size: 1:1 31:2");
    }

    #[test]
    fn holds_name_the_memcg_and_what_is_not_covered() {
        let mut delta = Delta::default();
        for memcg in [0, 7] {
            let hold = LruHold {
                holds: 3,
                hold_ns: 30,
                ..LruHold::default()
            };
            delta.lru_holds.insert(LruLockId { node: 0, memcg }, hold);
        }
        delta.cgroup_paths.insert(7, "/a".into());
        delta.lru_coverage = LruCoverage {
            acquired: 6,
            tested: 100,
            uncovered: 1,
            sample: 2,
            ..LruCoverage::default()
        };
        let m = model(&delta, &["lru_lock_hold"]);
        let of = |wanted: &[&str], field| find(&m, TableId::LruHolds, wanted, field);
        for owner in ["system", "/a"] {
            let row = ["exact", "folio_lruvec_lock*", owner];
            assert_eq!(of(&row, "lru_holds"), Value::Count(3));
            assert_eq!(of(&row, "lru_hold_avg_ns"), Value::Count(10));
        }
        assert_eq!(
            of(&["region"], "comment"),
            Value::Text("no lru_lock_hold".into())
        );
        assert_eq!(of(&["region"], "lru_holds"), Value::Absent);
        assert_eq!(of(&["not covered"], "lru_holds"), Value::Count(2));
        match of(&["not covered"], "comment") {
            Value::Text(text) => assert!(text.contains("25 % of all"), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}
