//! `cargo xtask vm`: the kernel tests, a command or a shell on Debian's kernels, in QEMU.
//!
//! The emulator's clock means nothing, so tests count. A guest fails for a mark on its console as for a failed test.

mod build;
mod console;
mod docs;
mod guest;
mod image;
mod kernel;
mod matrix;
mod report;
mod skips;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use build::{Binaries, Profile};
use docs::Column;
use guest::{Guest, Threads};
use image::Work;
use kernel::{Flavour, Kernel};
use matrix::{LIMIT, Matrix, SILENCE, STRESS_SECONDS, Verdict};

pub(crate) use report::Report;

/// Seconds of a stress test, and of a long one.
const STRESS: u64 = 120;
const LONG_STRESS: u64 = 3600;

/// What `cargo xtask vm` is asked for.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only this kernel; may be given several times
    #[arg(long)]
    kernel: Vec<Flavour>,
    /// Only tests with this in their name, and all they print
    #[arg(long, value_name = "NAME", conflicts_with_all = ["shell", "command"])]
    test: Option<String>,
    /// How the emulator runs the guest's CPUs [default: "single", and "multi" for tests named "…_multi"]
    #[arg(long, value_enum)]
    thread: Option<Threads>,
    /// Stress for an hour instead of two minutes
    #[arg(long)]
    long: bool,
    /// Run the kernel tests on this machine's kernel too, and write docs/kernels.md from all results
    #[arg(long, conflicts_with_all = ["kernel", "test", "shell", "command"])]
    write_docs: bool,
    /// A shell in the guest, on this terminal; `exit` ends it
    #[arg(long, conflicts_with = "command")]
    shell: bool,
    /// Run this in the guest and take over its exit status
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Tests counted over all kernels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) passed: u64,
    /// Tests, and whatever else was wrong.
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

