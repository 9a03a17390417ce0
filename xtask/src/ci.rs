//! `cargo xtask test`: every check there is, in one run.
//!
//! A step that fails does not stop those after it, so that one run shows all that is wrong. Tests are counted from what
//! they print; a skip is a line that starts with `SKIP`.

use std::cell::Cell;
use std::env;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;

use crate::vm::{self, Report};
use crate::{ebpf, fuzz, lint, proc, scipy, setup};

/// What stops a test that hangs, long before the CI machine would; seconds for a whole step.
const STEP_LIMIT: &str = "2400";

/// How `timeout` says that it had to stop a program.
const TIMED_OUT: i32 = 124;

/// Tests counted in the output of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

struct Step {
    name: &'static str,
    took: Duration,
    counts: Counts,
    error: Option<anyhow::Error>,
}

/// What to leave out, and what to do with what was found.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Options {
    /// Leave out the tests that load BPF programs on the running kernel
    #[arg(long)]
    skip_kernel: bool,
    /// Leave out the guests: Debian's kernels in QEMU
    #[arg(long)]
    skip_vm: bool,
    /// Run all kernel tests in the guests, most of an hour, and hold docs/kernels.md against what was found
    #[arg(long, conflicts_with = "skip_vm")]
    matrix: bool,
    /// Write docs/kernels.md in place of holding it against what was found
    #[arg(long, requires = "matrix", conflicts_with = "skip_kernel")]
    write_docs: bool,
}

/// Runs every step, prints what became of each, and says whether all passed.
pub(crate) fn test(root: &Path, options: Options) -> bool {
    let mut steps = Vec::new();
    let mut step = |name, work: &dyn Fn() -> Result<Counts>| {
        println!("\n=== {name}");
        let step = timed(name, work);
        if let Some(error) = &step.error {
            println!("{name}: {error:#}");
        }
        println!(
            "=== {name}: {} in {:.1} s",
            outcome(&step),
            step.took.as_secs_f64()
        );
        steps.push(step);
    };
    // `ONE` stands for steps that pass or fail as a whole.
    step("setup", &|| setup::setup(root, false).map(|()| ONE));
    step("ebpf --check", &|| ebpf::ebpf(root, true).map(|()| ONE));
    step("fmt", &|| format(root).map(|()| ONE));
    step("clippy", &|| clippy(root).map(|()| ONE));
    step("lint", &|| lint::run(root).map(|()| ONE));
    step("unit tests", &|| {
        count(
            tests(root).args(["--workspace", "--", "--show-output"]),
            &print,
        )
    });
    step("scipy", &|| beside_scipy(root));
    step("fuzz", &|| {
        let options = fuzz::Options::default();
        fuzz::fuzz(root, &options).map(|passed| Counts { passed, ..ONE })
    });
    let host = Cell::new(None);
    step("kernel tests", &|| {
        if options.skip_kernel {
            return Ok(skipped("kernel tests", "--skip-kernel"));
        }
        let (counts, report) = kernel_tests(root)?;
        // Tests that failed have not found what the kernel gives.
        host.set((counts.failed == 0).then_some(report));
        Ok(counts)
    });
    step("vm", &|| {
        if options.skip_vm {
            return Ok(skipped("guests", "--skip-vm"));
        }
        let whole = options.matrix.then(|| vm::Whole {
            host: host.take(),
            write_docs: options.write_docs,
        });
        let sums = vm::test(root, &rebuilt(root)?, whole)?;
        Ok(Counts {
            passed: sums.passed,
            failed: sums.failed,
            skipped: sums.skipped,
        })
    });
    println!("\n{}", format_summary(&steps));
    steps.iter().all(|s| s.error.is_none())
}

const ONE: Counts = Counts {
    passed: 1,
    failed: 0,
    skipped: 0,
};

fn timed(name: &'static str, work: &dyn Fn() -> Result<Counts>) -> Step {
    let start = Instant::now();
    let result = work();
    let took = start.elapsed();
    let (counts, error) = match result {
        Ok(counts) if counts.failed == 0 => (counts, None),
        Ok(counts) => (counts, Some(anyhow!("tests failed; their output is above"))),
        Err(error) => (
            Counts {
                failed: 1,
                ..Counts::default()
            },
            Some(error),
        ),
    };
    Step {
        name,
        took,
        counts,
        error,
    }
}

fn outcome(step: &Step) -> &'static str {
    if step.error.is_none() { "ok" } else { "FAILED" }
}

