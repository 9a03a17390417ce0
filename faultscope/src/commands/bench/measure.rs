//! One point: its process under `record`, or bare, and what the recording says.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use super::load::{SKIP, SKIPPED};
use super::plan::Options;
use super::point::{Point, Seen};
use super::{Job, Stop};
use crate::commands::record::{Item, Record, bare, one};
use crate::commands::session;
use crate::export::report::{Beside, Gather};
use crate::host::{Fact, HostFacts};
use crate::run::{MemoryLimit, Signals};
use crate::sample::run::Run;
use crate::store::Recording;
use crate::workload::bench;

/// Statuses of a process that one of the signals we take has ended.
const STOPPED: [u8; 4] = [
    128 + libc::SIGHUP as u8,
    128 + libc::SIGINT as u8,
    128 + libc::SIGQUIT as u8,
    128 + libc::SIGTERM as u8,
];

/// How long after memory was given back a fault on it counts: longer than a cycle of any bench.
const REFAULT_WINDOW: Duration = Duration::from_secs(60);

/// What became of a point.
#[derive(Debug)]
pub(super) enum Ended {
    /// It was made; the sentences say why its recording is not whole, losses apart.
    Made(Box<Point>, Vec<String>),
    /// It cannot be run here.
    Skipped(String),
    /// It failed.
    Failed(String),
    /// The user ended it; the status of a process that a signal ended.
    Stopped(u8),
}

/// Makes a point, with a recording at `path`; there is none afterwards unless the point was made.
///
/// # Errors
/// What keeps every point from being made: no right to load programs, a file that cannot be written.
pub(super) fn measure(
    mut job: Job,
    options: &Options,
    path: &Path,
    series: &str,
    signals: &mut Signals,
) -> anyhow::Result<Ended> {
    // Lives until the point has ended, and goes then.
    let limit = match limited(&job) {
        Ok(limit) => limit,
        Err(reason) => return Ok(Ended::Skipped(reason)),
    };
    job.cgroup = limit.as_ref().map(|limit| limit.path().to_owned());
    let own = std::env::current_exe().context("finding this program")?;
    let mut command = vec![own.into_os_string()];
    command.extend(job.arguments());
    let item = Item {
        path: path.to_owned(),
        round: (options.repetitions > 1).then_some((job.repetition, "")),
        command,
        setup: None,
    };
    let record = record(&job, options);
    let was_there = path.symlink_metadata().is_ok();
    let outcome = if options.is_bare {
        bare::run(&record, &item, series, signals)
    } else {
        one::run(&record, &item, series, signals)
    };
    let ended = outcome.and_then(|outcome| {
        let mut recording = Recording::open(path)?;
        let output = output(recording.run()).to_owned();
        Ok(match outcome.status {
            0 => match made(&output, job, &mut recording) {
                Ok(point) => Ended::Made(Box::new(point), outcome.reasons),
                Err(Stop::Skip(reason)) => Ended::Skipped(reason),
                Err(Stop::Failed(error)) => Ended::Failed(crate::error::message(&error)),
            },
            SKIPPED => Ended::Skipped(skipped(&output)),
            status if outcome.is_stopped || STOPPED.contains(&status) => Ended::Stopped(status),
            status => Ended::Failed(failed(status, &output)),
        })
    });
    if !was_there && !matches!(ended, Ok(Ended::Made(..))) {
        // Half a point would be taken for one; a file of somebody else's stays. Where there is no file there is none to remove.
        std::fs::remove_file(path).ok();
    }
    ended
}

/// A memory cgroup for a point of memory pressure; `None` for others, and why it cannot be had.
fn limited(job: &Job) -> Result<Option<MemoryLimit>, String> {
    let Some(bytes) = job.bench.limit.and_then(|limit| limit(job)) else {
        return Ok(None);
    };
    match HostFacts::read(Path::new("/")).memory_hierarchy {
        Fact::Yes(hierarchy) => MemoryLimit::new(&hierarchy, bytes)
            .map(Some)
            .map_err(|error| error.to_string()),
        Fact::No(reason) | Fact::Unknown(reason) => {
            Err(format!("memory cannot be limited: {reason}"))
        }
    }
}

fn record(job: &Job, options: &Options) -> Record {
    let sets = if options.is_core {
        Vec::new()
    } else {
        job.bench.sets.to_vec()
    };
    Record {
        capture: session::Options {
            recorded: Some(sets),
            refault_window: Some(REFAULT_WINDOW),
            bpf_object: options.bpf_object.clone(),
            ..session::Options::default()
        },
        output: None,
        interval: Duration::from_secs(1),
        duration: None,
        command: Vec::new(),
        repeat: None,
        alternate: None,
        setups: Vec::new(),
        labels: BTreeMap::from([("bench".to_owned(), job.bench.name.to_owned())]),
        metrics: Vec::new(),
        is_strict: false,
        is_quiet: true,
    }
}

fn output(run: &Run) -> &str {
    let workload = run.workload.as_ref();
    workload.map_or("", |workload| workload.output.text.as_str())
}

/// Reads the point out of its recording.
fn made(output: &str, job: Job, recording: &mut Recording) -> Result<Point, Stop> {
    let mut results = bench::read(output)?;
    let (Some(result), true) = (results.pop(), results.is_empty()) else {
        return Err(anyhow::anyhow!("its process printed no result, or several").into());
    };
    let mut seen = None;
    if !recording.is_empty() {
        let mut gather = Gather::default();
        for index in 0..recording.len() {
            gather.add(&recording.interval(index)?);
        }
        let report = gather.finish(Beside {
            run: recording.run().clone(),
            ..Beside::default()
        });
        seen = Some(Seen {
            model: report.model,
        });
    }
    Ok(Point { job, result, seen })
}

/// What the process of a point said when it could not run.
fn skipped(output: &str) -> String {
    let mut lines = output.lines();
    let reason = lines.find_map(|line| line.strip_prefix(SKIP));
    reason.unwrap_or("no reason was given").trim().to_owned()
}

fn failed(status: u8, output: &str) -> String {
    let last = output.lines().rev().find(|line| !line.trim().is_empty());
    let said = crate::name::scrub(last.unwrap_or_default().trim().as_bytes());
    match status.checked_sub(128) {
        Some(9) => "its process was killed (SIGKILL), as the kernel does when memory runs out; a \
                    smaller --size needs less"
            .to_owned(),
        Some(signal @ 1..) => format!("its process was ended by signal {signal}"),
        _ if said.is_empty() => format!("its process ended with status {status}"),
        _ => said,
    }
}
