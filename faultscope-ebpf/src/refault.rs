//! Faults on memory that madvise gave back a moment ago.
//!
//! The end of a madvise call keeps the range for a while, in a table of fixed
//! size; programs of their own look every fault's address up in it. A fault
//! writes to lines of its own CPU only.

use crate::{
    globals::{self, get, member, peek},
    maps::{GIVEN, REFAULT_SCRATCH, REFAULTS},
    mmap::launder_in,
    record::{add, cpu, exchange, lose, mix},
    thread,
};
use aya_ebpf::{
    helpers::{bpf_ktime_get_ns, bpf_probe_read_user},
    macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use core::ptr::{read_volatile, write_volatile};
use faultscope_common::{
    abi::PROBES,
    latency::bucket,
    loss,
    madvise::NR_PROCESS_MADVISE,
    refault::{GIVEN_SETS, GRANULES, LEVELS, REFAULT_ROWS, RefaultRow, VECTOR, WAYS, refault_tag},
    thread::Pending,
};

/// The error code's bit for a page that was there (arch/x86/include/asm/trap_pf.h).
const PRESENT: u64 = 1;
/// Bits of an address within a page.
const PAGE: u64 = 0xfff;

/// A range as it is looked up.
struct Range {
    mm: u64,
    owner_start_ns: u64,
    start: u64,
    end: u64,
    tag: u64,
    now: u64,
}

#[btf_tracepoint(function = "page_fault_user")]
fn refault_user(ctx: BtfTracePointContext) -> i32 {
    let error_code: u64 = ctx.arg(2);
    if error_code & PRESENT == 0 {
        fault(ctx.arg(0));
    }
    0
}

/// Faults the kernel takes on user addresses; with page faults disabled nothing is brought back.
#[btf_tracepoint(function = "page_fault_kernel")]
fn refault_kernel(ctx: BtfTracePointContext) -> i32 {
    let address: u64 = ctx.arg(0);
    let error_code: u64 = ctx.arg(2);
    let disabled: i32 = member(thread::task(), &globals::OFF_TASK_PF_DISABLED).unwrap_or(0);
    if error_code & PRESENT == 0 && disabled == 0 && address >> 63 == 0 {
        fault(address);
    }
    0
}

/// Learns whose memory a process_madvise call is about: it takes that mmap_lock.
/// The mm is the first argument of both prototypes.
#[btf_tracepoint(function = "mmap_lock_start_locking")]
fn advised_mm(ctx: BtfTracePointContext) -> i32 {
    let Some(pending) = thread::pending() else {
        return 0;
    };
    if pending.madvise_start_ns == 0 || u64::from(pending.madvise_call) != NR_PROCESS_MADVISE {
        return 0;
    }
    let mm = launder_in(&REFAULT_SCRATCH, ctx.arg(0));
    if mm != own_mm() {
        pending.madvise_len = mm;
    }
    0
}

/// The caller's mm as a plain number, 0 for none.
#[inline(always)]
fn own_mm() -> u64 {
    match member::<*const u8>(thread::task(), &globals::OFF_TASK_MM) {
        Some(mm) if !mm.is_null() => launder_in(&REFAULT_SCRATCH, mm),
        _ => 0,
    }
}

/// start_time of the mm's owner, 0 unknown: an mm freed and made anew for
/// another process within the window must not inherit its ranges.
#[inline(always)]
fn owner_start(mm: u64) -> u64 {
    match peek::<u64>(mm, &globals::OFF_MM_OWNER) {
        Some(task) if task != 0 => peek(task, &globals::OFF_TASK_START).unwrap_or(0),
        _ => 0,
    }
}

/// Row of `GIVEN` for the granule of an address space around an address.
#[inline(always)]
fn set(mm: u64, level: u32, address: u64) -> u32 {
    let granule = (address >> level) << 8 | u64::from(level);
    mix(mm ^ mix(granule)) as u32 & (GIVEN_SETS - 1)
}

/// Keeps what a successful call gave back: `bytes` from `start` on, or so many of the ranges whose vector is there.
#[inline(always)]
pub fn given_back(pending: &Pending, tgid: u32, start: u64, bytes: u64) {
    let is_remote = u64::from(pending.madvise_call) == NR_PROCESS_MADVISE;
    let mm = match pending.madvise_len {
        mm if is_remote && mm != 0 => mm,
        _ => own_mm(),
    };
    let mut range = Range {
        mm,
        owner_start_ns: owner_start(mm),
        start,
        end: 0,
        tag: refault_tag(tgid, pending.madvise_advice, is_remote),
        // SAFETY: no arguments.
        now: unsafe { bpf_ktime_get_ns() },
    };
    if mm == 0 || bytes == 0 {
        return;
    }
    let mut left = bytes;
    for i in 0..VECTOR {
        let mut len = left;
        if is_remote {
            let vector = start.wrapping_add(16 * i) as *const [u64; 2];
            // SAFETY: the helper checks the address; a page that is not there is an error.
            let Ok(entry) = (unsafe { bpf_probe_read_user(vector) }) else {
                break;
            };
            range.start = entry[0];
            if entry[1] < len {
                len = entry[1];
            }
        }
        range.end = range.start.wrapping_add(len);
        give(&range);
        left -= len;
        if left == 0 {
            return;
        }
    }
    lose(loss::GIVEN_UNREAD, 1);
    if let Some(row) = row(range.tag) {
        // SAFETY: a live map value.
        add(unsafe { &raw mut (*row).lost_bytes }, left);
        // SAFETY: as above.
        add(unsafe { &raw mut (*row).bytes }, left);
    }
}

/// The same number, of which the verifier then knows nothing: else it goes through what follows once for each value.
#[inline(always)]
fn forget(number: u64) -> u64 {
    launder_in(&REFAULT_SCRATCH, number as *const u8)
}

/// Keeps one range, under each granule it touches.
#[inline(always)]
fn give(range: &Range) {
    // The kernel rounds the length up (mm/madvise.c).
    let end = (range.end.wrapping_add(PAGE)) & !PAGE;
    if end <= range.start {
        return;
    }
    match row(range.tag) {
        // SAFETY: a live map value.
        Some(row) => unsafe {
            add(&raw mut (*row).ranges, 1);
            add(&raw mut (*row).bytes, end - range.start);
        },
        None => {
            lose(loss::REFAULTS_FULL, 1);
            return;
        }
    }
    let mut level = LEVELS[2];
    for lower in [LEVELS[1], LEVELS[0]] {
        if ((end - 1) >> lower) - (range.start >> lower) < GRANULES {
            level = lower;
        }
    }
    let level = forget(u64::from(level)) as u32 & 63;
    let mut from = range.start;
    for _ in 0..GRANULES {
        let border = ((from >> level) + 1) << level;
        let to = if border < end { border } else { end };
        keep(range, from, to, set(range.mm, level, from));
        from = to;
        if from >= end {
            break;
        }
    }
}

/// Writes one part of a range over one that it contains, else over the one
/// written first. Few branches live on after the search: each would double what
/// the verifier has to go through.
#[inline(always)]
fn keep(range: &Range, start: u64, end: u64, set: u32) {
    let Some(set) = GIVEN.get_ptr_mut(set) else {
        return;
    };
    let mut way = WAYS;
    for i in 0..WAYS {
        // SAFETY: a live map value; the words are plain integers.
        let (mm, from, to) = unsafe {
            (
                read_volatile(&raw const (*set).mm[i]),
                read_volatile(&raw const (*set).start[i]),
                read_volatile(&raw const (*set).end[i]),
            )
        };
        if mm == range.mm && from >= start && to <= end {
            way = i;
            break;
        }
    }
    let is_contained = forget(way as u64) < WAYS as u64;
    if !is_contained {
        // SAFETY: a live map value. Two CPUs may take the same number: the
        // sequence tells.
        unsafe {
            let written = &raw mut (*set).written[0];
            way = read_volatile(written) as usize;
            write_volatile(written, way as u64 + 1);
        }
    }
    let way = forget(way as u64) as usize & get(&globals::M7) as usize;
    let mut lost_tag = range.tag;
    let mut lost_bytes = 0;
    // SAFETY: a live map value, the index bounded.
    unsafe {
        let sequence = &raw mut (*set).sequence[way];
        let before = read_volatile(sequence);
        if before & 1 != 0 || exchange(sequence, before, before + 1) != before {
            // Another CPU writes this very entry now.
            lost_bytes = end - start;
        } else {
            let at_ns = read_volatile(&raw const (*set).at_ns[way]);
            let until_ns = at_ns.wrapping_add(get(&globals::REFAULT_WINDOW_NS));
            if !is_contained && at_ns != 0 && until_ns > range.now {
                let from = read_volatile(&raw const (*set).start[way]);
                lost_bytes = read_volatile(&raw const (*set).end[way]) - from;
                lost_tag = read_volatile(&raw const (*set).tag[way]);
            }
            write_volatile(&raw mut (*set).mm[way], range.mm);
            write_volatile(&raw mut (*set).start[way], start);
            write_volatile(&raw mut (*set).end[way], end);
            write_volatile(&raw mut (*set).at_ns[way], range.now);
            write_volatile(&raw mut (*set).owner_start_ns[way], range.owner_start_ns);
            write_volatile(&raw mut (*set).tag[way], range.tag);
            write_volatile(sequence, before + 2);
        }
    }
    if lost_bytes != 0 {
        lose_part(lost_tag, lost_bytes);
    }
}

/// Counts bytes that are followed no longer.
#[inline(always)]
fn lose_part(tag: u64, bytes: u64) {
    lose(loss::GIVEN_OVERWRITTEN, 1);
    if let Some(row) = row(tag) {
        // SAFETY: a live map value.
        add(unsafe { &raw mut (*row).lost_bytes }, bytes);
    }
}

/// The row of this CPU for a tag, claimed if need be.
#[inline(always)]
fn row(tag: u64) -> Option<*mut RefaultRow> {
    let first = mix(tag) as u32;
    let base = cpu() * REFAULT_ROWS;
    for i in 0..PROBES {
        let index = base + (first.wrapping_add(i) & (REFAULT_ROWS - 1));
        let row = REFAULTS.get_ptr_mut(index)?;
        // SAFETY: a live map value.
        let found = unsafe { read_volatile(&raw const (*row).tag) };
        if found == tag {
            return Some(row);
        }
        // SAFETY: as above.
        if found == 0 && exchange(unsafe { &raw mut (*row).tag }, 0, tag) == 0 {
            return Some(row);
        }
    }
    None
}

/// The newest range around an address.
struct Found {
    at_ns: u64,
    tag: u64,
    owner_start_ns: u64,
}

#[inline(always)]
fn fault(address: u64) {
    let mm = own_mm();
    if mm == 0 {
        return;
    }
    let mut found = Found {
        at_ns: 0,
        tag: 0,
        owner_start_ns: 0,
    };
    for level in LEVELS {
        find(&mut found, mm, address, level);
    }
    if found.at_ns == 0 {
        return;
    }
    // SAFETY: no arguments.
    let ns = unsafe { bpf_ktime_get_ns() }.saturating_sub(found.at_ns);
    if ns > get(&globals::REFAULT_WINDOW_NS) || owner_start(mm) != found.owner_start_ns {
        return;
    }
    let Some(row) = row(found.tag) else {
        lose(loss::REFAULTS_FULL, 1);
        return;
    };
    let bucket = bucket(ns) as usize & get(&globals::M63) as usize;
    // SAFETY: a live map value that only this CPU writes, the index bounded.
    unsafe {
        add(&raw mut (*row).refaults, 1);
        add(&raw mut (*row).ns, ns);
        let count = &raw mut (*row).histogram[bucket];
        write_volatile(count, read_volatile(count).wrapping_add(1));
    }
}

#[inline(always)]
fn find(found: &mut Found, mm: u64, address: u64, level: u32) {
    let Some(set) = GIVEN.get_ptr(set(mm, level, address)) else {
        return;
    };
    for i in 0..WAYS {
        // SAFETY: a live map value; the words are plain integers.
        unsafe {
            if read_volatile(&raw const (*set).mm[i]) != mm {
                continue;
            }
            let sequence = read_volatile(&raw const (*set).sequence[i]);
            let start = read_volatile(&raw const (*set).start[i]);
            let end = read_volatile(&raw const (*set).end[i]);
            let at_ns = read_volatile(&raw const (*set).at_ns[i]);
            let owner_start_ns = read_volatile(&raw const (*set).owner_start_ns[i]);
            let tag = read_volatile(&raw const (*set).tag[i]);
            let is_whole =
                sequence & 1 == 0 && sequence == read_volatile(&raw const (*set).sequence[i]);
            if is_whole && start <= address && address < end && at_ns > found.at_ns {
                *found = Found {
                    at_ns,
                    tag,
                    owner_start_ns,
                };
            }
        }
    }
}