/// The table of all steps, the errors again, and the line of sums.
fn format_summary(steps: &[Step]) -> String {
    let mut lines = vec![format!(
        "{:<14} {:>8} {:>7} {:>7} {:>8}  result",
        "step", "seconds", "passed", "failed", "skipped"
    )];
    let mut all = Counts::default();
    for step in steps {
        let Counts {
            passed,
            failed,
            skipped,
        } = step.counts;
        let seconds = step.took.as_secs_f64();
        lines.push(format!(
            "{:<14} {seconds:>8.1} {passed:>7} {failed:>7} {skipped:>8}  {}",
            step.name,
            outcome(step)
        ));
        all.passed += passed;
        all.failed += failed;
        all.skipped += skipped;
    }
    let took: Duration = steps.iter().map(|s| s.took).sum();
    lines.push(format!("{:<14} {:>8.1}", "all", took.as_secs_f64()));
    lines.extend(steps.iter().filter_map(|s| {
        s.error
            .as_ref()
            .map(|error| format!("{}: {error:#}", s.name))
    }));
    lines.push(format!(
        "{} passed, {} failed, {} skipped",
        all.passed, all.failed, all.skipped
    ));
    lines.join("\n")
}

/// The cargo that runs this program, started in the repository.
fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

fn format(root: &Path) -> Result<()> {
    proc::run(cargo(root).args(["fmt", "--all", "--check"]))?;
    // Outside the workspace, so `--all` does not reach them.
    for crate_ in ["faultscope-ebpf", "fuzz"] {
        proc::run(cargo(&root.join(crate_)).args(["fmt", "--check"]))?;
    }
    Ok(())
}

fn clippy(root: &Path) -> Result<()> {
    let features = ["--features", "faultscope/kernel-tests"];
    proc::run(
        cargo(root)
            .args(["clippy", "--workspace", "--all-targets"])
            .args(features)
            .args(["--", "-D", "warnings"]),
    )
}

/// `cargo test`, stopped when it hangs.
fn tests(root: &Path) -> Command {
    let cargo = cargo(root);
    let mut command = Command::new("timeout");
    command
        .current_dir(root)
        .args(["--kill-after=30", STEP_LIMIT])
        .arg(cargo.get_program())
        .arg("test");
    // Run every test binary even if one fails, and let no test accept a new snapshot.
    command.arg("--no-fail-fast").env("INSTA_UPDATE", "no");
    command
}

fn print(line: &str) {
    println!("{line}");
}

fn skipped(what: &str, option: &str) -> Counts {
    println!("SKIP the {what}, as {option} asks");
    Counts {
        skipped: 1,
        ..Counts::default()
    }
}

/// The object that the step before made.
fn rebuilt(root: &Path) -> Result<PathBuf> {
    let object = root.join(ebpf::REBUILT);
    if !object.exists() {
        bail!(
            "\"{}\" is missing, so there is no rebuilt object to test; see the step before",
            ebpf::REBUILT
        );
    }
    Ok(object)
}

fn kernel_tests(root: &Path) -> Result<(Counts, Report)> {
    let main = "faultscope/tests/kernel/main.rs";
    if !root.join(main).exists() {
        bail!(
            "\"{main}\" is missing, so nothing was tested on the kernel; restore it or pass --skip-kernel"
        );
    }
    let object = rebuilt(root)?;
    let (counts, report) = on_this_kernel(tests(root).env("FAULTSCOPE_BPF_OBJECT", object))?;
    if counts.passed + counts.failed == 0 {
        bail!("no kernel test ran; is every one compiled out or skipped?");
    }
    Ok((counts, report))
}

/// The tests of the statistics on data that SciPy has just drawn and answered.
fn beside_scipy(root: &Path) -> Result<Counts> {
    let mut all = Counts::default();
    for file in scipy::vectors(root)? {
        println!("data of \"{}\"", file.display());
        let mut command = tests(root);
        command.env("FAULTSCOPE_SCIPY", file);
        let counts = count(
            command.args(["-p", "faultscope", "--test", "stats"]),
            &print,
        )?;
        all.passed += counts.passed;
        all.failed += counts.failed;
        all.skipped += counts.skipped;
    }
    Ok(all)
}

/// What this machine's kernel gives, by the kernel tests with the committed object.
pub(crate) fn host_report(root: &Path) -> Result<Report> {
    let (counts, report) = on_this_kernel(&mut tests(root))?;
    if counts.failed > 0 {
        bail!(
            "{} kernel tests failed on this machine; their output is above",
            counts.failed
        );
    }
    Ok(report)
}

/// Runs the kernel tests here, with all they print.
fn on_this_kernel(command: &mut Command) -> Result<(Counts, Report)> {
    let report = Mutex::new(Report::default());
    let counts = count(
        command
            .args(["-p", "faultscope", "--features", "kernel-tests"])
            .args(["--test", "kernel"])
            // They count events of the whole machine and of each other; stress belongs into a guest, which may break.
            .args(["--", "--test-threads=1", "--nocapture", "--skip", "stress_"]),
        &|line| {
            print(line);
            report
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .read(line);
        },
    )?;
    let report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((counts, report))
}

