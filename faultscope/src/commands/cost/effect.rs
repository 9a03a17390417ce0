//! What a whole set does to work that is not ours: measured in pairs, and added up from its programs.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::anyhow;
use serde::Serialize;

use super::Costs;
use super::fleet::{Fleet, block};
use super::rank::{Spread, interval, median};
use crate::bpf::attach::{Hook, run_time_statistics};
use crate::commands::hook;
use crate::load::{Load, ReadFaults, SystemCalls, WriteFaults};
use crate::plan::{Cost, Probe};

/// Length of one block of load.
const BLOCK: Duration = Duration::from_millis(10);
/// Fewest pairs.
const FEWEST_PAIRS: usize = 12;
/// Most pairs on faults, where the effect is about as small as the noise.
const MOST_PAIRS: usize = 120;
/// Most pairs on system calls: what there is to see there is large.
const MOST_PAIRS_ON_CALLS: usize = 24;
/// Distance from 1 at which the interval of nothing against nothing is narrow enough.
const NARROW: f64 = 0.015;
/// Blocks behind the time of a bare fault.
const BLOCKS: usize = 7;
/// Readings of runs for each fault; the least disturbed counts.
const READINGS: usize = 150;

/// Work with a set attached against the same work without, in blocks that take turns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    /// `core`, `madvise`, `budget` or `all`.
    pub set: &'static str,
    /// What one event of the load is.
    pub load: &'static str,
    /// Time with the set divided by time without, and its 95 % interval.
    pub time_ratio: Spread,
    /// The same for two blocks without it: what the method itself makes of nothing.
    pub null_ratio: Spread,
    /// Pairs behind both.
    pub pairs: usize,
    /// The null interval lies within 1.5 % of 1.
    pub is_resolved: bool,
}

/// Costs of programs times the events of one fault.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Budget {
    /// `core` or `all`.
    pub set: &'static str,
    /// What one event of the load is.
    pub load: &'static str,
    /// CPU time of one fault with nothing attached, giving the page back included, ns.
    pub bare_ns: f64,
    /// What the programs add to it, ns.
    pub added_ns: f64,
    /// `added_ns / bare_ns`.
    pub ratio: f64,
    /// Runs of each program for one fault.
    pub runs_per_fault: BTreeMap<&'static str, f64>,
}

type Programs = Vec<&'static Probe>;

