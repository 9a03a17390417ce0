//! Equal copies of the object in the kernel, and blocks of load timed with some of their programs attached.

use std::io;
use std::time::{Duration, Instant};

use super::rank::median;
use crate::bpf::attach::{Hook, ProgramStats};
use crate::bpf::load::load;
use crate::bpf::{LoadError, Maps, Programs, Sizes};
use crate::commands::hook;
use crate::host::topology::Topology;
use crate::load::{Load, process_cpu_ns};
use crate::plan::{Plan, Probe};

/// Copies attached together: what one program costs is an eighth of what they cost, and so is the noise.
pub(super) const COPIES: usize = 8;

/// One or more whole copies of the object, maps and all.
pub(super) struct Fleet {
    copies: Vec<(Programs, Maps)>,
}

impl Fleet {
    /// Loads copies with the globals `top` gives them; with `filter` only the process of that id is counted.
    pub(super) fn load(
        object: &[u8],
        plan: &Plan,
        topology: &Topology,
        filter: Option<u32>,
    ) -> Result<Self, LoadError> {
        let possible = topology.cpus.last().map_or(1, |place| place.cpu + 1);
        // Rows enough that the load's thread does not share its own; a program touches the same few lines in a
        // greater map.
        let sizes = Sizes {
            threads: 4096,
            overflow: 1024,
            retired: 1024,
            lock_rows: 64,
            madvise: 1024,
            ..Sizes::for_machine(possible, 0)
        };
        let mut globals = plan.globals.clone();
        globals.push(("FILTERS", u64::from(filter.is_some())));
        let online: Vec<u32> = topology
            .cpus
            .iter()
            .filter(|place| place.is_online)
            .map(|place| place.cpu)
            .collect();
        let number = |id: u32| u16::try_from(id).unwrap_or(u16::MAX);
        let places: Vec<_> = topology
            .cpus
            .iter()
            .map(|place| {
                (
                    place.cpu,
                    number(place.core),
                    number(place.llc),
                    number(place.node),
                )
            })
            .collect();
        let copies = (0..COPIES)
            .map(|_| {
                let (programs, mut maps) =
                    Programs::split(load(object, &globals, sizes)?, online.clone());
                maps.set_places(&places);
                if let Some(pid) = filter {
                    maps.set_filters(&[pid], &[], &[])
                        .map_err(|error| LoadError::Refused(error.to_string()))?;
                }
                Ok((programs, maps))
            })
            .collect::<Result<_, LoadError>>()?;
        Ok(Self { copies })
    }

    /// Attaches programs in the first `copies` copies; what was attached goes first.
    pub(super) fn attach(
        &mut self,
        programs: &[(&str, Hook)],
        copies: usize,
    ) -> Result<(), String> {
        self.detach();
        for (copy, _) in self.copies.iter_mut().take(copies) {
            for (name, hook) in programs {
                copy.attach(name, *hook)?;
            }
        }
        Ok(())
    }

    /// Leaves nothing attached; the programs stay in the kernel, as verifying them again takes longer than a block.
    pub(super) fn detach(&mut self) {
        for (copy, _) in &mut self.copies {
            let names: Vec<String> = copy.attached().map(str::to_owned).collect();
            for name in names {
                copy.suspend(&name);
            }
        }
    }

    /// What the kernel says of a program in the first copy.
    pub(super) fn stats(&self, program: &str) -> Option<ProgramStats> {
        self.copies.first()?.0.stats(program)
    }

    /// Contended waits the first copy has counted.
    pub(super) fn waits(&self) -> u64 {
        let Some((_, maps)) = self.copies.first() else {
            return 0;
        };
        (0..maps.cpus.len())
            .flat_map(|cpu| maps.cpus.read(cpu).waits)
            .sum()
    }
}

/// The hook of a probe's measurement.
///
/// Major faults wait for a disk a thousand times longer than any program takes; the same program on the event of all
/// faults runs the same instructions. Samples are taken ten times as often, or they would be too few.
pub(super) fn measured_hook(probe: &Probe) -> Hook {
    match hook(probe.attach) {
        Hook::MajorFaults => Hook::PageFaults,
        Hook::Clock(hz) => Hook::Clock(10 * hz),
        other => other,
    }
}

/// The program that does nothing, for a hook.
pub(super) const fn empty(hook: Hook) -> (&'static str, Hook) {
    match hook {
        Hook::Tracepoint(_) => ("empty", hook),
        Hook::FunctionEntry(_) => ("empty_entry", hook),
        Hook::FunctionExit(_) => ("empty_exit", hook),
        Hook::FunctionProbe(_) => ("empty_probe", hook),
        Hook::PageFaults | Hook::MajorFaults | Hook::Clock(_) => ("empty_event", hook),
    }
}

/// A block of load, timed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Block {
    /// Events of the whole block.
    pub(super) events: u64,
    /// CPU time for each event, ns: the median over the runs of the block.
    pub(super) ns: f64,
}

/// Runs the load for about `length`, five times at least, after one run that does not count.
pub(super) fn block(load: &mut dyn Load, length: Duration) -> io::Result<Block> {
    load.run()?;
    let (mut events, mut times) = (0, Vec::new());
    let begin = Instant::now();
    while times.len() < 5 || begin.elapsed() < length {
        let before = process_cpu_ns();
        let done = load.run()?;
        let spent = process_cpu_ns() - before;
        if done > 0 {
            times.push(spent as f64 / done as f64);
        }
        events += done;
        if begin.elapsed() > 20 * length {
            break;
        }
    }
    let ns = median(&times).ok_or_else(|| io::Error::other("the load caused no event"))?;
    Ok(Block { events, ns })
}
