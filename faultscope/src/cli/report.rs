//! Arguments of `report`.

use std::path::PathBuf;

use clap::Args;

use super::choice;
use super::format::parse_report;
use super::top::parse_view;
use crate::commands::report::{Request, When};
use crate::export::Format;
use crate::export::report::Of;
use crate::model::TableId;

/// Exit codes of `report`.
pub(super) const EXIT_CODES: &str = "\
Exit status:
  0  Done; what the recorder lost stands first in the report.
  1  An error, named on standard error.
  2  The command line is wrong.
  4  Intervals of the file are damaged; the report is of the others.";

/// Arguments of `report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// The recording; or several, of which a directory stands for those in it: their curves by the number of threads.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Sets the format: text, md, html, json, csv, jsonl, folded or flamegraph. JSON has the schema
    /// faultscope.report/1, or faultscope.sweep/1 of several recordings. CSV is one table of the range, JSON lines one
    /// table of each interval as top writes them; of several recordings they are the points of the curves, and the
    /// curves.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = parse_report)]
    pub format: Format,
    /// Writes this table, and leaves the others out; may be repeated. The names are those of top --view.
    #[arg(long = "view", value_name = "ID", value_parser = parse_view)]
    pub views: Vec<TableId>,
    /// Chooses what folded stacks and flame graphs show: wait (contended lock waits), hold (mmap_lock holds, sampled
    /// call chains) or fault (CPU time of faults); wait unless chosen.
    #[arg(long, value_name = "TIME", value_parser = parse_of)]
    pub of: Option<Of>,
    /// Leaves out what lies before: seconds after the start (12.5), a time of day in UTC (12:03) or a date and time
    /// (2026-11-30T12:03:07Z). Intervals are taken whole.
    #[arg(long, value_name = "TIME")]
    pub from: Option<When>,
    /// Leaves out what lies behind; written like --from.
    #[arg(long, value_name = "TIME")]
    pub to: Option<When>,
    /// Writes at most this many rows of a table; text, Markdown and HTML write 10 of a long one unless told.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub top: Option<u32>,
}

impl ReportArgs {
    /// The request, checked.
    ///
    /// # Errors
    /// A sentence about arguments that do not go together.
    pub fn request(self) -> Result<Request, String> {
        let is_stacks = matches!(self.format, Format::Folded | Format::Flamegraph);
        if self.of.is_some() && !is_stacks {
            return Err("--of goes with --format folded or flamegraph".to_owned());
        }
        if is_stacks && !self.views.is_empty() {
            return Err(format!(
                "--format {} has no tables; choose with --of what it shows",
                self.format.id()
            ));
        }
        Ok(Request {
            files: self.files,
            format: self.format,
            of: self.of.unwrap_or(Of::Wait),
            tables: self.views,
            from: self.from,
            to: self.to,
            top: self.top.map(|n| n as usize),
        })
    }
}

fn parse_of(name: &str) -> Result<Of, String> {
    Of::ALL
        .into_iter()
        .find(|of| of.id() == name)
        .ok_or_else(|| {
            format!(
                "there is no time \"{name}\"; use {}",
                choice(&Of::ALL.map(Of::id))
            )
        })
}
