//! `bench accessed`: cached pages of a file read again and again, by read(2) and through a mapping, with and without
//! reclaim.

use super::columns::THREADS;
use super::locks::{count, join, rate, stop, team, time, timed};
use super::point::Point;
use super::table::{Column, Section};
use super::{Bench, Case, Job, Short, Stop, Work};
use crate::load::{CacheAccess, CacheReads, Order, on_disk};
use crate::model::command::{activations, idle, lru_sites, lru_waits, workingset_refaults};
use crate::plan::Set;
use crate::workload::bench::BenchResult;

/// Memory a pressed point has beside half of its file.
const SPARE_BYTES: u64 = 4 << 20;
/// Call sites named for each point.
const SITES: usize = 3;

/// The bench.
pub(super) static ACCESSED: Bench = Bench {
    name: "accessed",
    settles: "Does batching of accessed pages relieve the LRU lock, or is what changes idle time?",
    cases: CASES,
    bytes: 32 << 20,
    rounds: 16,
    short: Short {
        cases: &["read-reuse", "map-reuse", "read-stream-press"],
        bytes: 16 << 20,
        rounds: 4,
    },
    // Call chains of waits come with the set that counts takes.
    sets: &[Set::Lru, Set::Holds, Set::Taken],
    rate: "reads/s",
    live: &[
        THREADS,
        READS,
        MARKS,
        ACTIVATIONS,
        DRAINS,
        BATCH,
        REFAULTS,
        IDLE,
    ],
    sections: &[
        Section {
            title: "As kernbench has it (s; of the members from their start to their end)",
            columns: &[THREADS, ELAPSED, USER, SYSTEM, PERCENT, SWITCHES, SLEEPS],
        },
        Section {
            title: "lru_lock of the machine: contended waits, regions that hold it, and their time",
            columns: &[THREADS, LRU_WAITS, LRU_WAITED, LRU_HOLDS, LRU_HELD],
        },
    ],
    summary: Some(summary),
    limit: Some(limit),
    pft: None,
};

const fn case(name: &'static str, what: &'static str) -> Case {
    Case {
        name,
        what,
        is_default: true,
        memory: 1,
        work: &Rereading,
    }
}

static CASES: &[Case] = &[
    case("read-stream", "read(2) of the whole file, pass after pass"),
    case(
        "read-reuse",
        "read(2) of a quarter of it, four times a pass",
    ),
    case(
        "map-stream",
        "the whole file through a mapping made for each pass",
    ),
    case("map-reuse", "a quarter of it likewise, four times a pass"),
    case(
        "read-stream-press",
        "read-stream, in memory for half of the file",
    ),
    case("read-reuse-press", "read-reuse, likewise"),
    case("map-stream-press", "map-stream, likewise"),
    case("map-reuse-press", "map-reuse, likewise"),
];

/// Memory of a pressed point: half of its file, and little more.
fn limit(job: &Job) -> Option<u64> {
    let is_pressed = job.case.name.ends_with("-press");
    is_pressed.then_some(job.bytes / 2 + SPARE_BYTES)
}

/// Reads pages again, as the name of the case says.
struct Rereading;

impl Work for Rereading {
    fn run(&self, job: &Job) -> Result<BenchResult, Stop> {
        work(job)
    }
}

fn work(job: &Job) -> Result<BenchResult, Stop> {
    let team = team(job)?;
    join(job)?;
    let pages = usize::try_from(job.bytes)? / rustix::param::page_size();
    if pages < 4 {
        return Err(Stop::Skip("a file has four pages at least".to_owned()));
    }
    let directory = job.directory.clone().unwrap_or_else(|| ".".into());
    if limit(job).is_some() {
        on_disk(&directory).map_err(stop)?;
    }
    let access = if job.case.name.starts_with("read") {
        CacheAccess::Read
    } else {
        CacheAccess::Mapping
    };
    let order = if job.case.name.contains("reuse") {
        Order::Reuse
    } else {
        Order::Streaming
    };
    let passes = u64::from(job.rounds);
    let load =
        CacheReads::new(&directory, pages, job.members, access, order, passes).map_err(stop)?;
    let mut result = BenchResult::new(job.bench.name, &job.keys());
    let (used, ()) = timed(&mut result, || Ok((load.run(&team)?, ())))?;
    rate(&mut result, "reads", used.work, &used);
    Ok(result)
}

const READS: Column = Column {
    title: "reads/s",
    width: 8,
    signal: None,
    cell: |point, _| point.figure("reads/s").map(crate::units::format_si),
};

const MARKS: Column = Column {
    title: "marks/s",
    width: 8,
    signal: Some("mark_accessed"),
    cell: |point, _| {
        let model = &point.given("mark_accessed")?.model;
        let marks: u64 = model.delta().cpus.iter().map(|c| c.lru.mark_accessed).sum();
        #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
        let per_second = marks as f64 / model.interval_secs();
        Some(crate::units::format_si(per_second))
    },
};

