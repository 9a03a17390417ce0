//! What watching faults costs, with faultscope and with its peers: throughput of a load with a tool attached against
//! the same load without, in pairs that take turns.
//!
//! Every tool is started, waited for, measured and stopped again for each pair, as a user would. A pair compares the
//! block under the tool with the mean of the bare blocks before and after it, which takes out a steady drift. The row
//! "nothing" starts a program that watches nothing: what the method itself makes of no difference.

mod load;
mod readme;
pub(crate) mod recording;
pub(super) mod stats;
mod table;
mod tool;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::Value;

use crate::proc::capture;
use load::{Block, Built, Driver, LOADS};
use stats::{Spread, interval, median};
use tool::{Counts, Running, Tool};

/// Readings of runs for each event; the least disturbed counts.
const READINGS: usize = 5;
/// Runs of a program for one event below which it has no line of its own.
const FEWEST_RUNS: f64 = 0.01;

/// How long and what to measure.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Pairs of each tool; six are the fewest with an interval
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pairs: u32,
    /// Pairs on the contended load, which needs about 100 where a few percent matter; --pairs without it
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    contended_pairs: Option<u32>,
    /// Length of a block in ms
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(u32).range(10..=10_000))]
    block: u32,
    /// Measures only the rows whose names contain this word; may be repeated
    #[arg(long, value_name = "WORD")]
    only: Vec<String>,
    /// Writes the tables between the marks in README.md
    #[arg(long)]
    write_readme: bool,
}

impl Options {
    /// Pairs for each load.
    fn pairs(&self) -> [u32; LOADS.len()] {
        [self.pairs, self.contended_pairs.unwrap_or(self.pairs)]
    }

    /// The command that was given, for whoever wants to repeat it.
    fn command(&self) -> String {
        let mut words = format!("cargo xtask bench overhead --pairs {}", self.pairs);
        if let Some(pairs) = self.contended_pairs {
            words += &format!(" --contended-pairs {pairs}");
        }
        words += &format!(" --block {}", self.block);
        for word in &self.only {
            words += &format!(" --only {word:?}");
        }
        words
    }

    fn wants(&self, tool: &Tool) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| tool.name.contains(word))
    }
}

/// What a tool did to one load.
#[derive(Debug, Clone, PartialEq, Default)]
struct Effect {
    /// Events for each ns of wall time, with the tool over without, one for each pair.
    throughput: Vec<f64>,
    /// The same for each ns of CPU time of the load.
    by_cpu: Vec<f64>,
    /// Added up from the kernel's own counts of the tool's programs.
    computed: Option<Computed>,
}

/// Runs of a tool's BPF programs for one event, and their time.
#[derive(Debug, Clone, PartialEq)]
struct Computed {
    runs: f64,
    /// Without what the statistics themselves take, ns an event.
    ns: f64,
    /// `ns` beside the bare event: 1 / (1 + share).
    throughput: f64,
    programs: Vec<Ran>,
}

/// Runs of one BPF program for one event.
#[derive(Debug, Clone, PartialEq)]
struct Ran {
    name: String,
    runs: f64,
    /// Of each run, without what the statistics themselves take.
    ns_a_run: f64,
}

impl Computed {
    /// Adds the programs up, the most time first; those that hardly run are left to the sum.
    fn new(ran: Vec<(String, f64, f64)>, own_ns: f64, bare_ns: f64) -> Self {
        let runs: f64 = ran.iter().map(|(_, runs, _)| runs).sum();
        let ns: f64 = ran.iter().map(|(_, _, ns)| ns).sum();
        let ns = (ns - runs * own_ns).max(0.0);
        let mut programs: Vec<Ran> = ran
            .into_iter()
            .filter(|(_, runs, _)| *runs >= FEWEST_RUNS)
            .map(|(name, runs, ns)| Ran {
                name,
                runs,
                ns_a_run: ns / runs - own_ns,
            })
            .collect();
        programs.sort_by(|a, b| (b.runs * b.ns_a_run).total_cmp(&(a.runs * a.ns_a_run)));
        Self {
            runs,
            ns,
            throughput: 1.0 / (1.0 + ns / bare_ns),
            programs,
        }
    }
}

/// One tool and all that was measured with it.
#[derive(Debug)]
struct Row {
    tool: Tool,
    effects: [Effect; LOADS.len()],
    /// Why the tool could not be measured, or not to the end.
    missing: Option<String>,
}

