//! madvise, our own programs and losses.

use super::{Cells, average, comm, ratio};
use crate::{
    model::{Context, Value, advice, field as f},
    sample::Delta,
};

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
            Cells::new(&p.name)
                .text(&f::PROGRAM, &*p.name)
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
        .map(|(kind, loss)| {
            Cells::new(&kind.id)
                .text(&f::LOSS, &*kind.id)
                .count(&f::LOST, loss.increment)
                .count(&f::LOST_TOTAL, loss.total)
                .text(&f::COMMENT, &*kind.description)
        });
    let maps = delta.maps.iter().map(|map| {
        Cells::new(&map.name)
            .text(&f::LOSS, format!("map {}", map.name))
            .count(&f::LOST_TOTAL, map.entries)
            .count(&f::CAPACITY, map.capacity)
            .text(&f::COMMENT, "entries in use")
    });
    losses.chain(maps).collect()
}
