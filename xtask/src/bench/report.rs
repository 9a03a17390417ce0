//! How long `report` takes, against a plain scan of the same file.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::proc::{capture, run};

/// Times that a report may take as long as the scan.
const BAR: f64 = 5.0;
/// Intervals of the recording: those of ten minutes at one a second, made in one.
const INTERVALS: u32 = 600;
/// Length of each, seconds.
const LENGTH: f64 = 0.1;
/// Runs of each; the median counts.
const RUNS: usize = 5;
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

/// Records this machine for a minute, then reads the file in both ways.
pub(super) fn report(binary: &Path) -> Result<String> {
    let name = format!("faultscope-bench-{}.fsc", std::process::id());
    let file = Temporary(std::env::temp_dir().join(name));
    let seconds = f64::from(INTERVALS) * LENGTH;
    run(Command::new(binary)
        .arg("record")
        .arg("-o")
        .arg(&file.0)
        .args(["-d", &LENGTH.to_string()])
        .args(["--duration", &seconds.to_string()])
        .stderr(Stdio::null()))?;
    let tables = capture(
        Command::new("sqlite3")
            .arg("-readonly")
            .arg(&file.0)
            .arg("SELECT name FROM sqlite_schema WHERE type = 'table'"),
    )?;
    let scan: String = tables
        .lines()
        .map(|table| format!("SELECT * FROM \"{table}\";"))
        .collect();
    let scan = median(|| {
        let mut command = Command::new("sqlite3");
        command.arg("-readonly").arg(&file.0).arg(&scan);
        command
    })?;
    let bytes = std::fs::metadata(&file.0)
        .context("looking at the recording")?
        .len();
    let mut text = format!(
        "\nreport of {INTERVALS} intervals, {} KiB, over a scan of every table by sqlite3 (bar {BAR})\n",
        bytes / 1024
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