/// Runs tests, hands each line they print to `show`, and counts them.
fn count(command: &mut Command, show: &(dyn Fn(&str) + Sync)) -> Result<Counts> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {}", proc::name(command)))?;
    let counts = Mutex::new(Counts::default());
    let relay = |pipe: &mut dyn Read| {
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&line);
            show(text.trim_end());
            add_line(
                &mut counts.lock().unwrap_or_else(PoisonError::into_inner),
                text.trim_end(),
            );
            line.clear();
        }
    };
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        scope.spawn(|| stderr.into_iter().for_each(|mut pipe| relay(&mut pipe)));
        stdout.into_iter().for_each(|mut pipe| relay(&mut pipe));
    });
    let status = child
        .wait()
        .with_context(|| format!("waiting for {}", proc::name(command)))?;
    let mut counts = counts.into_inner().unwrap_or_else(PoisonError::into_inner);
    if status.code() == Some(TIMED_OUT) {
        bail!("stopped after {STEP_LIMIT} s; the last test named above hangs");
    }
    if !status.success() && counts.failed == 0 {
        // It did not compile, or it died before it could report.
        counts.failed = 1;
    }
    Ok(counts)
}

/// Adds what one line of output says: a result line of a test binary, or a skip.
fn add_line(counts: &mut Counts, line: &str) {
    // With --nocapture the name of the test stands on the same line.
    if line.starts_with("SKIP ") || line.contains(" ... SKIP ") {
        counts.skipped += 1;
    }
    let Some(results) = line.strip_prefix("test result: ") else {
        return;
    };
    for result in results.split([';', '.']) {
        let mut words = result.split_whitespace();
        if let (Some(Ok(number)), Some(what), None) = (
            words.next().map(str::parse::<u64>),
            words.next(),
            words.next(),
        ) {
            match what {
                "passed" => counts.passed += number,
                "failed" => counts.failed += number,
                "ignored" => counts.skipped += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(lines: &[&str]) -> Counts {
        let mut counts = Counts::default();
        for line in lines {
            add_line(&mut counts, line);
        }
        counts
    }

    #[test]
    fn results_and_skips_add_up_over_binaries() {
        let counts = counted(&[
            "test result: ok. 36 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.34s",
            "SKIP numa: one node",
            "test node ... SKIP one node",
            "it said SKIP somewhere",
            "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 12.5s",
        ]);
        assert_eq!(
            counts,
            Counts {
                passed: 38,
                failed: 3,
                skipped: 3
            }
        );
    }

    #[test]
    fn both_streams_are_counted_and_a_bare_failure_is_one() {
        let shown = Mutex::new(Vec::new());
        let run = |script| {
            let show = |line: &str| {
                shown
                    .lock()
                    .expect("no other test holds it")
                    .push(line.to_owned());
            };
            count(Command::new("sh").args(["-c", script]), &show).expect("sh starts")
        };
        let counts =
            run("echo 'SKIP a'; echo 'SKIP b' >&2; echo 'test result: ok. 1 passed; 0 failed'");
        assert_eq!(
            counts,
            Counts {
                passed: 1,
                failed: 0,
                skipped: 2
            }
        );
        assert_eq!(run("exit 101").failed, 1);
        assert_eq!(shown.into_inner().expect("no thread panicked").len(), 3);
    }

    #[test]
    fn failed_steps_are_counted_and_named() {
        let good = || {
            timed("good", &|| {
                Ok(Counts {
                    passed: 5,
                    failed: 0,
                    skipped: 2,
                })
            })
        };
        let bad = timed("bad", &|| bail!("broken"));
        let failing = timed("failing", &|| {
            Ok(Counts {
                passed: 5,
                failed: 2,
                skipped: 0,
            })
        });
        assert!(good().error.is_none() && bad.error.is_some() && failing.error.is_some());
        let steps = [good(), bad, failing];
        let summary = format_summary(&steps);
        assert!(summary.contains("bad: broken"), "{summary}");
        assert!(
            summary.ends_with("\n10 passed, 3 failed, 2 skipped"),
            "{summary}"
        );
    }

    #[test]
    fn a_repository_without_kernel_tests_does_not_pass() {
        let error = kernel_tests(Path::new("no-such-directory"))
            .expect_err("there are no tests")
            .to_string();
        assert!(error.contains("faultscope/tests/kernel/main.rs"), "{error}");
    }
}
