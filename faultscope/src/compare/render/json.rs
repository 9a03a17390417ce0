//! The comparison as one document, schema `faultscope.compare/1`, with the values of every run.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::super::Report;
use super::super::gate::Difference;
use super::super::headline::{Role, Row, Shown};
use super::super::locks::LockRow;
use super::super::observed::Observed;
use super::super::stats::{Comparison, Direction, Order, PoissonInterval, Presence, Scale};
use super::super::sweep::Sweep;
use crate::render::time::format_rfc3339;

const SCHEMA: &str = "faultscope.compare/1";

pub(super) fn write(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let [before, after] = &report.sides;
    let options = &report.options;
    let list = |all: &[Difference]| -> Vec<Value> {
        let one = |d: &Difference| json!({"key": d.key, "before": d.before, "after": d.after});
        all.iter().map(one).collect()
    };
    let document = json!({
        "schema": SCHEMA,
        "is_comparable": report.comparability.refusals.is_empty(),
        "is_forced": options.is_forced,
        "refusals": list(&report.comparability.refusals),
        "differences": list(&report.comparability.flags),
        "options": {
            "labels": options.labels,
            "vary": options.vary,
            "per": options.per.id(),
            "min_effect_ratio": options.min_effect,
            "is_paired": options.is_paired,
            "pairs": report.pairs,
            "is_aa": options.is_aa || options.is_halved,
            "is_halved": options.is_halved,
            "floor_files": report.alike.iter().map(|o| &o.file).collect::<Vec<_>>(),
        },
        "order": report.order.map(|order| match order {
            Order::Blocked => "blocked",
            Order::Alternating => "alternating",
            Order::Mixed => "mixed",
        }),
        "runs": {"before": runs(before), "after": runs(after)},
        "meant": report.meant.iter().map(|m| json!({
            "key": m.key, "before": m.values[0], "after": m.values[1],
        })).collect::<Vec<_>>(),
        "notes": report.notes,
        "metrics": report.rows.iter().map(row).collect::<Vec<_>>(),
        "sweep": report.sweep.as_ref().map(sweep),
        "fault_kinds": report.kinds.iter().map(|k| json!({
            "kind": k.name, "before_ratio": k.share[0], "after_ratio": k.share[1],
        })).collect::<Vec<_>>(),
        "locks": report.locks.as_ref().map(|locks| json!({
            "per": locks.per.id(),
            "tested": locks.tested,
            "filtered": locks.filtered,
            "filtered_wait_ratio": locks.filtered_share,
            "q": super::super::stats::FDR,
            "too_small": locks.too_small,
            "has_sites": locks.has_sites,
            "only_before": locks.unmatched[0],
            "only_after": locks.unmatched[1],
            "classes": locks.rows.iter().map(lock).collect::<Vec<_>>(),
        })),
        "lock_details": {
            "not_measured": report.details.unmeasured.iter().map(|a| a.id()).collect::<Vec<_>>(),
            "aspects": report.details.told.iter().map(|told| json!({
                "id": told.aspect.id(),
                "title": told.aspect.title(),
                "filtered": told.filtered,
                "filtered_time_ratio": told.filtered_share,
                "rows": told.rows.iter().map(lock).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "handoffs": report.details.bounces.iter().map(|b| json!({
                "lock": b.class.lock,
                "mode": b.class.mode,
                "of": b.class.site,
                "distance": b.distance,
                "handoffs": b.handoffs,
                "ratio": comparison(&b.comparison),
                "values": {"before": b.shares[0], "after": b.shares[1]},
            })).collect::<Vec<_>>(),
        },
        "durations": report.quantiles.iter().map(|d| json!({
            "name": d.name,
            "fewest_values": d.fewest,
            "quantiles": d.quantiles.iter().map(|q| json!({
                "name": q.name,
                "needed_values": q.needed,
                "comparison_ns": q.comparison.as_ref().map(comparison),
                "values_ns": {"before": q.values[0], "after": q.values[1]},
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "budget": report.budget.as_ref().map(|budget| json!({
            "parts": budget.parts.iter().chain([&budget.total]).map(|p| json!({
                "part": p.name, "before_ns": p.ns[0], "after_ns": p.ns[1], "change_ns": p.change(),
            })).collect::<Vec<_>>(),
            "lock_wait_per_fault_ns": budget.wait_ns,
        })),
        "findings": report.findings.iter().map(|f| json!({"id": f.id, "text": f.text})).collect::<Vec<_>>(),
        "gates": report.gates.iter().map(|g| json!({
            "metric": g.metric, "percent": g.percent, "is_regressed": g.is_regressed,
        })).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &document).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

fn runs(side: &[Observed]) -> Vec<Value> {
    side.iter()
        .map(|o| {
            json!({
                "file": o.file,
                "id": o.run.id,
                "host": o.run.host,
                "kernel": o.run.kernel,
                "start": (o.run.start_real_ns > 0).then(|| format_rfc3339(o.run.start_real_ns)),
                "round": o.run.round.as_ref().map(|r| json!({"series": r.series, "number": r.number, "side": r.side})),
                "labels": o.run.labels,
                "is_whole": o.cut_short().is_none() && o.damaged == 0,
            })
        })
        .collect()
}

fn comparison(c: &Comparison) -> Value {
    let shift = &c.shift;
    let (change, interval, scale) = match shift.scale {
        Scale::Ratio => (shift.percent(), shift.percent_interval(), "percent"),
        Scale::Difference => (Some(shift.estimate), shift.interval, "difference"),
    };
    json!({
        "before": c.before,
        "after": c.after,
        "scale": scale,
        "change": change,
        "interval": interval.map(|(low, high)| [low, high]),
        "interval_method": shift.method.word(),
        "p": c.test.p,
        "p_method": c.test.method.word(),
        "smallest_p": c.design.floor(),
    })
}

fn row(row: &Row) -> Value {
    let values = |side: &[(f64, u64)]| -> Vec<f64> { side.iter().map(|(v, _)| *v).collect() };
    json!({
        "id": row.id,
        "title": row.title,
        "cell": row.cell,
        "unit": match &row.shown {
            Shown::In(unit) => unit.clone(),
            Shown::Of(unit) => format!("{unit:?}").to_lowercase(),
        },
        "role": match row.role {
            Role::Primary => "primary",
            Role::Headline => "headline",
            Role::Context => "context",
        },
        "direction": match row.direction {
            Direction::HigherIsBetter => Some("higher"),
            Direction::LowerIsBetter => Some("lower"),
            Direction::None => None,
        },
        "comparison": comparison(&row.comparison),
        "margin_ratio": row.margin.relative(),
        "is_margin_resolution": row.margin.is_coarse(),
        "floor": row.floor.map(|floor| json!({
            "runs": floor.runs, "halves_ratio": floor.halves, "single_ratio": floor.single,
        })),
        "adjusted_p": row.adjusted_p,
        "verdict": row.verdict.map(|v| v.word()),
        "is_summary": row.is_summary,
        "stddev_pct": row.deviations,
        "flags": row.flags,
        "values": {"before": values(&row.before), "after": values(&row.after)},
    })
}

fn lock(row: &LockRow) -> Value {
    let count = |i: &PoissonInterval| json!({"per_run": i.rate, "low": i.low, "high": i.high});
    let (presence, upper) = match row.presence {
        Presence::Nowhere => ("nowhere", None),
        Presence::Appeared { upper } => ("appeared", Some(upper)),
        Presence::Vanished { upper } => ("vanished", Some(upper)),
        Presence::Rare => ("rare", None),
        Presence::Both => ("both", None),
    };
    json!({
        "lock": row.class.lock,
        "mode": row.class.mode,
        "site": row.class.site,
        "presence": presence,
        "zero_side_upper_per_run": upper,
        "waits": {"before": count(&row.counts[0]), "after": count(&row.counts[1])},
        "wait": row.comparison.as_ref().map(comparison),
        "rate": row.rates.as_ref().map(comparison),
        "of_fault_time": row.of_fault.as_ref().map(comparison),
        "p99_ns": row.p99_ns,
        "q": row.q,
        "verdict": row.verdict.map(|v| v.word()),
        "values": {"wait_ns": row.wait, "rate": row.rate},
    })
}

fn sweep(sweep: &Sweep) -> Value {
    json!({
        "metric": sweep.metric,
        "over": sweep.over,
        "by_threads": sweep.by_count.iter().map(|at| json!({
            "threads": at.count,
            "ratio": at.ratio,
            "interval": at.interval.map(|(low, high)| [low, high]),
            "cells": at.cells,
        })).collect::<Vec<_>>(),
        "curves": sweep.curves.iter().map(|c| json!({
            "name": c.name,
            "over": c.over,
            "efficiency": c.efficiency.iter().map(|(n, [before, after])| json!({
                "threads": n, "before": before, "after": after,
            })).collect::<Vec<_>>(),
            "law": c.law.map(|[before, after]| json!({
                "before": {"s": before.0, "k": before.1},
                "after": {"s": after.0, "k": after.1},
            })),
            "doubts": c.doubts,
        })).collect::<Vec<_>>(),
        "geomean": sweep.geomean.as_ref().map(|g| json!({
            "ratio": g.ratio,
            "interval": g.interval.map(|(low, high)| [low, high]),
            "is_approximate": g.is_approximate,
            "cells": g.cells,
            "min": g.worst.1,
            "max": g.best.1,
        })),
        "only_before": sweep.one_sided[0],
        "only_after": sweep.one_sided[1],
        "crossovers": sweep.crossovers.iter().map(|(n, is_up)| json!({
            "threads": n, "is_after_ahead": is_up,
        })).collect::<Vec<_>>(),
        "gains_from_threads": sweep.gains_from,
    })
}
