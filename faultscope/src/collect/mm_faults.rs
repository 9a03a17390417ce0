//! Passes of `handle_mm_fault`: by CPU, path and backing, and by thread.

use crate::{
    bpf::Maps,
    sample::{
        Delta,
        delta::{FALL_BACK, FAULT_BACKINGS, FAULT_PATHS, GUP, POPULATE, Passes},
        histogram::Histogram,
    },
};
use faultscope_common::mm_fault::{self, BACKINGS, MmThreadRow, PATHS, PathRow, RETIRED_TAG, ROWS};
use std::collections::HashMap;

const _: () = assert!(FAULT_PATHS.len() == PATHS && FAULT_BACKINGS.len() == BACKINGS);
const _: () = assert!(
    FALL_BACK == mm_fault::FALL_BACK as usize
        && POPULATE == mm_fault::POPULATE as usize
        && GUP == mm_fault::GUP as usize
);

/// Readings without increments after which a row is retired.
const IDLE_TICKS: u32 = 60;

/// Words of `PathRow` that move with every pass.
const MOVING: [usize; 4] = [
    std::mem::offset_of!(PathRow, passes) / 8,
    std::mem::offset_of!(PathRow, faults) / 8,
    std::mem::offset_of!(PathRow, retries) / 8,
    std::mem::offset_of!(PathRow, unpaired) / 8,
];

#[derive(Debug)]
struct Known {
    row: MmThreadRow,
    idle: u32,
    is_retired: bool,
}

/// What was read last.
#[derive(Debug, Default)]
pub(super) struct MmFaults {
    paths: HashMap<usize, PathRow>,
    threads: HashMap<usize, Known>,
    /// Thread rows in use.
    pub(super) rows: u64,
}

impl MmFaults {
    /// Rows of the CPUs, which are in `delta` already.
    pub(super) fn paths(&mut self, maps: &Maps, delta: &mut Delta) {
        let per_cpu = ROWS as usize;
        for slot in 0..maps.mm_paths.len() {
            let before = self.paths.get(&slot);
            let words = before.map(|row| [row.passes, row.faults, row.retries, row.unpaired]);
            if MOVING.map(|word| maps.mm_paths.word(slot, word)) == words.unwrap_or_default() {
                continue;
            }
            let row = maps.mm_paths.read(slot);
            let increment = since(&row, before);
            let (cpu, index) = (slot / per_cpu, slot % per_cpu);
            if let Some(cpu) = delta.cpus.get_mut(cpu) {
                cpu.passes.add(&increment);
            }
            delta
                .passes
                .entry((index / BACKINGS, index % BACKINGS))
                .or_default()
                .add(&increment);
            self.paths.insert(slot, row);
        }
    }

    /// Rows of threads; those of dead and idle ones are retired, and freed one
    /// reading later. With `is_on` false no program runs: all are freed at once.
    pub(super) fn threads(
        &mut self,
        maps: &Maps,
        is_on: bool,
        delta: &mut Delta,
        is_alive: impl Fn(u32) -> bool,
    ) {
        if !is_on && self.rows == 0 {
            return;
        }
        self.rows = 0;
        for slot in 0..maps.mm_threads.len() {
            if maps.mm_threads.tag(slot) == 0 {
                continue;
            }
            let row = maps.mm_threads.read(slot);
            if row.tid == 0 {
                // Being made.
                continue;
            }
            self.rows += 1;
            let before = self.threads.remove(&slot);
            let old = before.as_ref().map(|b| &b.row);
            let events = |r: &MmThreadRow| r.passes + r.faults + r.retries;
            let moved = events(&row) != old.map_or(0, events);
            if moved {
                add_thread(&row, old, delta);
            }
            if !is_on || before.as_ref().is_some_and(|b| b.is_retired) {
                maps.mm_threads.free(slot);
                continue;
            }
            let idle = before.map_or(0, |b| b.idle + 1) * u32::from(!moved);
            // A fault may take long, but not longer than its thread lives.
            let is_retired = (idle > IDLE_TICKS && row.depth == 0) || !is_alive(row.tid);
            if is_retired {
                maps.mm_threads.write_word(slot, 0, RETIRED_TAG);
            }
            self.threads.insert(
                slot,
                Known {
                    row,
                    idle,
                    is_retired,
                },
            );
        }
        if !is_on {
            self.threads.clear();
            self.rows = 0;
        }
    }
}

