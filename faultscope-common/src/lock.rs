//! Contended waits: classes, keys, per-CPU rows and pairing stacks.

use bytemuck::{Pod, Zeroable};

/// `flags` of the `contention_begin` tracepoint (include/trace/events/lock.h).
pub mod flags {
    /// Spinning.
    pub const SPIN: u32 = 1;
    /// Read side.
    pub const READ: u32 = 2;
    /// Write side.
    pub const WRITE: u32 = 4;
    /// rt_mutex.
    pub const RT: u32 = 8;
    /// per-CPU rwsem.
    pub const PERCPU: u32 = 16;
    /// mutex.
    pub const MUTEX: u32 = 32;
}

/// mmap_lock of some address space.
pub const MMAP: u32 = 0;
/// lru_lock of a node and memcg.
pub const LRU: u32 = 1;
/// zone->lock of the page allocator.
pub const ZONE: u32 = 2;
/// Page-table lock, split or of the whole mm.
pub const PTL: u32 = 3;
/// Other spinlocks and rwlocks.
pub const SPIN: u32 = 4;
/// Other rwsems.
pub const RWSEM: u32 = 5;
/// Mutexes.
pub const MUTEX: u32 = 6;
/// rt_mutexes, and per-CPU rwsems.
pub const RT: u32 = 7;
/// Number of classes.
pub const CLASSES: usize = 8;
/// Row kinds of the lock table.
pub const ROW_LOCK: u8 = 1;
/// A call site's row.
pub const ROW_SITE: u8 = 2;
/// Set in `LockKey::row` by user space: no program matches the row any more,
/// and user space frees it one interval later.
pub const ROW_RETIRED: u8 = 0x80;

/// Handoff distances; the last is "previous owner unknown".
pub const DISTANCES: usize = 6;
/// Words kept for distances: a power of two, so that a mask bounds the index.
pub const DISTANCE_SLOTS: usize = 8;
/// Index of an unknown distance.
pub const UNKNOWN_DISTANCE: usize = 5;

/// Identity of a row of the lock table.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct LockKey {
    /// `ROW_LOCK` or `ROW_SITE`; 0 is a free row.
    pub row: u8,
    /// Class.
    pub class: u8,
    /// `flags` READ or WRITE bits, else 0.
    pub mode: u8,
    /// Padding.
    pub _pad: u8,
    /// NUMA node of an lru_lock or zone lock.
    pub node: u32,
    /// mmap_lock: the mm; zone lock: the lock; others 0.
    pub id: u64,
    /// lru_lock: cgroup id of the memcg, 0 for the node's own lruvec.
    pub memcg: u64,
    /// Stack slot + 1 of a call-site row or of a lock known only by its site.
    pub stack: u32,
    /// mmap_lock: tgid of the mm's owner, 0 unknown.
    pub owner: u32,
}

/// One row of the lock table; written on its CPU by the program that ends a wait
/// (`contention_end`, or the slow path's), which may nest: rows are claimed by
/// compare-and-exchange.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct LockRow {
    /// Identity; written before `waits` becomes non-zero.
    pub key: LockKey,
    /// Contended waits that ended.
    pub waits: u64,
    /// Their time, ns.
    pub wait_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
    /// Handoffs by distance from the previous contended acquirer.
    pub handoffs: [u64; DISTANCE_SLOTS],
    /// An address of the lock, for experts.
    pub address: u64,
    /// Of `waits`, those the contention tracepoint saw.
    pub traced: u64,
    /// Log-linear histogram of waits (`latency`); wraps at 2^32.
    pub histogram: [u32; crate::latency::SLOTS],
}
// A CPU has at least 64 rows: they fill whole cache lines.
const _: () = assert!((64 * size_of::<LockRow>()).is_multiple_of(64));

/// A contended wait in progress.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct Wait {
    /// Address of the lock.
    pub lock: u64,
    /// Start, monotonic ns.
    pub start_ns: u64,
    /// Identity found while waiting.
    pub key: LockKey,
    /// Stack slot + 1, 0 none.
    pub stack: u32,
    /// Thread that waits.
    pub tid: u32,
}

/// Depth of the per-CPU and per-thread pairing stacks; a power of two.
pub const DEPTH: usize = 4;

/// Contended spinlock waits in progress on one CPU (an interrupt nests).
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct SpinStack {
    /// Entries in use.
    pub depth: u64,
    /// Entries, the oldest first.
    pub waits: [Wait; DEPTH],
}

/// Frames kept of a kernel stack.
pub const FRAMES: usize = 16;

/// A kernel call chain, written once.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct StackRow {
    /// Hash of the frames; 0 is free.
    pub hash: u64,
    /// Frames written; 0 while the writer is at work.
    pub frames_used: u64,
    /// Return addresses, innermost first.
    pub frames: [u64; FRAMES],
}
