//! Names for kernel addresses, and which frames of a chain are lock code.

pub mod kernel;

pub use kernel::{KernelSymbols, call_site, is_lock_code};