fn histogram(now: &[u32], before: Option<&[u32; faultscope_common::latency::SLOTS]>) -> Histogram {
    let mut histogram = Histogram::default();
    for (i, n) in histogram.0.iter_mut().enumerate() {
        *n = u64::from(now[i].wrapping_sub(before.map_or(0, |b| b[i])));
    }
    histogram
}

fn since(row: &PathRow, before: Option<&PathRow>) -> Passes {
    let since = |f: fn(&PathRow) -> u64| f(row).wrapping_sub(before.map_or(0, f));
    let mut errors = row.errors;
    if let Some(before) = before {
        for (now, old) in errors.iter_mut().zip(before.errors) {
            *now -= old;
        }
    }
    Passes {
        began: since(|r| r.passes),
        faults: since(|r| r.faults),
        retries: since(|r| r.retries),
        majors: since(|r| r.majors),
        completed: since(|r| r.completed),
        errors,
        ns: since(|r| r.ns),
        max_ns: row.max_ns,
        pages: since(|r| r.pages),
        large: since(|r| r.large),
        unpaired: since(|r| r.unpaired),
        histogram: histogram(&row.histogram, before.map(|b| &b.histogram)),
    }
}

fn add_thread(row: &MmThreadRow, before: Option<&MmThreadRow>, delta: &mut Delta) {
    let since = |f: fn(&MmThreadRow) -> u64| f(row).wrapping_sub(before.map_or(0, f));
    let process = delta.process_passes.entry(row.tgid).or_default();
    process.passes.add(&Passes {
        began: since(|r| r.passes),
        faults: since(|r| r.faults),
        retries: since(|r| r.retries),
        majors: since(|r| r.majors),
        errors: [since(|r| r.errors), 0, 0, 0],
        ns: since(|r| r.ns),
        max_ns: row.max_ns,
        pages: since(|r| r.pages),
        histogram: histogram(&row.histogram, before.map(|b| &b.histogram)),
        ..Passes::default()
    });
    for (path, n) in process.paths.iter_mut().enumerate() {
        *n += row.paths[path].wrapping_sub(before.map_or(0, |b| b.paths[path]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable as _;

    #[test]
    fn increments_are_of_counters_and_the_maximum_is_a_level() {
        let mut before = PathRow::zeroed();
        before.faults = 10;
        before.errors = [0, 3, 0, 0];
        before.max_ns = 500;
        before.histogram[4] = u32::MAX;
        let mut row = before;
        row.faults = 14;
        row.errors[1] = 5;
        row.max_ns = 700;
        row.histogram[4] = 1;
        let passes = since(&row, Some(&before));
        assert_eq!((passes.faults, passes.failed(), passes.max_ns), (4, 2, 700));
        assert_eq!(passes.histogram.0[4], 2, "wraps");
        assert_eq!(since(&row, None).faults, 14);
    }

    #[test]
    fn threads_of_a_process_are_one_row() {
        let mut delta = Delta::default();
        for tid in [7, 8] {
            let mut row = MmThreadRow::zeroed();
            row.tgid = 7;
            row.tid = tid;
            row.faults = 5;
            row.errors = 1;
            row.paths[POPULATE] = 2;
            row.max_ns = u64::from(tid);
            add_thread(&row, None, &mut delta);
        }
        let process = &delta.process_passes[&7];
        assert_eq!(process.passes.faults, 10);
        assert_eq!(process.passes.failed(), 2);
        assert_eq!((process.paths[POPULATE], process.passes.max_ns), (4, 8));
    }
}
