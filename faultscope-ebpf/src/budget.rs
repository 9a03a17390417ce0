//! Where the time of faults goes: a sample of the CPU clock and its call chain.
//!
//! Runs in hard-interrupt context, over anything: takes no lock, inserts into no
//! hash, adds only to words of its own CPU. An interrupt of the clock cannot
//! interrupt itself.

use crate::{
    globals::{self, get},
    maps::{BUDGET_CHAINS, BUDGET_CLOCK, BUDGET_CODE, BUDGET_HITS, BUDGET_SCRATCH},
    record::{cpu, exchange, lose},
    thread::{self, Context},
};
use aya_ebpf::{
    EbpfContext, helpers::generated::bpf_get_stack, macros::perf_event, programs::PerfEventContext,
};
use core::ptr::{read_volatile, write_volatile};
use faultscope_common::{
    budget::{ChainRow, Code, DEPTH, GRAIN, KEPT, KERNEL, PROBES, SLOTS, Scratch, UNTRAPPED, USER},
    loss,
    thread::COUNTED,
};

/// Offset of `cs` in pt_regs (arch/x86/include/asm/ptrace.h).
const REGS_CS: usize = 136;

/// One sample.
#[perf_event]
fn budget(ctx: PerfEventContext) -> u32 {
    let cpu = cpu();
    let Some(clock) = BUDGET_CLOCK.get_ptr_mut(cpu) else {
        return 0;
    };
    // SAFETY: a live map value that only this program on this CPU writes.
    let clock = unsafe { &mut *clock };
    clock.samples += 1;
    if thread::tid() == 0 {
        clock.idle += 1;
        return 0;
    }
    if !is_counted() {
        return 0;
    }
    let regs = ctx.as_ptr().cast::<u8>();
    // SAFETY: bpf_perf_event_data begins with pt_regs; the verifier checks the load.
    let cs = unsafe { read_volatile(regs.add(REGS_CS).cast::<u64>()) };
    if cs & 3 == 3 {
        clock.user += 1;
        return 0;
    }
    clock.kernel += 1;
    let Some(scratch) = BUDGET_SCRATCH.get_ptr_mut(cpu) else {
        return 0;
    };
    let frames = scratch.cast::<u64>();
    // SAFETY: the buffer has DEPTH words and belongs to this program on this CPU.
    let bytes = unsafe { bpf_get_stack(ctx.as_ptr(), frames.cast(), (DEPTH * 8) as u32, 0) };
    if bytes <= 0 {
        lose(loss::BUDGET_FULL, 1);
        return 0;
    }
    let used = (bytes as u64) / 8;
    match place(scratch, used) {
        Some((length, origin)) => {
            clock.faults += 1;
            if let Some(slot) = keep(frames, length, origin) {
                hit(cpu, slot);
            }
        }
        None if used >= DEPTH as u64 => clock.deep += 1,
        None => {}
    }
    0
}

/// Whether the filter lets the running thread through.
#[inline(always)]
fn is_counted() -> bool {
    if get(&globals::FILTERS) == 0 {
        return true;
    }
    match thread::row(Context::Atomic) {
        Some(row) => row.flags & COUNTED != 0,
        None => {
            lose(loss::THREAD_COLLISION, 1);
            false
        }
    }
}

/// Length of the chain from the interrupted function to the entry of the fault,
/// and who faulted; `None` outside the fault path.
///
/// What was found goes through memory: the verifier then sees one state after
/// each frame, not one for each place the entry may be at.
#[inline(always)]
fn place(scratch: *mut Scratch, used: u64) -> Option<(u64, u32)> {
    let code: *const Code = BUDGET_CODE.get_ptr(0)?;
    let frames = scratch.cast::<u64>();
    // SAFETY: live map values; plain reads of words user space wrote before.
    let (trap, trap_bytes, service, service_bytes) = unsafe {
        write_volatile(&raw mut (*scratch).trap, 0);
        write_volatile(&raw mut (*scratch).service, 0);
        (
            read_volatile(&raw const (*code).trap),
            read_volatile(&raw const (*code).trap_bytes),
            read_volatile(&raw const (*code).service),
            read_volatile(&raw const (*code).service_bytes),
        )
    };
    // Outwards to inwards, so that the innermost entry is written last.
    for i in (0..DEPTH).rev() {
        if (i as u64) < used {
            // SAFETY: within the buffer.
            unsafe {
                let frame = read_volatile(frames.add(i));
                if frame.wrapping_sub(trap) < trap_bytes {
                    write_volatile(&raw mut (*scratch).trap, i as u64 + 1);
                }
                if frame.wrapping_sub(service) < service_bytes {
                    write_volatile(&raw mut (*scratch).service, i as u64 + 1);
                }
            }
        }
    }
    // SAFETY: a live map value.
    let (trapped, serviced) = unsafe {
        (
            read_volatile(&raw const (*scratch).trap),
            read_volatile(&raw const (*scratch).service),
        )
    };
    if trapped == 0 {
        return (serviced != 0).then_some((serviced, UNTRAPPED));
    }
    // Below the trap of a user fault there is nothing: user mode has no frames here.
    let origin = if trapped == used && used < DEPTH as u64 {
        USER
    } else {
        KERNEL
    };
    Some((trapped, origin))
}

/// Slot of the chain, new or known; `None` if the table is full.
#[inline(always)]
fn keep(frames: *mut u64, length: u64, origin: u32) -> Option<u32> {
    let mut hash = length | u64::from(origin) << 32;
    for i in 0..KEPT {
        if (i as u64) < length {
            // SAFETY: within the buffer, which is longer.
            let mut frame = unsafe { read_volatile(frames.add(i)) };
            if i == 0 {
                frame &= !(GRAIN - 1);
            }
            hash = (hash.rotate_left(7) ^ frame).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }
    let hash = hash | 1;
    for i in 0..PROBES {
        let slot = ((hash >> 40) as u32).wrapping_add(i) & (SLOTS - 1);
        let row: *mut ChainRow = BUDGET_CHAINS.get_ptr_mut(slot)?;
        // SAFETY: a live map value.
        let mut found = unsafe { read_volatile(&raw const (*row).hash) };
        if found == 0 {
            // SAFETY: as above.
            found = exchange(unsafe { &raw mut (*row).hash }, 0, hash);
            if found == 0 {
                write(row, frames, length, origin);
                return Some(slot);
            }
        }
        if found == hash {
            return Some(slot);
        }
    }
    lose(loss::BUDGET_FULL, 1);
    None
}

/// Writes a row that is ours alone; `used` last tells readers.
#[inline(always)]
fn write(row: *mut ChainRow, frames: *mut u64, length: u64, origin: u32) {
    let kept = if length < KEPT as u64 {
        length as u32
    } else {
        KEPT as u32
    };
    // SAFETY: a live map value and a longer buffer.
    unsafe {
        let into = (&raw mut (*row).frames).cast::<u64>();
        for i in 0..KEPT {
            write_volatile(into.add(i), read_volatile(frames.add(i)));
        }
        write_volatile(&raw mut (*row).origin, origin);
        write_volatile(&raw mut (*row).used, kept);
    }
}

/// Counts a sample of a chain on this CPU.
#[inline(always)]
fn hit(cpu: u32, slot: u32) {
    if let Some(hits) = BUDGET_HITS.get_ptr_mut(cpu.wrapping_mul(SLOTS).wrapping_add(slot)) {
        // SAFETY: a live map value that only this program on this CPU adds to.
        unsafe { *hits += 1 };
    }
}
