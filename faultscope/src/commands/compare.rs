//! `compare`: two sets of recorded runs against each other.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;

use crate::compare::observed::Observed;
use crate::compare::render::{Layout, write};
use crate::compare::{Options, Outcome, Report, load};
use crate::error::Failure;

/// What `compare` is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// Files and directories of the side before.
    pub before: Vec<PathBuf>,
    /// Those of the side after; empty if the first side is held against itself.
    pub after: Vec<PathBuf>,
    /// Those of runs that differ in nothing; may be empty.
    pub floor: Vec<PathBuf>,
    /// How to compare.
    pub options: Options,
    /// How to write it.
    pub layout: Layout,
    /// Whether the absence of a verdict is told by the exit status.
    pub is_verdict_required: bool,
}

/// Compares, and writes the report to `out`.
///
/// # Errors
/// [`Failure::Usage`] for files that cannot be read or do not go together; what `out` refused.
pub fn run(request: &Request, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let before = load::side(&request.before)?;
    let mut options = request.options.clone();
    // The halves are the floor themselves.
    options.is_halved = request.after.is_empty();
    options.is_aa &= !options.is_halved;
    let sides = if request.after.is_empty() {
        halves(before)?
    } else {
        [before, load::side(&request.after)?]
    };
    let report = Report::above(sides, load::side(&request.floor)?, options)?;
    write(&report, request.layout, out).context("writing the comparison")?;
    Ok(report.outcome(request.is_verdict_required))
}

/// Every other run of one side against the rest.
fn halves(runs: Vec<Observed>) -> Result<[Vec<Observed>; 2], Failure> {
    if runs.len() < 2 {
        return Err(Failure::Usage(
            "--aa halves the runs of a side, and there is only one".to_owned(),
        ));
    }
    let mut sides = [Vec::new(), Vec::new()];
    for (i, run) in runs.into_iter().enumerate() {
        sides[i % 2].push(run);
    }
    Ok(sides)
}
