//! Contended waits: pairing and accounting; `identify` says which lock it is.
//!
//! These programs run with spinlocks held, so they take none: plain arrays and
//! lock-free look-ups only. Identity and call chain are found at the begin,
//! while the task waits anyway; the end, which lengthens the hold, only adds.

use crate::{
    globals::{self, get},
    handoff,
    identify::{call_chain, identify},
    maps::{LOCK_LAST, LOCKS, SCRATCH, SPINS},
    record::{add, cpu, exchange, lose, mix, totals},
    slowpath,
    thread::{self, Context},
};
use aya_ebpf::{helpers::bpf_ktime_get_ns, macros::btf_tracepoint, programs::BtfTracePointContext};
use core::ptr::{read_volatile, write_volatile};
use faultscope_common::{
    abi::PROBES,
    latency,
    lock::{CLASSES, DEPTH, LockKey, LockRow, MMAP, ROW_LOCK, ROW_SITE, RT, Wait, flags},
    loss,
    thread::COUNTED,
};

#[inline(always)]
fn now() -> u64 {
    // SAFETY: no arguments.
    unsafe { bpf_ktime_get_ns() }
}

#[btf_tracepoint(function = "contention_begin")]
fn contention_begin(ctx: BtfTracePointContext) -> i32 {
    let start_ns = now();
    let lock: u64 = ctx.arg(0);
    let kind = ctx.arg::<u64>(1) as u32;
    let tid = thread::tid() as u32;
    if get(&globals::SLOWPATH) != 0 && kind == flags::SPIN && slowpath::mark(lock, tid) {
        return 0;
    }
    // Claims the row, so that `contention_end` finds it.
    let _ = thread::row(Context::Atomic);
    let stack = call_chain(&ctx, &SCRATCH);
    let key = identify(lock, kind, stack, &SCRATCH);
    let wait = Wait {
        lock,
        start_ns,
        key,
        stack,
        tid,
    };
    if kind & flags::SPIN != 0 && kind & (flags::MUTEX | flags::RT) == 0 {
        begin_spin(&wait);
    } else if tid != 0 {
        begin_sleep(&wait, kind & flags::MUTEX != 0);
    }
    0
}

#[btf_tracepoint(function = "contention_end")]
fn contention_end(ctx: BtfTracePointContext) -> i32 {
    let end_ns = now();
    let lock: u64 = ctx.arg(0);
    let tid = thread::tid() as u32;
    let cpu = cpu();
    if get(&globals::SLOWPATH) != 0 && slowpath::is_waiting(lock, tid, cpu) {
        return 0;
    }
    let found = match end_spin(lock, tid, cpu) {
        Some(wait) => Some(wait),
        None => end_sleep(lock, tid),
    };
    match found {
        Some(wait) => ended(&wait, end_ns, cpu, 1),
        None => {
            if let Some(totals) = totals(cpu) {
                totals.unpaired_ends += 1;
            }
        }
    }
    0
}

/// Pushes onto a pairing stack. An entry of the same lock and thread cannot
/// still be waiting, nor can a full stack: what is given up is counted.
#[inline(always)]
pub fn push(waits: &mut [Wait; DEPTH], depth: &mut u64, wait: &Wait) {
    let mut top = *depth;
    if top >= DEPTH as u64 {
        lose(loss::STALE_BEGIN, DEPTH as u64);
        top = 0;
    }
    let index = top & get(&globals::M3);
    waits[index as usize] = *wait;
    *depth = top + 1;
}

#[inline(always)]
fn begin_spin(wait: &Wait) {
    let Some(spins) = SPINS.get_ptr_mut(cpu()) else {
        return;
    };
    // SAFETY: a live map value of this CPU; interrupts nest whole begin-end pairs.
    let spins = unsafe { &mut *spins };
    drop_stale(&spins.waits, &mut spins.depth, wait);
    push(&mut spins.waits, &mut spins.depth, wait);
}