/// Everything the tables need.
#[derive(Debug)]
struct Measured {
    rows: Vec<Row>,
    /// Bare wall and CPU time of an event, ns: the medians.
    bare: [(f64, f64); LOADS.len()],
    /// Run-time statistics' own time for each run, ns, or why there are none.
    statistics: Result<f64, String>,
    command: String,
    kernel: String,
    date: String,
    versions: Vec<String>,
}

/// Builds faultscope and the load, measures and prints.
pub(crate) fn overhead(root: &Path, options: &Options) -> Result<()> {
    let Built { faultscope, load } = load::build(root)?;
    let mut tools = tool::all(&faultscope, &load, &attachable(&faultscope)?);
    tools.retain(|tool| options.wants(tool));
    if tools.is_empty() {
        bail!("no row has a name with one of the words of --only");
    }
    let mut driver = Driver::start(&load, options.block)?;
    let mut measured = Measured {
        rows: tools.into_iter().map(Row::new).collect(),
        bare: [(0.0, 0.0); LOADS.len()],
        statistics: driver.empty_run_ns(),
        command: options.command(),
        kernel: kernel()?,
        date: date()?,
        versions: tool::versions(),
    };
    measure(&mut measured, &mut driver, options)?;
    println!("counting runs for each event");
    compute(&mut measured, &mut driver)?;
    drop(driver);
    print!("\n{}", table::text(&measured));
    if options.write_readme {
        readme::write(&root.join("README.md"), &table::markdown(&measured))?;
        println!("\nwrote the tables into README.md");
    }
    Ok(())
}

fn kernel() -> Result<String> {
    Ok(capture(Command::new("uname").arg("-r"))?.trim().to_owned())
}

fn date() -> Result<String> {
    let date = capture(Command::new("date").args(["-u", "+%-d %B %Y"]))?;
    Ok(date.trim().to_owned())
}

/// Programs that this kernel and this process allow, by the product's own word.
fn attachable(binary: &Path) -> Result<Vec<String>> {
    let report = capture(Command::new(binary).args(["doctor", "--json"]))?;
    let report: Value = serde_json::from_str(&report).context("reading what doctor printed")?;
    let programs = report["programs"].as_array().into_iter().flatten();
    Ok(programs
        .filter(|program| program["attached"] == true)
        .filter_map(|program| program["name"].as_str().map(str::to_owned))
        .collect())
}

/// Runs `bare, tool, bare, next tool, …` in rounds, each round beginning with another tool.
fn measure(measured: &mut Measured, driver: &mut Driver, options: &Options) -> Result<()> {
    let pairs = options.pairs();
    let rounds = pairs.into_iter().max().unwrap_or(0);
    let count = measured.rows.len();
    let mut bare: [Vec<Block>; LOADS.len()] = [const { Vec::new() }; LOADS.len()];
    for round in 0..rounds {
        println!("round {} of {rounds}", round + 1);
        let loads: Vec<usize> = (0..LOADS.len())
            .filter(|&load| round < pairs[load])
            .collect();
        for &load in &loads {
            bare[load].push(driver.block(load)?);
        }
        for turn in 0..count {
            let row = &mut measured.rows[(turn + round as usize) % count];
            if row.missing.is_some() {
                continue;
            }
            let blocks = row.under(|_| {
                let blocks = loads.iter().map(|&load| driver.block(load));
                blocks.collect::<Result<Vec<Block>>>()
            });
            let with = match blocks {
                Ok(blocks) => blocks?,
                Err(reason) => {
                    println!("  {}: {reason}", row.tool.name);
                    row.missing = Some(reason);
                    continue;
                }
            };
            for (&load, with) in loads.iter().zip(with) {
                let after = driver.block(load)?;
                let before = bare[load].last().copied().unwrap_or(after);
                row.effects[load].add(before, with, after);
                bare[load].push(after);
            }
        }
    }
    for (times, blocks) in measured.bare.iter_mut().zip(&bare) {
        let of = |time: fn(&Block) -> f64| {
            let values: Vec<f64> = blocks.iter().map(time).collect();
            median(&values).unwrap_or(f64::NAN)
        };
        *times = (of(Block::wall_ns), of(Block::cpu_ns));
    }
    Ok(())
}

