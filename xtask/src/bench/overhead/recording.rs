//! What recording adds to watching: `record` against `top` with the same programs, in pairs that take turns.
//!
//! Each tool is started, awaited, measured for a block and stopped again, with bare blocks around it, as in
//! `bench overhead`. `top` stands in each round twice: what the method makes of no difference. Where that noise is
//! larger than the bar, the CPU time of both tools says more: taken whole from the CPU of the load, it is the most that
//! they can cost it beside their programs, which are the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Args;

use super::load::{self, Built, Driver, LOADS};
use super::stats::{Spread, interval, median};
use super::tool::Tool;
use super::{Effect, Row, date, kernel};
use crate::proc::{capture, run};

/// Percentage points of throughput that recording may add to the overhead of `top`.
const BAR: f64 = 1.0;
/// The load that is measured on: in the other one the noise is far above the bar.
const FAULTS: usize = 0;
/// Places of the tools in their rows.
const TOP: usize = 0;
const RECORD: usize = 1;
const AGAIN: usize = 2;

/// How long to measure.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Pairs; six are the fewest with an interval
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pairs: u32,
    /// Length of a block in ms; a tool reads once a second
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(100..=10_000))]
    block: u32,
    /// Seconds in which the CPU time of each tool is measured under load
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=600))]
    own: u32,
}

/// Everything that is printed.
#[derive(Debug)]
struct Measured {
    rows: Vec<Row>,
    /// Programs attached by `record`, and named to `top`.
    programs: usize,
    /// CPU time of `top` and `record` for wall time, in percent of one CPU.
    own: [f64; 2],
    /// The same of `record` by its own recording.
    told: f64,
    heading: String,
}

/// Builds faultscope and the load, measures and prints.
pub(crate) fn record(root: &Path, options: &Options) -> Result<()> {
    let Built { faultscope, load } = load::build(root)?;
    let files = Files::new()?;
    let programs = attached(&faultscope, &files)?;
    let mut driver = Driver::start(&load, options.block)?;
    let mut measured = Measured {
        rows: tools(&faultscope, &files, &programs)
            .into_iter()
            .map(Row::new)
            .collect(),
        programs: programs.len(),
        own: [f64::NAN; 2],
        told: f64::NAN,
        heading: format!(
            "kernel {}, {}; cargo xtask bench record --pairs {} --block {} --own {}",
            kernel()?,
            date()?,
            options.pairs,
            options.block,
            options.own
        ),
    };
    measure(&mut measured.rows, &mut driver, &files, options.pairs)?;
    println!("measuring the tools' own CPU time");
    for tool in [TOP, RECORD] {
        files.clear();
        measured.own[tool] = own(&measured.rows[tool], &mut driver, options)?;
    }
    measured.told = told(&files.recording())?;
    drop(driver);
    print!("\n{}", text(&measured));
    Ok(())
}

/// A directory for recordings, which goes with the value.
struct Files(PathBuf);

