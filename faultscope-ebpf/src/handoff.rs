//! Distance between the CPUs that take a lock one after the other.

use crate::{
    maps::PLACES,
    thread::{hash, pack},
};
use aya_ebpf::maps::Array;
use core::ptr::{read_volatile, write_volatile};
use faultscope_common::lock::UNKNOWN_DISTANCE;

/// Notes that `cpu` took the lock identified by `pointer`; returns the index of
/// the distance to the CPU that took it before.
///
/// `last` is a lossy cache: a slot reused by another lock gives "unknown".
#[inline(always)]
pub fn note(last: &'static Array<u64>, pointer: u64, cpu: u32) -> u32 {
    between(swap(last, pointer, cpu), pointer, cpu)
}

/// Notes that `cpu` took the lock; returns the word that was there before.
#[inline(always)]
pub fn swap(last: &'static Array<u64>, pointer: u64, cpu: u32) -> u64 {
    let Some(slot) = last.get_ptr_mut(hash(pointer)) else {
        return 0;
    };
    let now = pack(pointer, cpu);
    // SAFETY: a live map value; races mislabel one handoff, and the lock orders
    // those of one lock.
    let before = unsafe { read_volatile(slot) };
    if before != now {
        // SAFETY: as above.
        unsafe { write_volatile(slot, now) };
    }
    before
}

/// Whether the lock was another CPU's before, by the word that [`swap`] returned.
#[inline(always)]
pub fn is_move(before: u64, pointer: u64, cpu: u32) -> bool {
    let changed = before ^ pack(pointer, cpu);
    changed != 0 && changed >> 16 == 0
}

/// Index of the distance to the CPU that took the lock before.
#[inline(always)]
pub fn between(before: u64, pointer: u64, cpu: u32) -> u32 {
    let now = pack(pointer, cpu);
    if before == now {
        return 0;
    }
    if before >> 16 != now >> 16 {
        return UNKNOWN_DISTANCE as u32;
    }
    distance((before & 0xffff) as u32, cpu)
}

/// 0 same CPU, 1 same core, 2 same LLC, 3 same node, 4 remote.
#[inline(always)]
fn distance(a: u32, b: u32) -> u32 {
    let (Some(a), Some(b)) = (PLACES.get_ptr(a), PLACES.get_ptr(b)) else {
        return UNKNOWN_DISTANCE as u32;
    };
    // SAFETY: live map values, written before the programs are attached.
    let differ = unsafe { read_volatile(a) ^ read_volatile(b) };
    if differ & 0xffff_ffff == 0 {
        1
    } else if differ & 0xffff_0000_0000 != 0 {
        4
    } else if differ & 0xffff_0000 != 0 {
        3
    } else {
        2
    }
}
