//! What the benches of one address space share: mmap_lock by mode, TLB flushes, what the members used.

use std::path::Path;

use super::columns::THREADS;
use super::point::Point;
use super::table::{Column, Section};
use super::{Job, Stop};
use crate::host::interrupts::tlb_shootdowns;
use crate::load::{Kind, Team, Used, allowed};
use crate::model::command::{Command, Side, tlb_flushes};
use crate::run::MemoryLimit;
use crate::units::{format_ns, format_si};
use crate::workload::Direction;
use crate::workload::bench::BenchResult;

const fn of_lock(
    title: &'static str,
    signal: &'static str,
    cell: fn(&Point, &[Point]) -> Option<String>,
) -> Column {
    Column {
        title,
        width: 8,
        signal: Some(signal),
        cell,
    }
}

/// The lock in one mode, 0 read and 1 write.
fn side(point: &Point, signal: &str, mode: usize) -> Option<Side> {
    let seen = point.given(signal)?;
    Some(Command::of(&seen.model).mmap_lock()[mode])
}

const fn waits<const MODE: usize>(title: &'static str) -> Column {
    of_lock(title, "contention", |point, _| {
        side(point, "contention", MODE).map(|side| count(side.waits))
    })
}

const fn waited<const MODE: usize>(title: &'static str) -> Column {
    of_lock(title, "contention", |point, _| {
        side(point, "contention", MODE).map(|side| time(side.wait_ns))
    })
}

const fn holds<const MODE: usize>(title: &'static str) -> Column {
    of_lock(title, "mmap_lock_hold", |point, _| {
        side(point, "mmap_lock_hold", MODE).map(|side| count(side.holds))
    })
}

const fn held<const MODE: usize>(title: &'static str) -> Column {
    of_lock(title, "mmap_lock_hold", |point, _| {
        side(point, "mmap_lock_hold", MODE).map(|side| time(side.hold_ns))
    })
}

/// mmap_lock of the work's address space: contended waits and holds, read and write.
pub(super) const MMAP_LOCK: Section = Section {
    title: "mmap_lock of the address space, r. for read and w. for write: contended waits, holds, and the time of all of \
            them",
    columns: &[
        THREADS,
        waits::<0>("r.waits"),
        waited::<0>("r.waited"),
        holds::<0>("r.holds"),
        held::<0>("r.held"),
        waits::<1>("w.waits"),
        waited::<1>("w.waited"),
        holds::<1>("w.holds"),
        held::<1>("w.held"),
    ],
};

/// Interrupts that told another CPU to flush its TLB, of the whole machine during the work.
pub(super) const SHOOTDOWNS: Column = Column {
    title: "shootdowns",
    width: 10,
    signal: None,
    cell: |point, _| point.result.events("shootdowns").map(count),
};

/// TLB flushes as vmstat counts them, of the whole machine.
pub(super) const TLB_FLUSHES: Column = Column {
    title: "TLB flushes",
    width: 11,
    signal: None,
    cell: |point, _| tlb_flushes(&point.seen.as_ref()?.model).map(count),
};

/// Why [`TLB_FLUSHES`] is empty, if it is.
pub(super) fn why_no_flushes(points: &[Point]) -> Option<String> {
    let mut seen = points.iter().filter_map(|point| point.seen.as_ref());
    let is_absent = seen.any(|seen| tlb_flushes(&seen.model).is_none());
    is_absent.then(|| {
        "TLB flushes: not measured: this kernel does not count them (CONFIG_DEBUG_TLBFLUSH); shootdowns are the \
         interrupts of those that other CPUs had to make"
            .to_owned()
    })
}

/// Size of the pages of these benches.
pub(super) fn page_size(points: &[Point]) -> Option<String> {
    let bytes = points.first()?.result.events("page_size")?;
    Some(format!(
        "pages of {bytes} bytes; huge pages are off for memory of these benches"
    ))
}

/// A number of events, three digits.
pub(super) fn count(n: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let n = n as f64;
    format_si(n)
}

/// A time, three digits.
pub(super) fn time(ns: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let ns = ns as f64;
    format_ns(ns)
}

/// The team of a point.
pub(super) fn team(job: &Job) -> Result<Team, Stop> {
    Ok(Team {
        members: job.members,
        kind: if job.are_processes {
            Kind::Processes
        } else {
            Kind::Threads
        },
        cpus: if job.is_pinned {
            allowed()?
        } else {
            Vec::new()
        },
    })
}

/// The team of a point of a bench whose members share an address space.
pub(super) fn one_space(job: &Job) -> Result<Team, Stop> {
    if job.are_processes {
        return Err(Stop::Skip(format!(
            "bench {} is about one address space; give --threads",
            job.bench.name
        )));
    }
    team(job)
}

/// Moves this process into the memory cgroup of its point, if the point has one.
pub(super) fn join(job: &Job) -> Result<(), Stop> {
    match &job.cgroup {
        None => Ok(()),
        Some(path) => MemoryLimit::join(path).map_err(|error| {
            if error.kind() == std::io::ErrorKind::PermissionDenied {
                // In version 2 it takes a right on the cgroup that both are in.
                return Stop::Skip(format!(
                    "this process may not enter its memory cgroup: {error}; run as root"
                ));
            }
            Stop::Failed(anyhow::Error::new(error).context("entering the memory cgroup"))
        }),
    }
}

/// Whether an error says that it cannot be done here, so that the point is skipped.
pub(super) fn stop(error: std::io::Error) -> Stop {
    if error.kind() == std::io::ErrorKind::Unsupported {
        Stop::Skip(error.to_string())
    } else {
        Stop::Failed(error.into())
    }
}

/// Runs `work` and tells what the team used and how many TLB shootdowns the machine had meanwhile.
pub(super) fn timed<T>(
    result: &mut BenchResult,
    work: impl FnOnce() -> std::io::Result<(Used, T)>,
) -> Result<(Used, T), Stop> {
    let root = Path::new("/");
    let before = tlb_shootdowns(root);
    let (used, more) = work().map_err(stop)?;
    let after = tlb_shootdowns(root);
    if let (Some(before), Some(after)) = (before, after) {
        result.count("shootdowns", after.saturating_sub(before));
    }
    result.count("page_size", rustix::param::page_size() as u64);
    let seconds = |ns: u64| {
        #[expect(clippy::cast_precision_loss, reason = "2^53 ns are 104 days")]
        let ns = ns as f64;
        ns / 1e9
    };
    result.add(
        "elapsed",
        seconds(used.wall_ns),
        "s",
        Some(Direction::Lower),
    );
    result.add("cpu", seconds(used.cpu_ns), "s", Some(Direction::Lower));
    if let Some((user, system)) = used.user_and_system_ns() {
        result.add("user", seconds(user), "s", None);
        result.add("system", seconds(system), "s", None);
    }
    result.count("faults", used.faults());
    result.count("major_faults", used.major_faults);
    result.count("involuntary_switches", used.involuntary_switches);
    result.count("voluntary_switches", used.voluntary_switches);
    Ok((used, more))
}

/// Adds `n` and how many of it a second had.
pub(super) fn rate(result: &mut BenchResult, name: &str, n: u64, used: &Used) {
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 events")]
    let per_second = n as f64 * 1e9 / used.wall_ns as f64;
    result.count(name, n);
    result.add(
        &format!("{name}/s"),
        per_second,
        "1/s",
        Some(Direction::Higher),
    );
}
