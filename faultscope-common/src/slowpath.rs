//! Exact spinlock waits: what the slow-path programs keep on each CPU.

use crate::lock::{CLASSES, DEPTH, Wait};
use bytemuck::{Pod, Zeroable};

/// Waits in a spinlock's slow path on one CPU, and how many ended there.
///
/// `waits` nests as contexts do (task, softirq, hardirq, NMI). Written only on
/// its CPU: `seen` marks are set by `contention_begin`, the rest by the
/// slow-path programs, of which a kernel uses one pair.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct SlowRow {
    /// Entries of `waits` in use.
    pub depth: u64,
    /// Waits in progress, the oldest first.
    pub waits: [Wait; DEPTH],
    /// 1 where the contention tracepoint saw the wait of the same index.
    pub seen: [u64; DEPTH],
    /// Waits that ended, by class.
    pub ended: [u64; CLASSES],
    /// Of those, the ones the contention tracepoint saw as well, by class.
    pub ended_seen: [u64; CLASSES],
    /// Returns without a known entry (attach edge, an entry skipped as recursion).
    pub unpaired_ends: u64,
    /// Keeps rows of different CPUs on different cache lines.
    pub _pad: [u64; 6],
}
const _: () = assert!(size_of::<SlowRow>().is_multiple_of(64));
