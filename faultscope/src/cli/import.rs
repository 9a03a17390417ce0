//! Arguments of `import`.

use std::path::PathBuf;
use std::str::FromStr as _;

use clap::{Args, ValueEnum};

use super::record::parse_label;
use crate::workload::{Direction, Format, MetricRule};

/// Exit codes of `import`.
pub(super) const EXIT_CODES: &str = "\
Exit status:
  0  Everything became runs.
  1  A file was refused, or could not be read or written; standard error says why. Others were imported.
  2  The command line is wrong.
  4  Imported, but with the reservations named on standard error.";

/// Which way figures get better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

impl From<Better> for Direction {
    fn from(better: Better) -> Self {
        match better {
            Better::Higher => Self::Higher,
            Better::Lower => Self::Lower,
        }
    }
}

/// Arguments of `import`.
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// Text to import; "-" reads standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Writes the runs into this directory, and makes it if it is not there.
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub output: PathBuf,
    /// Takes the text for this format: auto, sysbench, pft, time, bench, will-it-scale, kernbench, stress-ng, mmtests,
    /// lkp, reaim, perf-lock, perf-stat or table.
    #[arg(long, value_name = "FORMAT", default_value = "auto", value_parser = parse_format)]
    pub format: Choice,
    /// Takes a figure by an expression whose first group is a number; may be repeated.
    #[arg(long = "metric", value_name = "NAME[:UNIT][:higher|lower]=REGEX", value_parser = MetricRule::from_str)]
    pub metrics: Vec<MetricRule>,
    /// Adds a label to every run; may be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    pub labels: Vec<(String, String)>,
    /// Names the values of a table whose rows are keys.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Gives the unit of a table's values where the table does not.
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<String>,
    /// Says which way a table's values get better where the table does not.
    #[arg(long, value_name = "WAY")]
    pub direction: Option<Better>,
}

/// A format, or what fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The one format that fits.
    Auto,
    /// This one.
    Only(Format),
}

fn parse_format(name: &str) -> Result<Choice, String> {
    if name == "auto" {
        return Ok(Choice::Auto);
    }
    name.parse().map(Choice::Only)
}
