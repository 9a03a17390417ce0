//! mmap_lock: takes, holds and the taker of each.
//!
//! `taken` counts acquisitions, and is attached whenever these are.
//! Everything dear is done before the lock is had or, in one look-up, when it
//! is given back; an acquisition is in the taker table once it was given back.

use crate::{
    globals::{self, get},
    handoff,
    identify::{Scratch, are_chains_wanted, owner, take_chain},
    maps::{DOWNGRADE_SCRATCH, MMAP, RELEASE_SCRATCH},
    record::{add, cpu, exchange, lose, mix, raise, totals},
    taken::is_downgrade,
    thread::{self, Context, Special},
};
use aya_ebpf::{
    helpers::{bpf_ktime_get_ns, generated::bpf_task_pt_regs},
    macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use core::ptr::{read_volatile, write_volatile};
use faultscope_common::{
    cpu::CpuRow,
    lock::{DEPTH, DISTANCES},
    loss,
    mmap::{
        EXIT, KERNEL_THREAD, MMAP_PROBES, MMAP_SLOTS, MmapKey, MmapRow, NO_SYSCALL, SITE_EVERY,
        SLOW_TAKE_NS,
    },
    thread::{COUNTED, DOWNGRADED, MmapHold, Pending, READ, ThreadRow, WRITE, Waited},
};

/// Offset of `orig_ax` in pt_regs (arch/x86/include/asm/ptrace.h).
const REGS_ORIG_AX: usize = 120;

#[btf_tracepoint(function = "mmap_lock_start_locking")]
fn mmap_start(ctx: BtfTracePointContext) -> i32 {
    start(ctx.arg(0), ctx.arg(1))
}

#[btf_tracepoint(function = "mmap_lock_start_locking")]
fn mmap_start_memcg(ctx: BtfTracePointContext) -> i32 {
    start(ctx.arg(0), ctx.arg(2))
}

#[btf_tracepoint(function = "mmap_lock_acquire_returned")]
fn mmap_acquired(ctx: BtfTracePointContext) -> i32 {
    acquired(&ctx, ctx.arg(0), ctx.arg(1), ctx.arg(2))
}

#[btf_tracepoint(function = "mmap_lock_acquire_returned")]
fn mmap_acquired_memcg(ctx: BtfTracePointContext) -> i32 {
    acquired(&ctx, ctx.arg(0), ctx.arg(2), ctx.arg(3))
}

#[btf_tracepoint(function = "mmap_lock_released")]
fn mmap_released(ctx: BtfTracePointContext) -> i32 {
    released(&ctx, ctx.arg(0), ctx.arg(1))
}

#[btf_tracepoint(function = "mmap_lock_released")]
fn mmap_released_memcg(ctx: BtfTracePointContext) -> i32 {
    released(&ctx, ctx.arg(0), ctx.arg(2))
}

#[inline(always)]
fn now() -> u64 {
    // SAFETY: no arguments.
    unsafe { bpf_ktime_get_ns() }
}

/// A typed kernel pointer as a plain number: the verifier forbids arithmetic on
/// the former, and a round trip through a map forgets the type.
///
/// The scratch is the caller's own: whatever may interrupt it uses another.
#[inline(always)]
pub fn launder_in(scratch: &'static Scratch, pointer: *const u8) -> u64 {
    let Some(scratch) = scratch.get_ptr_mut(cpu()) else {
        return 0;
    };
    // SAFETY: a live map value of this CPU.
    unsafe { launder(scratch.cast(), pointer) }
}

/// The same by way of the thread's own record, which is at hand.
#[inline(always)]
fn plain(pending: &mut Pending, pointer: *const u8) -> u64 {
    // SAFETY: a word of a live map value that only the running thread uses.
    unsafe { launder(&raw mut pending.mm, pointer) }
}

/// The same by way of a word of a live map value.
///
/// # Safety
/// Nothing that may interrupt the caller uses the word.
#[inline(always)]
pub unsafe fn launder(word: *mut u64, pointer: *const u8) -> u64 {
    // SAFETY: as the caller promises.
    unsafe {
        write_volatile(word, pointer as u64);
        read_volatile(word)
    }
}

/// Drops what was begun before these programs were attached the last time: its end
/// may have been missed.
#[inline(always)]
pub fn renew(pending: &mut Pending) {
    let era = thread::mmap_era();
    if pending.mmap_era != era {
        pending.mmap_era = era;
        pending.mmap_depth = 0;
    }
}

/// System call the running task is in.
#[inline(always)]
pub fn syscall() -> i32 {
    let task = thread::task();
    match thread::special(task) {
        Special::KernelThread => return KERNEL_THREAD,
        Special::Exiting => return EXIT,
        Special::No => {}
    }
    // SAFETY: the helper takes the running task.
    let regs = unsafe { bpf_task_pt_regs(task as *mut _) } as *const u8;
    // SAFETY: the verifier checks the load against pt_regs.
    let nr = unsafe { read_volatile(regs.add(REGS_ORIG_AX).cast::<i64>()) };
    // Exceptions store -1 there (arch/x86/entry/entry_64.S).
    if nr < 0 { NO_SYSCALL } else { nr as i32 }
}

#[inline(always)]
fn start(mm: *const u8, is_write: u64) -> i32 {
    let asked_ns = now();
    // Nobody asks for it for write where it may not sleep; a read may be a
    // trylock in an interrupt.
    let context = if is_write & 0xff != 0 {
        Context::MaySleep
    } else {
        Context::Atomic
    };
    if let (_, Some(pending)) = thread::row_and_pending(context) {
        renew(pending);
        let mm = plain(pending, mm);
        let mode = if is_write & 0xff != 0 { WRITE } else { READ };
        push(
            pending,
            hold(mm, asked_ns, 0, mode, syscall(), DISTANCES as u32),
        );
    }
    0
}

#[inline(always)]
fn hold(mm: u64, asked_ns: u64, had_ns: u64, mode: u32, syscall: i32, distance: u32) -> MmapHold {
    MmapHold {
        mm,
        asked_ns,
        had_ns,
        mode,
        syscall,
        distance,
        is_waited: 0,
        number: 0,
    }
}

/// Puts an entry on the pairing stack; the oldest gives way when it is full.
#[inline(always)]
fn push(pending: &mut Pending, entry: MmapHold) {
    let mut depth = pending.mmap_depth;
    if depth >= DEPTH as u64 {
        lose(loss::MMAP_NESTING, 1);
        for i in 1..DEPTH {
            pending.mmap[i - 1] = pending.mmap[i];
        }
        depth = DEPTH as u64 - 1;
    }
    let index = depth & get(&globals::M3);
    pending.mmap_number += 1;
    pending.mmap[index as usize] = MmapHold {
        number: pending.mmap_number,
        ..entry
    };
    pending.mmap_depth = depth + 1;
}

/// Drops free entries from the top of the stack.
#[inline(always)]
fn trim(pending: &mut Pending) {
    let mut depth = pending.mmap_depth;
    for i in (0..DEPTH).rev() {
        if depth == i as u64 + 1 && pending.mmap[i].mm == 0 {
            depth = i as u64;
        }
    }
    pending.mmap_depth = depth;
}

/// Calls `$body` with the topmost entry for which `$test` holds.
macro_rules! find_topmost {
    ($pending:expr, |$entry:ident| $test:expr, $body:block) => {
        'search: {
            for i in (0..DEPTH).rev() {
                if (i as u64) < $pending.mmap_depth {
                    let $entry = &mut $pending.mmap[i];
                    if $test {
                        break 'search Some($body);
                    }
                }
            }
            None
        }
    };
}
pub(crate) use find_topmost as topmost;

