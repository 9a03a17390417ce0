//! `cargo xtask vm`: the kernel tests, a command or a shell on Debian's kernels, in QEMU.
//!
//! The emulator's clock means nothing, so tests count. A guest fails for a mark on its console as for a failed test.

mod build;
mod console;
mod guest;
mod image;
mod kernel;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use build::Binaries;
use guest::{Guest, Threads};
use image::Work;
use kernel::{Flavour, Kernel};

/// Longest silence of a guest; the slowest test of all says something more often.
const SILENCE: Duration = Duration::from_secs(10 * 60);

/// Longest run of a guest, without what `--long` adds.
const LIMIT: Duration = Duration::from_secs(45 * 60);

/// Tests that get guests of their own.
const STRESS: &str = "stress_";

/// What `cargo xtask vm` is asked for.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only this kernel; may be given several times
    #[arg(long)]
    kernel: Vec<Flavour>,
    /// Only tests with this in their name, and all they print
    #[arg(long, value_name = "NAME", conflicts_with_all = ["shell", "command"])]
    test: Option<String>,
    /// How the emulator runs the guest's CPUs
    #[arg(long, value_enum, default_value = "single")]
    thread: Threads,
    /// A shell in the guest, on this terminal; `exit` ends it
    #[arg(long, conflicts_with = "command")]
    shell: bool,
    /// Run this in the guest and take over its exit status
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Arguments {
    fn flavours(&self) -> Vec<Flavour> {
        if self.kernel.is_empty() {
            Flavour::ALL.to_vec()
        } else {
            self.kernel.clone()
        }
    }
}

/// Where kernels, logs and consoles go.
fn directory(root: &Path) -> PathBuf {
    root.join("target/vm")
}

/// Does what the command line asks for.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    let flavours = arguments.flavours();
    if arguments.shell && flavours.len() != 1 {
        bail!("a shell needs one kernel; name it with --kernel");
    }
    let kernels = flavours
        .into_iter()
        .map(|flavour| kernel::fetch(&directory(root).join("kernels"), flavour))
        .collect::<Result<Vec<Kernel>>>()?;
    let binaries = build::binaries(root, None)?;
    let mut worst = ExitCode::SUCCESS;
    for kernel in &kernels {
        if arguments.shell {
            shell(root, kernel, &binaries, arguments.thread)?;
            continue;
        }
        let words = if arguments.command.is_empty() {
            test_command(&binaries, arguments.test.as_deref())
        } else {
            arguments.command.clone()
        };
        let status = command(root, kernel, &binaries, arguments.thread, words)?;
        if status != 0 {
            worst = ExitCode::from(status);
        }
    }
    Ok(worst)
}

/// The test binary for all tests but stress, or for those with a name.
fn test_command(binaries: &Binaries, name: Option<&str>) -> Vec<String> {
    let mut words = vec![
        binaries.tests.to_string_lossy().into_owned(),
        "--test-threads=1".to_owned(),
        "--nocapture".to_owned(),
    ];
    match name {
        Some(name) => words.push(name.to_owned()),
        None => words.extend(["--skip".to_owned(), STRESS.to_owned()]),
    }
    words
}

/// Runs a command in a guest and prints what it prints.
fn command(
    root: &Path,
    kernel: &Kernel,
    binaries: &Binaries,
    threads: Threads,
    words: Vec<String>,
) -> Result<u8> {
    println!("vm: booting {}", kernel.release);
    let archive = image::build(kernel, binaries, &environment(), &Work::Command(words))?;
    let guest = Guest {
        kernel,
        name: format!("{}-command", kernel.flavour.name()),
        directory: &directory(root),
        archive: &archive,
        threads,
        silence: SILENCE,
        limit: LIMIT,
    };
    guest
        .run(&mut |line| println!("{line}"))
        .with_context(|| format!("kernel {}", kernel.flavour.name()))
}

/// Variables of this process that the tests read.
fn environment() -> Vec<(String, String)> {
    std::env::vars()
        .filter(|(name, _)| name.starts_with("FAULTSCOPE_"))
        .collect()
}

fn shell(root: &Path, kernel: &Kernel, binaries: &Binaries, threads: Threads) -> Result<()> {
    let (rows, columns) = terminal_size();
    let archive = image::build(
        kernel,
        binaries,
        &environment(),
        &Work::Shell { rows, columns },
    )?;
    println!("vm: booting {}; `exit` ends it", kernel.release);
    let guest = Guest {
        kernel,
        name: format!("{}-shell", kernel.flavour.name()),
        directory: &directory(root),
        archive: &archive,
        threads,
        silence: Duration::MAX,
        limit: Duration::MAX,
    };
    guest.attend()
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
