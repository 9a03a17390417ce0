//! Wire rows to sample counters, field by field.

use crate::sample::{Counters, Scope};
use faultscope_common::{cpu::CpuRow, thread::Columns};

/// Counters of a thread's columns.
pub(super) fn thread(c: &Columns) -> Counters {
    let mut out = Counters::default();
    for class in 0..8 {
        out[Scope::User(class)] = c.user[class];
        out[Scope::Kernel(class)] = c.kernel[class];
        out[Scope::Waits(class)] = c.waits[class];
        out[Scope::WaitNs(class)] = c.wait_ns[class];
    }
    out[Scope::FixedUp] = c.fixed_up;
    out[Scope::Major] = c.major;
    out[Scope::Rss] = c.rss;
    out[Scope::WindowFaults] = c.window_faults;
    out[Scope::WindowHandoffs] = c.window_handoffs;
    out[Scope::Madvise] = c.madvise;
    for side in 0..2 {
        out[Scope::MmapTaken(side)] = c.mmap_taken[side];
        out[Scope::MmapTakeNs(side)] = c.mmap_take_ns[side];
        out[Scope::MmapHoldNs(side)] = c.mmap_hold_ns[side];
    }
    out
}

/// Counters of a CPU's row; madvise and the window are not kept per CPU.
pub(super) fn cpu(c: &CpuRow) -> Counters {
    let mut out = Counters::default();
    for class in 0..8 {
        out[Scope::User(class)] = c.user[class];
        out[Scope::Kernel(class)] = c.kernel[class];
        out[Scope::Waits(class)] = c.waits[class];
        out[Scope::WaitNs(class)] = c.wait_ns[class];
    }
    out[Scope::FixedUp] = c.fixed_up;
    out[Scope::Major] = c.major;
    out[Scope::Rss] = c.rss.iter().sum();
    for side in 0..2 {
        out[Scope::MmapTaken(side)] = c.mmap_taken[side];
        out[Scope::MmapTakeNs(side)] = c.mmap_take_ns[side];
        out[Scope::MmapHoldNs(side)] = c.mmap_hold_ns[side];
    }
    out
}
