//! Bringing the programs into the kernel.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;

use super::filter::Filter;
use super::{Options, refault_window_ns};
use crate::bpf::{Maps, Programs, Sizes, load::load};
use crate::commands::hook;
use crate::host::HostFacts;
use crate::plan::{self, Attached, Plan, ProbeFacts, Request};

/// Times a plan is made anew without what the kernel refused.
const REPLANS: usize = 4;

/// What it takes to bring the programs into the kernel.
pub(super) struct Start<'a> {
    pub(super) facts: &'a ProbeFacts,
    pub(super) request: Request,
    pub(super) object: &'a [u8],
    pub(super) sizes: Sizes,
    pub(super) host: &'a HostFacts,
    pub(super) options: &'a Options,
    pub(super) filter: &'a Filter,
}

impl Start<'_> {
    /// Loads the object for a plan and attaches it; starts over, without what the
    /// kernel refused, if that changes what the others may rely on (their globals).
    pub(super) fn run(&mut self) -> anyhow::Result<(Programs, Maps, Plan, Vec<Attached>)> {
        loop {
            let plan = plan::plan(self.facts, &self.request);
            let wanted = plan.globals.clone();
            let (mut programs, maps) = self.load(&plan)?;
            let (plan, attached) = attach_plan(&mut programs, self.facts, &mut self.request, plan);
            if plan.globals == wanted {
                return Ok((programs, maps, plan, attached));
            }
        }
    }

    fn load(&self, plan: &Plan) -> anyhow::Result<(Programs, Maps)> {
        let mut globals = plan.globals.clone();
        globals.push(("FILTERS", self.filter.kinds()));
        globals.push(("REFAULT_WINDOW_NS", refault_window_ns(self.options)));
        let loaded = load(self.object, &globals, self.sizes)?;
        let cpus = &self.host.topology.cpus;
        let online = cpus.iter().filter(|c| c.is_online).map(|c| c.cpu).collect();
        let (programs, mut maps) = Programs::split(loaded, online);
        let place = |n: u32| u16::try_from(n).unwrap_or(u16::MAX);
        let places: Vec<_> = cpus
            .iter()
            .map(|c| (c.cpu, place(c.core), place(c.llc), place(c.node)))
            .collect();
        maps.set_places(&places);
        maps.set_filters(&self.options.pids, &self.filter.cgroups, &self.filter.comms)
            .context("writing the filters into the BPF maps")?;
        Ok((programs, maps))
    }
}

/// Attaches a plan; what the kernel refuses is kept in the request, with its reason, and planned around.
pub(super) fn attach_plan(
    programs: &mut Programs,
    facts: &ProbeFacts,
    request: &mut Request,
    mut plan: Plan,
) -> (Plan, Vec<Attached>) {
    let mut attached: Vec<Attached> = Vec::new();
    for _ in 0..REPLANS {
        attached.clear();
        let mut parts: BTreeSet<&str> = BTreeSet::new();
        for probe in &plan.chosen {
            let outcome = programs.attach(probe.program, hook(probe.attach));
            if outcome.is_err() {
                parts.insert(probe.part);
            }
            attached.push(Attached {
                program: probe.program,
                outcome,
            });
        }
        if parts.is_empty() {
            break;
        }
        // A part counts only as a whole.
        for probe in plan.chosen.iter().filter(|p| parts.contains(p.part)) {
            programs.detach(probe.program);
        }
        for failed in &attached {
            if let Err(reason) = &failed.outcome {
                request
                    .refused
                    .insert(failed.program.to_owned(), reason.clone());
            }
        }
        plan = plan::plan(facts, request);
    }
    (plan, attached)
}

/// Runs the program that learns one page descriptor's address, then removes it.
pub(super) fn learn(programs: &mut Programs, maps: &Maps) {
    const PAGES: usize = 64;
    if !programs.is_attached("learn_page") {
        return;
    }
    for _ in 0..8 {
        // Touching fresh pages allocates them.
        std::hint::black_box(vec![1_u8; PAGES * 4096]);
        if maps.control.read(0).vmemmap != 0 {
            break;
        }
    }
    programs.detach("learn_page");
}

pub(super) fn threads_now(root: &Path) -> u32 {
    // "0.00 0.01 0.05 1/234 5678": running/all.
    std::fs::read_to_string(root.join("proc/loadavg"))
        .ok()
        .and_then(|text| {
            text.split_whitespace()
                .nth(3)?
                .split_once('/')?
                .1
                .parse()
                .ok()
        })
        .unwrap_or(0)
}

/// Gives freed memory back: the kernel's type information is tens of megabytes.
pub(super) fn release_memory() {
    // SAFETY: takes a number, touches only the allocator's own state.
    unsafe {
        libc::malloc_trim(0);
    }
}
