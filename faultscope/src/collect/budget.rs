//! The fault time budget: which call chains the clock struck in, and what they
//! count for.
//!
//! A chain is named once. One without samples for a while is retired first, so
//! that no program matches it any more, and freed one reading later.

use crate::{
    bpf::Maps,
    plan::BUDGET_HZ,
    sample::{
        Budget, Delta,
        budget::{KERNEL, ORIGINS, UNTRAPPED, USER},
    },
    symbol::{FaultPart, KernelSymbols, fault_part, ranges},
};
use faultscope_common::budget::{self, ChainRow, ClockRow, Code, RETIRED, SLOTS};
use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
    sync::Arc,
};

/// Readings without samples after which a chain is retired.
const IDLE_TICKS: u32 = 30;
/// Function that every trap passes: the entry of vector 14 (arch/x86/entry/entry_64.S, 5.8).
const TRAP: &str = "asm_exc_page_fault";
/// Function that every serviced fault passes, trapped or not (mm/memory.c).
const SERVICE: &str = "handle_mm_fault";

const _: () = assert!(
    USER == budget::USER as usize
        && KERNEL == budget::KERNEL as usize
        && UNTRAPPED == budget::UNTRAPPED as usize
        && ORIGINS == budget::ORIGINS
);

/// A chain whose functions are known.
#[derive(Debug)]
struct Chain {
    /// `None`: only an interrupt inside a fault.
    part: Option<FaultPart>,
    origin: usize,
    /// Where the clock struck.
    function: Option<Arc<str>>,
    /// Samples of all CPUs at the last reading.
    hits: u64,
    idle: u32,
    is_retired: bool,
}

/// Reads the samples while they are taken.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    /// Kept while samples are taken: new chains come with every reading, and
    /// reading the symbol table again takes longer than all else here.
    symbols: Option<KernelSymbols>,
    names: HashMap<u64, Option<Arc<str>>>,
    chains: HashMap<usize, Chain>,
    clock: Vec<ClockRow>,
    is_on: bool,
}

impl Budgets {
    /// Chains in the table.
    pub(super) fn rows(&self) -> u64 {
        self.chains.len() as u64
    }

    /// Begins or ends the reading of samples.
    ///
    /// # Errors
    /// One clause, if the functions of the fault path have no known address.
    pub(super) fn set(&mut self, on: bool, maps: &Maps, root: &Path) -> Result<(), String> {
        if on == self.is_on {
            return Ok(());
        }
        self.symbols = None;
        self.names = HashMap::new();
        self.is_on = false;
        if on {
            let [trap, service] = ranges(root, [TRAP, SERVICE])?;
            let code = Code {
                trap: trap.start,
                trap_bytes: trap.bytes,
                service: service.start,
                service_bytes: service.bytes,
                ..Code::default()
            };
            for (word, value) in bytemuck::cast_ref::<Code, [u64; 8]>(&code)
                .iter()
                .enumerate()
            {
                maps.fault_code.write_word(0, word, *value);
            }
            self.symbols = Some(KernelSymbols::default());
            self.is_on = true;
            // What was sampled before, while nobody looked, belongs to no interval.
            self.learn(maps)?;
            for (slot, chain) in &mut self.chains {
                chain.hits = hits(maps, *slot);
            }
            self.clock = read_clock(maps);
        }
        Ok(())
    }

