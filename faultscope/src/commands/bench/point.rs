//! A point that was made: what its process says, and what the kernel's side says of it.

use std::collections::BTreeSet;

use super::Job;
use crate::compare::loss::{Loss, loss};
use crate::load::MEMBER;
use crate::model::Model;
use crate::sample::Counters;
use crate::sample::delta::{GUP, POPULATE, Thread};
use crate::workload::bench::BenchResult;

/// A point that was made.
#[derive(Debug)]
pub(super) struct Point {
    /// What was done.
    pub(super) job: Job,
    /// What its process printed.
    pub(super) result: BenchResult,
    /// What the probes saw; `None` without probes.
    pub(super) seen: Option<Seen>,
}

/// What the probes saw of a point.
#[derive(Debug)]
pub(super) struct Seen {
    /// The whole run as one interval.
    pub(super) model: Model,
}

impl Seen {
    /// What was lost, each against the table it is missing from.
    pub(super) fn losses(&self) -> Vec<Loss> {
        let lost = self.model.lost.iter();
        lost.filter_map(|lost| loss(&lost.id, lost.total, self.model.delta()))
            .collect()
    }

    /// Why a signal was not measured.
    pub(super) fn why_not(&self, signal: &str) -> Option<&str> {
        let missing = self.model.missing.iter().find(|m| *m.signal == *signal)?;
        Some(&missing.reason)
    }

    /// The members' threads.
    fn member_threads(&self) -> impl Iterator<Item = &Thread> {
        let delta = self.model.delta();
        delta.threads.values().filter(|thread| {
            let process = delta.processes.get(&thread.process);
            &*thread.comm == MEMBER && process.is_some_and(|p| p.is_workload)
        })
    }

    /// Counts of the members' threads from their creation to their end.
    pub(super) fn members(&self) -> Counters {
        let mut sum = Counters::default();
        for thread in self.member_threads() {
            sum += &thread.counters;
        }
        sum
    }

    /// The processes that members are, or are threads of.
    pub(super) fn member_processes(&self) -> BTreeSet<u32> {
        self.member_threads().map(|t| t.process.tgid).collect()
    }

    /// Faults of the work that trapped nowhere: populated pages and get_user_pages.
    pub(super) fn untrapped(&self) -> u64 {
        let passes = self.model.delta().process_passes.iter();
        passes
            .filter(|(tgid, _)| self.is_workload(**tgid))
            .map(|(_, p)| p.paths[POPULATE] + p.paths[GUP])
            .sum()
    }

    /// Whether a process is part of the work.
    pub(super) fn is_workload(&self, tgid: u32) -> bool {
        let mut processes = self.model.delta().processes.iter();
        processes.any(|(id, p)| id.tgid == tgid && p.is_workload)
    }
}

impl Point {
    /// A figure of the result.
    pub(super) fn figure(&self, name: &str) -> Option<f64> {
        self.result.get(name)
    }

    /// The figure whose growth is judged.
    pub(super) fn rate(&self) -> Option<f64> {
        self.figure(self.job.bench.rate)
    }

    /// What the probes saw, if they gave this signal.
    pub(super) fn given(&self, signal: &str) -> Option<&Seen> {
        self.seen.as_ref().filter(|s| s.why_not(signal).is_none())
    }
}