const ACTIVATIONS: Column = Column {
    title: "activations",
    width: 11,
    signal: Some("lru"),
    cell: |point, _| {
        let cpus = &point.given("lru")?.model.delta().cpus;
        Some(count(cpus.iter().map(|c| c.lru_activations).sum()))
    },
};

const DRAINS: Column = Column {
    title: "drains",
    width: 7,
    signal: Some("drains"),
    cell: |point, _| {
        let cpus = &point.given("drains")?.model.delta().cpus;
        Some(count(cpus.iter().map(|c| c.lru.drains).sum()))
    },
};

const BATCH: Column = Column {
    title: "batch",
    width: 6,
    signal: Some("batches"),
    cell: |point, _| {
        let moves = point.given("batches")?.model.delta().moves.values();
        let (folios, batches) = moves.fold((0, 0), |(folios, batches), moves| {
            (folios + moves.folios, batches + moves.batches)
        });
        super::columns::ratio(folios, batches).map(|size| format!("{size:.1}"))
    },
};

const REFAULTS: Column = Column {
    title: "refaults",
    width: 8,
    signal: None,
    cell: |point, _| workingset_refaults(&point.seen.as_ref()?.model).map(count),
};

const IDLE: Column = Column {
    title: "idle",
    width: 6,
    signal: None,
    cell: |point, _| {
        idle(&point.seen.as_ref()?.model).map(|share| format!("{:.1}%", 100.0 * share))
    },
};

const fn seconds(title: &'static str, cell: fn(&Point, &[Point]) -> Option<String>) -> Column {
    Column {
        title,
        width: 12,
        signal: None,
        cell,
    }
}

fn in_seconds(point: &Point, name: &str) -> Option<String> {
    point.figure(name).map(|s| format!("{s:.3}"))
}

const ELAPSED: Column = seconds("Elapsed Time", |point, _| in_seconds(point, "elapsed"));
const USER: Column = seconds("User Time", |point, _| in_seconds(point, "user"));
const SYSTEM: Column = seconds("System Time", |point, _| in_seconds(point, "system"));
const PERCENT: Column = seconds("Percent CPU", |point, _| {
    Some(format!(
        "{:.1}",
        100.0 * point.figure("cpu")? / point.figure("elapsed")?
    ))
});
// GNU time's %c and %w, which kernbench prints under these names.
const SWITCHES: Column = Column {
    title: "Context Switches",
    width: 16,
    signal: None,
    cell: |point, _| Some(point.result.events("involuntary_switches")?.to_string()),
};
const SLEEPS: Column = Column {
    title: "Sleeps",
    width: 8,
    signal: None,
    cell: |point, _| Some(point.result.events("voluntary_switches")?.to_string()),
};

const LRU_WAITS: Column = Column {
    title: "waits",
    width: 8,
    signal: Some("contention"),
    cell: |point, _| Some(count(lru_waits(&point.given("contention")?.model).0)),
};

const LRU_WAITED: Column = Column {
    title: "waited",
    width: 8,
    signal: Some("contention"),
    cell: |point, _| Some(time(lru_waits(&point.given("contention")?.model).1)),
};

const LRU_HOLDS: Column = Column {
    title: "regions",
    width: 8,
    signal: Some("lru_lock_hold"),
    cell: |point, _| {
        let moves = point.given("lru_lock_hold")?.model.delta().moves.values();
        Some(count(moves.map(|m| m.regions).sum()))
    },
};

const LRU_HELD: Column = Column {
    title: "held",
    width: 8,
    signal: Some("lru_lock_hold"),
    cell: |point, _| {
        let moves = point.given("lru_lock_hold")?.model.delta().moves.values();
        Some(time(moves.map(|m| m.region_ns).sum()))
    },
};

/// Where lru_lock was waited for, and what the other figures are of.
fn summary(points: &[Point]) -> Vec<String> {
    let mut lines = Vec::new();
    for point in points {
        let Some(seen) = point.given("contention") else {
            continue;
        };
        let sites: Vec<String> = lru_sites(&seen.model)
            .into_iter()
            .take(SITES)
            .map(|(site, waits, ns)| format!("{site} {} in {}", time(ns), count(waits)))
            .collect();
        if !sites.is_empty() {
            lines.push(format!(
                "{}: lru_lock waited for at {}",
                point.job.title(),
                sites.join("; ")
            ));
        }
    }
    for point in points {
        let note = point.given("lru").map(|seen| activations(&seen.model));
        let line = format!("activations: {}", note.unwrap_or_default());
        if line.len() > "activations: ".len() && !lines.contains(&line) {
            lines.push(line);
        }
    }
    if points.iter().any(|point| point.seen.is_some()) {
        lines.push(
            "marks, activations, drains, batches, refaults, idle and lru_lock are the machine's during the whole \
             recording, in which the file is written first"
                .to_owned(),
        );
    }
    lines
}
