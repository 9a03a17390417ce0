//! Names for kernel addresses, which frames of a chain are lock code, and what
//! a fault's time goes to.

pub mod fault;
pub mod frame;
pub mod kernel;
pub mod range;

pub use fault::{FAULT_PARTS, FaultPart, fault_part};
pub use frame::{call_site, is_lock_code, is_paravirtual};
pub use kernel::KernelSymbols;
pub use range::{Range, ranges};