/// Does what the command line asks for; `host` runs the kernel tests on this machine.
pub(crate) fn run(
    root: &Path,
    arguments: &Arguments,
    host: &dyn Fn() -> Result<Report>,
) -> Result<ExitCode> {
    let flavours = if arguments.kernel.is_empty() {
        &Flavour::ALL[..]
    } else {
        &arguments.kernel[..]
    };
    if arguments.shell && flavours.len() != 1 {
        bail!("a shell needs one kernel; name it with --kernel");
    }
    // On the machine first: it is done in a minute, and what fails there need not be waited for.
    let host = arguments.write_docs.then(host).transpose()?;
    let kernels = fetch(root, flavours)?;
    let is_interactive = arguments.shell || !arguments.command.is_empty();
    let profile = if is_interactive || arguments.test.is_some() {
        Profile::Dev
    } else {
        Profile::Guest
    };
    let binaries = build::binaries(root, None, profile)?;
    if is_interactive {
        return interactive(root, &kernels, &binaries, arguments);
    }
    let stress = match (arguments.long, env::var(STRESS_SECONDS)) {
        (true, _) => LONG_STRESS,
        (false, Ok(seconds)) => seconds
            .parse()
            .with_context(|| format!("{STRESS_SECONDS}={seconds} is no number of seconds"))?,
        (false, Err(_)) => STRESS,
    };
    let environment = environment(stress);
    let directory = directory(root);
    let matrix = Matrix {
        directory: &directory,
        kernels: &kernels,
        binaries: &binaries,
        environment: &environment,
        name: arguments.test.as_deref(),
        threads: arguments.thread,
        stress: Duration::from_secs(stress),
    };
    let verdicts = matrix.run()?;
    let mut columns = columns(&verdicts);
    // A part of the matrix or of the tests cannot fill the document's columns.
    let is_whole = arguments.test.is_none() && !arguments.write_docs;
    let errors = if is_whole {
        docs::complaints(root, &columns)
    } else {
        Vec::new()
    };
    let sums = conclude(&verdicts, &errors);
    if arguments.write_docs {
        columns.extend(host.and_then(Column::of_host));
        write_unless_failed(root, &sums, &columns)?;
    }
    Ok(if sums.failed == 0 && sums.passed > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Tests of the guests that every landing must pass: every program in front of every kernel's verifier.
const EVERY_LANDING: &str = "programs::";

/// What a run of the whole matrix needs to know.
pub(crate) struct Whole {
    /// What this machine's kernel gave.
    pub(crate) host: Option<Report>,
    /// Writes docs/kernels.md from that and the guests, in place of holding it against them.
    pub(crate) write_docs: bool,
}

/// Runs with `object` the whole matrix, or what every landing must pass.
pub(crate) fn test(root: &Path, object: &Path, whole: Option<Whole>) -> Result<Sums> {
    let kernels = fetch(root, &Flavour::ALL)?;
    let profile = if whole.is_some() {
        Profile::Guest
    } else {
        Profile::Dev
    };
    let binaries = build::binaries(root, Some(object), profile)?;
    let mut environment = environment(STRESS);
    environment.push(("FAULTSCOPE_BPF_OBJECT".to_owned(), image::OBJECT.to_owned()));
    let directory = directory(root);
    let matrix = Matrix {
        directory: &directory,
        kernels: &kernels,
        binaries: &binaries,
        environment: &environment,
        name: whole.is_none().then_some(EVERY_LANDING),
        threads: None,
        stress: Duration::from_secs(STRESS),
    };
    let verdicts = matrix.run()?;
    let Some(whole) = whole else {
        return Ok(conclude(&verdicts, &[]));
    };
    let mut columns = columns(&verdicts);
    columns.extend(whole.host.and_then(Column::of_host));
    if !whole.write_docs {
        return Ok(conclude(&verdicts, &docs::complaints(root, &columns)));
    }
    let sums = conclude(&verdicts, &[]);
    write_unless_failed(root, &sums, &columns)?;
    Ok(sums)
}

fn write_unless_failed(root: &Path, sums: &Sums, columns: &[Column]) -> Result<()> {
    if sums.failed > 0 {
        bail!("docs/kernels.md is left as it was, because of what failed above");
    }
    docs::write(root, columns)
}

/// Prints what is wrong and the counts of each kernel; returns the sums.
fn conclude(verdicts: &[Verdict<'_>], errors: &[String]) -> Sums {
    let mut sums = Sums {
        failed: errors.len() as u64,
        ..Sums::default()
    };
    println!();
    for verdict in verdicts {
        for error in &verdict.errors {
            println!("vm: {}: {error}", verdict.kernel.flavour.name());
        }
    }
    for error in errors {
        println!("vm: {error}");
    }
    for verdict in verdicts {
        for test in verdict.unsteady() {
            println!(
                "vm: {}: {test} failed, and was settled by a second try alone",
                verdict.kernel.flavour.name()
            );
        }
        let [passed, failed, skipped] = verdict.counts();
        println!(
            "vm: {:<8} {passed} passed, {failed} failed, {skipped} skipped ({})",
            verdict.kernel.flavour.name(),
            verdict.kernel.release
        );
        sums.passed += passed;
        sums.failed += failed;
        sums.skipped += skipped;
    }
    sums
}

fn columns(verdicts: &[Verdict<'_>]) -> Vec<Column> {
    verdicts
        .iter()
        .map(|verdict| Column {
            name: verdict.kernel.flavour.name(),
            release: verdict.kernel.release.clone(),
            report: verdict.report.clone(),
        })
        .collect()
}

/// Where kernels, logs and consoles go.
fn directory(root: &Path) -> PathBuf {
    root.join("target/vm")
}

fn fetch(root: &Path, flavours: &[Flavour]) -> Result<Vec<Kernel>> {
    let cache = directory(root).join("kernels");
    flavours
        .iter()
        .map(|flavour| kernel::fetch(&cache, *flavour))
        .collect()
}

/// Variables of a guest: those of this process that the tests read, and the length of a stress test.
fn environment(stress: u64) -> Vec<(String, String)> {
    env::vars()
        .filter(|(name, _)| name.starts_with("FAULTSCOPE_") && name != STRESS_SECONDS)
        .chain([(STRESS_SECONDS.to_owned(), stress.to_string())])
        .collect()
}

/// Runs the command or the shell on one kernel after the other.
fn interactive(
    root: &Path,
    kernels: &[Kernel],
    binaries: &Binaries,
    arguments: &Arguments,
) -> Result<ExitCode> {
    let mut worst = ExitCode::SUCCESS;
    for kernel in kernels {
        let work = if arguments.shell {
            let (rows, columns) = terminal_size();
            Work::Shell { rows, columns }
        } else {
            Work::Command(arguments.command.clone())
        };
        let archive = image::build(kernel, binaries, &environment(STRESS), &work)?;
        let directory = directory(root);
        let (silence, limit) = if arguments.shell {
            (Duration::MAX, Duration::MAX)
        } else {
            (SILENCE, LIMIT)
        };
        let guest = Guest {
            kernel,
            name: format!("{}-command", kernel.flavour.name()),
            directory: &directory,
            archive: &archive,
            threads: arguments.thread.unwrap_or(Threads::Single),
            silence,
            limit,
        };
        println!("vm: booting {}", kernel.release);
        let status = if arguments.shell {
            guest.attend().map(|()| 0)
        } else {
            guest.run(&mut |line| println!("{line}"))
        };
        let status = status.with_context(|| format!("kernel {}", kernel.flavour.name()))?;
        if status != 0 {
            worst = ExitCode::from(status);
        }
    }
    Ok(worst)
}

/// Rows and columns of this terminal; 24 and 80 if it has none.
fn terminal_size() -> (u32, u32) {
    let output = Command::new("stty")
        .arg("size")
        .stdin(Stdio::inherit())
        .output();
    let text = output
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    let mut numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(rows), Some(columns)) if rows > 0 && columns > 0 => (rows, columns),
        _ => (24, 80),
    }
}
