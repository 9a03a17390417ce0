//! mmap_lock acquisitions by address space, taker and system call.

use crate::lock::DISTANCE_SLOTS;
use bytemuck::{Pod, Zeroable};

/// `syscall` of an acquisition made outside a system call (a page fault).
pub const NO_SYSCALL: i32 = -1;
/// `syscall` of an acquisition made by a kernel thread.
pub const KERNEL_THREAD: i32 = -2;
/// `syscall` of an acquisition made by a dying thread, whatever call it died in.
pub const EXIT: i32 = -3;
/// A take longer than this counts as waited, in ns.
pub const SLOW_TAKE_NS: u64 = 10_000;

/// Of so many holds of a row one leaves its call chain while call chains are
/// shown; a power of two.
pub const SITE_EVERY: u64 = 64;

/// Identity of a row.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct MmapKey {
    /// Address of the mm; an identity, never shown.
    pub mm: u64,
    /// Taking process.
    pub tgid: u32,
    /// System call number of the taker.
    pub syscall: i32,
    /// 1 for write.
    pub is_write: u32,
    /// Padding.
    pub _pad: u32,
}

/// Rows of the table; a power of two. An exec leaves about twenty rows behind,
/// which user space frees within two readings.
pub const MMAP_SLOTS: u32 = 16_384;
/// Slots tried before the table counts as full.
pub const MMAP_PROBES: u32 = 32;
/// `MmapRow::tag` set by user space: no program matches the row any more, and
/// user space frees it one interval later.
pub const RETIRED_TAG: u64 = u64::MAX;

/// Row of the open-addressed taker table. Atomic adds, but for write rows, which
/// are written only while the mm's mmap_lock is held for write (`failed` apart).
///
/// Claimed by compare-and-exchange of `tag`, so that no context needs a lock:
/// a read trylock may come from an interrupt.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub struct MmapRow {
    /// Hash of `key`, never 0 or `RETIRED_TAG`; 0 is free.
    pub tag: u64,
    /// Identity; `key.mm` is written last.
    pub key: MmapKey,
    /// Acquisitions, downgrades apart.
    pub taken: u64,
    /// Write holds turned into read holds (in the write row).
    pub downgraded: u64,
    /// Failed attempts (trylocks, killed waiters); they add no wait.
    pub failed: u64,
    /// Time from asking to having, ns.
    pub take_ns: u64,
    /// Longest such time, ns.
    pub take_max_ns: u64,
    /// Takes longer than `SLOW_TAKE_NS`.
    pub slow_takes: u64,
    /// Holds that ended.
    pub holds: u64,
    /// Time held, ns; of a downgraded hold the write part, the rest in the read row.
    pub hold_ns: u64,
    /// Longest hold, ns.
    pub hold_max_ns: u64,
    /// Acquisitions by distance from the CPU of the previous acquisition.
    pub handoffs: [u64; DISTANCE_SLOTS],
    /// tgid of the mm's owner when the row was made, 0 unknown.
    pub owner: u32,
    /// Stack slot + 1 of where the latest sampled hold ended, 0 none.
    pub site: u32,
    /// Rounds the row up to whole cache lines.
    pub _tail: [u64; 2],
}
const _: () = assert!(size_of::<MmapRow>().is_multiple_of(64));
