//! Bumping counters, counting losses, atomic maxima.

use crate::maps::CPUS;
use aya_ebpf::helpers::bpf_get_smp_processor_id;
use core::intrinsics::{AtomicOrdering, atomic_cxchg, atomic_xadd};
use faultscope_common::{cpu::CpuRow, loss};

/// The running CPU.
#[inline(always)]
pub fn cpu() -> u32 {
    // SAFETY: no arguments; cannot fail.
    unsafe { bpf_get_smp_processor_id() as u32 }
}

/// Totals of `cpu`.
#[inline(always)]
pub fn totals(cpu: u32) -> Option<&'static mut CpuRow> {
    // SAFETY: the pointer is to a live map value; only this CPU writes it, each
    // column by one program, and programs do not preempt themselves on a CPU.
    CPUS.get_ptr_mut(cpu).map(|p| unsafe { &mut *p })
}

/// Adds to a word other contexts also add to.
#[inline(always)]
pub fn add(word: *mut u64, n: u64) {
    // SAFETY: callers pass a pointer into a live map value.
    unsafe {
        atomic_xadd::<u64, u64, { AtomicOrdering::Relaxed }>(word, n);
    }
}

/// Sets `word` to `new` if it is `old`; returns what it was.
#[inline(always)]
pub fn exchange(word: *mut u64, old: u64, new: u64) -> u64 {
    // SAFETY: callers pass a pointer into a live map value.
    unsafe {
        atomic_cxchg::<u64, { AtomicOrdering::AcqRel }, { AtomicOrdering::Acquire }>(word, old, new)
            .0
    }
}

/// Raises `word` to `n`. Gives up after four lost races: each of them raised it too.
#[inline(always)]
pub fn raise(word: *mut u64, n: u64) {
    for _ in 0..4 {
        // SAFETY: callers pass a pointer into a live map value.
        let old = unsafe { core::ptr::read_volatile(word) };
        if old >= n || exchange(word, old, n) == old {
            return;
        }
    }
}

/// Counts `n` lost events. Atomic: programs that nest share the counters.
#[inline(always)]
pub fn lose(reason: usize, n: u64) {
    if let Some(row) = totals(cpu()) {
        add(&raw mut row.losses[reason % loss::SLOTS], n);
    }
}

/// Spreads every input bit over the word (finaliser of splitmix64, Steele et al. 2014).
#[inline(always)]
pub fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}