#[inline(always)]
fn begin_sleep(wait: &Wait, is_mutex: bool) {
    let Some(pending) = thread::pending() else {
        lose(loss::PAIRING_COLLISION, 1);
        return;
    };
    if is_mutex && waits_for(&pending.sleeps, pending.sleep_depth, wait) {
        // A mutex begins again at each change between spinning and sleeping
        // (kernel/locking/mutex.c); the wait began with the first.
        return;
    }
    drop_stale(&pending.sleeps, &mut pending.sleep_depth, wait);
    push(&mut pending.sleeps, &mut pending.sleep_depth, wait);
}

#[inline(always)]
pub fn is_same(entry: &Wait, lock: u64, tid: u32) -> bool {
    entry.lock == lock && entry.tid == tid
}

#[inline(always)]
fn waits_for(waits: &[Wait; DEPTH], depth: u64, wait: &Wait) -> bool {
    (0..DEPTH).any(|i| (i as u64) < depth && is_same(&waits[i], wait.lock, wait.tid))
}

/// Forgets an older wait of the same thread for the same lock, and all above it.
#[inline(always)]
pub fn drop_stale(waits: &[Wait; DEPTH], depth: &mut u64, wait: &Wait) {
    for i in 0..DEPTH {
        if (i as u64) < *depth && is_same(&waits[i], wait.lock, wait.tid) {
            lose(loss::STALE_BEGIN, *depth - i as u64);
            *depth = i as u64;
        }
    }
}

/// Pops the topmost wait for the lock, with what `traced` says of its index;
/// entries above it never ended.
///
/// A copy, made word by word: for the verifier all depths are then one state,
/// which divides the instructions it walks by eight.
#[inline(always)]
pub fn pop(
    waits: &[Wait; DEPTH],
    depth: &mut u64,
    lock: u64,
    tid: u32,
    traced: impl Fn(usize) -> u64,
) -> Option<(Wait, u64)> {
    for i in (0..DEPTH).rev() {
        if (i as u64) < *depth && is_same(&waits[i], lock, tid) {
            let above = *depth - 1 - i as u64;
            if above != 0 {
                lose(loss::STALE_BEGIN, above);
            }
            // SAFETY: a live map value. Copied before the entry is given up: an
            // interrupt may begin a wait at once.
            let found = (unsafe { read_volatile(&raw const waits[i]) }, traced(i));
            // SAFETY: as above.
            unsafe { write_volatile(depth, i as u64) };
            return Some(found);
        }
    }
    None
}

#[inline(always)]
fn end_spin(lock: u64, tid: u32, cpu: u32) -> Option<Wait> {
    let spins = SPINS.get_ptr_mut(cpu)?;
    // SAFETY: a live map value of this CPU.
    let spins = unsafe { &mut *spins };
    if spins.depth == 0 {
        return None;
    }
    pop(&spins.waits, &mut spins.depth, lock, tid, |_| 1).map(|(wait, _)| wait)
}

#[inline(always)]
fn end_sleep(lock: u64, tid: u32) -> Option<Wait> {
    let pending = thread::pending()?;
    if pending.sleep_depth == 0 {
        return None;
    }
    pop(&pending.sleeps, &mut pending.sleep_depth, lock, tid, |_| 1).map(|(wait, _)| wait)
}

/// Adds to a word that the other program which ends waits may be adding to
/// below us; without it the addition need not be atomic.
#[inline(always)]
fn bump(word: &mut u64, n: u64) {
    if get(&globals::SLOWPATH) != 0 {
        add(word, n);
    } else {
        *word += n;
    }
}

