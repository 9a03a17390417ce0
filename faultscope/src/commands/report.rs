//! `report`: what a recording holds, in one of eight formats.

mod sweep;
mod when;

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

pub use when::When;

use crate::error::{Exit, Failure};
use crate::export::report::{Beside, Gather, Layout, Of, Report};
use crate::export::{Format, Selection, Writer};
use crate::model::{Context, Model, TableId};
use crate::render::flame::flame_document;
use crate::render::number::format_ns;
use crate::sample::{merge::Merger, run::Run};
use crate::store::{IntervalTime, Recording};
use std::sync::Arc;

/// Damaged intervals or files that are named; the others are counted.
const NAMED: usize = 3;

/// What `report` is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The recording; or several, and directories of them.
    pub files: Vec<PathBuf>,
    /// Format of the output.
    pub format: Format,
    /// Which time folded stacks and flame graphs show.
    pub of: Of,
    /// Tables to write; empty for all that a report has. CSV and JSON lines of one recording take one.
    pub tables: Vec<TableId>,
    /// Beginning of the range.
    pub from: Option<When>,
    /// End of the range.
    pub to: Option<When>,
    /// Rows of a table at most.
    pub top: Option<usize>,
}

/// Writes the report of a recording, or of the curves that several make, to `out`.
///
/// # Errors
/// A file that is no readable recording, a range outside it, and what `out` refused.
/// [`Failure::Incomplete`] if intervals, or some of several recordings, could not be read: the report is of the others.
pub fn run(request: &Request, out: &mut dyn Write) -> anyhow::Result<Exit> {
    match request.files.as_slice() {
        [file] if !file.is_dir() => one(request, file, out),
        _ => sweep::run(request, out),
    }
}

fn one(request: &Request, file: &Path, out: &mut dyn Write) -> anyhow::Result<Exit> {
    if matches!(request.format, Format::Csv | Format::Jsonl) && request.tables.len() != 1 {
        return Err(Failure::Usage(format!(
            "--format {} holds one table of a recording: name it with --view, once",
            request.format.id()
        ))
        .into());
    }
    let mut recording = Recording::open(file)?;
    let range = range(request, &recording)?;
    let mut damaged = Vec::new();
    match request.format {
        Format::Text => write(request, recording, range, Layout::Text, &mut damaged, out)?,
        Format::Md => write(request, recording, range, Layout::Md, &mut damaged, out)?,
        Format::Html => write(request, recording, range, Layout::Html, &mut damaged, out)?,
        Format::Json => write(request, recording, range, Layout::Json, &mut damaged, out)?,
        Format::Csv => {
            let report = gather(request, &mut recording, range, &mut damaged)?;
            one_table(request)?
                .write(out, &report.model)
                .context("writing the table")?;
        }
        Format::Jsonl => {
            let run = recording.run().clone();
            let mut writer = one_table(request)?;
            each(&mut recording, range, &mut damaged, |interval| {
                let context = Context::of(&run, &interval);
                let model = Model::new(Arc::clone(&interval.delta), Arc::new(context));
                writer.write(out, &model).context("writing an interval")
            })?;
        }
        Format::Folded | Format::Flamegraph => {
            let mut merger = Merger::default();
            each(&mut recording, range, &mut damaged, |interval| {
                merger.add(&interval.delta);
                Ok(())
            })?;
            let stacks = request.of.stacks(&merger.finish());
            let text = if request.format == Format::Folded {
                stacks.folded()
            } else {
                flame_document(&stacks, "all", request.of.title(), |ns| {
                    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
                    format_ns(ns as f64)
                })
            };
            out.write_all(text.as_bytes()).context("writing stacks")?;
        }
    }
    out.flush().context("writing the report")?;
    if damaged.is_empty() {
        Ok(Exit::Done)
    } else {
        Err(Failure::Incomplete(left_out(&damaged)).into())
    }
}