#[inline(always)]
fn acquired(ctx: &BtfTracePointContext, mm: *const u8, is_write: u64, success: u64) -> i32 {
    let had_ns = now();
    let cpu = cpu();
    let side = (is_write & 1) as usize;
    let Some(totals) = totals(cpu) else { return 0 };
    // Who acquires was identified by the program that counts it, a moment ago.
    let (row, pending) = thread::present_and_pending();
    let Some(pending) = pending else {
        if success & 0xff != 0 && thread::tid() != 0 {
            lose(loss::PAIRING_COLLISION, 1);
        }
        return 0;
    };
    renew(pending);
    let typed = mm;
    let mm = plain(pending, typed);
    if success & 0xff == 0 {
        failed(pending, row, mm, side);
        return 0;
    }
    if side == 0 && is_downgrade(typed, DOWNGRADE_SCRATCH.get_ptr_mut(cpu)) {
        downgraded(ctx, totals, pending, row, mm, had_ns);
        return 0;
    }
    let asked = topmost!(
        pending,
        |e| e.mm == mm && e.had_ns == 0 && e.mode as usize == side,
        {
            e.had_ns = had_ns;
            e.distance = distance(totals, mm, side, e.syscall, cpu);
            had_ns - e.asked_ns
        }
    );
    if let Some(take_ns) = asked {
        totals.mmap_take_ns[side] += take_ns;
        if let Some(row) = row {
            if row.flags & COUNTED != 0 {
                row.columns.mmap_take_ns[side] += take_ns;
            }
        }
        return 0;
    }
    let syscall = syscall();
    let distance = distance(totals, mm, side, syscall, cpu);
    push(pending, hold(mm, 0, had_ns, side as u32, syscall, distance));
    0
}

