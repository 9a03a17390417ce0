//! A report as one JSON document, schema `faultscope.report/1`.
//!
//! Rows are those of `faultscope.top/1`: increments over the range, and rates
//! beside them as `<id>_per_sec`.

mod scale;

use super::{Report, Sweep, document::SECTIONS, start};
use crate::export::jsonl::{Cells, Found, Losses, Reason};
use crate::model::{
    Model, TableId, Value,
    headline::{Figure, headline},
    scale::Series,
};
use crate::sample::run::{Run, Workload};
use crate::workload::{Direction, Metric, Work};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Value as Json, json};
use std::io::{self, Write};

const SCHEMA: &str = "faultscope.report/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: &'a str,
    is_complete: bool,
    run: Json,
    range: Json,
    results: Vec<Json>,
    results_missing: Vec<String>,
    warnings: &'a [String],
    lost: Losses<'a>,
    missing: Vec<Reason<'a>>,
    notes: &'a [String],
    scalability: Vec<Json>,
    scalability_missing: &'a [String],
    headline: Vec<Json>,
    findings: Vec<Found<'a>>,
    tables: Tables<'a>,
}

pub(super) fn write(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let model = &report.model;
    let figures = headline(model, &report.run, &report.metrics, report.range.is_part);
    let document = Document {
        schema: SCHEMA,
        file: &report.file,
        is_complete: report.run.end.is_some(),
        run: run(&report.run, model),
        range: json!({
            "from_ns": report.range.from_ns,
            "to_ns": report.range.to_ns,
            "is_part": report.range.is_part,
            "intervals": report.merged.intervals,
            "covered_ns": model.interval_ns,
        }),
        results: report.metrics.iter().map(metric).collect(),
        results_missing: report.untold(),
        warnings: &report.warnings,
        lost: Losses(&model.lost),
        missing: model.missing.iter().map(Reason::new).collect(),
        notes: &model.notes,
        scalability: report.scaling.series.iter().map(scale::curve).collect(),
        scalability_missing: &report.scaling.reasons,
        headline: figures.iter().map(figure).collect(),
        findings: model.findings().iter().map(Found).collect(),
        tables: Tables(report),
    };
    serde_json::to_writer_pretty(&mut *out, &document).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

/// Writes a curve as one line.
pub(super) fn write_curve(out: &mut dyn Write, series: &Series) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &scale::curve(series)).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

/// Writes several runs and the curves that they make, schema `faultscope.sweep/1`.
pub(super) fn write_sweep(out: &mut dyn Write, sweep: &Sweep) -> io::Result<()> {
    let runs: Vec<Json> = sweep.runs.iter().map(scale::run).collect();
    let document = json!({
        "schema": "faultscope.sweep/1",
        "runs": runs,
        "warnings": sweep.warnings,
        "scalability": sweep.scaling.series.iter().map(scale::curve).collect::<Vec<_>>(),
        "scalability_missing": sweep.scaling.reasons,
    });
    serde_json::to_writer_pretty(&mut *out, &document).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

fn run(run: &Run, model: &Model) -> Json {
    let facts = run.facts.iter().map(|fact| {
        json!({
            "id": fact.id,
            "value": fact.value.as_ref().ok(),
            "reason": fact.value.as_ref().err(),
        })
    });
    let probes = run.probes.iter().map(|probe| {
        json!({
            "program": probe.program,
            "signal": probe.signal,
            "is_attached": probe.is_attached,
            "place": probe.place,
            "substitutes": probe.substitutes,
        })
    });
    let round = run
        .round
        .as_ref()
        .map(|round| json!({ "series": round.series, "number": round.number, "side": round.side }));
    json!({
        "id": run.id,
        "tool_version": run.tool_version,
        "host": model.host.name,
        "kernel": model.host.kernel,
        "start_real": start(run),
        "start_mono_ns": run.start_mono_ns,
        "interval_ns": run.interval_ns,
        "filter": run.filter,
        "labels": run.labels,
        "round": round,
        "facts": facts.collect::<Vec<_>>(),
        "probes": probes.collect::<Vec<_>>(),
        "workload": run.workload.as_ref().map(workload),
        "end_reason": run.end.as_ref().map(|end| end.reason.as_str()),
    })
}

fn workload(workload: &Workload) -> Json {
    let ended = workload.ended.as_ref().map(|ended| {
        let usage = &ended.usage;
        json!({
            "code": ended.code,
            "signal": ended.signal,
            "wall_ns": ended.mono_ns.saturating_sub(workload.start_mono_ns),
            "user_ns": usage.user_ns,
            "system_ns": usage.system_ns,
            "max_rss_bytes": usage.max_rss_bytes,
            "minor_faults": usage.minor_faults,
            "major_faults": usage.major_faults,
            "voluntary_switches": usage.voluntary_switches,
            "involuntary_switches": usage.involuntary_switches,
        })
    });
    json!({
        "argv": workload.argv,
        "directory": workload.directory,
        "tgid": workload.tgid,
        "ended": ended,
    })
}

pub(super) fn metric(metric: &Metric) -> Json {
    let direction = metric.direction.map(|direction| match direction {
        Direction::Higher => "higher",
        Direction::Lower => "lower",
    });
    let work = metric.work.map(|work| match work {
        Work::Fixed => "fixed",
        Work::Timed => "timed",
    });
    let keys: serde_json::Map<String, Json> = metric
        .keys
        .iter()
        .map(|(key, value)| (key.clone(), Json::from(value.as_str())))
        .collect();
    json!({
        "name": metric.name,
        "value": metric.value,
        "unit": metric.unit,
        "better": direction,
        "work": work,
        "resolution": metric.resolution,
        "format": metric.format,
        "keys": keys,
    })
}

fn figure(figure: &Figure) -> Json {
    let value = match &figure.value {
        Value::Absent => Json::Null,
        Value::Text(text) => Json::from(text.as_str()),
        Value::Count(n) => Json::from(*n),
        Value::Real(x) => Json::from(*x),
    };
    json!({
        "id": figure.id,
        "label": figure.label,
        "value": value,
        "comment": figure.comment,
    })
}

/// Tables by id, each with its rows.
struct Tables<'a>(&'a Report);

#[derive(Serialize)]
struct Rows<'a> {
    rows: Vec<Cells<'a>>,
    omitted: u64,
}

impl Serialize for Tables<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = self.0;
        let own = [TableId::Losses, TableId::Programs];
        let all: Vec<TableId> = if report.tables.is_empty() {
            let sections = SECTIONS.iter().flat_map(|(_, _, tables)| tables.iter());
            sections.chain(&own).copied().collect()
        } else {
            report.tables.clone()
        };
        let mut map = serializer.serialize_map(Some(all.len()))?;
        for id in all {
            let table = report.model.table(id);
            let shown = report.top.unwrap_or(usize::MAX).min(table.rows.len());
            let rows = Rows {
                rows: table.rows[..shown]
                    .iter()
                    .map(|row| Cells {
                        fields: table.fields,
                        row,
                        interval_secs: report.model.interval_secs(),
                    })
                    .collect(),
                omitted: table.omitted + (table.rows.len() - shown) as u64,
            };
            map.serialize_entry(id.id(), &rows)?;
        }
        map.end()
    }
}
