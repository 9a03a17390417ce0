//! One run: attach, start, read at each interval, end.

use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;

use super::others::Used;
use super::progress::{Line, Progress};
use super::rounds::{Item, shell};
use super::{Record, describe, say};
use crate::commands::consult_kernel;
use crate::commands::schedule::{Schedule, Tick};
use crate::commands::session::Session;
use crate::error::message;
use crate::host::{HostFacts, clock};
use crate::name::scrub;
use crate::run::{Child, Command, Drained, Inlets, Relay, Signals, wait_readable};
use crate::sample::run::{End, RunFact, Workload};
use crate::store::Writer;
use crate::workload::{Metric, MetricRule, results, settle_work};

/// How a run ended.
#[derive(Debug, Default)]
pub(in crate::commands) struct Outcome {
    /// Status to end with.
    pub(in crate::commands) status: u8,
    /// Why the recording is not whole, losses apart.
    pub(in crate::commands) reasons: Vec<String>,
    /// What was lost, a sentence, if anything was.
    pub(in crate::commands) lost: Option<String>,
    /// A figure that the user named is not in the command's output.
    pub(in crate::commands) lacks_figure: bool,
    /// The user stopped it.
    pub(in crate::commands) is_stopped: bool,
}

/// Makes one run.
pub(in crate::commands) fn run(
    record: &Record,
    item: &Item,
    series: &str,
    signals: &mut Signals,
) -> anyhow::Result<Outcome> {
    if let Some(setup) = &item.setup {
        set_up(setup, signals)?;
    }
    let has_command = !item.command.is_empty();
    // Forked before anything is attached, or programs would live as long as it does.
    let mut relay = has_command
        .then(|| {
            if record.is_quiet {
                Relay::start_quiet()
            } else {
                Relay::start()
            }
        })
        .transpose()
        .context("starting the process that passes output on")?;
    let root = Path::new("/");
    let mut host = HostFacts::read(root);
    let probes = consult_kernel(root, &mut host);
    let mut session = Session::start_on(root, &host, probes, &record.capture)?;
    session.record(&record.capture, has_command);
    let mut description = describe::begin(record, item, series, &host, &mut session)?;
    let before = Used::read(root);
    // What attaching took belongs to no interval.
    let base = session.interval()?.delta;
    description.start_mono_ns = base.t_mono_ns;
    description.start_real_ns = base.t_real_ns;
    let writer = Writer::create(&item.path, &description)?;
    let mut recording = Recording {
        named: session.named_missing(),
        session: Some(session),
        writer: Some(writer),
        seen: Progress::default(),
        lost_before: base.losses.iter().map(|loss| loss.total).collect(),
        lost: Vec::new(),
        own: BTreeSet::new(),
        start_ns: description.start_mono_ns,
        facts: description.facts,
    };
    let started = match relay.take() {
        None => None,
        Some((relay, inlets)) => match recording.start(&item.command, inlets, signals) {
            Ok(command) => Some((relay, command)),
            Err(error) => {
                drop(recording);
                // Nothing was recorded: the file would be in the way of the next try.
                std::fs::remove_file(&item.path).ok();
                return not_started(error);
            }
        },
    };
    let (mut relay, command) = started.unzip();
    let (mut child, mut workload) = command.unzip();
    let stop = recording.record(record, signals, child.as_mut(), relay.as_ref());
    let mut outcome = Outcome {
        is_stopped: stop.is_stopped,
        ..Outcome::default()
    };
    if let Some(child) = &mut child {
        wait_for(child, signals, &mut outcome);
        let ended = child.end();
        outcome.status = ended.status();
        recording.own.insert(child.pid());
        if let Some(workload) = &mut workload {
            workload.ended = Some(describe::ended(&ended));
        }
    }
    recording.last(&mut outcome);
    recording.note_others(&before, root);
    if let (Some(relay), Some(workload)) = (&mut relay, &mut workload) {
        if relay.drain(signals) == Drained::Interrupted {
            outcome.reasons.push(format!(
                "the end of the output of \"{}\" was not waited for: a signal came",
                describe::shown(&item.command)
            ));
        }
        workload.output = describe::output(&relay.kept());
        let metrics = take_results(record, workload, &mut outcome);
        recording.write_results(workload, &metrics);
    }
    recording.finish(item, &stop, record.is_quiet, &mut outcome);
    Ok(outcome)
}

/// Runs the setup command of a side, which must succeed.
fn set_up(setup: &str, signals: &Signals) -> anyhow::Result<()> {
    let (mut relay, inlets) =
        Relay::start().context("starting the process that passes output on")?;
    let command = Command {
        argv: shell(setup),
        environment: Vec::new(),
    };
    let mut child = Child::start(&command, inlets, signals, clock::monotonic_ns)?;
    let status = child.end().status();
    relay.drain(signals);
    anyhow::ensure!(
        status == 0,
        "the setup command \"{}\" ended with status {status}, so its run was not made",
        scrub(setup.as_bytes())
    );
    Ok(())
}

