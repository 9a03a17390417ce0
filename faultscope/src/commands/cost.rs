//! `doctor --cost`: what each program costs an event, and what the sets cost a bystander.
//!
//! Two methods that fail in different ways. Run-time statistics are the kernel's own clock around every run, less the
//! empty program on the same hook; they need a right, and the clock costs more than most programs. Stacked copies
//! need neither: eight copies of the programs against eight of the empty one, in blocks that take turns with blocks
//! without any. docs/cost.md explains both.

mod effect;
mod fleet;
mod program;
mod rank;
mod text;

use std::hint::black_box;
use std::os::fd::OwnedFd;

use serde::Serialize;

pub use effect::{Budget, Effect};
pub use program::ProgramCost;
pub use rank::Spread;

use crate::bpf::attach::run_time_statistics;
use crate::host::HostFacts;
use crate::host::clock;
use crate::load::Pinned;
use crate::plan::{Cost, Plan, Probe, ProbeFacts, Request, Set, plan};
use fleet::Fleet;
use program::Group;

/// Events below which nothing is said.
pub const FEWEST_EVENTS: u64 = 1000;

/// What was measured, in ns of CPU time.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Costs {
    /// Each program that could be attached, and each group of programs that only work together.
    pub cost: Vec<ProgramCost>,
    /// What a set does to a loop that it watches or that merely runs beside it.
    pub effects: Vec<Effect>,
    /// Programs' costs added up for a fault, as a share of the fault.
    pub budgets: Vec<Budget>,
    /// One read of the monotonic clock from user space; the kernel reads the same counter.
    pub clock_ns: Option<f64>,
    /// Why there are no run-time statistics; `None` if there are.
    pub no_statistics: Option<String>,
}

impl Costs {
    /// Cost of a program for one event, unfiltered: stacked copies if measured, else statistics.
    #[must_use]
    pub fn of(&self, program: &str) -> Option<f64> {
        self.cost
            .iter()
            .find(|row| row.program == program && row.filter.is_none())
            .and_then(ProgramCost::best)
    }
}

/// Measures every program named in `attachable` for about half a minute; `progress` hears what comes next.
///
/// All programs count while they are measured, and nothing is attached afterwards, nor if the process is killed.
///
/// # Errors
/// The object cannot be loaded, a program that could be attached before cannot be now, or a load cannot run.
pub fn measure(
    host: &HostFacts,
    probes: &ProbeFacts,
    object: &[u8],
    attachable: &[&str],
    progress: &mut dyn FnMut(&str),
) -> anyhow::Result<Costs> {
    let mut plan = plan(probes, &Request::everything());
    plan.chosen
        .retain(|probe| attachable.contains(&probe.program));
    let _pinned = Pinned::new()?;
    let statistics = run_time_statistics();
    let mut costs = Costs {
        clock_ns: clock_ns(),
        no_statistics: statistics.as_ref().err().cloned(),
        ..Costs::default()
    };
    // Switched on for each group anew: statistics slow every program down.
    drop(statistics.map(|on: OwnedFd| on));
    let can_count = costs.no_statistics.is_none();

    let mut fleet = Fleet::load(object, &plan, &host.topology, None)?;
    for group in Group::all(&plan) {
        progress(&group.name());
        costs
            .cost
            .extend(group.measure(&mut fleet, &host.topology, None, can_count)?);
    }
    for (set, programs) in sets(&plan) {
        progress(&format!("the {set} set on system calls"));
        if set != "all" {
            let effect = effect::on_system_calls(set, &programs, &mut fleet)?;
            costs.effects.push(effect);
        }
    }
    progress("the core set and all sets on faults");
    let faults: Vec<_> = sets(&plan)
        .into_iter()
        .filter(|(set, _)| *set != "madvise")
        .collect();
    costs
        .effects
        .extend(effect::on_faults(&faults, &mut fleet)?);
    if can_count {
        let by_fault: Vec<_> = faults
            .into_iter()
            .filter(|(set, _)| *set != "budget")
            .collect();
        costs.budgets = effect::budgets(&by_fault, &mut fleet, &costs)?;
    }
    drop(fleet);

    let filtered = Group::all(&plan)
        .into_iter()
        .find(|group| group.probes[0].cost == Cost::Fault);
    if let Some(group) = filtered {
        progress(&format!("{} with a filter", group.name()));
        let own = std::process::id();
        let mut fleet = Fleet::load(object, &plan, &host.topology, Some(own))?;
        let rows = group.measure(&mut fleet, &host.topology, Some("pid"), can_count)?;
        costs.cost.extend(rows);
    }
    Ok(costs)
}

/// The sets as `top` attaches them, each with the programs it adds up to.
fn sets(plan: &Plan) -> Vec<(&'static str, Vec<&'static Probe>)> {
    let among = |wanted: &[Set]| {
        let is_usual = |probe: &&&Probe| wanted.contains(&probe.set);
        plan.chosen
            .iter()
            .filter(is_usual)
            .copied()
            .collect::<Vec<_>>()
    };
    let mut sets = vec![
        ("core", among(&[Set::Core])),
        ("madvise", among(&[Set::Madvise])),
        ("budget", among(&[Set::Budget])),
        (
            "all",
            among(&[
                Set::Core,
                Set::Taken,
                Set::Mmap,
                Set::Lru,
                Set::Rss,
                Set::Madvise,
            ]),
        ),
    ];
    // A kernel without the system-call tracepoints has an empty set, whose effect would be noise.
    sets.retain(|(_, programs)| !programs.is_empty());
    sets
}

/// Time of one read of the monotonic clock, from a thousand reads at a time.
fn clock_ns() -> Option<f64> {
    let times: Vec<f64> = (0..50)
        .map(|_| {
            let begin = clock::monotonic_ns();
            for _ in 0..1000 {
                black_box(clock::monotonic_ns());
            }
            (clock::monotonic_ns() - begin) as f64 / 1000.0
        })
        .collect();
    rank::median(&times)
}
