//! One program, or programs that only work together, measured both ways.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use serde::Serialize;

use super::FEWEST_EVENTS;
use super::fleet::{COPIES, Fleet, block, empty, measured_hook};
use super::rank::{Spread, median, quartiles};
use crate::bpf::attach::{Hook, run_time_statistics};
use crate::host::topology::Topology;
use crate::load::{
    Advices, Contention, KernelFaults, Load, Mappings, ReadFaults, Rereads, WriteFaults,
};
use crate::plan::{Attach, Cost, Plan, Probe};

/// Length of one block of load.
const BLOCK: Duration = Duration::from_millis(15);
/// Time for the rounds of one group.
const TIME: Duration = Duration::from_millis(1500);
/// Fewest and most rounds of one group.
const ROUNDS: (usize, usize) = (6, 15);
/// Fewest readings of run-time statistics, and the most where events are rare.
const READINGS: (usize, usize) = (3, 30);

/// What a program costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramCost {
    /// Program name, or several joined by " + " where only their sum can be stacked.
    pub program: String,
    /// Hook it was measured on.
    pub hook: String,
    /// `counter`, `scoped` (rows of threads, filters), `clocked` (reads a clock besides), `wait`, `sample` or `rare`.
    pub class: &'static str,
    /// Filter in force: `pid`, or none.
    pub filter: Option<&'static str>,
    /// What one event of the load is.
    pub load: Option<&'static str>,
    /// Events driven.
    pub events: u64,
    /// Runs of the programs for one event, as the kernel counted them.
    pub runs_per_event: Option<f64>,
    /// By run-time statistics: ns for each event less the empty program's.
    pub ns_stats: Option<f64>,
    /// By stacked copies: ns for each event less the empty program's.
    pub ns_stacked: Option<f64>,
    /// Quartiles of `ns_stacked` over the rounds.
    pub iqr: Option<[f64; 2]>,
    /// Rounds behind `ns_stacked`.
    pub rounds: usize,
    /// What the empty program costs on the hook by itself, stacked.
    pub empty_ns: Option<f64>,
    /// What the figure leaves out, or why there is none.
    pub note: Option<String>,
}

impl ProgramCost {
    /// Stacked copies if measured, else statistics.
    #[must_use]
    pub fn best(&self) -> Option<f64> {
        self.ns_stacked.or(self.ns_stats)
    }
}

/// Programs measured together.
pub(super) struct Group {
    pub(super) probes: Vec<&'static Probe>,
}