/// A command that cannot be run has a status of its own.
fn not_started(error: anyhow::Error) -> anyhow::Result<Outcome> {
    let Some(spawn) = error.downcast_ref::<crate::run::SpawnError>() else {
        return Err(error);
    };
    Ok(Outcome {
        status: spawn.status(),
        reasons: vec![format!("{}; nothing was recorded", message(&error))],
        is_stopped: true,
        ..Outcome::default()
    })
}

/// What the command printed of its own figures; those that cannot be taken are said and kept with it.
fn take_results(record: &Record, workload: &mut Workload, outcome: &mut Outcome) -> Vec<Metric> {
    let (mut metrics, reasons) = results(&workload.output.text, &record.metrics);
    settle_work(&workload.argv, &mut metrics);
    let is_there = |rule: &MetricRule| metrics.iter().any(|m| m.name == rule.name());
    outcome.lacks_figure = !record.metrics.iter().all(is_there);
    for reason in &reasons {
        say(&format!("a result was not taken: {reason}"));
    }
    workload.refused = reasons;
    metrics
}

/// Waits for the end of a command whose recording is over, and passes signals on meanwhile.
pub(super) fn wait_for(child: &Child, signals: &mut Signals, outcome: &mut Outcome) {
    loop {
        let files = [signals.as_fd().as_raw_fd(), child.as_fd().as_raw_fd()];
        let [is_signal, is_ended] = wait_readable(files, None);
        if is_signal {
            outcome.is_stopped |= pass_on(signals, Some(child)).is_some();
        }
        if is_ended {
            return;
        }
    }
}

/// Gives signals to the command that it does not have from the terminal; the name of the last one.
fn pass_on(signals: &mut Signals, child: Option<&Child>) -> Option<&'static str> {
    let mut last = None;
    while let Some(taken) = signals.receive() {
        if let Some(child) = child
            && !taken.is_terminals
        {
            child.signal(taken.number);
        }
        last = Some(taken.name());
    }
    last
}

/// Why no more intervals are read.
#[derive(Debug)]
struct Stop {
    reason: String,
    is_stopped: bool,
}

/// A file being written, until it breaks off.
struct Recording {
    session: Option<Session>,
    writer: Option<Writer>,
    /// Programs named by the user that are missing.
    named: Vec<String>,
    seen: Progress,
    /// Events of each kind that were lost while programs were attached, before the recording began.
    lost_before: Vec<u64>,
    /// Kinds of loss that are not 0, with how many.
    lost: Vec<String>,
    /// Processes of the workload.
    own: BTreeSet<u32>,
    start_ns: u64,
    facts: Vec<RunFact>,
}

impl Recording {
    fn session(&mut self) -> anyhow::Result<&mut Session> {
        self.session.as_mut().context("the capture has ended")
    }

    /// Starts the command, marked from its first instruction on.
    fn start(
        &mut self,
        argv: &[std::ffi::OsString],
        inlets: Inlets,
        signals: &Signals,
    ) -> anyhow::Result<(Child, Workload)> {
        let command = Command {
            argv: argv.to_vec(),
            environment: describe::environment(),
        };
        let session = self.session()?;
        let child =
            session.mark(|| Child::start(&command, inlets, signals, clock::monotonic_ns))??;
        session.set_workload_root(child.pid());
        let workload = describe::workload(argv, &child);
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.set_workload(&workload)
        {
            self.break_off(&error.into(), true);
        }
        Ok((child, workload))
    }

    /// Reads interval after interval until the command ends, time is up or a signal comes.
    fn record(
        &mut self,
        record: &Record,
        signals: &mut Signals,
        child: Option<&mut Child>,
        relay: Option<&Relay>,
    ) -> Stop {
        let child = child.map(|child| &*child);
        let has_command = child.is_some();
        let begin = Instant::now();
        let end = record.duration.map(|d| begin + d);
        let mut schedule = Schedule::new(record.interval, begin);
        let mut line = Line::new();
        let stop = |reason: &str, is_stopped| Stop {
            reason: reason.to_owned(),
            is_stopped,
        };
        let ended = loop {
            if self.session.is_none() && has_command {
                break stop("the recording broke off", false);
            }
            let next = end.map_or(schedule.next(), |end| end.min(schedule.next()));
            let timeout = next.saturating_duration_since(Instant::now());
            let [is_signal, is_ended] = wait_readable(
                [
                    signals.as_fd().as_raw_fd(),
                    child.map_or(-1, |c| c.as_fd().as_raw_fd()),
                ],
                Some(timeout),
            );
            if is_ended {
                break stop("the command ended", false);
            }
            if is_signal
                && let Some(name) = pass_on(signals, child)
                && !has_command
            {
                break stop(name, true);
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                self.append_last(has_command);
                break stop("--duration", false);
            }
            let Some(tick) = schedule.tick(Instant::now()) else {
                continue;
            };
            if let Err(error) = self.read(tick) {
                line.clear(relay);
                self.break_off(&error, has_command);
                if !has_command {
                    break stop("the recording broke off", true);
                }
            }
            let is_crowded = self.session.as_ref().is_some_and(Session::is_crowded);
            schedule.done(Instant::now(), is_crowded);
            if tick != Tick::Harvest && self.session.is_some() {
                line.show(&self.seen, relay);
            }
        };
        line.clear(relay);
        ended
    }

