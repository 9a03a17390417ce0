//! LRU and machine counters, madvise, our own programs and losses.

use super::{Cells, average, comm, given, ratio};
use crate::{
    model::{Context, Value, advice, field as f},
    sample::Delta,
};

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
pub(super) fn lru(delta: &Delta, context: &Context) -> Vec<Cells> {
    let row = |subject: String, events: Value, source: &str, comment: &str| {
        Cells::new(subject.clone())
            .text(&f::SUBJECT, subject)
            .set(&f::EVENTS, events)
            .text(&f::SOURCE, source)
            .text(&f::COMMENT, comment)
    };
    let sum =
        |pick: fn(&crate::sample::delta::Cpu) -> u64| delta.cpus.iter().map(pick).sum::<u64>();
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
            &context.mglru,
        ),
        row(
            "mark accessed".into(),
            Value::Absent,
            "-",
            context
                .missing
                .iter()
                .find(|m| m.signal == "mark_accessed")
                .map_or("", |m| m.reason.as_str()),
        ),
    ];
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
                (*name).into(),
                Value::Absent,
                "meminfo",
                "bytes, at the end of the interval",
            )
            .count(&f::TOTAL, *bytes),
        );
    }
    rows
}

/// madvise by process and advice.
pub(super) fn madvise(delta: &Delta) -> Vec<Cells> {
    delta
        .madvise
        .iter()
        .map(|(id, m)| {
            Cells::new(id)
                .count(&f::PID, u64::from(id.tgid))
                .set(&f::COMM, comm(delta, id.tgid))
                .text(&f::ADVICE, advice::name(id.advice))
                .text(
                    &f::CALL,
                    if id.is_remote {
                        "process_madvise"
                    } else {
                        "madvise"
                    },
                )
                .count(&f::CALLS, m.calls)
                .count(&f::MADV_FAILURES, m.failures)
                .count(&f::MADV_BYTES, m.bytes)
                .count(&f::MADV_NS, m.ns)
                .set(&f::MADV_AVG_NS, average(m.ns, m.calls))
                .count(&f::MADV_MAX_NS, m.max_ns)
        })
        .collect()
}

/// Our programs: attached or why not, run time, hits.
pub(super) fn programs(delta: &Delta) -> Vec<Cells> {
    delta
        .programs
        .iter()
        .map(|p| {
            Cells::new(p.name)
                .text(&f::PROGRAM, p.name)
                .text(&f::ATTACHED_TO, p.place.clone())
                .set(&f::RUNS, Value::count(p.runs))
                .set(
                    &f::NS_PER_RUN,
                    match (p.run_ns, p.runs) {
                        (Some(ns), Some(runs)) => average(ns, runs),
                        _ => Value::Absent,
                    },
                )
                .real(
                    &f::RUN_RATIO,
                    p.run_ns.and_then(|ns| ratio(ns, delta.interval_ns)),
                )
                .set(&f::MISSES, Value::count(p.misses))
        })
        .collect()
}

/// Loss counters, then map fill.
pub(super) fn losses(delta: &Delta, context: &Context) -> Vec<Cells> {
    let losses = context
        .losses
        .iter()
        .zip(&delta.losses)
        .map(|((id, description), loss)| {
            Cells::new(*id)
                .text(&f::LOSS, *id)
                .count(&f::LOST, loss.increment)
                .count(&f::LOST_TOTAL, loss.total)
                .text(&f::COMMENT, *description)
        });
    let maps = delta.maps.iter().map(|map| {
        Cells::new(map.name)
            .text(&f::LOSS, format!("map {}", map.name))
            .count(&f::LOST_TOTAL, map.entries)
            .count(&f::CAPACITY, map.capacity)
            .text(&f::COMMENT, "entries in use")
    });
    losses.chain(maps).collect()
}
