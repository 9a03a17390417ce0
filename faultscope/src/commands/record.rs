//! `record`: what the kernel did and what a command says of itself, in one file.

pub(super) mod bare;
mod describe;
pub(super) mod one;
mod others;
mod progress;
mod rounds;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;

pub(super) use describe::identity;
pub(super) use rounds::Item;

use super::session::Options;
use crate::error::Failure;
use crate::host::clock;
use crate::name::scrub;
use crate::run::Signals;
use crate::workload::MetricRule;

/// Status of a recording that is not whole, with `--strict`.
const INCOMPLETE: u8 = 4;

/// What `record` is asked for.
#[derive(Debug, Clone)]
pub struct Record {
    /// What is captured.
    pub capture: Options,
    /// Where to write; a name made of the time if not given.
    pub output: Option<PathBuf>,
    /// Length of an interval.
    pub interval: Duration,
    /// End of the recording.
    pub duration: Option<Duration>,
    /// The command and its arguments; empty to record the machine.
    pub command: Vec<OsString>,
    /// Runs, or rounds of two runs.
    pub repeat: Option<u32>,
    /// Shell command of side B.
    pub alternate: Option<String>,
    /// Shell commands before each run of side A and B; empty or two.
    pub setups: Vec<String>,
    /// The user's own labels.
    pub labels: BTreeMap<String, String>,
    /// Figures to take from the output beside those of known formats.
    pub metrics: Vec<MetricRule>,
    /// Incomplete is not done.
    pub is_strict: bool,
    /// The command's output is kept but not passed on, and a file that was written is not announced.
    pub is_quiet: bool,
}

/// Records, one file for each run; the status to end with.
///
/// # Errors
/// [`Failure`] as in [`Session::start`](super::session::Session::start) and for a file that exists; what could not
/// be started or written before a command was run. What breaks off later is said on standard error.
pub fn run(record: &Record) -> anyhow::Result<u8> {
    // Before any thread: all of them must leave these signals to us.
    let mut signals = Signals::take().context("taking over signals")?;
    let items = rounds::items(record, &default_name(clock::realtime_ns()));
    for item in &items {
        if item.path.symlink_metadata().is_ok() {
            return Err(Failure::Usage(format!(
                "\"{}\" exists and is not overwritten; give another name with -o, or remove it",
                scrub(item.path.as_os_str().as_encoded_bytes())
            ))
            .into());
        }
    }
    let series = identity().context("drawing an identity for the runs")?;
    let mut status = 0;
    for (n, item) in items.iter().enumerate() {
        let outcome = one::run(record, item, &series, &mut signals)?;
        status = outcome.status;
        let is_whole =
            outcome.reasons.is_empty() && outcome.lost.is_none() && !outcome.lacks_figure;
        for reason in outcome.reasons.into_iter().chain(outcome.lost) {
            say(&reason);
        }
        if status == 0 && record.is_strict && !is_whole {
            status = INCOMPLETE;
        }
        let left = items.len() - n - 1;
        if left > 0 && (status != 0 || outcome.is_stopped) {
            say(&format!(
                "run {} of {} ended with status {status}; the other {left} are not made",
                n + 1,
                items.len()
            ));
            break;
        }
    }
    Ok(status)
}

/// `faultscope-20261130T204309Z.fsc`.
fn default_name(t_real_ns: u64) -> PathBuf {
    format!("faultscope-{}.fsc", compact_time(t_real_ns)).into()
}

/// `20261130T204309Z`, a time that a file name may hold anywhere.
pub(super) fn compact_time(t_real_ns: u64) -> String {
    let time = crate::render::time::format_rfc3339(t_real_ns);
    let seconds = time.split('.').next().unwrap_or_default();
    let compact: String = seconds.chars().filter(|c| !"-:".contains(*c)).collect();
    format!("{compact}Z")
}

/// A line on standard error; nobody reads it if it is closed.
fn say(text: &str) {
    writeln!(io::stderr(), "faultscope: {text}").ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_name_has_the_time_and_no_colon() {
        let name = default_name(1_796_071_389_000_000_000);
        assert_eq!(name, PathBuf::from("faultscope-20261130T204309Z.fsc"));
    }
}