impl Files {
    fn new() -> Result<Self> {
        let name = format!("faultscope-bench-record-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir(&directory).context("making a directory for recordings")?;
        Ok(Self(directory))
    }

    fn recording(&self) -> PathBuf {
        self.0.join("run.fsc")
    }

    /// Removes the recording, which is never overwritten.
    fn clear(&self) {
        // Before the first there is none.
        let _gone = fs::remove_file(self.recording());
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What is left of it lies in the directory for temporary files.
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// The programs that `record` attaches here, by its own recording.
fn attached(binary: &Path, files: &Files) -> Result<Vec<String>> {
    run(Command::new(binary)
        .arg("record")
        .arg("-o")
        .arg(files.recording())
        .args(["-d", "0.2", "--duration", "0.4"])
        .stderr(Stdio::null()))?;
    let programs = query(
        &files.recording(),
        "SELECT DISTINCT program FROM probe WHERE is_attached ORDER BY position",
    )?;
    Ok(programs.lines().map(str::to_owned).collect())
}

fn query(file: &Path, sql: &str) -> Result<String> {
    capture(Command::new("sqlite3").arg("-readonly").arg(file).arg(sql))
}

fn tools(binary: &Path, files: &Files, programs: &[String]) -> [Tool; 3] {
    let words = |words: &[&str]| words.iter().map(|&w| w.to_owned()).collect::<Vec<_>>();
    let named = programs
        .iter()
        .flat_map(|program| ["--probe".to_owned(), program.clone()]);
    let top: Vec<String> = words(&["top", "--batch", "--view", "sites"])
        .into_iter()
        .chain(named)
        .collect();
    let mut record = words(&["record", "-o"]);
    record.push(files.recording().to_string_lossy().into_owned());
    [
        Tool::new("top", binary, top.clone()),
        Tool::new("record", binary, record),
        Tool::new("top again (A/A)", binary, top),
    ]
}

/// Runs `bare, tool, bare, next tool, …` in rounds, each round beginning with another tool.
fn measure(rows: &mut [Row], driver: &mut Driver, files: &Files, rounds: u32) -> Result<()> {
    let count = rows.len();
    let mut before = driver.block(FAULTS)?;
    for round in 0..rounds {
        println!("round {} of {rounds}", round + 1);
        for turn in 0..count {
            let row = &mut rows[(turn + round as usize) % count];
            files.clear();
            let with = row
                .under(|_| driver.block(FAULTS))
                .map_err(|reason| anyhow::anyhow!("{}: {reason}", row.tool.name))??;
            let after = driver.block(FAULTS)?;
            row.effects[FAULTS].add(before, with, after);
            before = after;
        }
    }
    Ok(())
}

/// CPU time of a tool for wall time while the load runs, in percent of one CPU.
fn own(row: &Row, driver: &mut Driver, options: &Options) -> Result<f64> {
    let ratio = row
        .under(|running| -> Result<f64> {
            let (begin, cpu) = (Instant::now(), running.cpu_ns()?);
            while begin.elapsed() < Duration::from_secs(options.own.into()) {
                driver.block(FAULTS)?;
            }
            let wall = begin.elapsed().as_secs_f64() * 1e9;
            Ok(running.cpu_ns()?.saturating_sub(cpu) as f64 / wall)
        })
        .map_err(|reason| anyhow::anyhow!("{}: {reason}", row.tool.name))??;
    Ok(100.0 * ratio)
}

/// The recorder's CPU time by its own recording, in percent of one CPU.
fn told(file: &Path) -> Result<f64> {
    let ratio = query(
        file,
        "SELECT 100.0 * sum(own_cpu_ns) / sum(interval_ns) FROM interval WHERE own_cpu_ns NOT NULL",
    )?;
    ratio
        .trim()
        .parse()
        .with_context(|| format!("the recording says \"{}\" of its cost", ratio.trim()))
}

/// By how many percentage points the overhead of `with` is above that of `than`, pair by pair.
fn points(with: &Effect, than: &Effect) -> Vec<f64> {
    let pairs = with.throughput.iter().zip(&than.throughput);
    pairs.map(|(with, than)| 100.0 * (than - with)).collect()
}

fn verdict(spread: Option<Spread>) -> &'static str {
    match spread {
        Some(s) if s.high <= BAR => "PASS",
        Some(s) if s.low > BAR => "MISS",
        _ => "not decided: the interval holds the bar",
    }
}

fn text(measured: &Measured) -> String {
    let Measured {
        rows,
        programs,
        own,
        ..
    } = measured;
    let effect = |row: usize| &rows[row].effects[FAULTS];
    let spread = |values: &[f64]| match interval(values) {
        Some(s) => format!("{:.3} [{:.3}, {:.3}]", s.median, s.low, s.high),
        None => format!("{:.3} (too few pairs)", median(values).unwrap_or(f64::NAN)),
    };
    let mut text = format!(
        "{}\n{}, {programs} programs attached by each tool; {} pairs\n\
         throughput with the tool / without, median [95 % interval by the sign test]\n",
        measured.heading,
        LOADS[FAULTS].title,
        effect(TOP).throughput.len()
    );
    for row in rows {
        let values = &row.effects[FAULTS].throughput;
        text += &format!("  {:<16} {}\n", row.tool.name, spread(values));
    }
    let added = points(effect(RECORD), effect(TOP));
    let nothing = points(effect(AGAIN), effect(TOP));
    let signed = |values: &[f64]| match interval(values) {
        Some(s) => format!("{:+.2} [{:+.2}, {:+.2}]", s.median, s.low, s.high),
        None => format!("{:+.2}", median(values).unwrap_or(f64::NAN)),
    };
    let more = own[RECORD] - own[TOP];
    text += &format!(
        "percentage points that record adds to the overhead of top (bar {BAR})\n  \
         paired  {}: {}\n  \
         A/A     {}, the same of top against itself\n  \
         own CPU {more:+.2}, if the load's CPU gives all of it: {}\n",
        signed(&added),
        verdict(interval(&added)),
        signed(&nothing),
        if more <= BAR { "PASS" } else { "MISS" },
    );
    text + &format!(
        "own CPU time: top {:.2} %, record {:.2} % of one CPU, by the recording {:.2} %\n",
        own[TOP], own[RECORD], measured.told
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(record: f64) -> Measured {
        let rows = [("top", 0.95), ("record", record), ("again", 0.95)].map(|(name, ratio)| {
            let mut row = Row::new(Tool::new(name, Path::new("none"), Vec::new()));
            row.effects[FAULTS].throughput = vec![ratio; 6];
            row
        });
        Measured {
            rows: rows.into(),
            programs: 20,
            own: [0.25, 0.5],
            told: 0.48,
            heading: "kernel 6.12".to_owned(),
        }
    }

    #[test]
    fn what_recording_adds_is_held_against_the_bar() {
        for (record, words) in [
            (0.945, "+0.50 [+0.50, +0.50]: PASS"),
            (0.90, "+5.00 [+5.00, +5.00]: MISS"),
        ] {
            let text = text(&measured(record));
            for part in [
                words,
                "A/A     +0.00",
                "own CPU +0.25, if the load's CPU gives all of it: PASS",
                "by the recording 0.48 %",
                "20 programs",
            ] {
                assert!(text.contains(part), "{part}\n{text}");
            }
        }
    }

    #[test]
    fn noise_decides_nothing() {
        let mut measured = measured(0.95);
        measured.rows[RECORD].effects[FAULTS].throughput = vec![0.8, 0.9, 1.0, 1.1, 0.85, 1.05];
        assert!(text(&measured).contains("not decided"));
        measured.rows[RECORD].effects[FAULTS].throughput.truncate(2);
        assert!(text(&measured).contains("too few pairs"));
    }
}
