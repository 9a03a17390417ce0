//! What a parser finds in a text, and why it refuses one.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::metric::Metric;

/// A format of workload output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// sysbench 0.4, 0.5, 1.0 and later.
    Sysbench,
    /// The page-fault test, 2004 to today.
    Pft,
    /// GNU time and the shells' own.
    Time,
    /// The built-in benches.
    Bench,
    /// will-it-scale: its table, or one binary.
    WillItScale,
    /// kernbench of any version.
    Kernbench,
    /// stress-ng's metrics, as text or YAML.
    StressNg,
    /// A table of compare-mmtests.
    Mmtests,
    /// A table that LKP mails.
    Lkp,
    /// reaim.
    Reaim,
    /// `perf lock contention`.
    PerfLock,
    /// `perf stat`.
    PerfStat,
    /// The general table.
    Table,
    /// Expressions of the user's own.
    Rules,
}

impl Format {
    /// Every format that a text can have, in the order they are tried.
    pub const ALL: [Self; 13] = [
        Self::Sysbench,
        Self::Pft,
        Self::Time,
        Self::Bench,
        Self::WillItScale,
        Self::Kernbench,
        Self::StressNg,
        Self::Mmtests,
        Self::Lkp,
        Self::Reaim,
        Self::PerfLock,
        Self::PerfStat,
        Self::Table,
    ];

    /// Name, as `--format` takes it and metrics carry it.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Sysbench => "sysbench",
            Self::Pft => "pft",
            Self::Time => "time",
            Self::Bench => "bench",
            Self::WillItScale => "will-it-scale",
            Self::Kernbench => "kernbench",
            Self::StressNg => "stress-ng",
            Self::Mmtests => "mmtests",
            Self::Lkp => "lkp",
            Self::Reaim => "reaim",
            Self::PerfLock => "perf-lock",
            Self::PerfStat => "perf-stat",
            Self::Table => "table",
            Self::Rules => "regex",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|f| f.id() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.map(Self::id).to_vec();
            format!(
                "there is no format \"{name}\"; formats are {}",
                names.join(", ")
            )
        })
    }
}

/// Figures measured together: one result of one configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// Format it was found in.
    pub format: Format,
    /// Column of a table that it stands in: what is compared.
    pub variant: Option<String>,
    /// Host that the text names.
    pub host: Option<String>,
    /// Size of the pages faulted, bytes, where the figures give it.
    pub page_size: Option<u64>,
    /// Exit status of the command, where the text tells one that is not 0.
    pub exit_status: Option<i32>,
    /// The figures.
    pub metrics: Vec<Metric>,
}

impl Measurement {
    /// Figures that rules took.
    #[must_use]
    pub const fn of_rules(metrics: Vec<Metric>) -> Self {
        Self::new(Format::Rules, metrics)
    }

    /// A measurement of which only the figures are known.
    pub(super) const fn new(format: Format, metrics: Vec<Metric>) -> Self {
        Self {
            format,
            variant: None,
            host: None,
            page_size: None,
            exit_status: None,
            metrics,
        }
    }
}

/// What a text holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Measurements, in the order of the text; a repeated one stands as often as it was measured.
    pub measurements: Vec<Measurement>,
    /// A sentence for each result that was there and was not taken, or was taken with a reservation.
    pub reasons: Vec<String>,
}

/// Why a text is refused as a whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No format fits.
    #[error(
        "this is no output of a workload that is known, and no table; name its format with --format to see what is missing, \
         or take figures with --metric NAME=REGEX"
    )]
    NotRecognised,
    /// The format that was asked for does not fit.
    #[error("there is no {0} result in it")]
    NotThis(Format),
    /// It can be read in two ways.
    #[error("ambiguous: {0}")]
    Ambiguous(String),
    /// A line is damaged or cut off.
    #[error("line {line}: {reason}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The result stands there, and is none.
    #[error("{0}")]
    Invalid(String),
}

/// What a parser says of a text: `None` if its format is not there.
pub(super) type Outcome = Option<Result<Found, Refusal>>;

/// Measurements that make one run: each figure of each configuration at most once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunSet {
    /// Column of a table, if they come from one.
    pub variant: Option<String>,
    /// Which repetition it is, from 1.
    pub repetition: usize,
    /// Host that the text names.
    pub host: Option<String>,
    /// Size of the pages faulted, bytes, where the figures give it.
    pub page_size: Option<u64>,
    /// Exit status of the command, where the text tells one that is not 0.
    pub exit_status: Option<i32>,
    /// The figures.
    pub metrics: Vec<Metric>,
}

/// Distributes measurements over runs.
///
/// A run is what one observation of everything looks like: the first measurement of each configuration goes to the
/// first run of its variant, a repeated one to the second, and so on.
#[must_use]
pub fn runs(found: Vec<Measurement>) -> Vec<RunSet> {
    let mut runs: Vec<RunSet> = Vec::new();
    let mut places: BTreeMap<(Option<String>, usize), usize> = BTreeMap::new();
    let mut seen: BTreeMap<(Option<String>, String), usize> = BTreeMap::new();
    for measurement in found {
        let Measurement {
            format: _,
            variant,
            host,
            page_size,
            exit_status,
            metrics,
        } = measurement;
        for metric in metrics {
            let count = seen
                .entry((variant.clone(), metric.identity()))
                .or_default();
            *count += 1;
            let place = *places.entry((variant.clone(), *count)).or_insert_with(|| {
                runs.push(RunSet {
                    variant: variant.clone(),
                    repetition: *count,
                    ..RunSet::default()
                });
                runs.len() - 1
            });
            let run = &mut runs[place];
            run.host = run.host.take().or_else(|| host.clone());
            run.page_size = run.page_size.or(page_size);
            run.exit_status = run.exit_status.or(exit_status);
            run.metrics.push(metric);
        }
    }
    runs
}
