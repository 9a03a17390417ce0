//! Sums intervals into one.
//!
//! Increments add up, maxima stay maxima, histograms merge, names, places and
//! levels are those of the latest interval that had them. The intervals may
//! come in any order. Call chains are told by their functions, for their slots
//! mean something else in another interval.

mod finish;
#[cfg(test)]
pub(crate) mod fixture;
mod rows;
#[cfg(test)]
mod tests;

use super::{
    blocked::BlockedId,
    budget::Budget,
    delta::{
        CallChain, Delta, LockId, Loss, LruCoverage, LruLockId, MadviseId, ProcessId, TakerId,
        ThreadId,
    },
};
use crate::symbol::FaultPart;
use rows::{Name, Rows, add_all, add_some};
use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    sync::Arc,
};

/// Stands for a call chain that was lost: a slot without a chain.
const LOST_CHAIN: u32 = u32::MAX;

/// Intervals as one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Merged {
    /// The sum. A taker's call site is the one with most of its hold time, a part's
    /// function the one that stood for most of its samples.
    pub delta: Delta,
    /// mmap_lock hold time by taker and by the call site (call chain slot + 1, 0
    /// none) that was its latest sampled one at the end of an interval; sorted.
    pub holds: Vec<(TakerId, u32, u64)>,
    /// Samples of the fault path by part and by the function that the clock struck
    /// most often in it in an interval; sorted.
    pub functions: Vec<(FaultPart, Option<Arc<str>>, u64)>,
    /// Beginning of the first interval, monotonic ns.
    pub start_mono_ns: u64,
    /// Intervals merged.
    pub intervals: u64,
}

/// Sums intervals one by one.
#[derive(Debug, Default)]
pub struct Merger {
    /// What has no rows; the last values are those of the latest interval.
    sum: Delta,
    intervals: u64,
    start_mono_ns: u64,
    paravirtual: (u64, Option<bool>),
    refused: (u64, Option<String>),
    cpus: Rows<u32, super::delta::Cpu>,
    threads: Rows<ThreadId, super::delta::Thread>,
    processes: Rows<ProcessId, super::delta::Process>,
    comms: Rows<ProcessId, Name>,
    cgroups: Rows<u64, super::delta::Cgroup>,
    spaces: Rows<u64, super::delta::Space>,
    takers: Rows<TakerId, super::delta::Taker>,
    locks: Rows<LockId, super::delta::Lock>,
    blocked: Rows<BlockedId, super::blocked::BlockedWaits>,
    lru_holds: Rows<LruLockId, super::delta::LruHold>,
    madvise: Rows<MadviseId, super::delta::Madvise>,
    refaults: Rows<MadviseId, super::refault::Refault>,
    process_passes: Rows<u32, super::delta::ProcessPasses>,
    passes: Rows<(usize, usize), super::delta::Passes>,
    moves: Rows<Arc<str>, super::delta::Moves>,
    programs: Rows<Arc<str>, super::delta::Program>,
    own: Rows<(), super::delta::Own>,
    names: Rows<u32, Name>,
    cgroup_paths: Rows<u64, Name>,
    budgets: BTreeMap<u64, Budget>,
    functions: HashMap<(FaultPart, Option<Arc<str>>), u64>,
    chains: HashMap<Arc<CallChain>, u32>,
    holds: HashMap<(TakerId, u32), u64>,
}

impl Merger {
    /// Adds an interval.
    pub fn add(&mut self, delta: &Delta) {
        let t = delta.t_mono_ns;
        let start = t.saturating_sub(delta.interval_ns);
        let is_earliest = self.intervals == 0 || start < self.start_mono_ns;
        let is_latest = self.intervals == 0 || t >= self.sum.t_mono_ns;
        self.scalars(delta);
        if is_earliest {
            self.start_mono_ns = start;
            self.sum.mglru[0] = delta.mglru[0];
        }
        if is_latest {
            self.last(delta);
        }
        self.told(delta);
        self.scopes(delta);
        self.sited(delta);
        if let Some(budget) = &delta.budget {
            self.budget(budget);
        }
        self.intervals += 1;
    }

