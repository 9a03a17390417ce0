//! The sweep: point after point, each shown when it ends, and what stands below them.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::measure::{Ended, measure};
use super::plan::{Options, Room, Style, jobs, obstacle};
use super::point::{Point, Seen};
use super::{Column, Job, default_directory, table};
use crate::commands::record::identity;
use crate::compare::gate::MAX_LOSS;
use crate::compare::loss::Loss;
use crate::error::{Exit, Failure};
use crate::host::{clock, system::SystemReader};
use crate::load::allowed;
use crate::name::scrub;
use crate::run::Signals;

/// Status of a sweep in which points failed.
const FAILED: u8 = 1;
/// Status of a sweep whose recordings are not whole.
const INCOMPLETE: u8 = 4;
/// Status of a sweep in which points were skipped.
const SKIPPED: u8 = 5;

/// What became of the points that have no row.
#[derive(Debug, Default)]
struct Rest {
    skipped: Vec<String>,
    failed: Vec<String>,
    incomplete: Vec<String>,
    /// Status of the point that a signal ended.
    stopped: Option<u8>,
    /// Points that were not begun.
    left: usize,
}

/// A sweep that has ended.
#[derive(Debug)]
pub(super) struct Swept {
    /// Points that were made.
    pub(super) points: Vec<Point>,
    rest: Rest,
}

/// Makes every point and writes its row to `out` when it ends, then the tables of all; the status to end with.
///
/// Points that cannot be run, or fail, are named on `err`, and the others are made. After a signal the tables of
/// those made so far are written.
///
/// # Errors
/// [`Failure`] where no point can be made for the same reason, and what `out` says.
pub fn run(options: &Options, out: &mut dyn Write, err: &mut dyn Write) -> anyhow::Result<u8> {
    // Before any thread: all of them must leave these signals to us.
    let mut signals = Signals::take().context("taking over signals")?;
    Ok(sweep(options, &mut signals, out, err)?.status())
}

