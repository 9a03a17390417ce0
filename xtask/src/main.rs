//! Developer tasks; `cargo xtask --help` lists them.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "its output is for a developer's terminal or a CI log"
)]

mod bench;
mod ci;
mod ebpf;
mod elf;
mod fuzz;
mod lint;
mod proc;
mod scipy;
mod setup;
mod vm;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Developer tasks of faultscope.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install the system packages, the BPF linker and cargo-fuzz; does nothing when all is there
    Setup {
        /// Also install the tools that `bench overhead` compares faultscope with
        #[arg(long)]
        bench: bool,
    },
    /// Build the BPF object into faultscope/prebuilt, with its hash and the versions that made it
    Ebpf {
        /// Leave faultscope/prebuilt alone; fail if it is damaged or not what the sources give
        #[arg(long)]
        check: bool,
    },
    /// Run everything: set-up, BPF build, format, clippy, lint, unit tests, kernel tests here and in QEMU
    Test(ci::Options),
    /// Feed parsers and readers with damaged input, five seconds each
    Fuzz(fuzz::Options),
    /// Run the kernel tests, a command or a shell on Debian's kernels in QEMU
    Vm(vm::Arguments),
    /// Check layers, forbidden words, file lengths and program names
    Lint,
    /// Measure programs, sets and `top` against their bars; prints, and fails no bar
    Bench {
        #[command(subcommand)]
        what: Option<Bench>,
    },
    /// One of the processes that `bench` shows to `top` and `record`
    #[command(hide = true)]
    Sleeper {
        /// Sleeps only
        #[arg(long)]
        idle: bool,
    },
}

#[derive(Subcommand)]
enum Bench {
    /// Measure what watching faults costs a load: faultscope, bpftrace and perf side by side
    Overhead(bench::overhead::Options),
    /// Measure what `record` adds to the cost of `top` with the same programs
    Record(bench::overhead::recording::Options),
    /// Measure the time of `report` and the growth of a recording
    Report,
    /// Hold `bench fault` against a loop in C that touches the same pages
    Fault(bench::touch::Options),
}

fn main() -> ExitCode {
    match dispatch(&Cli::parse().task) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(task: &Task) -> Result<ExitCode> {
    let root = repository();
    match task {
        Task::Setup { bench } => setup::setup(&root, *bench)?,
        Task::Ebpf { check } => ebpf::ebpf(&root, *check)?,
        // Its last line is the sum of all tests, so its failure says no more than the exit code.
        Task::Test(options) if !ci::test(&root, *options) => return Ok(ExitCode::FAILURE),
        Task::Test(_) => {}
        Task::Fuzz(options) => {
            fuzz::fuzz(&root, options)?;
        }
        Task::Vm(arguments) => return vm::run(&root, arguments, &|| ci::host_report(&root)),
        Task::Lint => lint::run(&root)?,
        Task::Bench { what: None } => bench::bench(&root)?,
        Task::Bench {
            what: Some(Bench::Overhead(options)),
        } => bench::overhead::overhead(&root, options)?,
        Task::Bench {
            what: Some(Bench::Record(options)),
        } => bench::overhead::recording::record(&root, options)?,
        Task::Bench {
            what: Some(Bench::Report),
        } => bench::report(&root)?,
        Task::Bench {
            what: Some(Bench::Fault(options)),
        } => bench::touch::touch(&root, options)?,
        Task::Sleeper { idle } => bench::sleep_and_fault(*idle),
    }
    Ok(ExitCode::SUCCESS)
}

/// The repository this program was built from.
fn repository() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map(PathBuf::from).unwrap_or(manifest)
}