    fn scalars(&mut self, delta: &Delta) {
        let sum = &mut self.sum;
        sum.interval_ns = sum.interval_ns.saturating_add(delta.interval_ns);
        sum.is_first |= delta.is_first;
        if let Some(waits) = &delta.spin_waits {
            let all = sum.spin_waits.get_or_insert_default();
            add_all(&mut all.ended, &waits.ended);
            add_all(&mut all.traced, &waits.traced);
        }
        for (sum, n) in [
            (&mut sum.regions_unpaired, delta.regions_unpaired),
            (&mut sum.unpaired_ends, delta.unpaired_ends),
            (&mut sum.mmap_unpaired, delta.mmap_unpaired),
            (&mut sum.compat_madvise, delta.compat_madvise),
        ] {
            *sum = sum.saturating_add(n);
        }
        let LruCoverage {
            acquired,
            unended,
            releases,
            tested,
            uncovered,
            sample,
        } = &mut sum.lru_coverage;
        let more = &delta.lru_coverage;
        for (sum, n) in [
            (acquired, more.acquired),
            (unended, more.unended),
            (releases, more.releases),
            (tested, more.tested),
            (uncovered, more.uncovered),
        ] {
            *sum = sum.saturating_add(n);
        }
        *sample = (*sample).max(more.sample);
        if sum.losses.len() < delta.losses.len() {
            sum.losses.resize(delta.losses.len(), Loss::default());
        }
        for (sum, loss) in sum.losses.iter_mut().zip(&delta.losses) {
            // A total only grows.
            sum.total = sum.total.max(loss.total);
            sum.increment = sum.increment.saturating_add(loss.increment);
        }
        for (name, n) in &delta.vmstat {
            let sum = sum.vmstat.entry(Arc::clone(name)).or_default();
            *sum = sum.saturating_add(*n);
        }
        add_some(&mut sum.context_switches, delta.context_switches);
        if let Some((some, full)) = delta.memory_pressure_ns {
            let (a, b) = sum.memory_pressure_ns.get_or_insert_default();
            *a = a.saturating_add(some);
            *b = b.saturating_add(full);
        }
    }

    /// Levels.
    fn last(&mut self, delta: &Delta) {
        let sum = &mut self.sum;
        sum.t_mono_ns = delta.t_mono_ns;
        sum.t_real_ns = delta.t_real_ns;
        sum.mglru[1] = delta.mglru[1];
        sum.refault_window_ns = delta.refault_window_ns;
        sum.levels.clone_from(&delta.levels);
        sum.maps.clone_from(&delta.maps);
        // Their order; what they did is summed by name.
        sum.programs.clone_from(&delta.programs);
    }

    /// What an interval may leave open.
    fn told(&mut self, delta: &Delta) {
        let t = delta.t_mono_ns;
        if delta.is_paravirtual.is_some() && t >= self.paravirtual.0 {
            self.paravirtual = (t, delta.is_paravirtual);
        }
        if delta.symbols_refused.is_some() && t >= self.refused.0 {
            self.refused = (t, delta.symbols_refused.clone());
        }
    }