/// Counts the runs of each tool's BPF programs and adds their time up.
fn compute(measured: &mut Measured, driver: &mut Driver) -> Result<()> {
    let Ok(own_ns) = measured.statistics else {
        return Ok(());
    };
    let bare = measured.bare;
    driver.statistics(true)?;
    for row in measured.rows.iter_mut().filter(|row| row.missing.is_none()) {
        let counted = row.under(|running| {
            let names = driver.names()?;
            (0..LOADS.len())
                .map(|load| least(running, driver, load, &names))
                .collect::<Result<Vec<_>>>()
        });
        let counted = match counted {
            Ok(counted) => counted?,
            Err(reason) => {
                row.missing = Some(reason);
                continue;
            }
        };
        for ((effect, ran), bare) in row.effects.iter_mut().zip(counted).zip(bare) {
            effect.computed = ran.map(|ran| Computed::new(ran, own_ns, bare.1));
        }
    }
    driver.statistics(false)
}

/// Name, runs and ns for each event, of each program in the block with the fewest runs, as other processes only ever
/// add.
fn least(
    running: &Running,
    driver: &mut Driver,
    load: usize,
    names: &BTreeMap<u64, String>,
) -> Result<Option<Vec<(String, f64, f64)>>> {
    let mut least: Option<Vec<(String, f64, f64)>> = None;
    let runs = |reading: &[(String, f64, f64)]| -> f64 { reading.iter().map(|r| r.1).sum() };
    for _ in 0..READINGS {
        let Some(before) = running.programs() else {
            return Ok(None);
        };
        let block = driver.block(load)?;
        let Some(after) = running.programs() else {
            return Ok(None);
        };
        let each = |value: u64| value as f64 / block.events as f64;
        let reading: Vec<_> = after
            .since(&before)
            .into_iter()
            .map(|(id, Counts { runs, ns })| {
                let name = names.get(&id).cloned();
                let name = name.unwrap_or_else(|| format!("program {id}"));
                (name, each(runs), each(ns))
            })
            .collect();
        least = Some(match least {
            Some(before) if runs(&before) <= runs(&reading) => before,
            _ => reading,
        });
    }
    Ok(least)
}

impl Row {
    fn new(tool: Tool) -> Self {
        Self {
            tool,
            effects: Default::default(),
            missing: None,
        }
    }

    /// Does `work` while the tool runs; a sentence says why it does not run.
    fn under<T>(&self, work: impl FnOnce(&Running) -> T) -> Result<T, String> {
        let running = self.tool.start()?;
        let done = work(&running);
        running.stop()?;
        Ok(done)
    }
}

impl Effect {
    fn add(&mut self, before: Block, with: Block, after: Block) {
        let ratio = |time: fn(&Block) -> f64| {
            let rate = |block: &Block| 1.0 / time(block);
            2.0 * rate(&with) / (rate(&before) + rate(&after))
        };
        self.throughput.push(ratio(Block::wall_ns));
        self.by_cpu.push(ratio(Block::cpu_ns));
    }

    fn throughput(&self) -> Option<Spread> {
        interval(&self.throughput)
    }

    fn by_cpu(&self) -> Option<Spread> {
        interval(&self.by_cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_drift_is_no_effect() {
        let block = |events| Block {
            events,
            wall: 1000,
            cpu: 500,
        };
        let mut effect = Effect::default();
        effect.add(block(80), block(90), block(100));
        assert!((effect.throughput[0] - 1.0).abs() < 1e-9);
        effect.add(block(100), block(50), block(100));
        assert!((effect.by_cpu[1] - 0.5).abs() < 1e-9);
        // Two pairs give no interval.
        assert_eq!(effect.throughput(), None);
    }

    #[test]
    fn programs_add_up_without_the_statistics() {
        let ran = |name: &str, runs, ns| (name.to_owned(), runs, ns);
        let ran = vec![
            ran("seldom", 0.001, 1.0),
            ran("a", 1.0, 50.0),
            ran("b", 2.0, 140.0),
        ];
        let computed = Computed::new(ran, 30.0, 1000.0);
        assert!((computed.ns - (191.0 - 30.0 * 3.001)).abs() < 1e-9);
        let programs: Vec<_> = computed.programs.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(programs, ["b", "a"]);
        assert!((computed.programs[0].ns_a_run - 40.0).abs() < 1e-9);
    }

    #[test]
    fn a_missing_peer_is_a_row_with_a_reason() {
        let row = Row::new(Tool::absent("no-such-peer"));
        let reason = row.under(|_| ()).expect_err("there is no such program");
        assert!(
            reason.contains("not installed") && reason.contains("cargo xtask setup --bench"),
            "{reason}"
        );
    }
}
