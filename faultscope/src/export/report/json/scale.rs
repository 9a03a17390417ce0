//! Curves and the runs behind them.

use super::metric;
use crate::export::report::SweepRun;
use crate::model::scale::{Fit, Point, Series};
use serde_json::{Value as Json, json};

pub(super) fn run(run: &SweepRun) -> Json {
    let SweepRun { file, run, metrics } = run;
    json!({
        "file": file,
        "id": run.id,
        "host": run.host,
        "kernel": run.kernel,
        "labels": run.labels,
        "is_complete": run.end.is_some(),
        "results": metrics.iter().map(metric).collect::<Vec<_>>(),
    })
}

pub(super) fn curve(series: &Series) -> Json {
    let scaling = &series.scaling;
    let reasons = |doubts: &[crate::model::scale::Doubt]| -> Vec<String> {
        doubts.iter().map(|d| d.reason(series.over)).collect()
    };
    let fit = |fit: &Fit| {
        json!({
            "from": fit.from,
            "to": fit.to,
            "points": fit.points,
            "lam_per_sec": fit.law.lam,
            "s": fit.law.s,
            "k": fit.law.k,
            "peak": fit.law.peak(),
            "worst_residual_ratio": fit.worst,
            "weak": reasons(&fit.doubts),
            "interval_95": fit.interval.map(|i| json!({
                "s": i.s,
                "k": i.k,
                "peak": i.peak,
                "runs": i.runs,
            })),
        })
    };
    let unfitted = scaling
        .unfitted
        .iter()
        .map(|segment| json!({ "from": segment.from, "to": segment.to, "points": segment.points }));
    let keys: serde_json::Map<String, Json> = series
        .keys
        .iter()
        .map(|(key, value)| (key.clone(), Json::from(value.as_str())))
        .collect();
    json!({
        "name": series.name,
        "unit": series.unit,
        "format": series.format,
        "over": series.over,
        "keys": keys,
        "runs": series.runs,
        "base": scaling.curve.base(),
        "points": scaling.curve.points.iter().map(point).collect::<Vec<_>>(),
        "law_refused": reasons(&scaling.refused),
        "laws": scaling.fits.iter().map(fit).collect::<Vec<_>>(),
        "without_law": unfitted.collect::<Vec<_>>(),
    })
}

fn point(point: &Point) -> Json {
    json!({
        "n": point.n,
        "runs_per_sec": point.runs,
        "per_sec": point.per_sec,
        "speedup": point.speedup,
        "efficiency_ratio": point.efficiency,
        "marginal_ratio": point.marginal,
        "cpu_ns_per_op": point.cpu_ns_per_op,
        "is_above_linear": point.is_above_linear(),
    })
}