    fn scopes(&mut self, delta: &Delta) {
        let t = delta.t_mono_ns;
        for cpu in &delta.cpus {
            self.cpus.add(t, cpu.cpu, cpu);
        }
        for (id, row) in &delta.threads {
            self.threads.add(t, *id, row);
        }
        for (id, row) in &delta.processes {
            self.processes.add(t, *id, row);
            name(&mut self.comms, t, *id, &row.comm);
        }
        for (id, row) in &delta.cgroups {
            self.cgroups.add(t, *id, row);
        }
        for (id, row) in &delta.spaces {
            self.spaces.add(t, *id, row);
        }
        for (id, row) in &delta.passes {
            self.passes.add(t, *id, row);
        }
        for (id, row) in &delta.process_passes {
            self.process_passes.add(t, *id, row);
        }
        for (name, row) in &delta.moves {
            self.moves.add(t, Arc::clone(name), row);
        }
        for (id, row) in &delta.lru_holds {
            self.lru_holds.add(t, *id, row);
        }
        for (id, row) in &delta.madvise {
            self.madvise.add(t, *id, row);
        }
        for (id, row) in &delta.refaults {
            self.refaults.add(t, *id, row);
        }
        for program in &delta.programs {
            self.programs.add(t, Arc::clone(&program.name), program);
        }
        self.own.add(t, (), &delta.own);
        for (id, comm) in &delta.names {
            name(&mut self.names, t, *id, comm);
        }
        for (id, path) in &delta.cgroup_paths {
            name(&mut self.cgroup_paths, t, *id, path);
        }
    }

    /// Rows that name call chains, in an order of their own: chains are numbered as they come, and of two slots with one
    /// chain the latter's address stays. The order of a hash map would give another report each time.
    fn sited(&mut self, delta: &Delta) {
        let t = delta.t_mono_ns;
        let mut known: HashMap<u32, u32> = HashMap::new();
        let mut told = |chains: &mut HashMap<Arc<CallChain>, u32>, slot: u32| match slot {
            0 => 0,
            _ => *known
                .entry(slot)
                .or_insert_with(|| match delta.chains.get(&slot) {
                    None => LOST_CHAIN,
                    Some(chain) => match chains.get(chain) {
                        Some(number) => *number,
                        None => {
                            let number = u32::try_from(chains.len() + 1).unwrap_or(LOST_CHAIN);
                            chains.insert(Arc::clone(chain), number);
                            number
                        }
                    },
                }),
        };
        for (id, row) in sorted(&delta.locks) {
            let stack = told(&mut self.chains, id.stack);
            self.locks.add(t, LockId { stack, ..*id }, row);
        }
        for (id, row) in sorted(&delta.blocked) {
            let mut id = id.clone();
            id.site = told(&mut self.chains, id.site);
            id.holder_site = told(&mut self.chains, id.holder_site);
            self.blocked.add(t, id, row);
        }
        for (id, row) in sorted(&delta.takers) {
            let site = told(&mut self.chains, row.site);
            let held = self.holds.entry((*id, site)).or_default();
            *held = held.saturating_add(row.hold_ns);
            self.takers.add(t, *id, row);
        }
    }

    fn budget(&mut self, budget: &Budget) {
        let all = self.budgets.entry(budget.period_ns).or_default();
        all.period_ns = budget.period_ns;
        all.cpus = all.cpus.max(budget.cpus);
        for (sum, n) in [
            (&mut all.samples, budget.samples),
            (&mut all.idle, budget.idle),
            (&mut all.user, budget.user),
            (&mut all.kernel, budget.kernel),
            (&mut all.deep, budget.deep),
            (&mut all.interrupted, budget.interrupted),
        ] {
            *sum = sum.saturating_add(n);
        }
        for (sum, n) in all.parts.iter_mut().zip(&budget.parts) {
            add_all(sum, n);
        }
        for part in FaultPart::ALL {
            let n = budget.part(*part);
            if n > 0 {
                let function = budget.functions[*part as usize].clone();
                let sum = self.functions.entry((*part, function)).or_default();
                *sum = sum.saturating_add(n);
            }
        }
    }
}

/// Keeps a name that is one.
fn sorted<K: Ord, V>(rows: &HashMap<K, V>) -> Vec<(&K, &V)> {
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_unstable_by_key(|(id, _)| *id);
    rows
}

fn name<K: Eq + Hash>(names: &mut Rows<K, Name>, t_mono_ns: u64, key: K, name: &Arc<str>) {
    if !name.is_empty() {
        names.add(t_mono_ns, key, &Name(Arc::clone(name)));
    }
}
