//! How long `report` takes, against a plain scan of the same file, and how fast a recording grows.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::{SLEEPERS, Sleepers};
use crate::proc::{capture, run};

/// Times that a report may take as long as the scan.
const BAR: f64 = 5.0;
/// Intervals of the recording: those of ten minutes at one a second, made in one.
const INTERVALS: u32 = 600;
/// Length of each, seconds.
const LENGTH: f64 = 0.1;
/// Runs of each; the median counts.
const RUNS: usize = 5;
/// Processes of [`SLEEPERS`] that change in each interval.
const BUSY: usize = 50;
/// KiB on disk that a second of recording may take.
const GROWTH_KIB: f64 = 20.0;
/// Lengths of the two recordings whose sizes are compared, seconds: what is said once is in both.
const GROWN: [u32; 2] = [10, 40];
/// Formats that read everything.
const FORMATS: [&str; 3] = ["text", "json", "html"];

/// A file that goes away with the value.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // One that was never made is no error.
        let _gone = std::fs::remove_file(&self.0);
    }
}

impl Temporary {
    /// A name for a recording of so many seconds.
    fn recording(seconds: f64) -> Self {
        let name = format!("faultscope-bench-{}-{seconds}.fsc", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn bytes(&self) -> Result<u64> {
        let meta = std::fs::metadata(&self.0).context("looking at the recording")?;
        Ok(meta.len())
    }

    fn query(&self, sql: &str) -> Result<String> {
        capture(
            Command::new("sqlite3")
                .arg("-readonly")
                .arg(&self.0)
                .arg(sql),
        )
    }
}

/// Records this machine.
fn record(binary: &Path, interval: f64, seconds: f64) -> Result<Temporary> {
    let file = Temporary::recording(seconds);
    run(Command::new(binary)
        .arg("record")
        .arg("-o")
        .arg(&file.0)
        .args(["-d", &interval.to_string()])
        .args(["--duration", &seconds.to_string()])
        .stderr(Stdio::null()))?;
    Ok(file)
}

/// Both figures, each with its bar.
pub(super) fn report(binary: &Path) -> Result<String> {
    println!(
        "recording {SLEEPERS} processes, of which {BUSY} fault, for {} and {} seconds",
        GROWN[0], GROWN[1]
    );
    let growth = growth(binary)?;
    println!("measuring report: records this machine for a minute");
    Ok(growth + &reading(binary)?)
}

/// KiB that a recording at one interval a second takes each second.
fn growth(binary: &Path) -> Result<String> {
    let sleepers = Sleepers::start(SLEEPERS, BUSY)?;
    std::thread::sleep(Duration::from_secs(2));
    let [short, long] = GROWN.map(f64::from);
    let short_bytes = record(binary, 1.0, short)?.bytes()?;
    let file = record(binary, 1.0, long)?;
    drop(sleepers);
    let per_second = file.bytes()?.saturating_sub(short_bytes) as f64 / (long - short);
    let met = file.query(
        "SELECT count(*) / (SELECT count(*) FROM interval), \
         (SELECT count(*) / (SELECT count(*) FROM interval) FROM lock_wait) FROM process",
    )?;
    Ok(growth_text(per_second, met.trim()))
}

fn growth_text(per_second: f64, met: &str) -> String {
    let kib = per_second / 1024.0;
    let verdict = if kib < GROWTH_KIB { "PASS" } else { "MISS" };
    let (processes, waits) = met.split_once('|').unwrap_or(("?", "?"));
    format!(
        "\nrecording, one interval a second, {SLEEPERS} processes of which {BUSY} fault\n  \
         {kib:.1} KiB/s (bar {GROWTH_KIB}, with 200 lock sites): {verdict}\n  \
         an interval has {processes} rows of processes and {waits} of lock waits\n"
    )
}

/// Records this machine for a minute, then reads the file in both ways.
fn reading(binary: &Path) -> Result<String> {
    let file = record(binary, LENGTH, f64::from(INTERVALS) * LENGTH)?;
    let tables = file.query("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    let scan: String = tables
        .lines()
        .map(|table| format!("SELECT * FROM \"{table}\";"))
        .collect();
    let scan = median(|| {
        let mut command = Command::new("sqlite3");
        command.arg("-readonly").arg(&file.0).arg(&scan);
        command
    })?;
    let mut text = format!(
        "\nreport of {INTERVALS} intervals, {} KiB, over a scan of every table by sqlite3 of {:.0} ms (bar {BAR})\n",
        file.bytes()? / 1024,
        1e3 * scan.as_secs_f64()
    );
    for format in FORMATS {
        let took = median(|| {
            let mut command = Command::new(binary);
            command
                .arg("report")
                .arg(&file.0)
                .args(["--format", format]);
            command
        })?;
        let ratio = took.as_secs_f64() / scan.as_secs_f64();
        let verdict = if ratio <= BAR { "PASS" } else { "MISS" };
        text += &format!("  {ratio:>5.2}  {format}: {verdict}\n");
    }
    Ok(text)
}

/// The median time of a program that is run several times, its output thrown away.
fn median(command: impl Fn() -> Command) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let mut command = command();
        let begin = Instant::now();
        let status = command
            .stdout(Stdio::null())
            .status()
            .with_context(|| format!("starting {:?}", command.get_program()))?;
        times.push(begin.elapsed());
        if !status.success() {
            bail!("{:?} failed ({status})", command.get_program());
        }
    }
    times.sort_unstable();
    Ok(times[RUNS / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_held_against_its_bar() {
        let text = growth_text(10_240.0, "53|7");
        assert!(
            text.contains("10.0 KiB/s (bar 20, with 200 lock sites): PASS")
                && text.contains("53 rows of processes and 7 of lock waits"),
            "{text}"
        );
        assert!(
            growth_text(20_480.0, "").contains("20.0 KiB/s (bar 20, with 200 lock sites): MISS")
        );
    }
}
