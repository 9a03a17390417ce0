//! Where the time of faults goes: samples of the CPU clock by kernel call chain.

use bytemuck::{Pod, Zeroable};

/// Frames taken of a kernel stack.
pub const DEPTH: usize = 64;
/// Innermost frames kept of a chain.
pub const KEPT: usize = 30;
/// Call chains the table holds; a power of two.
pub const SLOTS: u32 = 4096;
/// Slots tried before the table counts as full.
pub const PROBES: u32 = 8;
/// `ChainRow::hash` set by user space: no program matches the row any more, and
/// user space frees it one reading later. Hashes are odd.
pub const RETIRED: u64 = 2;
/// Functions are aligned to this many bytes (FUNCTION_ALIGNMENT of x86), so two
/// innermost addresses that differ below it are in one function.
pub const GRAIN: u64 = 16;

/// `ChainRow::origin`: a fault from user mode.
pub const USER: u32 = 0;
/// `ChainRow::origin`: a fault the kernel took.
pub const KERNEL: u32 = 1;
/// `ChainRow::origin`: no trap: populate and get_user_pages.
pub const UNTRAPPED: u32 = 2;
/// Number of origins.
pub const ORIGINS: usize = 3;

/// Addresses of the two functions that make a stack a fault's; written by user
/// space, zero where they are not known.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Code {
    /// Start of `asm_exc_page_fault`, which every trap passes.
    pub trap: u64,
    /// Its length in bytes.
    pub trap_bytes: u64,
    /// Start of `handle_mm_fault`, which every serviced fault passes.
    pub service: u64,
    /// Its length in bytes.
    pub service_bytes: u64,
    /// Pads the row to a cache line.
    pub _pad: [u64; 4],
}

/// Samples of one CPU, written by the clock program there.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub struct ClockRow {
    /// All samples; never filtered.
    pub samples: u64,
    /// Of those, in the idle task; never filtered.
    pub idle: u64,
    /// In user mode, of the threads the filter lets through.
    pub user: u64,
    /// In the kernel outside the idle task, of the threads the filter lets through.
    pub kernel: u64,
    /// Of `kernel`, in the fault path.
    pub faults: u64,
    /// Of `kernel`, with more than `DEPTH` frames and no fault path among those.
    pub deep: u64,
    /// Keeps rows of different CPUs on different cache lines.
    pub _pad: [u64; 2],
}
const _: () = assert!(size_of::<ClockRow>() == 64);

/// A call chain of the fault path, from the interrupted function to the entry of
/// the fault; claimed by compare-and-exchange of `hash`, written once.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct ChainRow {
    /// Hash of the chain; 0 is free.
    pub hash: u64,
    /// Frames written, at most `KEPT`; 0 while the writer is at work.
    pub used: u32,
    /// `USER`, `KERNEL` or `UNTRAPPED`.
    pub origin: u32,
    /// The interrupted address, then return addresses.
    pub frames: [u64; KEPT],
}
const _: () = assert!(size_of::<ChainRow>() == 256);

/// A stack being taken on a CPU.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct Scratch {
    /// Frames, innermost first.
    pub frames: [u64; DEPTH],
    /// Index + 1 of the innermost frame in `Code::trap`, 0 none.
    pub trap: u64,
    /// The same for `Code::service`.
    pub service: u64,
    /// Keeps rows of different CPUs on different cache lines.
    pub _pad: [u64; 6],
}
const _: () = assert!(size_of::<Scratch>().is_multiple_of(64));