fn hooks(probes: &[&'static Probe]) -> Vec<(&'static str, Hook)> {
    probes
        .iter()
        .map(|probe| (probe.program, hook(probe.attach)))
        .collect()
}

/// The effect of a set on system calls that are none of its business.
pub(super) fn on_system_calls(
    set: &'static str,
    programs: &[&'static Probe],
    fleet: &mut Fleet,
) -> anyhow::Result<Effect> {
    let sets = [(set, programs.to_vec())];
    pairs(&sets, fleet, &mut SystemCalls, MOST_PAIRS_ON_CALLS)?
        .pop()
        .ok_or_else(|| anyhow!("no pair of blocks was run"))
}

/// The effect of sets on write faults.
pub(super) fn on_faults(
    sets: &[(&'static str, Programs)],
    fleet: &mut Fleet,
) -> anyhow::Result<Vec<Effect>> {
    pairs(sets, fleet, &mut WriteFaults::new()?, MOST_PAIRS)
}

/// Runs `bare, set, bare, next set, …` and compares each block with the mean of its two bare neighbours; bare blocks
/// are compared with their bare neighbours in the same way, which is the null.
fn pairs(
    sets: &[(&'static str, Programs)],
    fleet: &mut Fleet,
    load: &mut dyn Load,
    most: usize,
) -> anyhow::Result<Vec<Effect>> {
    fleet.detach();
    let mut bare = vec![block(load, BLOCK)?.ns];
    let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); sets.len()];
    let mut null = None;
    for pair in 1..=most {
        for ((_, programs), ratios) in sets.iter().zip(&mut ratios) {
            fleet
                .attach(&hooks(programs), 1)
                .map_err(|error| anyhow!("attaching a whole set: {error}"))?;
            let with = block(load, BLOCK)?.ns;
            fleet.detach();
            let after = block(load, BLOCK)?.ns;
            let before = bare.last().copied().unwrap_or(after);
            ratios.push(2.0 * with / (before + after));
            bare.push(after);
        }
        null = interval(&nulls(&bare));
        if pair >= FEWEST_PAIRS && null.is_some_and(is_narrow) {
            break;
        }
    }
    let null = null.ok_or_else(|| anyhow!("too few pairs"))?;
    let effects = sets.iter().zip(&ratios).filter_map(|((set, _), ratios)| {
        Some(Effect {
            set,
            load: load.events(),
            time_ratio: interval(ratios)?,
            null_ratio: null,
            pairs: ratios.len(),
            is_resolved: is_narrow(null),
        })
    });
    Ok(effects.collect())
}

/// Each bare block but the first and last over the mean of its neighbours.
fn nulls(bare: &[f64]) -> Vec<f64> {
    bare.windows(3)
        .map(|three| 2.0 * three[1] / (three[0] + three[2]))
        .collect()
}

fn is_narrow(null: Spread) -> bool {
    (1.0 - null.low).abs() <= NARROW && (null.high - 1.0).abs() <= NARROW
}

/// Adds the programs' costs up for read and for write faults.
pub(super) fn budgets(
    sets: &[(&'static str, Programs)],
    fleet: &mut Fleet,
    costs: &Costs,
) -> anyhow::Result<Vec<Budget>> {
    let mut budgets = Vec::new();
    let mut loads: [Box<dyn Load>; 2] =
        [Box::new(ReadFaults::new()?), Box::new(WriteFaults::new()?)];
    for load in &mut loads {
        fleet.detach();
        let blocks = (0..BLOCKS)
            .map(|_| Ok(block(load.as_mut(), BLOCK)?.ns))
            .collect::<anyhow::Result<Vec<f64>>>()?;
        let bare_ns = median(&blocks).ok_or_else(|| anyhow!("no block was run"))?;
        for (set, programs) in sets {
            let runs_per_fault = runs_per_fault(programs, fleet, load.as_mut())
                .map_err(|error| anyhow!("counting runs for each fault: {error}"))?;
            let added_ns = added(&runs_per_fault, costs);
            budgets.push(Budget {
                set,
                load: load.events(),
                bare_ns,
                added_ns,
                ratio: added_ns / bare_ns,
                runs_per_fault,
            });
        }
    }
    fleet.detach();
    Ok(budgets)
}

fn runs_per_fault(
    programs: &[&'static Probe],
    fleet: &mut Fleet,
    load: &mut dyn Load,
) -> Result<BTreeMap<&'static str, f64>, String> {
    let _on = run_time_statistics()?;
    fleet.attach(&hooks(programs), 1)?;
    let mut least: BTreeMap<&'static str, f64> = BTreeMap::new();
    for _ in 0..READINGS {
        let runs = |program: &str| fleet.stats(program).map_or(0, |stats| stats.runs);
        let before: Vec<u64> = programs.iter().map(|probe| runs(probe.program)).collect();
        let faults = load.run().map_err(|error| error.to_string())?;
        for (probe, before) in programs.iter().zip(before) {
            let ran = match probe.cost {
                // The load makes one call a run; another process may well make hundreds meanwhile.
                Cost::SystemCall => 1,
                _ => runs(probe.program) - before,
            };
            let rate = ran as f64 / faults as f64;
            // Other processes only ever add runs.
            let entry = least.entry(probe.program).or_insert(rate);
            *entry = entry.min(rate);
        }
    }
    Ok(least)
}

/// Cost of the programs' runs for one fault, ns. A group's stacked sum counts once for each run of its last program,
/// which begins what the others end.
fn added(runs: &BTreeMap<&'static str, f64>, costs: &Costs) -> f64 {
    costs
        .cost
        .iter()
        .filter(|row| row.filter.is_none())
        .filter_map(|row| {
            let names: Vec<&str> = row.program.split(" + ").collect();
            let rate = runs.get(names.last()?)?;
            // A member of a group has no stacked figure of its own: its group's row has it.
            let ns = if names.len() > 1 || row.ns_stacked.is_some() {
                row.best()?
            } else {
                return None;
            };
            Some(ns.max(0.0) * rate)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::cost::ProgramCost;

    fn row(program: &str, ns_stats: Option<f64>, ns_stacked: Option<f64>) -> ProgramCost {
        ProgramCost {
            program: program.into(),
            hook: "tp_btf/x".into(),
            class: "scoped",
            filter: None,
            load: Some("faults"),
            events: 5000,
            runs_per_event: Some(1.0),
            ns_stats,
            ns_stacked,
            iqr: None,
            rounds: 9,
            empty_ns: None,
            note: None,
        }
    }

    #[test]
    fn a_group_is_added_once_and_a_filtered_row_not_at_all() {
        let mut filtered = row("fault_user", None, Some(1000.0));
        filtered.filter = Some("pid");
        let costs = Costs {
            cost: vec![
                row("fault_user", Some(40.0), Some(16.0)),
                row("mmap_acquired", Some(70.0), None),
                row("mmap_start", Some(70.0), None),
                row("mmap_acquired + mmap_start", Some(140.0), Some(120.0)),
                row("task_exit", None, None),
                filtered,
            ],
            ..Costs::default()
        };
        let runs = BTreeMap::from([
            ("fault_user", 1.0),
            ("mmap_acquired", 0.5),
            ("mmap_start", 0.25),
            ("task_exit", 0.0),
        ]);
        assert!((added(&runs, &costs) - (16.0 + 120.0 * 0.25)).abs() < 1e-9);
    }

    #[test]
    fn a_steady_drift_is_no_effect() {
        let drifting: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i)).collect();
        let nulls = nulls(&drifting);
        assert_eq!(nulls.len(), 18);
        assert!(nulls.iter().all(|ratio| (ratio - 1.0).abs() < 1e-9));
    }

    #[test]
    fn narrow_means_both_ends() {
        let spread = |low, high| Spread {
            low,
            median: 1.0,
            high,
        };
        assert!(is_narrow(spread(0.986, 1.014)));
        assert!(!is_narrow(spread(0.98, 1.001)));
        assert!(!is_narrow(spread(0.999, 1.02)));
    }
}