impl Group {
    /// The groups of a plan: programs that hand a state to each other are one.
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for probe in &plan.chosen {
            let is_paired = matches!(
                probe.cost,
                Cost::Acquisition | Cost::Release | Cost::Wait | Cost::Pass | Cost::SystemCall
            );
            let group = groups
                .iter_mut()
                .find(|group| is_paired && group.probes[0].part == probe.part);
            match group {
                Some(group) => group.probes.push(probe),
                None => groups.push(Self {
                    probes: vec![probe],
                }),
            }
        }
        groups
    }

    /// Names joined by " + ".
    pub(super) fn name(&self) -> String {
        let names: Vec<_> = self.probes.iter().map(|probe| probe.program).collect();
        names.join(" + ")
    }

    fn hooks(&self) -> Vec<(&'static str, Hook)> {
        self.probes
            .iter()
            .map(|probe| (probe.program, measured_hook(probe)))
            .collect()
    }

    fn class(&self) -> &'static str {
        let probe = self.probes[0];
        match probe.cost {
            Cost::Rare => "rare",
            Cost::Counter if probe.required.is_empty() => "counter",
            Cost::Counter | Cost::Fault | Cost::Taken => "scoped",
            Cost::Acquisition | Cost::Release | Cost::Pass | Cost::SystemCall => "clocked",
            Cost::Wait => "wait",
            Cost::Sample => "sample",
        }
    }

    /// The load that makes these programs run, or why there is none.
    fn load(&self, topology: &Topology) -> anyhow::Result<Result<Box<dyn Load>, &'static str>> {
        let probe = self.probes[0];
        Ok(Ok(match probe.signal {
            "faults" if probe.program == "fault_kernel" => Box::new(KernelFaults::new()?),
            "faults" | "major_faults" => Box::new(ReadFaults::new()?),
            "fault_latency" | "populate_faults" | "fault_backing" | "fault_pages" => {
                Box::new(WriteFaults::new()?)
            }
            "mmap_lock" | "mmap_lock_hold" => Box::new(Mappings),
            "contention" | "blocked" => {
                let online: Vec<_> = topology.cpus.iter().filter(|cpu| cpu.is_online).collect();
                let [.., a, b] = online.as_slice() else {
                    return Ok(Err("nobody waits for a lock on a machine with one CPU"));
                };
                Box::new(Contention::new([a.cpu as usize, b.cpu as usize])?)
            }
            "lru" if probe.program == "lru_activate" => Box::new(Rereads::new()?),
            "mark_accessed" => Box::new(Rereads::new()?),
            "lru"
            | "rss_stat"
            | "batches"
            | "lru_lock_hold"
            | "lru_lock_exact_hold"
            | "fault_budget" => Box::new(WriteFaults::new()?),
            "drains" | "workingset_activation" | "workingset_refault" => {
                return Ok(Err(
                    "an addition as `lru_insertion`; no load makes enough of its events",
                ));
            }
            "madvise" => Box::new(Advices::new()?),
            "refaults" => match probe.program {
                "advised_mm" => Box::new(Mappings),
                _ => Box::new(ReadFaults::new()?),
            },
            "page_table_locks" => {
                return Ok(Err("attached only until it has run once"));
            }
            _ => {
                return Ok(Err(
                    "runs once in the life of a thread, or at a change of name or cgroup",
                ));
            }
        }))
    }

    /// Measures the group on the copies of `fleet`.
    pub(super) fn measure(
        &self,
        fleet: &mut Fleet,
        topology: &Topology,
        filter: Option<&'static str>,
        can_count: bool,
    ) -> anyhow::Result<Vec<ProgramCost>> {
        let row = |program: String, hook: String, note: Option<&str>| ProgramCost {
            program,
            hook,
            class: self.class(),
            filter,
            load: None,
            events: 0,
            runs_per_event: None,
            ns_stats: None,
            ns_stacked: None,
            iqr: None,
            rounds: 0,
            empty_ns: None,
            note: note.map(str::to_owned),
        };
        let single =
            |probe: &&Probe, note| row(probe.program.to_owned(), probe.attach.hook(), note);
        let mut load = match self.load(topology)? {
            Ok(load) => load,
            Err(reason) => {
                let reason = format!("not measured: {reason}");
                let rows = self.probes.iter().map(|probe| single(probe, Some(&reason)));
                return Ok(rows.collect());
            }
        };
        let failed = |error: String| anyhow!("measuring \"{}\": {error}", self.name());
        let counted = if can_count {
            self.count(fleet, load.as_mut()).map_err(failed)?
        } else {
            BTreeMap::new()
        };
        // How long a wait is scheduled away varies more than eight copies cost, and samples are few.
        let is_stackable = !matches!(self.probes[0].cost, Cost::Wait | Cost::Sample);
        let stacked = is_stackable
            .then(|| self.stack(fleet, load.as_mut()).map_err(failed))
            .transpose()?;
        fleet.detach();

        let mut rows = Vec::new();
        for probe in &self.probes {
            let mut row = single(probe, None);
            if let Some(counted) = counted.get(probe.program) {
                row.runs_per_event = Some(counted.runs_per_event);
                row.events = counted.events;
                row.ns_stats = counted.ns.filter(|_| counted.events >= FEWEST_EVENTS);
            }
            rows.push(row);
        }
        let Some(stacked) = stacked else {
            for (row, probe) in rows.iter_mut().zip(&self.probes) {
                row.note = Some(match probe.attach {
                    Attach::Clock { hz } => sampled(hz, row.ns_stats),
                    _ => "statistics only: waits vary more than copies cost".to_owned(),
                });
            }
            let events = if self.probes[0].cost == Cost::Sample {
                "sample"
            } else {
                load.events()
            };
            return Ok(Self::judge(rows, events));
        };
        if let [row] = rows.as_mut_slice() {
            row.set_stacked(&stacked);
            if measured_hook(self.probes[0]) == Hook::PageFaults
                && self.probes[0].signal == "major_faults"
            {
                row.note = Some("measured on the event of all faults".to_owned());
            }
        } else {
            let hooks: Vec<_> = self.probes.iter().map(|p| p.attach.hook()).collect();
            let mut sum = row(self.name(), hooks.join(" + "), None);
            let runs = rows.iter().map(|row| row.runs_per_event);
            sum.runs_per_event = runs.sum();
            sum.ns_stats = rows
                .iter()
                .map(|row| Some(row.ns_stats? * row.runs_per_event?))
                .sum();
            sum.events = rows.iter().map(|row| row.events).max().unwrap_or(0);
            sum.set_stacked(&stacked);
            for row in &mut rows {
                row.note = Some("stacked together, see the sum".to_owned());
            }
            rows.push(sum);
        }
        Ok(Self::judge(rows, load.events()))
    }

    /// Names the events, and says of rows with too few that they say nothing.
    fn judge(mut rows: Vec<ProgramCost>, events: &'static str) -> Vec<ProgramCost> {
        for row in &mut rows {
            row.load = Some(events);
            if row.events < FEWEST_EVENTS {
                row.note = Some(format!("not measured: below {FEWEST_EVENTS} events"));
            }
        }
        rows
    }
}

