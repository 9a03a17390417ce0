//! Time an lru_lock is held: by region, and exactly.
//!
//! The region is a call of `folio_batch_move_lru`. The exact programs pair what
//! `folio_lruvec_lock*` returned with the release of that address; they run with
//! the lock held, those at the release with any spinlock of the kernel held, so
//! they take none and touch plain arrays only.

use crate::{
    globals::{self, get},
    handoff,
    identify::{lruvec, lruvec_serial},
    lru::{argument, move_row, row},
    maps::{LRU_HELD, LRU_HOLDS, LRU_LAST, LRU_REGIONS},
    record::{cpu, exchange, lose, mix},
    thread,
};
use aya_ebpf::{
    helpers::bpf_ktime_get_ns,
    macros::{fentry, fexit},
    programs::{FEntryContext, FExitContext},
};
use core::ptr::{read_volatile, write_volatile};
use faultscope_common::{
    abi::PROBES,
    config::ABSENT,
    latency, loss,
    lru::{HELD_SLOTS, Held, HoldRow, NESTED, STALE_NS},
};

#[inline(always)]
fn now() -> u64 {
    // SAFETY: no arguments.
    unsafe { bpf_ktime_get_ns() }
}

/// Who cannot hold two lru_locks at once: a CPU, on PREEMPT_RT a thread. Never 0
/// but for the idle task on PREEMPT_RT, which takes no such lock.
#[inline(always)]
fn holder() -> u64 {
    if get(&globals::IS_RT) != 0 {
        thread::tid()
    } else {
        u64::from(cpu()) + 1
    }
}

#[inline(always)]
fn slot(holder: u64) -> u32 {
    (holder as u32) & (HELD_SLOTS - 1)
}

/// Claims a slot whose owner word this is; false if another holder is using it.
#[inline(always)]
fn claim(owner: *mut u64, holder: u64, since_ns: u64, now_ns: u64) -> bool {
    // SAFETY: a word of a live map value.
    let found = unsafe { read_volatile(owner) };
    if found == holder {
        return true;
    }
    let is_free = found == 0 || now_ns.wrapping_sub(since_ns) > STALE_NS;
    if is_free && exchange(owner, found, holder) == found {
        return true;
    }
    lose(loss::LRU_HELD_COLLISION, 1);
    false
}

#[fexit(function = "folio_batch_move_lru")]
fn region_end(ctx: FExitContext) -> i32 {
    let end_ns = now();
    let batch = argument(&ctx, 0);
    let holder = holder();
    let mut start_ns = 0;
    if let Some(regions) = LRU_REGIONS.get_ptr_mut(slot(holder)) {
        // SAFETY: a live map value, written by its owner only.
        let regions = unsafe { &mut *regions };
        if regions.owner == holder {
            for i in 0..NESTED {
                if regions.open[i].batch == batch {
                    start_ns = regions.open[i].start_ns;
                    regions.open[i].batch = 0;
                }
            }
            if regions.open[0].batch == 0 && regions.open[1].batch == 0 {
                // SAFETY: as above; volatile, so that it is the last write.
                unsafe { write_volatile(&raw mut regions.owner, 0) };
            }
        }
    }
    let Some(row) = row() else {
        return 0;
    };
    if start_ns == 0 {
        row.regions_unpaired += 1;
        return 0;
    }
    let ns = end_ns.saturating_sub(start_ns);
    let Some(moves) = move_row(row, argument(&ctx, 1)) else {
        return 0;
    };
    moves.regions += 1;
    moves.region_ns += ns;
    if ns > moves.region_max_ns {
        moves.region_max_ns = ns;
    }
    let bucket = u64::from(latency::bucket(ns)) & get(&globals::M63);
    moves.histogram[bucket as usize] += 1;
    0
}

#[fentry(function = "folio_batch_move_lru")]
fn region_begin(ctx: FEntryContext) -> i32 {
    let batch = argument(&ctx, 0);
    let holder = holder();
    let Some(regions) = LRU_REGIONS.get_ptr_mut(slot(holder)) else {
        return 0;
    };
    // SAFETY: a live map value, written by its owner only.
    let regions = unsafe { &mut *regions };
    let start_ns = now();
    if holder == 0
        || !claim(
            &raw mut regions.owner,
            holder,
            regions.open[0].start_ns,
            start_ns,
        )
    {
        return 0;
    }
    // An entry of the same batch never ended; a full slot has lost one as well.
    let second = regions.open[0].batch != 0
        && regions.open[0].batch != batch
        && (regions.open[1].batch == 0 || regions.open[1].batch == batch);
    let open = if second {
        &mut regions.open[1]
    } else {
        &mut regions.open[0]
    };
    open.batch = batch;
    open.start_ns = start_ns;
    0
}

/// The lock is released; `form` is the column of the program.
#[inline(always)]
fn release(lock: u64, form: usize) -> i32 {
    let Some(row) = row() else {
        return 0;
    };
    row.releases[form] += 1;
    let holder = holder();
    let Some(held) = LRU_HELD.get_ptr_mut(slot(holder)) else {
        return 0;
    };
    // SAFETY: a live map value, written by its owner only.
    let held = unsafe { &mut *held };
    if held.owner == holder && held.lock == lock && holder != 0 {
        // The clock is read for our locks only: this runs at every unlock.
        let ns = now().saturating_sub(held.start_ns);
        let serial = held.serial;
        // SAFETY: as above; volatile, so that the slot is free before anything else.
        unsafe { write_volatile(&raw mut held.owner, 0) };
        ended(lock, serial, ns);
        return 0;
    }
    // Which releases are tested does not depend on what is locked: a count, mixed.
    if mix(row.releases[form]) & (get(&globals::RELEASE_SAMPLE) - 1) != 0 {
        return 0;
    }
    row.tested[form] += 1;
    if lruvec(lock).is_some() {
        row.uncovered[form] += 1;
    }
    0
}

