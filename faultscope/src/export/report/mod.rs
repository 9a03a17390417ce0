//! A report of a whole recording, or of a part of it.
//!
//! [`Document`] is what people read, whatever the format: its text is made once.
//! JSON has the numbers behind it. Everything comes from the tables of one model.

mod document;
mod escape;
#[cfg(test)]
pub(crate) mod fixture;
mod gather;
mod html;
mod json;
mod md;
mod plots;
pub mod stacks;
mod sweep;
#[cfg(test)]
mod tests;
mod text;

use crate::model::{Model, TableId, scale::AllSeries};
use crate::render::time::format_rfc3339;
use crate::sample::{
    merge::Merged,
    run::{Run, Workload},
    series::Series,
};
use crate::workload::Metric;
use document::Document;
pub use gather::{Beside, Gather};
pub use stacks::Of;
use std::io::{self, Write};
pub use sweep::{Sweep, SweepRun};

/// Bins of the plots: a few pixels each on a wide screen.
pub const BINS: usize = 160;

/// What a report is made of.
#[derive(Debug)]
pub struct Report {
    /// Name of the file, as the user wrote it.
    pub file: String,
    /// The run.
    pub run: Run,
    /// What the workload said of itself.
    pub metrics: Vec<Metric>,
    /// Why to read on with care, beside what run and intervals tell: a sentence each.
    pub warnings: Vec<String>,
    /// The intervals as one; its increments are the model's.
    pub merged: Merged,
    /// The model of it.
    pub model: Model,
    /// The intervals over time.
    pub series: Series,
    /// Curves that the workload's figures make, of a run at several numbers of threads.
    pub scaling: AllSeries,
    /// The part of the run that is reported.
    pub range: Range,
    /// Tables asked for; empty for all that a report has.
    pub tables: Vec<TableId>,
    /// Rows of a table at most.
    pub top: Option<usize>,
}

/// The part of a run that is reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Range {
    /// Beginning after the run's first reading, ns.
    pub from_ns: u64,
    /// End after it, ns.
    pub to_ns: u64,
    /// Whether intervals of the run were left out because the user asked for it.
    pub is_part: bool,
}

/// Formats of a report of all tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Aligned text.
    Text,
    /// Markdown.
    Md,
    /// One page.
    Html,
    /// One JSON document.
    Json,
}

/// When a run began, as text; `None` if that is not known, as of imported text.
fn start(run: &Run) -> Option<String> {
    (run.start_real_ns > 0).then(|| format_rfc3339(run.start_real_ns))
}

/// Why figures that the workload printed, or that were asked for, could not be taken: a sentence each.
///
/// Those of `--metric` are known from the recording alone; those of known formats follow from the text again, which
/// serves recordings that do not keep them.
#[must_use]
pub fn refused(workload: &Workload) -> Vec<String> {
    let (_, again) = crate::workload::results(&workload.output.text, &[]);
    let mut reasons = workload.refused.clone();
    for reason in again {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}

impl Report {
    /// Why the workload's own figures are not, or not all, there: a sentence each.
    fn untold(&self) -> Vec<String> {
        let Some(workload) = &self.run.workload else {
            return Vec::new();
        };
        let output = &workload.output;
        let mut reasons = refused(workload);
        if self.metrics.is_empty() && reasons.is_empty() {
            reasons.push(if output.text.trim().is_empty() {
                "the command wrote nothing".to_owned()
            } else {
                "the output is in no known format; \"record --metric\" takes figures from any"
                    .to_owned()
            });
        }
        reasons
    }

    /// Writes the report.
    ///
    /// # Errors
    /// Whatever `out` reports.
    pub fn write(&self, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
        match layout {
            Layout::Text => text::write(out, &Document::new(self)),
            Layout::Md => md::write(out, &Document::new(self)),
            Layout::Html => {
                html::write(out, &Document::new(self), &|id| plots::of_section(self, id))
            }
            Layout::Json => json::write(out, self),
        }
        .and_then(|()| out.flush())
    }
}
