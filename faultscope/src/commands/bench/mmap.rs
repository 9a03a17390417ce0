//! `bench mmap`: threads that fault, threads that change their address space, and a process that looks at it from
//! outside.

use super::columns::THREADS;
use super::locks::{MMAP_LOCK, SHOOTDOWNS, count, one_space, page_size, rate, stop, time, timed};
use super::point::Point;
use super::table::Column;
use super::{Bench, Case, Job, Short, Stop, Work};
use crate::load::{Change, READER, SmapsReader, Space};
use crate::model::command::Command;
use crate::plan::Set;
use crate::workload::bench::BenchResult;

/// Waiters and holders named for each point.
const BLOCKED: usize = 4;

/// The bench.
pub(super) static MMAP: Bench = Bench {
    name: "mmap",
    settles: "Who holds mmap_lock while others need it, and how often does that send faults back to it?",
    cases: CASES,
    bytes: 8 << 20,
    rounds: 200,
    short: Short {
        cases: &["map", "protect", "smaps"],
        bytes: 4 << 20,
        rounds: 50,
    },
    sets: &[Set::Mmap, Set::Taken, Set::Blocked, Set::Latency],
    rate: "read_faults/s",
    live: &[
        THREADS,
        FAULTS,
        CHANGES,
        SMAPS_READS,
        FALL_BACKS,
        SHOOTDOWNS,
    ],
    sections: &[MMAP_LOCK],
    summary: Some(summary),
    limit: None,
    pft: None,
};

const fn case(name: &'static str, what: &'static str) -> Case {
    Case {
        name,
        what,
        is_default: true,
        memory: 1,
        work: &Changing,
    }
}

static CASES: &[Case] = &[
    case("faults", "threads that fault, and nobody beside them"),
    case("map", "as many threads that map and unmap a page"),
    case(
        "protect",
        "as many threads that change the protection of what the others fault on",
    ),
    case("vmas", "protect, in mappings of two pages each"),
    case(
        "smaps",
        "map, in mappings of two pages each, and a process that reads smaps_rollup",
    ),
];

/// Faults and changes, as the name of the case says.
struct Changing;

impl Work for Changing {
    fn run(&self, job: &Job) -> Result<BenchResult, Stop> {
        work(job)
    }
}

fn work(job: &Job) -> Result<BenchResult, Stop> {
    let team = one_space(job)?;
    let (change, is_split) = match job.case.name {
        "map" => (Some(Change::MapUnmap), false),
        "protect" => (Some(Change::Protect), false),
        "vmas" => (Some(Change::Protect), true),
        "smaps" => (Some(Change::MapUnmap), true),
        _ => (None, false),
    };
    let pages = usize::try_from(job.bytes)? / rustix::param::page_size() / job.members;
    let space =
        Space::new(job.members, pages, u64::from(job.rounds), is_split).map_err(|error| {
            // mmap(2) has no other reason for it here: memory is not touched yet.
            match error.kind() {
                std::io::ErrorKind::OutOfMemory if is_split => Stop::Skip(
                    "it needs more mappings than vm.max_map_count allows; a smaller --size fits"
                        .to_owned(),
                ),
                _ => stop(error),
            }
        })?;
    let reader = match job.case.name {
        "smaps" => Some(SmapsReader::start().map_err(|error| {
            Stop::Skip(format!(
                "\"/proc/self/smaps_rollup\" cannot be read: {error}"
            ))
        })?),
        _ => None,
    };
    let changes = change.map_or_else(Vec::new, |change| vec![change; job.members]);
    let mut result = BenchResult::new(job.bench.name, &job.keys());
    let (used, calls) = timed(&mut result, || space.run(&team, &changes))?;
    rate(&mut result, "read_faults", used.work, &used);
    if !changes.is_empty() {
        rate(&mut result, "changes", calls, &used);
    }
    if let Some(reader) = reader {
        result
            .notes
            .push(format!("{READER} is process {}", reader.pid()));
        result.count("reader", u64::from(reader.pid()));
        rate(&mut result, "smaps_reads", reader.end()?, &used);
    }
    Ok(result)
}

const FAULTS: Column = Column {
    title: "faults/s",
    width: 8,
    signal: None,
    cell: |point, _| {
        let rate = point.figure("read_faults/s");
        rate.map(crate::units::format_si)
    },
};

const CHANGES: Column = Column {
    title: "changes/s",
    width: 9,
    signal: None,
    cell: |point, _| point.figure("changes/s").map(crate::units::format_si),
};

const SMAPS_READS: Column = Column {
    title: "smaps/s",
    width: 8,
    signal: None,
    cell: |point, _| point.figure("smaps_reads/s").map(crate::units::format_si),
};

const FALL_BACKS: Column = Column {
    title: "fall-backs",
    width: 10,
    signal: Some("fault_latency"),
    cell: |point, _| {
        let seen = point.given("fault_latency")?;
        Some(count(Command::of(&seen.model).fall_backs()))
    },
};

/// Who blocked whom for how long.
fn summary(points: &[Point]) -> Vec<String> {
    let (mut lines, mut is_first) = (Vec::new(), true);
    for point in points {
        let Some(seen) = &point.seen else {
            continue;
        };
        if let Some(reason) = seen.why_not("blocked") {
            let line = format!("who blocked whom: not measured: {reason}");
            if !lines.contains(&line) {
                lines.push(line);
            }
            continue;
        }
        for blocked in Command::of(&seen.model).blocked().into_iter().take(BLOCKED) {
            if is_first {
                lines.push(format!(
                    "Who waited for mmap_lock and who had it, for each point the {BLOCKED} longest, waits for other processes \
                     first"
                ));
                lines.push(format!(
                    "{:10} {:>7} {:>8} {:>7} {:>8}  waiter <- holder",
                    "Case", "Threads", "waited", "times", "longest"
                ));
                is_first = false;
            }
            lines.push(format!(
                "{:10} {:>7} {:>8} {:>7} {:>8}  {} <- {}",
                point.job.series(),
                point.job.members,
                time(blocked.wait_ns),
                count(blocked.waits),
                time(blocked.max_ns),
                blocked.waiter,
                blocked.holder
            ));
        }
    }
    lines.extend(page_size(points));
    lines
}
