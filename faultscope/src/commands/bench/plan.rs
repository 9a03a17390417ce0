//! Which points a sweep has, and which of them this machine cannot run. Pure.

use std::collections::HashSet;
use std::path::PathBuf;

use super::{Bench, Case, Job};
use crate::units::format_bytes;

/// What `bench` is asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// The bench.
    pub bench: &'static Bench,
    /// Cases; empty for the default ones.
    pub cases: Vec<&'static Case>,
    /// Numbers of threads; with `processes` empty too, powers of two up to the CPUs there are.
    pub threads: Vec<usize>,
    /// Numbers of processes.
    pub processes: Vec<usize>,
    /// Memory of all members together, bytes, of points each; empty for the bench's own.
    pub sizes: Vec<u64>,
    /// Times the work is done within a point; the bench's own if not given.
    pub rounds: Option<u32>,
    /// Times each point is made.
    pub repetitions: u32,
    /// Directory for the runs, made if it is not there; one named after the time if not given.
    pub output: Option<PathBuf>,
    /// Directory for files that the work needs; the current one if not given.
    pub files: Option<PathBuf>,
    /// No probes at all.
    pub is_bare: bool,
    /// The core probes only.
    pub is_core: bool,
    /// Members are bound to CPUs.
    pub is_pinned: bool,
    /// Layout of the table.
    pub style: Style,
    /// The object to load in place of the embedded one.
    pub bpf_object: Option<PathBuf>,
}

/// Layout of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// All columns.
    Table,
    /// The page-fault test's of 2004.
    Pft,
}

/// What the machine gives to members.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// CPUs that may be used.
    pub(super) cpus: usize,
    /// Memory that can be had without swapping, bytes; `None` if unknown.
    pub(super) memory_bytes: Option<u64>,
}

/// Every point, in the order in which they are made: repetitions go round, every second one in reverse (A B B A), so that
/// drift meets all points alike.
pub(super) fn jobs(options: &Options, cpus: usize) -> Vec<Job> {
    let bench = options.bench;
    let mut cases: Vec<&'static Case> = if options.cases.is_empty() {
        bench.cases.iter().filter(|case| case.is_default).collect()
    } else {
        options.cases.clone()
    };
    let mut counts: Vec<(usize, bool)> = options.threads.iter().map(|n| (*n, false)).collect();
    counts.extend(options.processes.iter().map(|n| (*n, true)));
    if counts.is_empty() {
        counts = powers_up_to(cpus).into_iter().map(|n| (n, false)).collect();
    }
    let mut sizes = options.sizes.clone();
    if sizes.is_empty() {
        sizes.push(bench.bytes);
    }
    // What is named twice is one point, of one file; --reps makes several.
    let (mut names, mut known, mut seen) = (HashSet::new(), HashSet::new(), HashSet::new());
    cases.retain(|case| names.insert(case.name));
    sizes.retain(|bytes| known.insert(*bytes));
    counts.retain(|count| seen.insert(*count));
    let places: Vec<(&'static Case, u64)> = cases
        .iter()
        .flat_map(|case| sizes.iter().map(move |bytes| (*case, *bytes)))
        .collect();
    let mut jobs = Vec::new();
    for repetition in 1..=options.repetitions {
        let begin = jobs.len();
        for (case, bytes) in &places {
            for (members, are_processes) in &counts {
                jobs.push(Job {
                    bench,
                    case,
                    members: *members,
                    are_processes: *are_processes,
                    bytes: *bytes,
                    has_sizes: sizes.len() > 1,
                    rounds: options.rounds.unwrap_or(bench.rounds),
                    repetition,
                    is_pinned: options.is_pinned,
                    cgroup: None,
                    directory: options.files.clone(),
                });
            }
        }
        if repetition % 2 == 0 {
            jobs[begin..].reverse();
        }
    }
    jobs
}

/// 1, 2, 4, … and the number itself.
fn powers_up_to(n: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = std::iter::successors(Some(1_usize), |n| n.checked_mul(2))
        .take_while(|m| *m < n)
        .collect();
    counts.push(n.max(1));
    counts
}

/// Why a point cannot be run in this room, if it cannot: a clause.
pub(super) fn obstacle(job: &Job, room: Room) -> Option<String> {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let shown = |bytes: u64| format_bytes(bytes as f64);
    if job.members > room.cpus {
        let cpus = if room.cpus == 1 { "CPU" } else { "CPUs" };
        return Some(format!(
            "{} {} need a CPU each to run at once, and {} {cpus} may be used here",
            job.members,
            job.members_key(),
            room.cpus
        ));
    }
    let page = rustix::param::page_size() as u64;
    if job.bytes / page < job.members as u64 {
        return Some(format!(
            "{} are fewer pages than {}",
            shown(job.bytes),
            job.members_key()
        ));
    }
    let needed = job.bytes.saturating_mul(job.case.memory);
    let memory = room.memory_bytes.filter(|bytes| needed > *bytes)?;
    Some(format!(
        "it needs {} of memory, and {} can be had without swapping; a smaller --size fits",
        shown(needed),
        shown(memory)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_double_up_to_the_cpus_there_are() {
        assert_eq!(powers_up_to(1), [1]);
        assert_eq!(powers_up_to(2), [1, 2]);
        assert_eq!(powers_up_to(6), [1, 2, 4, 6]);
        assert_eq!(powers_up_to(0), [1]);
    }
}