/// The same for signals that were taken before.
///
/// # Errors
/// As [`run`].
pub(super) fn sweep(
    options: &Options,
    signals: &mut Signals,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<Swept> {
    let cpus = allowed().context("asking for the CPUs that may be used")?;
    let jobs = jobs(options, cpus.len());
    if options.style == Style::Pft {
        check_pft(options, &jobs)?;
    }
    let directory = options
        .output
        .clone()
        .unwrap_or_else(|| default_directory(options.bench.name, clock::realtime_ns()));
    make(&directory, &jobs)?;
    let series = identity().context("drawing an identity for the runs")?;
    let (mut points, mut rest) = (Vec::new(), Rest::default());
    writeln!(out, "{}", head(options))?;
    out.flush()?;
    for (at, job) in jobs.iter().enumerate() {
        let title = job.title();
        if let Some(reason) = obstacle(job, room(cpus.len())) {
            tell(
                err,
                &mut rest.skipped,
                format!("{title}: skipped: {reason}"),
            );
            continue;
        }
        let path = directory.join(job.file_name());
        let ended = match measure(job.clone(), options, &path, &series, signals) {
            // What was measured before is shown; what stops the first point stops the bench.
            Err(error) if !points.is_empty() => {
                tell(
                    err,
                    &mut rest.failed,
                    format!("{title}: failed: {}", crate::error::message(&error)),
                );
                rest.left = jobs.len() - at - 1;
                break;
            }
            Err(error) => {
                // One that holds anything stays.
                std::fs::remove_dir(&directory).ok();
                if !options.is_bare && Exit::of(&error) == Exit::Refused {
                    // Nobody reads it if it is closed.
                    drop(writeln!(
                        err,
                        "faultscope: with --bare the bench runs without probes and needs no right"
                    ));
                }
                return Err(error);
            }
            Ok(ended) => ended,
        };
        match ended {
            Ended::Made(point, mut reasons) => {
                let losses = point.seen.as_ref().map(Seen::losses).unwrap_or_default();
                for loss in losses {
                    match weigh(&loss) {
                        // Nobody reads it if it is closed.
                        Ok(little) => drop(writeln!(err, "faultscope: {title}: {little}")),
                        Err(reason) => reasons.push(reason),
                    }
                }
                for reason in reasons {
                    tell(err, &mut rest.incomplete, format!("{title}: {reason}"));
                }
                points.push(*point);
                write_row(options, &points, &mut rest, out, err)?;
            }
            Ended::Skipped(reason) => {
                tell(
                    err,
                    &mut rest.skipped,
                    format!("{title}: skipped: {reason}"),
                );
            }
            Ended::Failed(reason) => {
                tell(err, &mut rest.failed, format!("{title}: failed: {reason}"));
            }
            Ended::Stopped(status) => rest.stopped = Some(status),
        }
        if rest.stopped.is_none() && signals.receive().is_some() {
            rest.stopped = Some(130);
        }
        if rest.stopped.is_some() {
            rest.left = jobs.len() - at - 1;
            break;
        }
    }
    if options.style == Style::Table {
        close(options, &points, out)?;
    }
    out.flush()?;
    sum_up(&directory, &points, &rest, err);
    Ok(Swept { points, rest })
}

/// Refuses what the layout of 2004 cannot say.
fn check_pft(options: &Options, jobs: &[Job]) -> anyhow::Result<()> {
    let name = options.bench.name;
    if options.bench.pft.is_none() {
        return Err(Failure::Usage(format!(
            "bench {name} has no layout of the page-fault test; leave out --style pft"
        ))
        .into());
    }
    if jobs
        .iter()
        .any(|job| job.bytes == 0 || job.bytes % (1 << 30) != 0)
    {
        return Err(Failure::Usage(
            "the layout of the page-fault test has sizes in whole GiB; give --size 1G or a multiple".to_owned(),
        )
        .into());
    }
    Ok(())
}

/// Makes the directory for the runs, in which no run of this sweep may be yet.
fn make(directory: &Path, jobs: &[Job]) -> anyhow::Result<()> {
    let shown = |path: &Path| scrub(path.as_os_str().as_encoded_bytes());
    std::fs::create_dir_all(directory)
        .with_context(|| format!("making the directory \"{}\"", shown(directory)))?;
    let taken: Option<PathBuf> = jobs
        .iter()
        .map(|job| directory.join(job.file_name()))
        .find(|path| path.symlink_metadata().is_ok());
    match taken {
        None => Ok(()),
        Some(path) => Err(Failure::Usage(format!(
            "\"{}\" exists and is not overwritten; give another directory with -o",
            shown(&path)
        ))
        .into()),
    }
}

fn room(cpus: usize) -> Room {
    let sample = SystemReader::open(Path::new("/")).read();
    Room {
        cpus,
        memory_bytes: sample.meminfo("MemAvailable"),
    }
}

fn head(options: &Options) -> String {
    match (&options.bench.pft, options.style) {
        (Some(pft), Style::Pft) => pft.header.to_owned(),
        _ => table::head(options.bench.live),
    }
}

/// Writes the row of the last point.
fn write_row(
    options: &Options,
    points: &[Point],
    rest: &mut Rest,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<()> {
    let Some(point) = points.last() else {
        return Ok(());
    };
    match (&options.bench.pft, options.style) {
        (Some(pft), Style::Pft) => match (pft.row)(point) {
            Ok(row) => writeln!(out, "{row}")?,
            Err(reason) => {
                let title = point.job.title();
                tell(err, &mut rest.skipped, format!("{title}: no row: {reason}"));
            }
        },
        _ => writeln!(out, "{}", table::row(options.bench.live, point, points))?,
    }
    out.flush()?;
    Ok(())
}

/// Writes the tables of all points and what explains them.
fn close(options: &Options, points: &[Point], out: &mut dyn Write) -> anyhow::Result<()> {
    if points.is_empty() {
        return Ok(());
    }
    let bench = options.bench;
    for section in bench.sections {
        if table::has_values(section, points) {
            table::section(section, points, out)?;
        }
    }
    let mut columns: Vec<&[Column]> = vec![bench.live];
    columns.extend(bench.sections.iter().map(|s| s.columns));
    let mut notes = table::reasons(&columns, points);
    if let Some(summary) = bench.summary {
        notes.extend(summary(points));
    }
    if options.is_bare {
        notes.push("run without probes, so all that only they tell is absent".to_owned());
    }
    notes.extend(said(points));
    if !notes.is_empty() {
        writeln!(out)?;
    }
    for note in notes {
        writeln!(out, "{note}")?;
    }
    Ok(())
}

/// What the processes of points gave to keep in mind, each once with the series that said it.
fn said(points: &[Point]) -> Vec<String> {
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for point in points {
        let series = point.job.series();
        for note in &point.result.notes {
            match notes.iter_mut().find(|(known, _)| known == note) {
                Some((_, by)) if by.contains(&series) => {}
                Some((_, by)) => by.push(series.clone()),
                None => notes.push((note, vec![series.clone()])),
            }
        }
    }
    let line = |(note, by): (&str, Vec<String>)| format!("{}: {note}", by.join(", "));
    notes.into_iter().map(line).collect()
}

/// Whether a loss is too little to spoil a point, or why it does; by its share of the table it is missing from, as
/// `compare` judges it.
fn weigh(loss: &Loss) -> Result<String, String> {
    if loss.share() > MAX_LOSS {
        return Err(format!(
            "events were lost, and the recording says so: {}",
            loss.text()
        ));
    }
    if loss.missing == 0 {
        let (lost, id) = (loss.lost, &loss.id);
        return Ok(format!("{lost} lost ({id}), none of them this point's"));
    }
    Ok(format!(
        "{}; not more than {:.1} % of them, so the point counts as whole",
        loss.text(),
        100.0 * MAX_LOSS
    ))
}

/// Says something on `err` and keeps it; nobody reads it if it is closed.
fn tell(err: &mut dyn Write, kept: &mut Vec<String>, text: String) {
    writeln!(err, "faultscope: {text}").ok();
    kept.push(text);
}

fn sum_up(directory: &Path, points: &[Point], rest: &Rest, err: &mut dyn Write) {
    let made = points.len();
    let plural = if made == 1 { "" } else { "s" };
    let mut parts = vec![format!("{made} point{plural} made")];
    for (n, what) in [
        (rest.skipped.len(), "skipped"),
        (rest.failed.len(), "failed"),
        (usize::from(rest.stopped.is_some()), "ended by a signal"),
        (rest.left, "not begun"),
    ] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    if points.is_empty() {
        // One that holds anything stays.
        std::fs::remove_dir(directory).ok();
    } else {
        let shown = scrub(directory.as_os_str().as_encoded_bytes());
        parts.push(format!("runs in \"{shown}\""));
    }
    writeln!(err, "faultscope: {}", parts.join(", ")).ok();
}

impl Swept {
    /// Status to end with.
    pub(super) fn status(&self) -> u8 {
        let rest = &self.rest;
        if let Some(status) = rest.stopped {
            return status;
        }
        if !rest.failed.is_empty() {
            FAILED
        } else if !rest.skipped.is_empty() {
            SKIPPED
        } else if !rest.incomplete.is_empty() {
            INCOMPLETE
        } else {
            0
        }
    }

    /// Whether a signal ended it.
    pub(super) const fn is_stopped(&self) -> bool {
        self.rest.stopped.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_of_one_event_in_a_thousand_of_its_table_spoils_no_point() {
        let loss = |missing| Loss {
            id: "given_back_overwritten".to_owned(),
            lost: 7,
            missing,
            whole: 10_000,
            what: "bytes given back",
        };
        let little = weigh(&loss(10)).expect("too little");
        assert!(
            little.starts_with("10 lost of 10.0k bytes given back (given_back_overwritten); not"),
            "{little}"
        );
        assert_eq!(
            weigh(&loss(0)).expect("of others"),
            "7 lost (given_back_overwritten), none of them this point's"
        );
        // However many faults there were beside.
        let much = weigh(&loss(11)).expect_err("too much");
        assert!(
            much.ends_with("11 lost of 10.0k bytes given back (given_back_overwritten)"),
            "{much}"
        );
    }
}