/// Adds an ended hold to its lock's row on this CPU.
#[inline(always)]
fn ended(lock: u64, serial: u64, ns: u64) {
    let cpu = cpu();
    let distance = handoff::note(&LRU_LAST, lock, cpu);
    let rows = get(&globals::HOLD_ROWS);
    let base = u64::from(cpu) * rows;
    let mixed = mix(lock ^ serial);
    let mut free: u64 = u64::MAX;
    for i in 0..u64::from(PROBES) {
        let index = base + ((mixed + i) & (rows - 1));
        let Some(row) = LRU_HOLDS.get_ptr_mut(index as u32) else {
            return;
        };
        // SAFETY: a live map value; only the release programs of this CPU write it.
        let (found, found_serial) = unsafe {
            (
                read_volatile(&raw const (*row).lock),
                read_volatile(&raw const (*row).serial),
            )
        };
        if found == lock && found_serial == serial {
            add(row, ns, distance);
            return;
        }
        if found == 0 && free == u64::MAX {
            free = index;
        }
    }
    if free == u64::MAX {
        lose(loss::LRU_HOLDS_FULL, 1);
        return;
    }
    let Some(row) = LRU_HOLDS.get_ptr_mut(free as u32) else {
        return;
    };
    let (node, memcg) = lruvec(lock).unwrap_or((0, 0));
    // SAFETY: as above. The lock comes last: a reader sees a whole key.
    unsafe {
        write_volatile(&raw mut (*row).serial, serial);
        write_volatile(&raw mut (*row).memcg, memcg);
        write_volatile(&raw mut (*row).node, node);
        write_volatile(&raw mut (*row).lock, lock);
    }
    add(row, ns, distance);
}

#[inline(always)]
fn add(row: *mut HoldRow, ns: u64, distance: u32) {
    // SAFETY: a live map value; only the release programs of this CPU write it.
    let row = unsafe { &mut *row };
    row.holds += 1;
    row.hold_ns += ns;
    if ns > row.max_ns {
        row.max_ns = ns;
    }
    let index = u64::from(distance) & get(&globals::M7);
    row.handoffs[index as usize] += 1;
    let bucket = u64::from(latency::bucket(ns)) & get(&globals::M63);
    row.histogram[bucket as usize] += 1;
}

/// The lock of `lruvec` is had; `form` is the column of the program.
#[inline(always)]
fn acquired(lruvec: u64, form: usize) -> i32 {
    let offset = get(&globals::OFF_LRUVEC_LOCK);
    if lruvec == 0 || offset == ABSENT {
        return 0;
    }
    let holder = holder();
    let Some(row) = row() else {
        return 0;
    };
    let Some(held) = LRU_HELD.get_ptr_mut(slot(holder)) else {
        return 0;
    };
    row.acquired[form] += 1;
    // SAFETY: a live map value, written by its owner only.
    let held = unsafe { &mut *held };
    if held.owner == holder {
        row.unended[form] += 1;
    }
    let serial = lruvec_serial(lruvec);
    // Last, so that our own work is not in the hold.
    let start_ns = now();
    if holder != 0 && claim(&raw mut held.owner, holder, held.start_ns, start_ns) {
        begin(held, lruvec.wrapping_add(offset), serial, start_ns);
    }
    0
}

#[inline(always)]
fn begin(held: &mut Held, lock: u64, serial: u64, start_ns: u64) {
    held.lock = lock;
    held.serial = serial;
    held.start_ns = start_ns;
}

#[fentry(function = "_raw_spin_unlock")]
fn hold_release(ctx: FEntryContext) -> i32 {
    release(argument(&ctx, 0), 0)
}

#[fentry(function = "_raw_spin_unlock_irq")]
fn hold_release_irq(ctx: FEntryContext) -> i32 {
    release(argument(&ctx, 0), 1)
}

#[fentry(function = "_raw_spin_unlock_irqrestore")]
fn hold_release_irqrestore(ctx: FEntryContext) -> i32 {
    release(argument(&ctx, 0), 2)
}

/// PREEMPT_RT: every form of `spin_unlock`.
#[fentry(function = "rt_spin_unlock")]
fn hold_release_rt(ctx: FEntryContext) -> i32 {
    release(argument(&ctx, 0), 0)
}

/// PREEMPT_RT.
#[fexit(function = "folio_lruvec_lock")]
fn hold_acquired_rt(ctx: FExitContext) -> i32 {
    acquired(ctx.ret().unwrap_or(0), 0)
}

/// PREEMPT_RT.
#[fexit(function = "folio_lruvec_lock_irq")]
fn hold_acquired_irq_rt(ctx: FExitContext) -> i32 {
    acquired(ctx.ret().unwrap_or(0), 1)
}

/// PREEMPT_RT.
#[fexit(function = "folio_lruvec_lock_irqsave")]
fn hold_acquired_irqsave_rt(ctx: FExitContext) -> i32 {
    acquired(ctx.ret().unwrap_or(0), 2)
}

#[fexit(function = "folio_lruvec_lock")]
fn hold_acquired(ctx: FExitContext) -> i32 {
    acquired(ctx.ret().unwrap_or(0), 0)
}

#[fexit(function = "folio_lruvec_lock_irq")]
fn hold_acquired_irq(ctx: FExitContext) -> i32 {
    acquired(ctx.ret().unwrap_or(0), 1)
}

#[fexit(function = "folio_lruvec_lock_irqsave")]
fn hold_acquired_irqsave(ctx: FExitContext) -> i32 {
    acquired(ctx.ret().unwrap_or(0), 2)
}
