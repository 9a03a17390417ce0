//! `bench fault` against a loop in C that touches the same pages, and with the core probes against without any.
//!
//! The runs of a pair follow each other at once, and the order turns round from pair to pair.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use super::overhead::stats::{Spread, interval, median};
use crate::proc::{capture, name, run};

/// Share of the other's rate that the interval must reach above.
const BAR: f64 = 0.98;
/// The loop.
const SOURCE: &str = include_str!("touch.c");

/// What to measure.
#[derive(Args)]
pub(crate) struct Options {
    /// Pairs of each comparison
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(6..=1000))]
    pairs: u32,
    /// Memory touched, MiB
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    mib: u64,
    /// Times a run touches it
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
}

/// Pages a second, by wall time and by CPU time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rates([f64; 2]);

/// Builds the release binary and the loop, measures, and prints ratios.
pub(crate) fn touch(root: &Path, options: &Options) -> Result<()> {
    run(Command::new("cargo")
        .args(["build", "--release", "--quiet", "--package", "faultscope"])
        .current_dir(root))?;
    let programs = Programs::new(root, options)?;
    println!(
        "{} MiB touched {} times by one thread; rate over the other's, median of {} pairs [95 % interval]",
        options.mib, options.rounds, options.pairs
    );
    let c = || programs.c();
    let bare = || programs.bench("--bare");
    let core = || programs.bench("--core");
    compare("C loop over itself (A/A)", None, options.pairs, &c, &c)?;
    compare(
        "bench fault --bare over the C loop",
        Some(BAR),
        options.pairs,
        &bare,
        &c,
    )?;
    compare(
        "bench fault --core over --bare",
        Some(BAR),
        options.pairs,
        &core,
        &bare,
    )?;
    Ok(())
}

struct Programs {
    faultscope: PathBuf,
    loop_in_c: PathBuf,
    directory: PathBuf,
    bytes: u64,
    rounds: u32,
}

impl Programs {
    fn new(root: &Path, options: &Options) -> Result<Self> {
        let directory = root.join("target/bench-touch");
        std::fs::create_dir_all(&directory).context("making a directory for the loop")?;
        let (source, loop_in_c) = (directory.join("touch.c"), directory.join("touch"));
        std::fs::write(&source, SOURCE).context("writing the loop")?;
        run(Command::new("cc")
            .args(["-O2", "-Wall", "-o"])
            .args([&loop_in_c, &source]))?;
        Ok(Self {
            faultscope: root.join("target/release/faultscope"),
            loop_in_c,
            directory,
            bytes: options.mib << 20,
            rounds: options.rounds,
        })
    }

    fn c(&self) -> Result<Rates> {
        let mut command = Command::new(&self.loop_in_c);
        command.args([self.bytes.to_string(), self.rounds.to_string()]);
        let text = capture(&mut command)?;
        let rates = text
            .split_once(' ')
            .and_then(|(wall, cpu)| Some(Rates([wall.parse().ok()?, cpu.trim().parse().ok()?])));
        rates.with_context(|| format!("{} printed no rates: {text}", name(&command)))
    }

    /// One point of `bench fault`, as its user sees it.
    fn bench(&self, probes: &str) -> Result<Rates> {
        let runs = self.directory.join("runs");
        let mut command = Command::new(&self.faultscope);
        command
            .args(["bench", "fault", "--case", "anon", "--threads", "1", probes])
            .args(["--size", &self.bytes.to_string()])
            .args(["--rounds", &self.rounds.to_string(), "-o"])
            .arg(&runs)
            .stderr(Stdio::null());
        let output = command
            .output()
            .with_context(|| format!("starting {}", name(&command)))?;
        std::fs::remove_dir_all(&runs).context("removing the runs")?;
        // 4: events of other programs were lost.
        if !matches!(output.status.code(), Some(0 | 4)) {
            bail!("{} failed ({})", name(&command), output.status);
        }
        let text = String::from_utf8_lossy(&output.stdout);
        row(&text).with_context(|| format!("{} printed no row: {text}", name(&command)))
    }
}

/// `fault/wsec` and `flt/cpu/s` of the first row.
fn row(text: &str) -> Option<Rates> {
    let row = text.lines().find(|line| line.starts_with("anon "))?;
    let mut words = row.split_whitespace().rev();
    let wall = words.next()?.parse().ok()?;
    let cpu = words.next()?.parse().ok()?;
    Some(Rates([wall, cpu]))
}

/// Measures pairs and prints the ratios of the first to the second.
fn compare(
    what: &str,
    bar: Option<f64>,
    pairs: u32,
    first: &dyn Fn() -> Result<Rates>,
    second: &dyn Fn() -> Result<Rates>,
) -> Result<()> {
    let mut ratios: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    let mut rates: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for pair in 0..pairs {
        let (a, b) = if pair % 2 == 0 {
            let a = first()?;
            (a, second()?)
        } else {
            let b = second()?;
            (first()?, b)
        };
        for (i, ratios) in ratios.iter_mut().enumerate() {
            ratios.push(a.0[i] / b.0[i]);
        }
        rates[0].push(a.0[0]);
        rates[1].push(b.0[0]);
    }
    let [a, b] = rates.map(|r| median(&r).unwrap_or(f64::NAN));
    println!("{what}: {a:.0} over {b:.0} faults a second");
    for (by, ratios) in ["wall time", "CPU time"].into_iter().zip(&ratios) {
        let Some(spread) = interval(ratios) else {
            bail!("{pairs} pairs give no interval; six do");
        };
        println!("  by {by}: {}", line(spread, bar));
    }
    Ok(())
}

fn line(spread: Spread, bar: Option<f64>) -> String {
    let Spread { low, median, high } = spread;
    let verdict = match bar {
        None => String::new(),
        Some(bar) if high > bar => format!(", reaches above {bar}: PASS"),
        Some(bar) => format!(", stays below {bar}: MISS"),
    };
    format!("{median:.3} [{low:.3}, {high:.3}]{verdict}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_the_last_two_columns() {
        let text = "Case Gb Rep Threads User System Wall flt/cpu/s fault/wsec\n\
                    anon 0.250 8 1 0.017s 0.214s 0.453s 566285.463 289299.730\n\nCase Threads\nanon 1 2\n";
        assert_eq!(row(text), Some(Rates([289_299.73, 566_285.463])));
        assert_eq!(row("Case\n"), None);
    }

    #[test]
    fn the_bar_is_held_against_the_upper_bound() {
        let spread = |high| Spread {
            low: 0.9,
            median: 0.95,
            high,
        };
        assert!(line(spread(0.99), Some(BAR)).ends_with("PASS"));
        assert!(line(spread(0.97), Some(BAR)).ends_with("MISS"));
        assert_eq!(line(spread(0.97), None), "0.950 [0.900, 0.970]");
    }
}
