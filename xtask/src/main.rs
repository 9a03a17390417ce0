//! Developer tasks; `cargo xtask --help` lists them.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "its output is for a developer's terminal or a CI log"
)]

mod lint;
mod proc;
mod setup;

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
    /// Install the system packages and the BPF linker; does nothing when all is there
    Setup,
    /// Check layers, forbidden words, file lengths and program names
    Lint,
}

fn main() -> ExitCode {
    match dispatch(&Cli::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(task: &Task) -> Result<()> {
    let root = repository();
    match task {
        Task::Setup => setup::setup(&root),
        Task::Lint => lint::run(&root),
    }
}

/// The repository this program was built from.
fn repository() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map(PathBuf::from).unwrap_or(manifest)
}
