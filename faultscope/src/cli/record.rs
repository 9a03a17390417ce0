//! Arguments of `record`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::time::Duration;

use clap::Args;

use super::filters::Filters;
use super::top::{parse_interval, parse_probe, parse_seconds};
use crate::workload::MetricRule;

/// Exit codes of `record`.
pub(super) const EXIT_CODES: &str = "\
Exit status with a command:
  that of the command; 128 and the number of the signal that ended it
  4    The command ended with 0, but the recording is incomplete (--strict only).
  125  faultscope's own error: nothing was run, or nothing could be recorded.
  126  The command cannot be run.
  127  The command was not found.
Exit status without a command:
  0  Done.
  1  An error, named on standard error.
  2  The command line is wrong.
  3  CAP_BPF, CAP_PERFMON or the kernel's BTF is missing; nothing was attached.
  4  Done, but events were lost, or a probe named with --probe is missing (--strict only).";

/// Longest recording that can be asked for, seconds: a year.
const MAX_DURATION: f64 = 365.0 * 86_400.0;

/// Arguments of `record`.
#[derive(Debug, Clone, Args)]
pub struct RecordArgs {
    /// Writes the recording here; by default faultscope-TIME.fsc in the current directory. Of several runs each gets
    /// its number before the extension. A file that exists is never overwritten.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Sets the interval in seconds, from 0.1 to 60.
    #[arg(short = 'd', long, value_name = "SEC", default_value = "1", value_parser = parse_interval)]
    pub interval: Duration,
    /// Ends the recording after so many seconds; a command is left to run on to its end.
    #[arg(long, value_name = "SEC", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Whose events are counted.
    #[command(flatten)]
    pub filters: Filters,
    /// Attaches this program as well, or ends if it cannot be attached and --strict is given; may be repeated.
    #[arg(long = "probe", value_name = "PROGRAM", value_parser = parse_probe)]
    pub probes: Vec<&'static str>,
    /// Runs the command so many times, from 1 to 1000, with a file for each run; with --alternate or
    /// --alternate-setup so many rounds of two.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), requires = "command")]
    pub repeat: Option<u32>,
    /// Runs this shell command as side B in turn with the command as side A, in the order A B B A.
    #[arg(
        long,
        value_name = "CMD B",
        requires = "command",
        conflicts_with = "alternate_setup"
    )]
    pub alternate: Option<String>,
    /// Runs the first of two shell commands before each run of side A and the second before each of side B; the
    /// command itself is the same. Order as with --alternate.
    #[arg(long, value_names = ["SETUP A", "SETUP B"], num_args = 2, requires = "command")]
    pub alternate_setup: Vec<String>,
    /// Stores a label of your own in the recording; may be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    pub labels: Vec<(String, String)>,
    /// Takes a figure from the command's output by an expression whose first group is a number, for output in no
    /// format faultscope knows; may be repeated. Without a direction compare gives no verdict on it.
    #[arg(long = "metric", value_name = "NAME[:UNIT][:higher|lower]=REGEX", value_parser = MetricRule::from_str, requires = "command")]
    pub metrics: Vec<MetricRule>,
    /// Ends with status 4 in place of 0 if events were lost, a probe named with --probe or a figure named with --metric
    /// is missing, or the recording broke off.
    #[arg(long)]
    pub strict: bool,
    /// Uses this compiled BPF object in place of the one built in.
    #[arg(long, value_name = "PATH")]
    pub bpf_object: Option<PathBuf>,
    /// The command to run, after "--", with its arguments. Without one the machine is recorded until --duration is
    /// over or Ctrl-C.
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    parse_seconds(text, "the duration", MAX_DURATION)
}

pub(super) fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.to_owned()))
        }
        _ => Err(format!("\"{text}\" is no KEY=VALUE, for example patch=v3")),
    }
}
