//! The only module that speaks to the kernel's BPF: load, attach, maps.
//!
//! Nothing here decides what to attach (`plan` does) or what a number means
//! (`collect` and `model` do).

pub mod attach;
pub mod load;
pub mod maps;
pub mod object;
pub mod table;

pub use attach::Programs;
pub use aya::maps::MapError;
pub use load::{LoadError, Sizes};
pub use maps::Maps;