/// Adds an ended wait to its CPU, its thread, its lock and its call site;
/// `traced` is 1 if the contention tracepoint saw it.
#[inline(always)]
pub fn ended(wait: &Wait, end_ns: u64, cpu: u32, traced: u64) {
    let wait_ns = if end_ns > wait.start_ns {
        end_ns - wait.start_ns
    } else {
        0
    };
    let class = (wait.key.class as u64 & get(&globals::M7)) as usize % CLASSES;
    if let Some(totals) = totals(cpu) {
        bump(&mut totals.waits[class], 1);
        bump(&mut totals.wait_ns[class], wait_ns);
    }
    let is_filtered = get(&globals::FILTERS) != 0;
    match thread::present() {
        Some(row) if row.flags & COUNTED != 0 => {
            bump(&mut row.columns.waits[class], 1);
            bump(&mut row.columns.wait_ns[class], wait_ns);
        }
        Some(_) => return,
        None => {
            if wait.tid != 0 {
                lose(loss::THREAD_COLLISION, 1);
            }
            if is_filtered {
                // Whose wait it is cannot be told, so it is not shown as the filter's.
                return;
            }
        }
    }
    // A handoff of an RT lock's inner lock is not one of the lock.
    let identity = if wait.key.class as u32 == MMAP {
        wait.key.id
    } else {
        wait.lock
    };
    let distance = if wait.key.class as u32 == RT {
        None
    } else {
        Some(handoff::note(&LOCK_LAST, identity, cpu))
    };
    let add = Add {
        wait_ns,
        traced,
        distance,
    };
    add_row(&wait.key, wait, cpu, add);
    if wait.stack != 0 {
        let site = LockKey {
            row: ROW_SITE,
            node: 0,
            id: 0,
            memcg: 0,
            stack: wait.stack,
            owner: 0,
            ..wait.key
        };
        let add = Add {
            distance: None,
            ..add
        };
        add_row(&site, wait, cpu, add);
    }
}

/// What a wait adds to a row.
#[derive(Clone, Copy)]
struct Add {
    wait_ns: u64,
    traced: u64,
    distance: Option<u32>,
}

/// Finds or makes the key's row among this CPU's rows and adds the wait.
#[inline(always)]
fn add_row(key: &LockKey, wait: &Wait, cpu: u32, what: Add) {
    let words = (&raw const *key).cast::<u64>();
    // SAFETY: a key is four words.
    let (a, b, c, d) = unsafe { (*words, *words.add(1), *words.add(2), *words.add(3)) };
    let mixed = mix(a ^ b.rotate_left(17) ^ c.rotate_left(31) ^ d.rotate_left(47));
    let rows = get(&globals::LOCK_ROWS);
    let base = u64::from(cpu) * rows;
    let mut free: u64 = u64::MAX;
    for i in 0..u64::from(PROBES) {
        let index = base + ((mixed + i) & (rows - 1));
        let Some(row) = LOCKS.get_ptr_mut(index as u32) else {
            return;
        };
        let found = row.cast::<u64>().cast_const();
        // SAFETY: a live map value; only this CPU writes it.
        let (fa, fb, fc, fd) = unsafe {
            (
                read_volatile(found),
                read_volatile(found.add(1)),
                read_volatile(found.add(2)),
                read_volatile(found.add(3)),
            )
        };
        if fa == a && fb == b && fc == c && fd == d {
            add_wait(row, wait, what);
            return;
        }
        if fa & 0xff == 0 && free == u64::MAX {
            free = index;
        }
    }
    if free == u64::MAX {
        lose(loss::LOCKS_FULL, u64::from(key.row == ROW_LOCK));
        return;
    }
    let Some(row) = LOCKS.get_ptr_mut(free as u32) else {
        return;
    };
    let into = row.cast::<u64>();
    // SAFETY: as above.
    if exchange(into, 0, a) != 0 {
        // An interrupt took it between the look and the claim.
        lose(loss::LOCKS_FULL, u64::from(key.row == ROW_LOCK));
        return;
    }
    // SAFETY: as above. `waits` becomes non-zero last: a reader sees a whole key.
    unsafe {
        write_volatile(into.add(1), b);
        write_volatile(into.add(2), c);
        write_volatile(into.add(3), d);
    }
    add_wait(row, wait, what);
}

#[inline(always)]
fn add_wait(row: *mut LockRow, wait: &Wait, what: Add) {
    let Add {
        wait_ns,
        traced,
        distance,
    } = what;
    // SAFETY: a live map value; only this CPU writes it.
    let row = unsafe { &mut *row };
    row.waits += 1;
    row.traced += traced;
    row.wait_ns += wait_ns;
    if wait_ns > row.max_ns {
        row.max_ns = wait_ns;
    }
    row.address = wait.lock;
    if let Some(distance) = distance {
        let index = u64::from(distance) & get(&globals::M7);
        row.handoffs[index as usize] += 1;
    }
    let bucket = u64::from(latency::bucket(wait_ns)) & get(&globals::M63);
    row.histogram[bucket as usize] += 1;
}