    /// Samples since the last reading.
    ///
    /// # Errors
    /// Kernel symbols that were readable and are not any more.
    pub(super) fn collect(&mut self, maps: &Maps, delta: &mut Delta) -> Result<(), String> {
        if !self.is_on {
            return Ok(());
        }
        self.learn(maps)?;
        let mut all = Budget {
            period_ns: 1_000_000_000 / BUDGET_HZ,
            ..Budget::default()
        };
        let mut functions: HashMap<(FaultPart, Arc<str>), u64> = HashMap::new();
        let mut freed = Vec::new();
        for (slot, chain) in &mut self.chains {
            let now = hits(maps, *slot);
            let n = now.saturating_sub(chain.hits);
            chain.hits = now;
            chain.idle = if n == 0 { chain.idle + 1 } else { 0 };
            match chain.part {
                Some(part) => {
                    all.parts[part as usize][chain.origin] += n;
                    if let (Some(function), true) = (&chain.function, n > 0) {
                        *functions.entry((part, Arc::clone(function))).or_default() += n;
                    }
                }
                None => all.interrupted += n,
            }
            if chain.is_retired {
                freed.push(*slot);
            } else if chain.idle > IDLE_TICKS {
                chain.is_retired = true;
                maps.fault_chains.write_word(*slot, 0, RETIRED);
            }
        }
        for slot in freed {
            self.chains.remove(&slot);
            for cpu in 0..maps.sizes.cpus as usize {
                maps.fault_hits
                    .write_word(cpu * SLOTS as usize + slot, 0, 0);
            }
            maps.fault_chains.free(slot);
        }
        let mut greatest = [0; crate::symbol::FAULT_PARTS];
        for ((part, function), n) in functions {
            let best = &mut all.functions[part as usize];
            let is_better = n > greatest[part as usize]
                || (n == greatest[part as usize] && best.as_ref().is_none_or(|b| function < *b));
            if is_better {
                greatest[part as usize] = n;
                *best = Some(function);
            }
        }
        // After the chains: no sample of theirs is then missing from these.
        self.totals(maps, &mut all);
        delta.budget = Some(all);
        Ok(())
    }

    fn totals(&mut self, maps: &Maps, all: &mut Budget) {
        let now = read_clock(maps);
        for (now, before) in now.iter().zip(&self.clock) {
            let samples = now.samples.saturating_sub(before.samples);
            all.samples += samples;
            all.cpus += u64::from(samples > 0);
            all.idle += now.idle.saturating_sub(before.idle);
            all.user += now.user.saturating_sub(before.user);
            all.kernel += now.kernel.saturating_sub(before.kernel);
            all.deep += now.deep.saturating_sub(before.deep);
        }
        self.clock = now;
    }

    /// Names the chains that are new.
    fn learn(&mut self, maps: &Maps) -> Result<(), String> {
        let mut new: Vec<(usize, ChainRow)> = Vec::new();
        for slot in 0..maps.fault_chains.len() {
            if maps.fault_chains.tag(slot) != 0 && !self.chains.contains_key(&slot) {
                let row = maps.fault_chains.read(slot);
                // Else still being written; next time.
                if row.used > 0 {
                    new.push((slot, row));
                }
            }
        }
        self.name(&new)?;
        for (slot, row) in new {
            let names: Vec<Option<&str>> = frames(&row)
                .iter()
                .map(|frame| self.names.get(frame)?.as_deref())
                .collect();
            let part = fault_part(&names);
            let function = frames(&row)
                .first()
                .and_then(|frame| self.names.get(frame)?.clone());
            self.chains.insert(
                slot,
                Chain {
                    part,
                    origin: (row.origin as usize).min(ORIGINS - 1),
                    function,
                    hits: 0,
                    idle: 0,
                    is_retired: false,
                },
            );
        }
        Ok(())
    }

    /// Looks up the addresses that were never met.
    fn name(&mut self, rows: &[(usize, ChainRow)]) -> Result<(), String> {
        let unknown: Vec<u64> = rows
            .iter()
            .flat_map(|(_, row)| frames(row))
            .copied()
            .filter(|frame| !self.names.contains_key(frame))
            .collect::<BTreeSet<u64>>()
            .into_iter()
            .collect();
        let Some(symbols) = self.symbols.as_ref().filter(|_| !unknown.is_empty()) else {
            return Ok(());
        };
        let mut known: HashMap<String, Arc<str>> = HashMap::new();
        for (frame, name) in unknown.iter().zip(symbols.resolve(&unknown)?) {
            let name = name.map(|name| {
                Arc::clone(
                    known
                        .entry(name)
                        .or_insert_with_key(|name| name.as_str().into()),
                )
            });
            self.names.insert(*frame, name);
        }
        Ok(())
    }
}

fn frames(row: &ChainRow) -> &[u64] {
    &row.frames[..(row.used as usize).min(row.frames.len())]
}

/// Samples of a chain on all CPUs.
fn hits(maps: &Maps, slot: usize) -> u64 {
    (0..maps.sizes.cpus as usize)
        .map(|cpu| maps.fault_hits.word(cpu * SLOTS as usize + slot, 0))
        .sum()
}

fn read_clock(maps: &Maps) -> Vec<ClockRow> {
    (0..maps.clock.len())
        .map(|cpu| maps.clock.read(cpu))
        .collect()
}
