//! LRU functions, batches, and lru_lock holds.

use crate::{
    bpf::{Maps, load::RELEASE_SAMPLE},
    sample::{
        Delta,
        counters::DISTANCES,
        delta::{BATCH_SIZES, LruCalls, LruHold, LruLockId, Moves},
        histogram::Histogram,
    },
    symbol::KernelSymbols,
};
use bytemuck::Zeroable as _;
use faultscope_common::{
    latency::BUCKETS,
    lru::{self, FORMS, HoldRow, LruRow, MoveRow, RETIRED},
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// Ticks without increments after which a row is retired.
const IDLE_TICKS: u32 = 60;

const _: () = assert!(BATCH_SIZES == lru::BATCH_SIZES);

#[derive(Debug)]
struct Known {
    row: HoldRow,
    idle: u32,
    is_retired: bool,
}

/// Reads the LRU maps and remembers what was read.
#[derive(Debug)]
pub(super) struct Lru {
    rows: Vec<LruRow>,
    holds: HashMap<usize, Known>,
    functions: BTreeMap<u64, Arc<str>>,
    has_symbols: bool,
    /// Greatest fill of any CPU's part of the hold table.
    pub(super) hold_rows: u64,
}

impl Lru {
    pub(super) fn new(has_symbols: bool) -> Self {
        Self {
            rows: Vec::new(),
            holds: HashMap::new(),
            functions: BTreeMap::new(),
            has_symbols,
            hold_rows: 0,
        }
    }

    /// Everything since the last call; `delta` has its CPUs already.
    pub(super) fn collect(&mut self, maps: &Maps, delta: &mut Delta) {
        self.rows.resize(maps.lru.len(), LruRow::zeroed());
        let now: Vec<LruRow> = (0..maps.lru.len()).map(|cpu| maps.lru.read(cpu)).collect();
        // Next to it, or holds of our own would lie between the two.
        self.holds(maps, delta);
        self.name_functions(&now);
        for (cpu, (now, old)) in (0_u32..).zip(now.iter().zip(&self.rows)) {
            if let Some(cpu) = delta.cpus.iter_mut().find(|c| c.cpu == cpu) {
                cpu.lru = calls(now, old);
            }
            delta.regions_unpaired += now.regions_unpaired - old.regions_unpaired;
            coverage(now, old, delta);
            for (now, old) in now.moves.iter().zip(&old.moves) {
                if let Some(name) = self.functions.get(&now.function) {
                    add_moves(now, old, delta.moves.entry(Arc::clone(name)).or_default());
                }
            }
        }
        delta.lru_coverage.sample = RELEASE_SAMPLE;
        delta
            .moves
            .retain(|_, moves| moves.batches + moves.regions > 0);
        self.rows = now;
    }

    /// Names the move functions that are new; without symbols all have one name.
    fn name_functions(&mut self, rows: &[LruRow]) {
        let mut new: Vec<u64> = rows
            .iter()
            .flat_map(|row| &row.moves)
            .map(|moves| moves.function)
            .filter(|function| *function != 0 && !self.functions.contains_key(function))
            .collect();
        if new.is_empty() {
            return;
        }
        new.sort_unstable();
        new.dedup();
        let names = self
            .has_symbols
            .then(|| KernelSymbols::default().resolve(&new).ok())
            .flatten();
        for (i, function) in new.iter().enumerate() {
            let name = match &names {
                Some(names) => names[i].as_deref().unwrap_or("[unknown]"),
                None => "[symbols hidden]",
            };
            self.functions.insert(*function, name.into());
        }
    }

    fn holds(&mut self, maps: &Maps, delta: &mut Delta) {
        let per_cpu = maps.sizes.hold_rows as usize;
        let mut fill = vec![0_u64; maps.sizes.cpus as usize];
        for slot in 0..maps.lru_holds.len() {
            if maps.lru_holds.tag(slot) == 0 {
                continue;
            }
            fill[slot / per_cpu] += 1;
            let row = maps.lru_holds.read(slot);
            let before = self.holds.remove(&slot);
            let old = before.as_ref().map(|b| &b.row);
            let holds = row.holds - old.map_or(0, |b| b.holds);
            if holds > 0 {
                add_hold(&row, old, delta);
            }
            let idle = before.as_ref().map_or(0, |b| b.idle + 1) * u32::from(holds == 0);
            if before.is_some_and(|b| b.is_retired) {
                maps.lru_holds.free(slot);
                continue;
            }
            let is_retired = idle > IDLE_TICKS;
            if is_retired {
                maps.lru_holds.write_word(slot, 0, row.lock | RETIRED);
            }
            let known = Known {
                row,
                idle,
                is_retired,
            };
            self.holds.insert(slot, known);
        }
        self.hold_rows = fill.into_iter().max().unwrap_or(0);
    }
}

fn calls(now: &LruRow, old: &LruRow) -> LruCalls {
    LruCalls {
        mark_accessed: now.mark_accessed - old.mark_accessed,
        workingset_activations: now.workingset_activations - old.workingset_activations,
        refaults: now.refaults - old.refaults,
        drains: now.drains - old.drains,
    }
}

fn coverage(now: &LruRow, old: &LruRow, delta: &mut Delta) {
    let since = |pick: fn(&LruRow) -> &[u64; FORMS]| {
        pick(now).iter().sum::<u64>() - pick(old).iter().sum::<u64>()
    };
    let sum = &mut delta.lru_coverage;
    sum.acquired += since(|row| &row.acquired);
    sum.unended += since(|row| &row.unended);
    sum.releases += since(|row| &row.releases);
    sum.tested += since(|row| &row.tested);
    sum.uncovered += since(|row| &row.uncovered);
}

fn histogram(now: &[u32], old: &[u32]) -> Histogram {
    let mut since = Histogram::default();
    for bucket in 0..BUCKETS {
        // The kernel's buckets wrap at 2^32.
        since.0[bucket] = u64::from(now[bucket].wrapping_sub(old[bucket]));
    }
    since
}

fn add_moves(now: &MoveRow, old: &MoveRow, sum: &mut Moves) {
    sum.batches += now.batches - old.batches;
    sum.folios += now.folios - old.folios;
    for size in 0..BATCH_SIZES {
        sum.sizes[size] += u64::from(now.sizes[size].wrapping_sub(old.sizes[size]));
    }
    sum.regions += now.regions - old.regions;
    sum.region_ns += now.region_ns - old.region_ns;
    sum.region_max_ns = sum.region_max_ns.max(now.region_max_ns);
    sum.histogram
        .add(&histogram(&now.histogram, &old.histogram));
}

fn add_hold(row: &HoldRow, before: Option<&HoldRow>, delta: &mut Delta) {
    let zero = HoldRow::zeroed();
    let old = before.unwrap_or(&zero);
    let id = LruLockId {
        node: row.node,
        memcg: row.memcg,
    };
    let sum: &mut LruHold = delta.lru_holds.entry(id).or_default();
    sum.holds += row.holds - old.holds;
    sum.hold_ns += row.hold_ns - old.hold_ns;
    sum.max_ns = sum.max_ns.max(row.max_ns);
    sum.address = row.lock & !RETIRED;
    for d in 0..DISTANCES {
        sum.handoffs[d] += row.handoffs[d] - old.handoffs[d];
    }
    sum.histogram
        .add(&histogram(&row.histogram, &old.histogram));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(rows: &[LruRow]) -> Lru {
        let mut lru = Lru::new(false);
        lru.name_functions(rows);
        lru
    }

    #[test]
    fn a_wrapped_histogram_gives_its_increment() {
        let (mut old, mut now) = (MoveRow::zeroed(), MoveRow::zeroed());
        old.histogram[3] = u32::MAX;
        old.sizes[15] = u32::MAX;
        now.histogram[3] = 1;
        now.sizes[15] = 2;
        let mut sum = Moves::default();
        add_moves(&now, &old, &mut sum);
        assert_eq!((sum.histogram.0[3], sum.sizes[15]), (2, 3));
    }

    #[test]
    fn without_symbols_every_move_function_has_one_name() {
        let mut row = LruRow::zeroed();
        row.moves[0].function = u64::MAX - 1;
        row.moves[1].function = u64::MAX - 2;
        let lru = named(&[row, row]);
        let names: Vec<&str> = lru.functions.values().map(|n| &**n).collect();
        assert_eq!(names, ["[symbols hidden]"; 2]);
    }

    #[test]
    fn coverage_is_the_sum_over_the_forms() {
        let (mut old, mut now) = (LruRow::zeroed(), LruRow::zeroed());
        old.acquired = [1, 2, 3];
        now.acquired = [2, 4, 6];
        now.uncovered = [1, 0, 1];
        let mut delta = Delta::default();
        coverage(&now, &old, &mut delta);
        assert_eq!(delta.lru_coverage.acquired, 6);
        assert_eq!(delta.lru_coverage.uncovered, 2);
    }
}