    /// Does what a tick is for.
    fn read(&mut self, tick: Tick) -> anyhow::Result<()> {
        match tick {
            Tick::Harvest => self.session()?.harvest(),
            Tick::Due { is_late } => {
                if is_late {
                    self.session()?.overrun();
                }
                self.append()
            }
        }
    }

    /// Reads one interval and writes it.
    fn append(&mut self) -> anyhow::Result<()> {
        let session = self.session()?;
        let mut interval = session.interval()?;
        let losses = session.context().losses.clone();
        // Nobody else has it yet, so nothing is copied.
        let delta = Arc::make_mut(&mut interval.delta);
        for (loss, before) in delta.losses.iter_mut().zip(&self.lost_before) {
            loss.total = loss.total.saturating_sub(*before);
        }
        self.seen.elapsed_ns = delta.t_mono_ns.saturating_sub(self.start_ns);
        self.seen.faults += delta.total().faults();
        self.seen.lost = delta.losses.iter().map(|l| l.total).sum();
        self.lost = losses
            .iter()
            .zip(&delta.losses)
            .filter(|(_, loss)| loss.total > 0)
            .map(|(kind, loss)| format!("{} lost ({})", loss.total, kind.id))
            .collect();
        let own = delta.processes.iter().filter(|(_, p)| p.is_workload);
        self.own.extend(own.map(|(id, _)| id.tgid));
        let writer = self.writer.as_mut().context("the file is closed")?;
        writer.append(&interval)?;
        self.seen.bytes = writer.bytes();
        Ok(())
    }

    /// Writes the time since the last interval; nothing is attached afterwards.
    fn append_last(&mut self, runs_on: bool) {
        if self.session.is_some()
            && let Err(error) = self.append()
        {
            self.break_off(&error, runs_on);
        }
        self.session = None;
    }

    /// Ends the recording, and says why it is not whole, if it is not.
    fn last(&mut self, outcome: &mut Outcome) {
        self.append_last(false);
        if self.writer.is_none() {
            outcome
                .reasons
                .push("the recording broke off; what was recorded before is in the file".into());
        }
        outcome.reasons.append(&mut self.named);
        outcome.lost = (!self.lost.is_empty()).then(|| {
            format!(
                "events were lost, and the recording says so: {}",
                self.lost.join("; ")
            )
        });
    }

    /// Names other tasks that were busy.
    fn note_others(&mut self, before: &Used, root: &Path) {
        self.own.insert(std::process::id());
        let elapsed_ns = clock::monotonic_ns().saturating_sub(self.start_ns);
        let busy = Used::read(root).busy_since(before, elapsed_ns, &self.own);
        self.facts.push(RunFact {
            id: "other_tasks".into(),
            value: Ok(if busy.is_empty() {
                "none above 5 % of a CPU".into()
            } else {
                busy.join(", ")
            }),
        });
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.set_facts(&self.facts)
        {
            self.break_off(&error.into(), false);
        }
    }

    /// What the command says of itself.
    fn write_results(&mut self, workload: &Workload, metrics: &[Metric]) {
        let Some(writer) = &mut self.writer else {
            return;
        };
        let written = writer
            .set_workload(workload)
            .and_then(|()| writer.set_metrics(metrics));
        if let Err(error) = written {
            self.break_off(&error.into(), false);
        }
    }

    /// Closes the file and says what is in it.
    fn finish(mut self, item: &Item, stop: &Stop, is_quiet: bool, outcome: &mut Outcome) {
        let Some(writer) = self.writer.take() else {
            return;
        };
        self.seen.bytes = writer.bytes();
        let end = End {
            mono_ns: self.start_ns + self.seen.elapsed_ns,
            reason: stop.reason.clone(),
        };
        match writer.finish(&end) {
            Ok(()) if is_quiet => {}
            Ok(()) => say(&format!(
                "wrote \"{}\": {}",
                scrub(item.path.as_os_str().as_encoded_bytes()),
                self.seen.text()
            )),
            Err(error) => outcome.reasons.push(format!(
                "the end of the recording could not be written: {}",
                message(&error.into())
            )),
        }
    }

    /// Gives the recording up, but not the command.
    fn break_off(&mut self, error: &anyhow::Error, runs_on: bool) {
        let command = if runs_on { "; the command runs on" } else { "" };
        say(&format!("recording broke off: {}{command}", message(error)));
        self.session = None;
        if let Some(writer) = self.writer.take() {
            let end = End {
                mono_ns: self.start_ns + self.seen.elapsed_ns,
                reason: "the recording broke off".into(),
            };
            // If this cannot be written either, the file says that it was cut short, which is as true.
            writer.finish(&end).ok();
        }
    }
}
