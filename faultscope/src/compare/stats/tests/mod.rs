//! The statistics against tables and simulations.

#[expect(
    clippy::print_stdout,
    reason = "the rates found are worth a look with --show-output"
)]
mod simulation;
mod vectors;