fn write(
    request: &Request,
    mut recording: Recording,
    range: Range<usize>,
    layout: Layout,
    damaged: &mut Vec<String>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let report = gather(request, &mut recording, range, damaged)?;
    report.write(layout, out).context("writing the report")
}

/// Everything a report holds, from the intervals of the range.
fn gather(
    request: &Request,
    recording: &mut Recording,
    range: Range<usize>,
    damaged: &mut Vec<String>,
) -> anyhow::Result<Report> {
    let is_part = range.len() < recording.len();
    let mut gather = Gather::default();
    each(recording, range, damaged, |interval| {
        gather.add(&interval);
        Ok(())
    })?;
    let run = recording.run().clone();
    let mut warnings = refused(&run);
    if !damaged.is_empty() {
        warnings.push(left_out(damaged));
    }
    Ok(gather.finish(Beside {
        file: request
            .files
            .first()
            .map_or_else(String::new, |file| file.display().to_string()),
        metrics: recording.metrics().to_vec(),
        run,
        warnings,
        is_part,
        tables: request.tables.clone(),
        top: request.top,
    }))
}

/// Figures that the workload printed and that could not be taken.
fn refused(run: &Run) -> Vec<String> {
    let workload = run.workload.iter();
    workload
        .flat_map(crate::export::report::refused)
        .map(|reason| format!("a result was not taken: {reason}"))
        .collect()
}

/// Reads the intervals of the range; a damaged one is left out and told.
fn each(
    recording: &mut Recording,
    range: Range<usize>,
    damaged: &mut Vec<String>,
    mut take: impl FnMut(crate::sample::Interval) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for index in range {
        match recording.interval(index) {
            Ok(interval) => take(interval)?,
            Err(error) => damaged.push(error.to_string()),
        }
    }
    Ok(())
}

fn left_out(damaged: &[String]) -> String {
    unread("interval", damaged)
}

fn left_out_files(damaged: &[String]) -> String {
    unread("recording", damaged)
}

fn unread(what: &str, damaged: &[String]) -> String {
    let named = damaged[..damaged.len().min(NAMED)].join("; ");
    let more = match damaged.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!("; and {n} more"),
    };
    match damaged.len() {
        1 => format!("1 {what} could not be read and is left out: {named}"),
        n => format!("{n} {what}s could not be read and are left out: {named}{more}"),
    }
}

/// The writer of one table.
fn one_table(request: &Request) -> anyhow::Result<Writer> {
    // There is one; the first screen of `top` would stand for none.
    let table = request.tables.first().copied().unwrap_or(TableId::Overview);
    Ok(Writer::new(
        request.format,
        Selection {
            table,
            sort: None,
            word: String::new(),
            top: request.top,
        },
    )?)
}

/// Numbers of the intervals that lie in the range, in part or whole.
fn range(request: &Request, recording: &Recording) -> anyhow::Result<Range<usize>> {
    let run = recording.run();
    let times = recording.times();
    let at = |when: When| {
        run.start_mono_ns
            .saturating_add(when.after_start_ns(run.start_real_ns))
    };
    let from = request.from.map(at);
    let to = request.to.map(at);
    if let (Some(from), Some(to)) = (from, to)
        && from >= to
    {
        let message = "--from must lie before --to".to_owned();
        return Err(Failure::Usage(message).into());
    }
    let begin = |t: &IntervalTime| t.end_mono_ns.saturating_sub(t.length_ns);
    let first = times.partition_point(|t| from.is_some_and(|from| t.end_mono_ns <= from));
    let last = times.partition_point(|t| to.is_none_or(|to| begin(t) < to));
    if first >= last && !times.is_empty() {
        let whole_ns = times
            .last()
            .map_or(0, |t| t.end_mono_ns.saturating_sub(run.start_mono_ns));
        #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
        let whole = format_ns(whole_ns as f64);
        let message = format!("no interval lies in the range; the recording is {whole} long");
        return Err(Failure::Usage(message).into());
    }
    Ok(first..last)
}

#[cfg(test)]
mod tests;
