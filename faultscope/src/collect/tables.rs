//! Open-addressed tables that the kernel fills and user space thins out: locks
//! and mmap_lock takers; the madvise map.
//!
//! A row without increments for a while is retired first, so that no program
//! matches it any more, and freed one tick later.

use crate::{
    bpf::Maps,
    sample::{
        Delta,
        counters::DISTANCES,
        delta::{Lock, LockId, Madvise, MadviseId, Taker, TakerId},
        histogram::Histogram,
    },
};
use faultscope_common::{
    latency::BUCKETS,
    lock::{LockKey, LockRow, ROW_RETIRED, ROW_SITE},
    madvise::{MadviseKey, MadviseRow, NR_PROCESS_MADVISE},
    mmap::{MmapKey, MmapRow, RETIRED_TAG},
};
use std::collections::HashMap;

/// Ticks without increments after which a row is retired.
const IDLE_TICKS: u32 = 60;

#[derive(Debug)]
struct Known<R> {
    row: R,
    idle: u32,
    is_retired: bool,
}

/// Reads the tables and remembers what was read.
#[derive(Debug, Default)]
pub(super) struct Tables {
    locks: HashMap<usize, Known<LockRow>>,
    takers: HashMap<usize, Known<MmapRow>>,
    madvise: HashMap<MadviseKey, (MadviseRow, u32)>,
    /// Greatest fill of any CPU's part of the lock table.
    pub(super) lock_rows: u64,
}

impl Tables {
    /// Entries of the taker table.
    pub(super) fn taker_rows(&self) -> u64 {
        self.takers.len() as u64
    }

    /// Entries of the madvise map.
    pub(super) fn madvise_rows(&self) -> u64 {
        self.madvise.len() as u64
    }

    /// Contended waits.
    pub(super) fn locks(&mut self, maps: &Maps, delta: &mut Delta) {
        let per_cpu = maps.sizes.lock_rows as usize;
        let mut fill = vec![0_u64; maps.sizes.cpus as usize];
        for slot in 0..maps.locks.len() {
            if maps.locks.tag(slot) & 0xff == 0 {
                continue;
            }
            fill[slot / per_cpu] += 1;
            let row = maps.locks.read(slot);
            if row.waits == 0 {
                continue;
            }
            let before = self.locks.remove(&slot);
            let waits = row
                .waits
                .wrapping_sub(before.as_ref().map_or(0, |b| b.row.waits));
            if waits > 0 {
                add_lock(&row, before.as_ref().map(|b| &b.row), delta);
            }
            let idle = before.as_ref().map_or(0, |b| b.idle + 1) * u32::from(waits == 0);
            if before.is_some_and(|b| b.is_retired) {
                maps.locks.free(slot);
                continue;
            }
            let is_retired = idle > IDLE_TICKS;
            if is_retired {
                maps.locks
                    .write_word(slot, 0, maps.locks.tag(slot) | u64::from(ROW_RETIRED));
            }
            self.locks.insert(
                slot,
                Known {
                    row,
                    idle,
                    is_retired,
                },
            );
        }
        self.lock_rows = fill.into_iter().max().unwrap_or(0);
    }

    /// mmap_lock takers. `is_alive` tells whether a process exists: the rows of
    /// those that do not are freed first, as every short process leaves some.
    pub(super) fn takers(
        &mut self,
        maps: &Maps,
        delta: &mut Delta,
        is_alive: impl Fn(u32) -> bool,
    ) {
        let mut alive: HashMap<u32, bool> = HashMap::new();
        for slot in 0..maps.mmap.len() {
            if maps.mmap.tag(slot) == 0 {
                continue;
            }
            let row = maps.mmap.read(slot);
            if row.key.mm == 0 {
                continue;
            }
            let before = self.takers.remove(&slot);
            let events = |r: &MmapRow| r.taken + r.failed + r.holds;
            let moved = events(&row) - before.as_ref().map_or(0, |b| events(&b.row));
            if moved > 0 {
                add_taker(&row, before.as_ref().map(|b| &b.row), delta);
            }
            let idle = before.as_ref().map_or(0, |b| b.idle + 1) * u32::from(moved == 0);
            if before.is_some_and(|b| b.is_retired) {
                maps.mmap.free(slot);
                continue;
            }
            let tgid = row.key.tgid;
            let is_gone = !*alive.entry(tgid).or_insert_with(|| is_alive(tgid));
            let is_retired = is_gone || idle > IDLE_TICKS;
            if is_retired {
                maps.mmap.write_word(slot, 0, RETIRED_TAG);
            }
            self.takers.insert(
                slot,
                Known {
                    row,
                    idle,
                    is_retired,
                },
            );
        }
    }