/// The end of a write hold that goes on as a read hold.
#[inline(always)]
fn downgraded(
    ctx: &BtfTracePointContext,
    totals: &mut CpuRow,
    pending: &mut Pending,
    row: Option<&'static mut ThreadRow>,
    mm: u64,
    had_ns: u64,
) {
    let written = topmost!(
        pending,
        |e| e.mm == mm && e.had_ns != 0 && e.mode == WRITE,
        {
            let closed = *e;
            e.mode = DOWNGRADED;
            e.asked_ns = 0;
            e.had_ns = had_ns;
            e.is_waited = 0;
            closed
        }
    );
    let Some(closed) = written else {
        // It began before these programs were attached.
        push(
            pending,
            hold(mm, 0, had_ns, DOWNGRADED, syscall(), DISTANCES as u32),
        );
        return;
    };
    let hold_ns = had_ns - closed.had_ns;
    totals.mmap_hold_ns[1] += hold_ns;
    let found = account(row, &closed, hold_ns, true);
    leave(ctx, &DOWNGRADE_SCRATCH, pending, &closed, found);
}

/// Distance from the previous acquisition, as the program that counts them noted it.
#[inline(always)]
fn distance(totals: &CpuRow, mm: u64, side: usize, syscall: i32, cpu: u32) -> u32 {
    if side == 0 && (get(&globals::READ_HANDOFFS) == 0 || syscall == NO_SYSCALL) {
        return DISTANCES as u32;
    }
    handoff::between(totals.mmap_before, mm, cpu)
}

/// A failed attempt: a trylock, or a waiter that was killed. Both follow
/// `mmap_lock_start_locking`, and neither is a wait.
#[inline(always)]
fn failed(pending: &mut Pending, row: Option<&'static mut ThreadRow>, mm: u64, side: usize) {
    let asked = topmost!(
        pending,
        |e| e.mm == mm && e.had_ns == 0 && e.mode as usize == side,
        {
            e.mm = 0;
            e.syscall
        }
    );
    trim(pending);
    let Some(row) = row else { return };
    if row.flags & COUNTED == 0 {
        return;
    }
    let syscall = match asked {
        Some(syscall) => syscall,
        None => syscall(),
    };
    if let Some(found) = find(&key(row, mm, syscall, side)) {
        // SAFETY: a live map value.
        add(unsafe { &raw mut (*found).failed }, 1);
    }
}

#[inline(always)]
fn released(ctx: &BtfTracePointContext, mm: *const u8, is_write: u64) -> i32 {
    let given_ns = now();
    let side = (is_write & 1) as usize;
    let Some(totals) = totals(cpu()) else {
        return 0;
    };
    let (row, pending) = thread::present_and_pending();
    let Some(pending) = pending else {
        totals.mmap_unpaired += 1;
        return 0;
    };
    renew(pending);
    let mm = plain(pending, mm);
    let wanted = |mode: u32| (mode == WRITE) == (side == 1);
    let closed = topmost!(
        pending,
        |e| e.mm == mm && e.had_ns != 0 && wanted(e.mode),
        {
            let closed = *e;
            e.mm = 0;
            closed
        }
    );
    let Some(closed) = closed else {
        totals.mmap_unpaired += 1;
        return 0;
    };
    trim(pending);
    let hold_ns = given_ns - closed.had_ns;
    totals.mmap_hold_ns[side] += hold_ns;
    let found = account(row, &closed, hold_ns, false);
    leave(ctx, &RELEASE_SCRATCH, pending, &closed, found);
    0
}

/// Leaves the call chain of a hold that somebody waits for, and of one hold of
/// [`SITE_EVERY`] while call chains are shown. The lock is not given back yet, so
/// whoever waits for it finds the chain.
#[inline(always)]
fn leave(
    ctx: &BtfTracePointContext,
    scratch: &'static Scratch,
    pending: &mut Pending,
    closed: &MmapHold,
    found: Option<*mut MmapRow>,
) {
    let is_sampled = match found {
        Some(row) => {
            // SAFETY: a live map value; a plain read.
            let holds = unsafe { read_volatile(&raw const (*row).holds) };
            holds & (SITE_EVERY - 1) == 1
        }
        None => false,
    };
    if (closed.is_waited == 0 && !is_sampled) || !are_chains_wanted() {
        return;
    }
    let Some(frames) = scratch.get_ptr_mut(cpu()) else {
        return;
    };
    let site = take_chain(ctx, frames);
    if closed.is_waited != 0 {
        let index = pending.waited_count & get(&globals::M3);
        pending.waited_count += 1;
        pending.waited[index as usize] = Waited {
            number: closed.number as u32,
            site,
        };
    }
    if let Some(row) = found {
        // SAFETY: a live map value; whichever sample comes last is as good as another.
        unsafe { write_volatile(&raw mut (*row).site, site) };
    }
}

