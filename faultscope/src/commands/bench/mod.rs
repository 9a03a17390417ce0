//! `bench`: built-in loads over a sweep of points, each a recorded run, with a table that grows as they end.
//!
//! A bench is a row of [`BENCHES`]: its cases, the load, the probes its table needs, and the table's columns. The work
//! of a point is done by a process of its own (`bench-load`, the same binary), which `record` watches like any other
//! command; so a point is a recording as any, and its figures come from the model that `report` has.

mod accessed;
mod columns;
mod fault;
mod job;
mod load;
mod locks;
mod madvise;
mod measure;
mod mmap;
mod plan;
mod point;
mod scale;
mod suite;
mod sweep;
mod table;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::PathBuf;

pub use job::Job;
pub use load::load;
pub use plan::{Options, Style};
pub use suite::{NAME as SUITE, run as run_suite};
pub use sweep::run;

use crate::plan::Set;
use crate::workload::bench::BenchResult;
use point::Point;
use table::{Column, Section};

/// Every bench.
pub static BENCHES: &[&Bench] = &[
    &fault::FAULT,
    &madvise::MADVISE,
    &accessed::ACCESSED,
    &mmap::MMAP,
];

/// A bench: what it does and what it shows.
pub struct Bench {
    /// Name on the command line.
    pub name: &'static str,
    /// The question it settles, one sentence.
    pub settles: &'static str,
    /// What it can be run with.
    pub cases: &'static [Case],
    /// Memory of all members together, bytes, unless the user says otherwise.
    pub bytes: u64,
    /// Times the work is done within a point, likewise.
    pub rounds: u32,
    /// What it is in the suite.
    pub short: Short,
    /// Probes beside the core set.
    pub sets: &'static [Set],
    /// Figure of the result whose growth with the members is judged.
    pub rate: &'static str,
    /// Columns of the table that grows.
    live: &'static [Column],
    /// Tables at the end.
    sections: &'static [Section],
    /// Sentences below the tables, from all points.
    summary: Option<Summary>,
    /// Memory that a point may have, bytes, if its case is one of memory pressure.
    limit: Option<fn(&Job) -> Option<u64>>,
    /// The layout of `--style pft`, if the bench has it.
    pft: Option<Pft>,
}

/// Makes sentences of all points.
type Summary = fn(&[Point]) -> Vec<String>;

/// A bench at a size that takes seconds.
#[derive(Debug)]
pub struct Short {
    /// Cases.
    pub cases: &'static [&'static str],
    /// Memory of all members together, bytes.
    pub bytes: u64,
    /// Times the work is done within a point.
    pub rounds: u32,
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The work of a case.
pub trait Work: Sync {
    /// Does the work of a point; called in the process that `record` watches.
    ///
    /// # Errors
    /// Why there is no result.
    fn run(&self, job: &Job) -> Result<BenchResult, Stop>;
}

/// A case of a bench.
pub struct Case {
    /// Name on the command line.
    pub name: &'static str,
    /// What is done, one clause.
    pub what: &'static str,
    /// Run when no case is named.
    pub is_default: bool,
    /// Memory it needs for each byte of its size.
    pub memory: u64,
    /// What is done.
    pub work: &'static dyn Work,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A layout that another program's readers know.
struct Pft {
    header: &'static str,
    row: fn(&Point) -> Result<String, String>,
}

/// Why a point has no result.
#[derive(Debug)]
pub enum Stop {
    /// It cannot be run here; a clause for the user.
    Skip(String),
    /// It failed.
    Failed(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// The bench called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Bench> {
    BENCHES.iter().copied().find(|bench| bench.name == name)
}

/// Writes what there is to run.
///
/// # Errors
/// What `out` says.
pub fn list(out: &mut dyn Write) -> std::io::Result<()> {
    for bench in BENCHES {
        writeln!(out, "{}\n  {}", bench.name, bench.settles)?;
        let width = bench.cases.iter().map(|c| c.name.len()).max().unwrap_or(0);
        for case in bench.cases {
            let mark = if case.is_default { '*' } else { ' ' };
            writeln!(out, "  {mark} {:width$}  {}", case.name, case.what)?;
        }
    }
    writeln!(
        out,
        "{}\n  All of the above at small sizes, and one summary.",
        suite::NAME
    )?;
    writeln!(
        out,
        "* is run when no case is named; \"--case all\" runs all of them"
    )
}

/// A directory for the runs of a sweep that the user gave none.
fn default_directory(bench: &str, t_real_ns: u64) -> PathBuf {
    let time = super::record::compact_time(t_real_ns);
    format!("faultscope-bench-{bench}-{time}").into()
}
