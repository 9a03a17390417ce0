//! The command line: types for clap and the checks that need no machine.
//!
//! Knows the names a user may type (views, fields, formats, programs), and nothing of what commands do with them.

mod bench;
mod compare;
mod doctor;
mod filters;
mod format;
mod import;
mod record;
mod report;
#[cfg(test)]
mod tests;
mod top;

pub use bench::{BenchArgs, BenchLoadArgs, BenchRequest};
pub use compare::CompareArgs;
pub use doctor::DoctorArgs;
pub use filters::Filters;
pub use import::{Choice, ImportArgs};
pub use record::RecordArgs;
pub use report::ReportArgs;
pub use top::{ColorWhen, TopArgs};

use clap::{Parser, Subcommand};

/// Page faults, mm locks and the LRU of a live kernel: who, where, how often, how long.
#[derive(Debug, Parser)]
#[command(
    name = "faultscope",
    version,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = EXIT_CODES
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses the process's own arguments; prints help or an error and ends the process where they ask for it.
    #[must_use]
    pub fn from_args() -> Self {
        Self::parse()
    }
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs built-in loads and shows what they and the kernel say, point by point; every point is a recorded run.
    #[command(after_help = bench::EXIT_CODES)]
    Bench(Box<BenchArgs>),
    /// Does the work of one point of bench.
    #[command(hide = true)]
    BenchLoad(BenchLoadArgs),
    /// Holds two sets of recorded runs against each other, with a verdict where the runs allow one.
    #[command(after_help = compare::EXIT_CODES)]
    Compare(Box<CompareArgs>),
    /// Shows what this kernel and this process allow, what is lost, and the exact fix.
    #[command(after_help = doctor::EXIT_CODES)]
    Doctor(DoctorArgs),
    /// Turns results that a workload printed into runs that compare can read.
    #[command(after_help = import::EXIT_CODES)]
    Import(ImportArgs),
    /// Prints what a recording holds, or a part of it.
    #[command(after_help = report::EXIT_CODES)]
    Report(ReportArgs),
    /// Shows faults, lock waits and LRU activity as they happen.
    #[command(after_help = EXIT_CODES)]
    Top(Box<TopArgs>),
    /// Records the machine, or the machine while a command runs, with the command's own result, into a file.
    #[command(after_help = record::EXIT_CODES)]
    Record(Box<RecordArgs>),
}

/// Exit codes of the commands that attach probes.
const EXIT_CODES: &str = "\
Exit status:
  0  Done.
  1  An error, named on standard error.
  2  The command line is wrong.
  3  CAP_BPF, CAP_PERFMON or the kernel's BTF is missing; nothing was attached.
  4  Finished, but events were lost, or a probe named with --probe is missing.";

/// Joins names as `a, b or c`.
fn choice(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [head @ .., last] => format!("{} or {last}", head.join(", ")),
    }
}
