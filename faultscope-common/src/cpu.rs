//! Totals of one CPU; never filtered.

use crate::lock::CLASSES;
use crate::loss;
use bytemuck::{Pod, Zeroable};

/// Index of a fault's class: bit 0 write, bit 1 instruction fetch, bit 2 page
/// present (protection).
///
/// x86 page-fault error code: bit 0 protection, bit 1 write, bit 4 instruction
/// fetch (arch/x86/include/asm/trap_pf.h).
#[must_use]
#[inline(always)]
pub const fn fault_class(error_code: u64) -> usize {
    (((error_code & 1) << 2) | (((error_code >> 4) & 1) << 1) | ((error_code >> 1) & 1)) as usize
}
/// Number of fault classes.
pub const FAULT_CLASSES: usize = 8;
/// Members of the kernel's `rss_stat` array kept apart; the last takes the rest.
pub const RSS_MEMBERS: usize = 4;

/// Totals of one CPU, written only on that CPU.
///
/// Each column has one writing program, because programs nest on a CPU;
/// `losses` is shared and added to atomically.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct CpuRow {
    /// User faults by class.
    pub user: [u64; FAULT_CLASSES],
    /// Kernel faults on user addresses with page faults enabled, by class.
    pub kernel: [u64; FAULT_CLASSES],
    /// Kernel faults with page faults disabled or on kernel addresses.
    pub fixed_up: u64,
    /// Major faults (perf software event).
    pub major: u64,
    /// Folios put on an LRU list.
    pub lru_insertions: u64,
    /// Folios activated.
    pub lru_activations: u64,
    /// RSS-counter updates by member: file, anon, swap, shmem.
    pub rss: [u64; RSS_MEMBERS],
    /// mmap_lock acquisitions, read then write; downgrades apart.
    pub mmap_taken: [u64; 2],
    /// Failed attempts (trylocks and killed waiters: the tracepoints do not
    /// tell them apart), read then write; never waits.
    pub mmap_failed: [u64; 2],
    /// Write holds turned into read holds.
    pub mmap_downgraded: u64,
    /// Handoffs of mmap_lock from another CPU.
    pub mmap_handoffs: u64,
    /// Time from asking to having, read then write, in ns.
    pub mmap_take_ns: [u64; 2],
    /// Time held, read then write, in ns.
    pub mmap_hold_ns: [u64; 2],
    /// Releases without a known acquisition (attach edge, release by another context).
    pub mmap_unpaired: u64,
    /// Contended waits by class.
    pub waits: [u64; CLASSES],
    /// Time in contended waits by class, in ns.
    pub wait_ns: [u64; CLASSES],
    /// `contention_end` without a known begin (attach edge).
    pub unpaired_ends: u64,
    /// 32-bit system calls, of which madvise cannot be told.
    pub compat_syscalls: u64,
    /// Events lost, by `loss` index; atomic adds.
    pub losses: [u64; loss::SLOTS],
    /// The mm of the mmap_lock acquisition at hand.
    pub mmap_at_hand: u64,
    /// Mm and CPU of the acquisition before it, for the program that comes after.
    pub mmap_before: u64,
    /// Keeps rows of different CPUs on different cache lines.
    pub _pad: [u64; 1],
}
const _: () = assert!(size_of::<CpuRow>().is_multiple_of(64));
