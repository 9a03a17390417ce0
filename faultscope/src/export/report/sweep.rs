//! Several runs reported together: the curves that they make.

use super::{Layout, document::Document, html, json, md, plots, text};
use crate::export::csv::quote;
use crate::model::scale::{AllSeries, Point, Series};
use crate::render::cell::scrub;
use crate::sample::run::Run;
use crate::workload::Metric;
use std::io::{self, Write};

/// A run among others.
#[derive(Debug, Clone, Default)]
pub struct SweepRun {
    /// Name of its file, as the user wrote it.
    pub file: String,
    /// The run.
    pub run: Run,
    /// What the workload said of itself.
    pub metrics: Vec<Metric>,
}

/// Runs at several numbers of threads.
#[derive(Debug, Clone, Default)]
pub struct Sweep {
    /// The runs, in the order given.
    pub runs: Vec<SweepRun>,
    /// Why to read on with care: a sentence each.
    pub warnings: Vec<String>,
    /// The curves.
    pub(super) scaling: AllSeries,
}

impl Sweep {
    /// Makes the curves of `runs`.
    #[must_use]
    pub fn new(runs: Vec<SweepRun>, mut warnings: Vec<String>) -> Self {
        let scaling = AllSeries::new(runs.iter().map(|run| (&run.run, run.metrics.as_slice())));
        let cut = runs.iter().filter(|run| run.run.end.is_none());
        warnings.extend(cut.map(|run| {
            format!(
                "\"{}\" is cut short: its recorder ended without closing it",
                run.file
            )
        }));
        Self {
            runs,
            warnings,
            scaling,
        }
    }

    /// Writes the report.
    ///
    /// # Errors
    /// Whatever `out` reports.
    pub fn write(&self, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
        match layout {
            Layout::Text => text::write(out, &Document::of_runs(self)),
            Layout::Md => md::write(out, &Document::of_runs(self)),
            Layout::Html => html::write(out, &Document::of_runs(self), &|id| match id {
                "scalability" => plots::of_curves(&self.scaling),
                _ => Vec::new(),
            }),
            Layout::Json => json::write_sweep(out, self),
        }
        .and_then(|()| out.flush())
    }

    /// Number of curves.
    #[must_use]
    pub fn curves(&self) -> usize {
        self.scaling.series.len()
    }

    /// Why there is no curve: sentences.
    #[must_use]
    pub fn why_no_curve(&self) -> String {
        let reasons = self.scaling.reasons.join("; ");
        let reason = if reasons.is_empty() {
            NO_CURVE
        } else {
            &reasons
        };
        scrub(reason).into_owned()
    }

    /// Writes the points of all curves as CSV (RFC 4180), a line each; a curve is told by its figure, workload and keys.
    ///
    /// An absent cell is empty: the first point has no marginal gain.
    ///
    /// # Errors
    /// Whatever `out` reports.
    pub fn write_points(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{}\r\n", POINT.join(","))?;
        for series in &self.scaling.series {
            for point in &series.scaling.curve.points {
                write!(out, "{}\r\n", cells(series, point).join(","))?;
            }
        }
        out.flush()
    }

    /// Writes every curve as a JSON object in a line of its own, as `faultscope.sweep/1` has them.
    ///
    /// # Errors
    /// Whatever `out` reports.
    pub fn write_curves(&self, out: &mut dyn Write) -> io::Result<()> {
        for series in &self.scaling.series {
            json::write_curve(out, series)?;
        }
        out.flush()
    }
}

/// Why there is no curve where no figure looks like one.
pub(super) const NO_CURVE: &str =
    "no run gives a rate at two numbers of threads, processes, tasks, clients or instances";

/// Columns of a point.
const POINT: [&str; 12] = [
    "figure",
    "unit",
    "workload",
    "keys",
    "over",
    "n",
    "runs",
    "per_sec",
    "speedup",
    "efficiency_ratio",
    "marginal_ratio",
    "cpu_ns_per_op",
];

fn cells(series: &Series, point: &Point) -> [String; 12] {
    let text = |text: &str| quote(&scrub(text)).into_owned();
    let number = |number: Option<f64>| {
        let told = number.filter(|n| n.is_finite());
        told.map_or_else(String::new, |n| n.to_string())
    };
    let keys: Vec<String> = series
        .keys
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    [
        text(&series.name),
        text(&series.unit),
        text(&series.format),
        text(&keys.join(";")),
        series.over.to_owned(),
        point.n.to_string(),
        point.runs.len().to_string(),
        number(Some(point.per_sec)),
        number(Some(point.speedup)),
        number(Some(point.efficiency)),
        number(point.marginal),
        number(point.cpu_ns_per_op),
    ]
}
