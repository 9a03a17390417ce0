//! Built-in loads: short, repeatable work whose events are known beforehand.
//!
//! `doctor --cost` and `cargo xtask bench overhead` drive them to measure programs, and the stress tests all of them
//! together. `bench` drives [`Team`]s of threads or processes in a process of its own. A load owns its memory and files
//! and leaves nothing behind. No load knows what is attached, and none but a team reads a clock.

mod advice;
mod cache;
mod cached;
mod calls;
mod contend;
mod cpu;
mod fault;
mod file;
mod folios;
mod fork;
mod give_back;
mod helper;
mod mapping;
mod memory;
mod share;
mod space;
mod team;

use std::io;

pub use advice::{EveryAdvice, Populates};
pub use cache::Rereads;
pub use cached::{CacheAccess, CacheReads, Order};
pub use calls::{Advices, Mappings, SystemCalls};
pub use contend::Contention;
pub use cpu::{Pinned, allowed, process_cpu_ns};
pub use fault::{AROUND, Access, Backing, FaultIn, Faulted, Faults, Huge, State};
pub use file::{FileReads, file_system, on_disk};
pub use folios::huge_page_bytes;
pub use fork::Forks;
pub use give_back::{GiveBack, GivenBack, Pressure, try_advice};
pub use memory::{KernelFaults, Overcommit, ReadFaults, WriteFaults};
pub use share::SharedMappings;
pub use space::{Change, READER, SmapsReader, Space};
pub use team::{Kind, MEMBER, Team, Used};

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