impl ProgramCost {
    fn set_stacked(&mut self, stacked: &Stacked) {
        self.events += stacked.events;
        self.rounds = stacked.rounds;
        if stacked.events >= FEWEST_EVENTS {
            self.ns_stacked = Some(stacked.ns.median);
            self.iqr = Some([stacked.ns.low, stacked.ns.high]);
            self.empty_ns = Some(stacked.empty_ns);
        }
    }
}

/// What samples cost a CPU, which the interrupts of the clock come on top of.
fn sampled(hz: u64, ns: Option<f64>) -> String {
    ns.map_or_else(
        || "statistics only: samples are few".to_owned(),
        |ns| {
            format!(
                "{hz} samples a second take {:.2} % of each CPU, the clock's interrupts apart",
                ns * hz as f64 / 1e7
            )
        },
    )
}

/// What run-time statistics say of a program.
struct Counted {
    events: u64,
    runs_per_event: f64,
    /// ns of a run less those of the empty program.
    ns: Option<f64>,
}

/// What stacked copies say of a group, for one event.
struct Stacked {
    events: u64,
    rounds: usize,
    ns: Spread,
    empty_ns: f64,
}

impl Group {
    /// Contended waits are counted by the programs, samples are their runs, all other events are the load's.
    fn events(&self, fleet: &Fleet, waits_before: u64, by_load: u64, runs: u64) -> u64 {
        match self.probes[0].cost {
            Cost::Wait => fleet.waits() - waits_before,
            Cost::Sample => runs,
            _ => by_load,
        }
    }

