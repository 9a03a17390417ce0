//! Ends a sum: names what only the whole can tell.

use super::{LOST_CHAIN, Merged, Merger, rows::Rows};
use crate::{
    sample::{
        budget::Budget,
        delta::{CallChain, Delta, LockId, Program, TakerId},
    },
    symbol::FaultPart,
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

impl Merger {
    /// The sum.
    #[must_use]
    pub fn finish(self) -> Merged {
        let mut delta = self.sum;
        let numbers = Numbers::new(self.chains);
        delta.is_paravirtual = self.paravirtual.1;
        delta.symbols_refused = self.refused.1;
        delta.cpus = self.cpus.into_rows().map(|(_, cpu)| cpu).collect();
        delta.cpus.sort_unstable_by_key(|cpu| cpu.cpu);
        delta.threads = self.threads.into_rows().collect();
        delta.processes = self.processes.into_rows().collect();
        for (id, comm) in self.comms.into_rows() {
            if let Some(process) = delta.processes.get_mut(&id) {
                process.comm = comm.0;
            }
        }
        delta.cgroups = self.cgroups.into_rows().collect();
        delta.spaces = self.spaces.into_rows().collect();
        delta.passes = self.passes.into_rows().collect();
        delta.process_passes = self.process_passes.into_rows().collect();
        delta.moves = self.moves.into_rows().collect();
        delta.lru_holds = self.lru_holds.into_rows().collect();
        delta.madvise = self.madvise.into_rows().collect();
        delta.refaults = self.refaults.into_rows().collect();
        delta.own = self
            .own
            .into_rows()
            .map(|(_, own)| own)
            .next()
            .unwrap_or_default();
        delta.names = self.names.into_rows().map(|(id, n)| (id, n.0)).collect();
        delta.cgroup_paths = self
            .cgroup_paths
            .into_rows()
            .map(|(id, n)| (id, n.0))
            .collect();
        delta.locks = self
            .locks
            .into_rows()
            .map(|(id, row)| {
                let stack = numbers.of(id.stack);
                (LockId { stack, ..id }, row)
            })
            .collect();
        delta.blocked = self
            .blocked
            .into_rows()
            .map(|(mut id, row)| {
                id.site = numbers.of(id.site);
                id.holder_site = numbers.of(id.holder_site);
                (id, row)
            })
            .collect();
        let mut holds: Vec<(TakerId, u32, u64)> = self
            .holds
            .into_iter()
            .map(|((id, site), ns)| (id, numbers.of(site), ns))
            .collect();
        holds.sort_unstable();
        let mut sites: HashMap<TakerId, (u64, u32)> = HashMap::new();
        for (id, site, ns) in holds.iter().filter(|(_, site, _)| *site != 0) {
            let best = sites.entry(*id).or_default();
            *best = (*best).max((*ns, *site));
        }
        delta.takers = self
            .takers
            .into_rows()
            .map(|(id, mut row)| {
                row.site = sites.get(&id).map_or(0, |(_, site)| *site);
                (id, row)
            })
            .collect();
        delta.chains = Arc::new(numbers.chains);
        merge_programs(&mut delta, self.programs);
        let mut functions: Vec<_> = self
            .functions
            .into_iter()
            .map(|((part, function), n)| (part, function, n))
            .collect();
        functions.sort_unstable();
        delta.budget = budget(self.budgets, &functions);
        Merged {
            delta,
            holds,
            functions,
            start_mono_ns: self.start_mono_ns,
            intervals: self.intervals,
        }
    }
}

/// Numbers of call chains that do not depend on the order they came in.
struct Numbers {
    /// By number while merging; the new number.
    new: Vec<u32>,
    chains: HashMap<u32, Arc<CallChain>>,
}

impl Numbers {
    fn new(chains: HashMap<Arc<CallChain>, u32>) -> Self {
        let mut sorted: Vec<(Arc<CallChain>, u32)> = chains.into_iter().collect();
        sorted.sort_unstable();
        let mut new = vec![LOST_CHAIN; sorted.len() + 1];
        let mut chains = HashMap::with_capacity(sorted.len());
        for (number, (chain, old)) in (1..).zip(sorted) {
            new[old as usize] = number;
            chains.insert(number, chain);
        }
        Self { new, chains }
    }

    fn of(&self, old: u32) -> u32 {
        match old {
            0 => 0,
            _ => self.new.get(old as usize).copied().unwrap_or(LOST_CHAIN),
        }
    }
}

/// Programs in the order of the latest interval, those it does not have after them.
fn merge_programs(delta: &mut Delta, rows: Rows<Arc<str>, Program>) {
    let order: HashMap<Arc<str>, usize> = (0..)
        .zip(&delta.programs)
        .map(|(i, program)| (Arc::clone(&program.name), i))
        .collect();
    let mut programs: Vec<_> = rows.into_rows().map(|(_, program)| program).collect();
    programs.sort_by_cached_key(|program| {
        let place = order.get(&program.name).copied();
        (place.unwrap_or(usize::MAX), Arc::clone(&program.name))
    });
    delta.programs = programs;
}

/// Samples of different periods do not add up; those of the period with most samples
/// are kept.
fn budget(
    budgets: BTreeMap<u64, Budget>,
    functions: &[(FaultPart, Option<Arc<str>>, u64)],
) -> Option<Budget> {
    let mut budget = budgets
        .into_values()
        .max_by_key(|b| (b.samples, b.period_ns))?;
    for part in FaultPart::ALL {
        budget.functions[*part as usize] = functions
            .iter()
            .filter(|(of, function, _)| of == part && function.is_some())
            .max_by_key(|(_, _, n)| *n)
            .and_then(|(_, function, _)| function.clone());
    }
    Some(budget)
}
