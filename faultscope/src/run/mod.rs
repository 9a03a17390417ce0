//! Runs a command for a recording: starts it, passes its output and our signals on, waits for it.
//!
//! Four parts, each usable alone. [`Relay`] is a process of its own that hands the command's output on and keeps
//! a bounded copy; it outlives us, so that a command whose recorder is killed still has somebody to write to.
//! [`Child`] is the command. [`Signals`] takes the signals that would end us, so that the command can have them
//! first. [`MemoryLimit`] is a memory cgroup of our own that leaves the command less memory. Nothing here knows what a recording is.

mod child;
mod kept;
mod memory;
mod relay;
mod signals;
#[cfg(test)]
mod tests;

pub use child::{Child, Command, Ended, SpawnError};
pub use kept::Kept;
pub use memory::{LimitError, MemoryLimit};
pub use relay::{Drained, Inlets, Relay, wait_readable};
pub use signals::{Signals, Taken};