    fn count(
        &self,
        fleet: &mut Fleet,
        load: &mut dyn Load,
    ) -> Result<BTreeMap<&'static str, Counted>, String> {
        let _on = run_time_statistics()?;
        let hooks = self.hooks();
        let mut runs: BTreeMap<&str, u64> = BTreeMap::new();
        let mut full: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let mut bare: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let mut events = 0;
        for reading in 0..READINGS.1 {
            if reading >= READINGS.0 && events >= 2 * FEWEST_EVENTS {
                break;
            }
            fleet.attach(&hooks, 1)?;
            let waits = fleet.waits();
            let mut all = 0;
            let done = read(fleet, &hooks, load, |index, ran, ns| {
                all += ran;
                *runs.entry(hooks[index].0).or_default() += ran;
                full.entry(hooks[index].0).or_default().push(ns);
            })?;
            events += self.events(fleet, waits, done, all);
            if reading >= READINGS.0 {
                continue;
            }
            for (program, hook) in &hooks {
                let alone = [empty(*hook)];
                fleet.attach(&alone, 1)?;
                read(fleet, &alone, load, |_, _, ns| {
                    bare.entry(program).or_default().push(ns);
                })?;
            }
        }
        let middle = |times: &BTreeMap<&str, Vec<f64>>, program: &str| {
            times.get(program).and_then(|times| median(times))
        };
        Ok(hooks
            .iter()
            .map(|(program, _)| {
                let ns = middle(&full, program)
                    .zip(middle(&bare, program))
                    .map(|(full, bare)| full - bare);
                let runs = runs.get(program).copied().unwrap_or(0);
                let runs_per_event = match self.probes[0].cost {
                    // Every process makes system calls; the load makes one an event.
                    Cost::SystemCall => 1.0,
                    _ => runs as f64 / events.max(1) as f64,
                };
                let counted = Counted {
                    events,
                    runs_per_event,
                    ns,
                };
                (*program, counted)
            })
            .collect())
    }

    fn stack(&self, fleet: &mut Fleet, load: &mut dyn Load) -> Result<Stacked, String> {
        let hooks = self.hooks();
        // Without anything, each empty program alone, then the group.
        let mut states: Vec<Vec<(&str, Hook)>> = vec![Vec::new()];
        states.extend(hooks.iter().map(|(_, hook)| vec![empty(*hook)]));
        states.push(hooks);
        let group = states.len() - 1;
        let (mut programs, mut dispatch) = (Vec::new(), Vec::new());
        let mut events = 0;
        let begin = Instant::now();
        while programs.len() < ROUNDS.0 || (programs.len() < ROUNDS.1 && begin.elapsed() < TIME) {
            let round = programs.len();
            let mut ns = vec![0.0; states.len()];
            for step in 0..states.len() {
                // Another state begins each round, so that a drift meets all of them.
                let state = (round + step) % states.len();
                fleet.attach(&states[state], COPIES)?;
                let block = block(load, BLOCK).map_err(|error| error.to_string())?;
                ns[state] = block.ns;
                if state == group {
                    events += block.events;
                }
            }
            let empties: f64 = ns[1..group].iter().map(|empty| empty - ns[0]).sum();
            programs.push((ns[group] - ns[0] - empties) / COPIES as f64);
            dispatch.push(empties / COPIES as f64);
        }
        Ok(Stacked {
            events,
            rounds: programs.len(),
            ns: quartiles(&programs).ok_or("no rounds")?,
            empty_ns: median(&dispatch).unwrap_or(0.0),
        })
    }
}

/// Runs a block and hands the runs and ns per run of each attached program to `take`; returns the load's events.
fn read(
    fleet: &Fleet,
    programs: &[(&str, Hook)],
    load: &mut dyn Load,
    mut take: impl FnMut(usize, u64, f64),
) -> Result<u64, String> {
    let stats = |program: &str| {
        fleet
            .stats(program)
            .ok_or_else(|| format!("no statistics of \"{program}\" in its fdinfo"))
    };
    load.run().map_err(|error| error.to_string())?;
    let before: Vec<_> = programs
        .iter()
        .map(|(program, _)| stats(program))
        .collect::<Result<_, _>>()?;
    let events = enough(load)?;
    for (index, (program, _)) in programs.iter().enumerate() {
        let after = stats(program)?;
        let runs = after.runs - before[index].runs;
        if runs > 0 {
            let ns = (after.run_ns - before[index].run_ns) as f64 / runs as f64;
            take(index, runs, ns);
        }
    }
    Ok(events)
}

/// Runs the load until it has caused enough events, or ten times.
fn enough(load: &mut dyn Load) -> Result<u64, String> {
    let begin = Instant::now();
    let (mut events, mut runs) = (0, 0);
    while runs < 3 || (events < 20 * FEWEST_EVENTS && begin.elapsed() < BLOCK) {
        events += load.run().map_err(|error| error.to_string())?;
        runs += 1;
    }
    Ok(events)
}
