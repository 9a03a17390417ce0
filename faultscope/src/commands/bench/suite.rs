//! `bench suite`: every bench at a small size, one after the other, and one summary.

use std::io::Write;

use anyhow::Context as _;

use super::default_directory;
use super::plan::Options;
use super::point::Point;
use super::scale::efficiency;
use super::sweep::{Swept, sweep};
use crate::host::clock;
use crate::run::Signals;
use crate::units::format_si;

/// Its name on the command line.
pub const NAME: &str = "suite";

/// Statuses of sweeps from the worst on; any other is that of a signal, which ends the suite.
const WORST_FIRST: [u8; 4] = [1, 5, 4, 0];

/// Makes the sweeps of `all` benches, each in a directory of its own, and sums them up; the status to end with.
///
/// # Errors
/// As [`super::run`]; the sweeps made before are kept.
pub fn run(all: &[Options], out: &mut dyn Write, err: &mut dyn Write) -> anyhow::Result<u8> {
    // Before any thread: all of them must leave these signals to us.
    let mut signals = Signals::take().context("taking over signals")?;
    let default = default_directory(NAME, clock::realtime_ns());
    let mut swept: Vec<(&Options, Swept)> = Vec::new();
    for options in all {
        let bench = options.bench;
        let directory = options.output.clone().unwrap_or_else(|| default.clone());
        let options_here = Options {
            output: Some(directory.join(bench.name)),
            ..options.clone()
        };
        if !swept.is_empty() {
            writeln!(out)?;
        }
        writeln!(out, "{}: {}", bench.name, bench.settles)?;
        let one = sweep(&options_here, &mut signals, out, err)?;
        let is_stopped = one.is_stopped();
        swept.push((options, one));
        if is_stopped {
            break;
        }
    }
    writeln!(out, "\nSummary")?;
    writeln!(
        out,
        "{:10}{:22} {:>7} {:>10} {:14} {:>10}",
        "Bench", "Case", "Threads", "Rate", "", "efficiency"
    )?;
    for (options, one) in &swept {
        if one.points.is_empty() {
            writeln!(out, "{:10}no point was made", options.bench.name)?;
        }
        for point in &one.points {
            writeln!(out, "{}", row(point, &one.points))?;
        }
    }
    out.flush()?;
    let all: Vec<u8> = swept.iter().map(|(_, one)| one.status()).collect();
    Ok(status(&all))
}

/// The row of a point: its rate, and its efficiency against the fewest members of its series.
fn row(point: &Point, all: &[Point]) -> String {
    let bench = point.job.bench;
    let shown = |n: Option<f64>, format: fn(f64) -> String| n.map_or("-".to_owned(), format);
    format!(
        "{:10}{:22} {:>7} {:>10} {:14} {:>10}",
        bench.name,
        point.job.series(),
        point.job.members,
        shown(point.rate(), format_si),
        bench.rate,
        shown(efficiency(point, all), |e| format!("{e:.2}")),
    )
}

/// The worst of several statuses.
fn status(all: &[u8]) -> u8 {
    let signal = all.iter().find(|status| !WORST_FIRST.contains(status));
    let worst = || WORST_FIRST.iter().find(|worst| all.contains(worst));
    signal.or_else(worst).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_status_is_the_suites() {
        for (all, expected) in [
            (&[0, 0][..], 0),
            (&[0, 4, 5], 5),
            (&[5, 1, 0], 1),
            (&[4, 0, 130], 130),
            (&[], 0),
        ] {
            assert_eq!(status(all), expected, "{all:?}");
        }
    }
}
