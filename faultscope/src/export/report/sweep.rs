//! Several runs reported together: the curves that they make.

use super::{Layout, document::Document, html, json, md, plots, text};
use crate::model::scale::AllSeries;
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
}