#[inline(always)]
fn key(row: &ThreadRow, mm: u64, syscall: i32, side: usize) -> MmapKey {
    MmapKey {
        mm,
        tgid: (row.exec_and_tgid >> 32) as u32,
        syscall,
        is_write: side as u32,
        _pad: 0,
    }
}

/// The key's row, claimed if there is none yet.
#[inline(always)]
fn find(key: &MmapKey) -> Option<*mut MmapRow> {
    let words = (&raw const *key).cast::<u64>();
    // SAFETY: a key is three words.
    let (a, b, c) = unsafe { (*words, *words.add(1), *words.add(2)) };
    let mixed = mix(a ^ b.rotate_left(23) ^ c.rotate_left(41));
    // Neither 0 (free) nor all ones (retired).
    let tag = (mixed | 1) & !2;
    for i in 0..u64::from(MMAP_PROBES) {
        let index = ((mixed >> 32) + i) & (u64::from(MMAP_SLOTS) - 1);
        let row = MMAP.get_ptr_mut(index as u32)?;
        // SAFETY: a live map value.
        let mut found = unsafe { read_volatile(&raw const (*row).tag) };
        if found == 0 {
            // SAFETY: as above.
            found = exchange(unsafe { &raw mut (*row).tag }, 0, tag);
            if found == 0 {
                let owner = owner(key.mm);
                // SAFETY: as above; `mm` last tells readers that the key is whole.
                unsafe {
                    write_volatile(&raw mut (*row).owner, owner);
                    let into = (&raw mut (*row).key).cast::<u64>();
                    write_volatile(into.add(1), b);
                    write_volatile(into.add(2), c);
                    write_volatile(into, a);
                }
                return Some(row);
            }
        }
        if found == tag {
            return Some(row);
        }
    }
    lose(loss::MMAP_FULL, 1);
    None
}

/// Adds an ended hold (or the write part of a downgraded one) to its rows.
#[inline(always)]
fn account(
    row: Option<&'static mut ThreadRow>,
    closed: &MmapHold,
    hold_ns: u64,
    downgrade: bool,
) -> Option<*mut MmapRow> {
    let side = usize::from(closed.mode == WRITE);
    let Some(row) = row else {
        lose(loss::THREAD_COLLISION, 1);
        return None;
    };
    if row.flags & COUNTED == 0 {
        return None;
    }
    row.columns.mmap_hold_ns[side] += hold_ns;
    let found = find(&key(row, closed.mm, closed.syscall, side))?;
    if closed.mode == WRITE {
        // Before the lock is given back or downgraded (include/linux/mmap_lock.h):
        // nobody else can be in a write row of this mm.
        bump::<true>(found, closed, hold_ns, downgrade);
    } else {
        bump::<false>(found, closed, hold_ns, downgrade);
    }
    Some(found)
}

/// Adds an ended hold to its row; with plain adds where the row is ours alone.
#[inline(always)]
fn bump<const ALONE: bool>(row: *mut MmapRow, closed: &MmapHold, hold_ns: u64, downgrade: bool) {
    let add = |word: *mut u64, n: u64| {
        if ALONE {
            // SAFETY: a word of a live map value that nobody else writes now.
            unsafe { *word += n };
        } else {
            add(word, n);
        }
    };
    let raise = |word: *mut u64, n: u64| {
        if !ALONE {
            raise(word, n);
        // SAFETY: as above.
        } else if unsafe { *word } < n {
            // SAFETY: as above.
            unsafe { *word = n };
        }
    };
    // SAFETY: fields of a live map value.
    unsafe {
        if closed.mode != DOWNGRADED {
            add(&raw mut (*row).taken, 1);
        }
        if downgrade {
            add(&raw mut (*row).downgraded, 1);
        }
        if closed.asked_ns != 0 {
            let take_ns = closed.had_ns - closed.asked_ns;
            add(&raw mut (*row).take_ns, take_ns);
            raise(&raw mut (*row).take_max_ns, take_ns);
            if take_ns > SLOW_TAKE_NS {
                add(&raw mut (*row).slow_takes, 1);
            }
        }
        add(&raw mut (*row).holds, 1);
        add(&raw mut (*row).hold_ns, hold_ns);
        raise(&raw mut (*row).hold_max_ns, hold_ns);
        if closed.mode != DOWNGRADED && (closed.distance as usize) < DISTANCES {
            let index = u64::from(closed.distance) & get(&globals::M7);
            add(
                (&raw mut (*row).handoffs).cast::<u64>().add(index as usize),
                1,
            );
        }
    }
}
