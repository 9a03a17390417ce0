//! Developer tasks; `cargo xtask --help` lists them.
fn main() {}
