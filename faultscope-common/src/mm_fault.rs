//! Passes of `handle_mm_fault`: by path and backing per CPU, and by thread.
//!
//! A fault is one pass, or several: a pass that returns RETRY has not serviced
//! it, and the pass that follows for the same address is no new fault.

use crate::latency::SLOTS;
use bytemuck::{Pod, Zeroable};

/// From user mode, under the VMA's own lock.
pub const VMA_LOCK: u32 = 0;
/// From user mode, under mmap_lock without an attempt at the VMA lock.
pub const MMAP_LOCK: u32 = 1;
/// From user mode, under mmap_lock after an attempt under the VMA lock returned RETRY.
pub const FALL_BACK: u32 = 2;
/// From kernel mode, on a user address; under mmap_lock.
pub const KERNEL: u32 = 3;
/// `get_user_pages` inside a system call that populates (mmap, brk, mremap,
/// mlock, madvise, ...); no trap happened. Under mmap_lock.
pub const POPULATE: u32 = 4;
/// Any other `get_user_pages`: direct I/O, ptrace, exec's arguments. Under mmap_lock.
pub const GUP: u32 = 5;
/// Number of paths.
pub const PATHS: usize = 6;

/// Private memory without a file, page absent (or present since another thread's fault).
pub const ANON: u32 = 0;
/// A file or block device, not of tmpfs.
pub const FILE: u32 = 1;
/// tmpfs, memfd, shared anonymous or System V memory.
pub const SHMEM: u32 = 2;
/// A write to a private mapping that shares its page (or would): copied, or
/// taken over where nobody else has it any more.
pub const COW: u32 = 3;
/// A page table entry that names a swap slot.
pub const SWAP: u32 = 4;
/// A new transparent huge page of the page-middle-directory size.
pub const THP: u32 = 5;
/// hugetlb.
pub const HUGETLB: u32 = 6;
/// Special mappings (vdso), devices, pages under migration, poisoned pages, markers.
pub const OTHER: u32 = 7;
/// Number of backings.
pub const BACKINGS: usize = 8;

/// Rows of `PathRow` per CPU: `path * BACKINGS + backing`.
pub const ROWS: u32 = (PATHS * BACKINGS) as u32;

/// Errors told apart: OOM, SIGBUS, SIGSEGV, HWPOISON (any other error bit too).
pub const ERRORS: usize = 4;

/// Passes of one path and backing on one CPU; plain adds.
///
/// `passes` is written by the entry programs, the rest by the exit program: a
/// program does not nest on a CPU, so each word has one writer.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct PathRow {
    /// Passes that began, under the backing that the VMA alone tells.
    pub passes: u64,
    /// Faults: passes that returned anything but RETRY.
    pub faults: u64,
    /// Passes that returned RETRY.
    pub retries: u64,
    /// Of the faults without error, those the kernel accounts as major: MAJOR
    /// was returned, or this pass followed one that waited (TRIED).
    pub majors: u64,
    /// Of the faults, those that returned COMPLETED: done, and the lock given back.
    pub completed: u64,
    /// Of the faults, those that returned an error.
    pub errors: [u64; ERRORS],
    /// Time from the first pass's entry to the last one's exit, ns.
    pub ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
    /// Base pages mapped, fault-around included, where the mapping programs run.
    pub pages: u64,
    /// Faults that made a folio of more than one page, but smaller than a huge one.
    pub large: u64,
    /// Exits without a known entry (attach edge).
    pub unpaired: u64,
    /// Log-linear histogram of fault times (`latency`); wraps at 2^32.
    pub histogram: [u32; SLOTS],
    /// Rounds the row up to whole cache lines.
    pub _tail: [u64; 2],
}
const _: () = assert!(size_of::<PathRow>().is_multiple_of(64));

/// `Pass::marks`: the thread passes the filter.
pub const COUNTED: u32 = 1;
/// `Pass::marks`: the mapping is shared.
pub const SHARED: u32 = 2;
/// `Pass::marks`: a write to a present page was handled.
pub const WROTE_PRESENT: u32 = 4;
/// `Pass::marks`: the entry named a swap slot.
pub const SWAPPED: u32 = 8;
/// `Pass::marks`: the entry was neither empty nor a page nor a swap slot.
pub const SPECIAL: u32 = 16;

/// A pass that began and has not returned.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct Pass {
    /// Faulting address.
    pub address: u64,
    /// Entry of the fault's first pass, ns.
    pub start_ns: u64,
    /// `enum fault_flag`.
    pub flags: u32,
    /// Path.
    pub path: u32,
    /// Backing as the VMA tells it.
    pub backing: u32,
    /// What happened so far.
    pub marks: u32,
    /// Base pages mapped so far.
    pub mapped: u32,
    /// Greatest order of a folio made so far, plus one; 0 none.
    pub order: u32,
}

/// Passes of one thread kept at a time; a pass inside a pass was never seen.
pub const DEPTH: usize = 2;

/// Slots of the thread table tried before it counts as full.
pub const PROBES: u32 = 8;
/// `MmThreadRow::tag` set by user space: no program matches the row any more,
/// and user space frees it one interval later.
pub const RETIRED_TAG: u64 = u64::MAX;

/// One thread while the fault-latency programs are attached.
///
/// Claimed by compare-and-exchange of `tag`, written by the running thread only.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct MmThreadRow {
    /// Hash of thread id and start, never 0 or `RETIRED_TAG`; 0 is free.
    pub tag: u64,
    /// Process; written before `tid`.
    pub tgid: u32,
    /// Thread; 0 while the row is being made.
    pub tid: u32,
    /// Entries of `open` in use.
    pub depth: u64,
    /// Passes that have not returned, oldest first.
    pub open: [Pass; DEPTH],
    /// The latest pass if it returned RETRY; `start_ns` 0 else.
    pub retried: Pass,
    /// Passes that began.
    pub passes: u64,
    /// As in `PathRow`.
    pub faults: u64,
    /// As in `PathRow`.
    pub retries: u64,
    /// As in `PathRow`.
    pub majors: u64,
    /// Faults that returned an error of any kind.
    pub errors: u64,
    /// As in `PathRow`.
    pub ns: u64,
    /// As in `PathRow`.
    pub max_ns: u64,
    /// As in `PathRow`.
    pub pages: u64,
    /// Faults by path.
    pub paths: [u64; PATHS],
    /// As in `PathRow`.
    pub histogram: [u32; SLOTS],
}
const _: () = assert!(size_of::<MmThreadRow>().is_multiple_of(64));
