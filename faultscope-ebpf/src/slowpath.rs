//! Exact spinlock waits: from the entry of a queued spinlock's slow path to its
//! return, first waiters and test-and-set guests included.
//!
//! They run with spinlocks held and from any context, so they take no lock and
//! share no scratch with what they may interrupt. While they are attached
//! (`SLOWPATH`) the contention tracepoint only marks the waits it sees.

use crate::{
    globals::{self, get},
    identify::{call_chain, identify},
    lock::{drop_stale, ended, is_same, pop, push},
    maps::{SLOW, SLOW_SCRATCH},
    record::cpu,
    thread::{self, Context},
};
use aya_ebpf::{
    EbpfContext,
    helpers::{bpf_ktime_get_ns, generated::bpf_get_func_arg},
    macros::{fentry, fexit},
    programs::{FEntryContext, FExitContext},
};
use core::ptr::{read_volatile, write_volatile};
use faultscope_common::{
    lock::{CLASSES, DEPTH, Wait, flags},
    slowpath::SlowRow,
};

#[fentry(function = "native_queued_spin_lock_slowpath")]
fn spin_slowpath_native_begin(ctx: FEntryContext) -> i32 {
    begin(&ctx)
}

#[fexit(function = "native_queued_spin_lock_slowpath")]
fn spin_slowpath_native_end(ctx: FExitContext) -> i32 {
    end(&ctx)
}

#[fentry(function = "__pv_queued_spin_lock_slowpath")]
fn spin_slowpath_pv_begin(ctx: FEntryContext) -> i32 {
    begin(&ctx)
}

#[fexit(function = "__pv_queued_spin_lock_slowpath")]
fn spin_slowpath_pv_end(ctx: FExitContext) -> i32 {
    end(&ctx)
}

#[inline(always)]
fn now() -> u64 {
    // SAFETY: no arguments.
    unsafe { bpf_ktime_get_ns() }
}

/// The `qspinlock *`, as a number: arithmetic on the typed argument is refused.
#[inline(always)]
fn lock_of(ctx: &impl EbpfContext) -> u64 {
    let mut lock = 0;
    // SAFETY: the function has two arguments; the helper writes one word.
    unsafe { bpf_get_func_arg(ctx.as_ptr(), 0, &raw mut lock) };
    lock
}

#[inline(always)]
fn row(cpu: u32) -> Option<&'static mut SlowRow> {
    // SAFETY: a live map value that only this CPU writes; interrupts nest whole
    // waits above the depth they found.
    SLOW.get_ptr_mut(cpu).map(|p| unsafe { &mut *p })
}

#[inline(always)]
fn begin(ctx: &impl EbpfContext) -> i32 {
    let start_ns = now();
    let lock = lock_of(ctx);
    let tid = thread::tid() as u32;
    // Claims the row, so that the end finds it.
    let _ = thread::row(Context::Atomic);
    let stack = call_chain(ctx, &SLOW_SCRATCH);
    let wait = Wait {
        lock,
        start_ns,
        key: identify(lock, flags::SPIN, stack, &SLOW_SCRATCH),
        stack,
        tid,
    };
    if let Some(row) = row(cpu()) {
        drop_stale(&row.waits, &mut row.depth, &wait);
        let at = row.depth & get(&globals::M3);
        row.seen[at as usize] = 0;
        push(&mut row.waits, &mut row.depth, &wait);
    }
    0
}

#[inline(always)]
fn end(ctx: &impl EbpfContext) -> i32 {
    let end_ns = now();
    let lock = lock_of(ctx);
    let cpu = cpu();
    let Some(row) = row(cpu) else { return 0 };
    let seen = &row.seen;
    let tid = thread::tid() as u32;
    // SAFETY: a word of a live map value.
    let mark = |i: usize| unsafe { read_volatile(&raw const seen[i]) };
    let Some((wait, seen)) = pop(&row.waits, &mut row.depth, lock, tid, mark) else {
        row.unpaired_ends += 1;
        return 0;
    };
    let class = (u64::from(wait.key.class) & get(&globals::M7)) as usize % CLASSES;
    row.ended[class] += 1;
    row.ended_seen[class] += seen;
    ended(&wait, end_ns, cpu, seen);
    0
}

/// Notes that the contention tracepoint sees a wait that is being measured here;
/// false if none is.
#[inline(always)]
pub fn mark(lock: u64, tid: u32) -> bool {
    let Some(row) = row(cpu()) else { return false };
    for i in (0..DEPTH).rev() {
        if (i as u64) < row.depth && is_same(&row.waits[i], lock, tid) {
            // SAFETY: a word of a live map value.
            unsafe { write_volatile(&raw mut row.seen[i], 1) };
            return true;
        }
    }
    false
}

/// Whether this CPU is in the slow path of the lock.
#[inline(always)]
pub fn is_waiting(lock: u64, tid: u32, cpu: u32) -> bool {
    let Some(row) = row(cpu) else { return false };
    // SAFETY: a word of a live map value.
    let depth = unsafe { read_volatile(&raw const row.depth) };
    (0..DEPTH).any(|i| (i as u64) < depth && is_same(&row.waits[i], lock, tid))
}
