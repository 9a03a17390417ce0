//! mmap_lock acquisitions, counted, with as little as counts them. Takes, holds and
//! takers are in `mmap`.
//!
//! The lock is held meanwhile, and others wait: no clock, no call chain.

use crate::{
    globals::{self, get, member},
    handoff,
    maps::MMAP_LAST,
    mmap::{launder, syscall},
    record::{cpu, lose, totals},
    thread::{self, Context},
};
use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use core::ptr::read_volatile;
use faultscope_common::{
    config::ABSENT, cpu::CpuRow, lock::FRAMES, loss, mmap::NO_SYSCALL, thread::COUNTED,
};

/// Bits of an rwsem's owner beside a writer's address that say nothing of who has
/// it: "do not spin" (kernel/locking/rwsem.c), on PREEMPT_RT "has waiters"
/// (kernel/locking/rtmutex_common.h).
const NO_SPIN: u64 = 2;
const HAS_WAITERS: u64 = 1;

#[btf_tracepoint(function = "mmap_lock_acquire_returned")]
fn mmap_taken(ctx: BtfTracePointContext) -> i32 {
    taken(ctx.arg(0), ctx.arg(1), ctx.arg(2))
}

#[btf_tracepoint(function = "mmap_lock_acquire_returned")]
fn mmap_taken_memcg(ctx: BtfTracePointContext) -> i32 {
    taken(ctx.arg(0), ctx.arg(2), ctx.arg(3))
}

/// Whether the running thread has the lock for write, so that the read
/// "acquisition" traced is a downgrade: `mmap_write_downgrade` traces it first.
///
/// `scratch` is the caller's own, as in `launder`.
#[inline(always)]
pub fn is_downgrade(mm: *const u8, scratch: Option<*mut [u64; FRAMES]>) -> bool {
    scratch.is_some_and(|scratch| is_written_by_us(mm, scratch.cast()))
}

#[inline(always)]
fn is_written_by_us(mm: *const u8, word: *mut u64) -> bool {
    let offset = get(&globals::OFF_RWSEM_OWNER);
    if offset == ABSENT || get(&globals::OFF_MM_LOCK) == ABSENT {
        return false;
    }
    // SAFETY: the verifier checks the load against the kernel's type.
    let owner = unsafe {
        read_volatile(
            mm.add((get(&globals::OFF_MM_LOCK) + offset) as usize)
                .cast::<*const u8>(),
        )
    };
    // On PREEMPT_RT it is a pointer with a type, and no bit may be taken from it.
    // SAFETY: a word of a live map value that nothing else uses meanwhile.
    let owner = unsafe { launder(word, owner) };
    let ignored = if get(&globals::IS_RT) != 0 {
        HAS_WAITERS
    } else {
        NO_SPIN
    };
    owner & !ignored == thread::task() as u64
}

#[inline(always)]
fn taken(mm: *const u8, is_write: u64, success: u64) -> i32 {
    let cpu = cpu();
    let side = (is_write & 1) as usize;
    let Some(totals) = totals(cpu) else { return 0 };
    if success & 0xff == 0 {
        totals.mmap_failed[side] += 1;
        return 0;
    }
    if side == 0 && is_written_by_us(mm, &raw mut totals.mmap_at_hand) {
        totals.mmap_downgraded += 1;
        return 0;
    }
    totals.mmap_taken[side] += 1;
    note(totals, mm, side, cpu);
    // Nobody takes it for write where it may not sleep; a read may be a trylock in
    // an interrupt.
    let context = if side == 1 {
        Context::MaySleep
    } else {
        Context::Atomic
    };
    match thread::row(context) {
        Some(row) if row.flags & COUNTED != 0 => row.columns.mmap_taken[side] += 1,
        Some(_) => {}
        None if thread::tid() == 0 => {}
        None => lose(loss::THREAD_COLLISION, 1),
    }
    0
}

/// Notes which CPU has the lock now; outside the fault path only.
#[inline(always)]
fn note(totals: &mut CpuRow, mm: *const u8, side: usize, cpu: u32) {
    if side == 0 && (get(&globals::READ_HANDOFFS) == 0 || syscall() == NO_SYSCALL) {
        return;
    }
    // SAFETY: a word of a live map value that only this program on this CPU uses.
    let mm = unsafe { launder(&raw mut totals.mmap_at_hand, mm) };
    let before = handoff::swap(&MMAP_LAST, mm, cpu);
    totals.mmap_before = before;
    if handoff::is_move(before, mm, cpu) {
        totals.mmap_handoffs += 1;
    }
}
