//! Built-in loads: short, repeatable work whose events are known beforehand.
//!
//! `doctor --cost` and `cargo xtask bench overhead` drive them to measure programs. A load owns its memory and files and leaves nothing behind. No
//! load knows what is attached, and none reads a clock.

mod cache;
mod calls;
mod contend;
mod cpu;
mod memory;
mod share;

use std::io;

pub use cache::Rereads;
pub use calls::{Advices, Mappings, SystemCalls};
pub use contend::Contention;
pub use cpu::{Pinned, process_cpu_ns};
pub use memory::{KernelFaults, ReadFaults, WriteFaults};
pub use share::SharedMappings;

/// Work that causes a known number of events each time.
pub trait Load {
    /// What one event is, in the plural: `read faults`.
    fn events(&self) -> &'static str;

    /// Does the work once; returns the number of events it caused.
    ///
    /// # Errors
    /// What the kernel says to a system call of the load; the work is then not done whole.
    fn run(&mut self) -> io::Result<u64>;
}

#[cfg(test)]
mod tests;
