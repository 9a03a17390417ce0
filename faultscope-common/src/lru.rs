//! LRU counts and lru_lock holds of one CPU.

use crate::latency;
use crate::lock::DISTANCE_SLOTS;
use bytemuck::{Pod, Zeroable};

/// Move functions kept apart on a CPU; the kernel has six (mm/swap.c).
pub const MOVES: usize = 8;
/// Batch sizes kept apart: a batch holds at most 31 folios, 15 before Linux 6.9
/// (`PAGEVEC_SIZE`, include/linux/pagevec.h).
pub const BATCH_SIZES: usize = 32;
/// Programs of one kind that may interrupt each other on a CPU: the plain, `_irq`
/// and `_irqsave` or `_irqrestore` form of a lock function, each with its column.
pub const FORMS: usize = 3;

/// What `folio_batch_move_lru` did for one move function on one CPU.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub struct MoveRow {
    /// Address of the move function, 0 free; claimed by compare-and-exchange.
    pub function: u64,
    /// Batches; written by `lru_batch`, as are the next and `sizes`.
    pub batches: u64,
    /// Folios in them.
    pub folios: u64,
    /// Calls timed; written by `region_end`, as are the next two and `histogram`.
    pub regions: u64,
    /// Their time, ns.
    pub region_ns: u64,
    /// Longest, ns.
    pub region_max_ns: u64,
    /// Batches by number of folios; wraps at 2^32.
    pub sizes: [u32; BATCH_SIZES],
    /// Log-linear histogram of the calls (`latency`); wraps at 2^32.
    pub histogram: [u32; latency::SLOTS],
}

/// LRU totals of one CPU, written only on that CPU, each column by one program.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub struct LruRow {
    /// Calls of `folio_mark_accessed`.
    pub mark_accessed: u64,
    /// Calls of `workingset_activation`.
    pub workingset_activations: u64,
    /// Calls of `workingset_refault`.
    pub refaults: u64,
    /// Calls of `lru_add_drain_cpu`.
    pub drains: u64,
    /// Ends of `folio_batch_move_lru` without a known begin.
    pub regions_unpaired: u64,
    /// lru_locks had through `folio_lruvec_lock*`, by form.
    pub acquired: [u64; FORMS],
    /// Of those, without a release when the next was had.
    pub unended: [u64; FORMS],
    /// Releases of any spinlock seen, by form; on PREEMPT_RT all in the first.
    pub releases: [u64; FORMS],
    /// Of those that end no tracked hold, how many were tested for an lru_lock.
    pub tested: [u64; FORMS],
    /// Of those tested, how many were lru_locks.
    pub uncovered: [u64; FORMS],
    /// Rounds the head up to whole cache lines.
    pub _pad: [u64; 4],
    /// By move function.
    pub moves: [MoveRow; MOVES],
}
const _: () = assert!(size_of::<LruRow>().is_multiple_of(64));

/// Set in `HoldRow::lock` by user space: no program matches the row any more, and
/// user space frees it one interval later. Locks are aligned, so the bit is free.
pub const RETIRED: u64 = 1;

/// Holds of one lru_lock on one CPU; written only there, by the program that
/// sees the release.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct HoldRow {
    /// Address of the lock, 0 free; written last.
    pub lock: u64,
    /// `css.serial_nr` of the memcg, 0 for the node's own lruvec: tells a reused address.
    pub serial: u64,
    /// Cgroup id of the memcg, 0 for the node's own lruvec.
    pub memcg: u64,
    /// NUMA node.
    pub node: u32,
    /// Padding.
    pub _pad: u32,
    /// Holds that ended.
    pub holds: u64,
    /// Their time, ns.
    pub hold_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
    /// Holds by distance from the CPU that held the lock before.
    pub handoffs: [u64; DISTANCE_SLOTS],
    /// Log-linear histogram of holds (`latency`); wraps at 2^32.
    pub histogram: [u32; latency::SLOTS],
    /// Rounds the row up to whole cache lines.
    pub _tail: u64,
}
const _: () = assert!(size_of::<HoldRow>().is_multiple_of(64));

/// Slots of `LRU_HELD` and `LRU_REGIONS`, indexed by CPU, on PREEMPT_RT by thread
/// id, as the holder is preemptible there; a power of two.
pub const HELD_SLOTS: u32 = 4096;
/// An lru_lock held longer than this was released unseen, ns.
pub const STALE_NS: u64 = 1_000_000_000;

/// An lru_lock held.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct Held {
    /// CPU + 1, on PREEMPT_RT the thread id; 0 free.
    pub owner: u64,
    /// Address of the lock.
    pub lock: u64,
    /// Since when, ns.
    pub start_ns: u64,
    /// As in `HoldRow`.
    pub serial: u64,
}

/// A call of `folio_batch_move_lru` in progress.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct Region {
    /// Address of the batch, which tells the calls that nest on a CPU; 0 free.
    pub batch: u64,
    /// Since when, ns.
    pub start_ns: u64,
}

/// Calls nested on a CPU: the end of a write moves folios in an interrupt
/// (`folio_rotate_reclaimable`, mm/swap.c).
pub const NESTED: usize = 2;

/// Calls in progress of one owner.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct Regions {
    /// As in [`Held`].
    pub owner: u64,
    /// Keeps `open` aligned to its size.
    pub _pad: u64,
    /// Calls.
    pub open: [Region; NESTED],
}
