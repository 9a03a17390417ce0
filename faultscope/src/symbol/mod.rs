//! Names for kernel addresses, and which frames of a chain are lock code.

pub mod frame;
pub mod kernel;

pub use frame::{call_site, is_lock_code, is_paravirtual};
pub use kernel::KernelSymbols;