    /// madvise calls.
    pub(super) fn madvise(
        &mut self,
        maps: &mut Maps,
        delta: &mut Delta,
    ) -> Result<(), crate::bpf::MapError> {
        for (key, row) in maps.madvise.entries()? {
            let (before, idle) = self.madvise.get(&key).copied().unwrap_or_default();
            let calls = row.calls.saturating_sub(before.calls);
            let idle = if calls == 0 { idle + 1 } else { 0 };
            if idle > IDLE_TICKS {
                maps.madvise.remove(&key);
                self.madvise.remove(&key);
                continue;
            }
            self.madvise.insert(key, (row, idle));
            if calls == 0 {
                continue;
            }
            let id = MadviseId {
                tgid: key.tgid,
                advice: key.advice,
                is_remote: u64::from(key.call) == NR_PROCESS_MADVISE,
            };
            delta.madvise.insert(
                id,
                Madvise {
                    calls,
                    failures: row.failures.saturating_sub(before.failures),
                    bytes: row.bytes.saturating_sub(before.bytes),
                    ns: row.ns.saturating_sub(before.ns),
                    max_ns: row.max_ns,
                },
            );
        }
        Ok(())
    }
}

fn lock_id(key: &LockKey) -> LockId {
    LockId {
        is_site: key.row & !ROW_RETIRED == ROW_SITE,
        class: usize::from(key.class),
        mode: key.mode,
        node: key.node,
        id: key.id,
        memcg: key.memcg,
        stack: key.stack,
        owner: key.owner,
    }
}

fn add_lock(row: &LockRow, before: Option<&LockRow>, delta: &mut Delta) {
    let old = |f: fn(&LockRow) -> u64| before.map_or(0, f);
    let lock: &mut Lock = delta.locks.entry(lock_id(&row.key)).or_default();
    lock.waits += row.waits - old(|b| b.waits);
    lock.wait_ns += row.wait_ns - old(|b| b.wait_ns);
    lock.max_ns = lock.max_ns.max(row.max_ns);
    lock.address = row.address;
    lock.traced += row.traced - old(|b| b.traced);
    for d in 0..DISTANCES {
        lock.handoffs[d] += row.handoffs[d] - before.map_or(0, |b| b.handoffs[d]);
    }
    let mut waits = Histogram::default();
    for bucket in 0..BUCKETS {
        // The kernel's buckets wrap at 2^32.
        let n = row.histogram[bucket].wrapping_sub(before.map_or(0, |b| b.histogram[bucket]));
        waits.0[bucket] = u64::from(n);
    }
    lock.histogram.add(&waits);
}

fn taker_id(key: &MmapKey) -> TakerId {
    TakerId {
        mm: key.mm,
        tgid: key.tgid,
        syscall: key.syscall,
        is_write: key.is_write != 0,
    }
}

fn add_taker(row: &MmapRow, before: Option<&MmapRow>, delta: &mut Delta) {
    let zero = MmapRow::default();
    let old = before.unwrap_or(&zero);
    let taker: &mut Taker = delta.takers.entry(taker_id(&row.key)).or_default();
    taker.owner = row.owner;
    taker.site = row.site;
    taker.taken += row.taken - old.taken;
    taker.downgraded += row.downgraded - old.downgraded;
    taker.failed += row.failed - old.failed;
    taker.take_ns += row.take_ns - old.take_ns;
    taker.take_max_ns = taker.take_max_ns.max(row.take_max_ns);
    taker.slow_takes += row.slow_takes - old.slow_takes;
    taker.holds += row.holds - old.holds;
    taker.hold_ns += row.hold_ns - old.hold_ns;
    taker.hold_max_ns = taker.hold_max_ns.max(row.hold_max_ns);
    for d in 0..DISTANCES {
        taker.handoffs[d] += row.handoffs[d] - old.handoffs[d];
    }
}
