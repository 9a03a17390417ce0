//! How long `compare` takes for 200 recordings of 50 lock classes each.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::proc::capture;

/// Seconds that it may take.
const BAR: f64 = 2.0;

/// The test that makes the recordings, compares them and prints the time.
const TEST: &str = "two_hundred_files_of_fifty_classes_are_compared";

/// Runs the test with the release binary and judges the time that it prints.
pub(super) fn compare(root: &Path) -> Result<String> {
    let printed = capture(
        Command::new("cargo")
            .args(["test", "--release", "--quiet", "--package", "faultscope"])
            .args(["--test", "compare", "--", "--exact", TEST, "--nocapture"])
            .current_dir(root),
    )?;
    let (what, seconds) = time(&printed).with_context(|| format!("\"{TEST}\" printed no time"))?;
    let verdict = if seconds <= BAR { "PASS" } else { "MISS" };
    Ok(format!(
        "\n{what}, files read and text written (bar {BAR} s)\n  {seconds:>5.2}  s: {verdict}\n"
    ))
}

/// What was measured and the seconds, from `compare of 200 files of 50 lock classes: 0.51 s`.
fn time(printed: &str) -> Option<(&str, f64)> {
    printed.lines().find_map(|line| {
        let at = line.find("compare of ")?;
        let (what, seconds) = line[at..].rsplit_once(": ")?;
        Some((what, seconds.strip_suffix(" s")?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_found_behind_what_the_harness_prints() {
        let printed =
            "\nrunning 1 test\ntest x ... compare of 2 files of 5 lock classes: 0.51 s\nok\n";
        let (what, seconds) = time(printed).expect("a time");
        assert_eq!(what, "compare of 2 files of 5 lock classes");
        assert!((seconds - 0.51).abs() < 1e-9);
        assert_eq!(time("running 1 test\nok\n"), None);
    }
}
