//! Wire rows to sample counters.

use crate::sample::{
    Counters, Scope,
    counters::{FAULT_CLASSES, LOCK_CLASSES, LRU_LOCK, MMAP_LOCK},
};
use faultscope_common::{cpu, cpu::CpuRow, lock, thread::Columns};

const _: () = assert!(FAULT_CLASSES == cpu::FAULT_CLASSES && LOCK_CLASSES == lock::CLASSES);
const _: () = assert!(MMAP_LOCK == lock::MMAP as usize && LRU_LOCK == lock::LRU as usize);

/// The counters that a thread's columns and a CPU's row both have.
macro_rules! shared {
    ($row:expr) => {{
        let (row, mut out) = ($row, Counters::default());
        for class in 0..FAULT_CLASSES {
            out[Scope::User(class)] = row.user[class];
            out[Scope::Kernel(class)] = row.kernel[class];
        }
        for class in 0..LOCK_CLASSES {
            out[Scope::Waits(class)] = row.waits[class];
            out[Scope::WaitNs(class)] = row.wait_ns[class];
        }
        for side in 0..2 {
            out[Scope::MmapTaken(side)] = row.mmap_taken[side];
            out[Scope::MmapTakeNs(side)] = row.mmap_take_ns[side];
            out[Scope::MmapHoldNs(side)] = row.mmap_hold_ns[side];
        }
        out[Scope::FixedUp] = row.fixed_up;
        out[Scope::Major] = row.major;
        out
    }};
}

/// Counters of a thread's columns.
pub(super) fn thread(c: &Columns) -> Counters {
    let mut out = shared!(c);
    out[Scope::Rss] = c.rss;
    out[Scope::WindowFaults] = c.window_faults;
    out[Scope::WindowHandoffs] = c.window_handoffs;
    out[Scope::Madvise] = c.madvise;
    out
}

/// Counters of a CPU's row; madvise and the window are not kept per CPU.
pub(super) fn cpu(c: &CpuRow) -> Counters {
    let mut out = shared!(c);
    out[Scope::Rss] = c.rss.iter().sum();
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::counters::LOCK_CLASS_NAMES;

    #[test]
    fn each_class_has_the_name_of_its_number() {
        for (number, name) in [
            (lock::MMAP, "mmap_lock"),
            (lock::LRU, "lru_lock"),
            (lock::ZONE, "zone_lock"),
            (lock::PTL, "page_table_lock"),
            (lock::SPIN, "spinlock"),
            (lock::RWSEM, "rwsem"),
            (lock::MUTEX, "mutex"),
            (lock::RT, "rt_mutex"),
        ] {
            assert_eq!(LOCK_CLASS_NAMES[number as usize], name);
        }
    }
}
