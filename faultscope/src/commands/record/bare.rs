//! One run without probes: the command, what it said and used, and the machine's conditions.

use std::path::Path;

use anyhow::Context as _;

use super::one::{Outcome, wait_for};
use super::rounds::Item;
use super::{Record, describe};
use crate::host::{HostFacts, clock};
use crate::run::{Child, Command, Relay, Signals};
use crate::sample::run::End;
use crate::store::Writer;
use crate::workload::results;

/// Makes one run of a command; the file holds no interval.
///
/// # Errors
/// What could not be started, or written.
pub(in crate::commands) fn run(
    record: &Record,
    item: &Item,
    series: &str,
    signals: &mut Signals,
) -> anyhow::Result<Outcome> {
    let (mut relay, inlets) =
        Relay::start_quiet().context("starting the process that keeps output")?;
    let host = HostFacts::read(Path::new("/"));
    let mut run = describe::machine(record, item, series, &host)?;
    run.mglru = crate::commands::mglru_sentence(&host.kernel.mglru);
    run.start_mono_ns = clock::monotonic_ns();
    run.start_real_ns = clock::realtime_ns();
    let mut writer = Writer::create(&item.path, &run)?;
    let command = Command {
        argv: item.command.clone(),
        environment: describe::environment(),
    };
    let mut child = Child::start(&command, inlets, signals, clock::monotonic_ns)?;
    let mut workload = describe::workload(&item.command, &child);
    let mut outcome = Outcome::default();
    wait_for(&child, signals, &mut outcome);
    let ended = child.end();
    outcome.status = ended.status();
    workload.ended = Some(describe::ended(&ended));
    relay.drain(signals);
    workload.output = describe::output(&relay.kept());
    let (metrics, reasons) = results(&workload.output.text, &[]);
    outcome.reasons.extend(
        reasons
            .iter()
            .map(|reason| format!("a result was not taken: {reason}")),
    );
    workload.refused = reasons;
    writer.set_workload(&workload)?;
    writer.set_metrics(&metrics)?;
    writer.finish(&End {
        mono_ns: ended.at_ns,
        reason: "the command ended; it ran without probes".into(),
    })?;
    Ok(outcome)
}
