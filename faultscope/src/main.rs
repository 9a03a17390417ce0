//! The `faultscope` binary.
fn main() {}
