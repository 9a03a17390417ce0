//! `bench madvise`: memory used, given back by an advice and used again; with other threads that map and unmap, and
//! under memory pressure.

use std::io::ErrorKind;

use super::columns::{BUDGET, THREADS};
use super::locks::{
    MMAP_LOCK, SHOOTDOWNS, TLB_FLUSHES, count, join, one_space, page_size, rate, stop, time, timed,
    why_no_flushes,
};
use super::point::Point;
use super::table::{Column, Section};
use super::{Bench, Case, Job, Short, Stop, Work};
use crate::load::{GiveBack, Pressure, try_advice};
use crate::model::command::Command;
use crate::plan::Set;
use crate::workload::bench::BenchResult;

/// Advices, by the first word of a case's name.
const ADVICES: &[(&str, Option<i32>)] = &[
    ("none", None),
    ("dontneed", Some(libc::MADV_DONTNEED)),
    ("free", Some(libc::MADV_FREE)),
    ("cold", Some(libc::MADV_COLD)),
    ("pageout", Some(libc::MADV_PAGEOUT)),
];
/// After these a page may be gone, so that the probes follow it.
const FOLLOWED: [i32; 3] = [libc::MADV_DONTNEED, libc::MADV_FREE, libc::MADV_PAGEOUT];
/// Word of a case with threads that map and unmap.
const MAPS: &str = "map";
/// Word of a case under memory pressure.
const PRESSED: &str = "press";
/// Memory a pressed point has beside its own pages.
const SPARE_BYTES: u64 = 4 << 20;
/// A pressed cycle reads a file of more than all its memory, so there are fewer of them.
const PRESSED_SHARE: u32 = 4;

/// The bench.
pub(super) static MADVISE: Bench = Bench {
    name: "madvise",
    settles: "Is the win of MADV_FREE the zeroing it avoids, the lock, or the faults; and what is left of it under pressure?",
    cases: CASES,
    bytes: 16 << 20,
    rounds: 40,
    short: Short {
        cases: &["dontneed", "free", "dontneed-press", "free-press"],
        bytes: 8 << 20,
        rounds: 20,
    },
    sets: &[
        Set::Mmap,
        Set::Taken,
        Set::Madvise,
        Set::Refaults,
        Set::Budget,
    ],
    rate: "pages/s",
    live: &[THREADS, CYCLES, PAGES, FAULTS, ZEROED, KEPT, REFAULTS],
    sections: &[
        MMAP_LOCK,
        BUDGET,
        Section {
            title: "Time of a call with the advice, flushes of the machine's TLBs, and maps and unmaps beside the work",
            columns: &[THREADS, ADVICE_TIME, SHOOTDOWNS, TLB_FLUSHES, MAP_CALLS],
        },
    ],
    summary: Some(summary),
    limit: Some(limit),
    pft: None,
};

const fn case(name: &'static str, what: &'static str, is_default: bool) -> Case {
    Case {
        name,
        what,
        is_default,
        memory: 1,
        work: &GivingBack,
    }
}

static CASES: &[Case] = &[
    case("none", "nothing is given back", true),
    case("dontneed", "MADV_DONTNEED: pages are dropped at once", true),
    case(
        "free",
        "MADV_FREE: pages are dropped when memory is short",
        true,
    ),
    case(
        "cold",
        "MADV_COLD: pages go to the end of the LRU list",
        true,
    ),
    case("pageout", "MADV_PAGEOUT: pages are reclaimed at once", true),
    case("none-map", "none, while other threads map and unmap", true),
    case("dontneed-map", "MADV_DONTNEED, likewise", true),
    case("free-map", "MADV_FREE, likewise", true),
    case("cold-map", "MADV_COLD, likewise", false),
    case("pageout-map", "MADV_PAGEOUT, likewise", false),
    case(
        "none-press",
        "none, in a memory cgroup too small for the page cache",
        true,
    ),
    case("dontneed-press", "MADV_DONTNEED, likewise", true),
    case("free-press", "MADV_FREE, likewise", true),
    case("cold-press", "MADV_COLD, likewise", true),
    case("pageout-press", "MADV_PAGEOUT, likewise", true),
    case("none-map-press", "none, with both", false),
    case("dontneed-map-press", "MADV_DONTNEED, with both", false),
    case("free-map-press", "MADV_FREE, with both", false),
    case("cold-map-press", "MADV_COLD, with both", false),
    case("pageout-map-press", "MADV_PAGEOUT, with both", false),
];

fn has(case: &Case, word: &str) -> bool {
    case.name.split('-').skip(1).any(|part| part == word)
}

fn advice(case: &Case) -> Option<i32> {
    let word = case.name.split('-').next()?;
    ADVICES.iter().find(|(name, _)| *name == word)?.1
}

/// Memory of a pressed point: its pages, and little more.
fn limit(job: &Job) -> Option<u64> {
    has(job.case, PRESSED).then_some(job.bytes + SPARE_BYTES)
}

/// Uses, gives back and uses again, as the name of the case says.
struct GivingBack;

impl Work for GivingBack {
    fn run(&self, job: &Job) -> Result<BenchResult, Stop> {
        work(job)
    }
}

fn work(job: &Job) -> Result<BenchResult, Stop> {
    let team = one_space(job)?;
    join(job)?;
    let advice = advice(job.case);
    if let Some(number) = advice
        && let Err(error) = try_advice(number)
    {
        let name = crate::model::advice::name(number);
        return Err(match error.kind() {
            ErrorKind::InvalidInput => Stop::Skip(format!("this kernel does not take MADV_{name}")),
            _ => Stop::Failed(anyhow::Error::new(error).context(format!("MADV_{name}"))),
        });
    }
    let (mut rounds, mut pressure) = (job.rounds, None);
    if let Some(limit) = limit(job) {
        let directory = job.directory.clone().unwrap_or_else(|| ".".into());
        // More than fits, so that what was read first is gone when the last of it is read.
        pressure = Some(Pressure::new(&directory, limit + limit / 4).map_err(stop)?);
        rounds = (rounds / PRESSED_SHARE).max(1);
    }
    let pages = usize::try_from(job.bytes)? / rustix::param::page_size() / job.members;
    let load = GiveBack::new(job.members, pages, advice, u64::from(rounds), pressure)?;
    let mappers = if has(job.case, MAPS) { job.members } else { 0 };
    let mut result = BenchResult::new(job.bench.name, &job.keys());
    let (used, (seen, calls)) = timed(&mut result, || {
        let (used, seen, calls) = load.run(&team, mappers)?;
        Ok((used, (seen, calls)))
    })?;
    rate(&mut result, "cycles", seen.cycles, &used);
    rate(&mut result, "pages", seen.cycles * pages as u64, &used);
    result.count("zeroed", seen.zeroed);
    result.count("kept", seen.kept);
    if mappers > 0 {
        rate(&mut result, "map_calls", calls, &used);
    }
    // What this process maps next would take the place of memory given back, and its faults would be refaults.
    std::mem::forget(load);
    Ok(result)
}

const CYCLES: Column = Column {
    title: "cycles/s",
    width: 8,
    signal: None,
    cell: |point, _| point.figure("cycles/s").map(crate::units::format_si),
};

const PAGES: Column = Column {
    title: "pages/s",
    width: 8,
    signal: None,
    cell: |point, _| point.figure("pages/s").map(crate::units::format_si),
};

const FAULTS: Column = Column {
    title: "faults/cycle",
    width: 12,
    signal: None,
    cell: |point, _| {
        Some(format!(
            "{:.1}",
            point.figure("faults")? / point.figure("cycles")?
        ))
    },
};

const ZEROED: Column = Column {
    title: "zeroed",
    width: 9,
    signal: None,
    cell: |point, _| Some(point.result.events("zeroed")?.to_string()),
};

const KEPT: Column = Column {
    title: "kept",
    width: 9,
    signal: None,
    cell: |point, _| Some(point.result.events("kept")?.to_string()),
};

const REFAULTS: Column = Column {
    title: "refaults",
    width: 9,
    signal: Some("refaults"),
    cell: |point, _| refaults(point).map(|n| n.to_string()),
};

const ADVICE_TIME: Column = Column {
    title: "advice",
    width: 8,
    signal: Some("madvise"),
    cell: |point, _| {
        let seen = point.given("madvise")?;
        let (calls, ns) = Command::of(&seen.model).advices(advice(point.job.case)?);
        ns.checked_div(calls).map(time)
    },
};

const MAP_CALLS: Column = Column {
    title: "maps/s",
    width: 8,
    signal: None,
    cell: |point, _| point.figure("map_calls/s").map(crate::units::format_si),
};

/// Faults on pages given back, by the probes; `None` for an advice after which no page is gone.
fn refaults(point: &Point) -> Option<u64> {
    let advice = advice(point.job.case).filter(|advice| FOLLOWED.contains(advice))?;
    let seen = point.given("refaults")?;
    Some(Command::of(&seen.model).refaults(advice).0)
}

/// MADV_DONTNEED against MADV_FREE with and without pressure, and which pages came back zeroed.
fn summary(points: &[Point]) -> Vec<String> {
    let mut lines = Vec::new();
    for first in points
        .iter()
        .filter(|p| p.job.case.name.starts_with("dontneed"))
    {
        let name = first.job.case.name.replacen("dontneed", "free", 1);
        let second = points.iter().find(|p| {
            p.job.case.name == name
                && p.job.members == first.job.members
                && p.job.bytes == first.job.bytes
                && p.job.repetition == first.job.repetition
        });
        let Some((dropped, freed)) =
            second.and_then(|second| Some((refaults(first)?, refaults(second)?)))
        else {
            continue;
        };
        let title = first.job.title();
        lines.push(format!(
            "{title}: {dropped} refaults, {}",
            against(dropped, &name, freed)
        ));
    }
    lines.extend(zeroed(points));
    lines.extend(lost(points));
    lines.extend(why_no_flushes(points));
    lines.extend(page_size(points));
    lines
}

fn against(dropped: u64, name: &str, freed: u64) -> String {
    match super::columns::ratio(dropped, freed) {
        None => format!("{name} none"),
        Some(ratio) => format!("{name} {freed}: {ratio:.2} to 1"),
    }
}

/// Which cases gave pages back zeroed, and which as they were.
fn zeroed(points: &[Point]) -> Vec<String> {
    let mut zeroed: Vec<String> = Vec::new();
    let mut kept: Vec<String> = Vec::new();
    for point in points {
        let (Some(gone), Some(left)) = (point.result.events("zeroed"), point.result.events("kept"))
        else {
            continue;
        };
        let name = point.job.series();
        let (to, text) = match (gone, left) {
            (0, _) => (&mut kept, name),
            (_, 0) => (&mut zeroed, name),
            (gone, left) => {
                let share = super::columns::ratio(100 * gone, gone + left).unwrap_or_default();
                (&mut zeroed, format!("{name} ({share:.1} % of them)"))
            }
        };
        if !to.contains(&text) {
            to.push(text);
        }
    }
    let line = |what: &str, names: &[String]| {
        (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
    };
    [
        line("pages that came back zeroed", &zeroed),
        line("pages that came back as they were", &kept),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Points whose refaults are a lower bound.
fn lost(points: &[Point]) -> Vec<String> {
    let lost = points.iter().filter_map(|point| {
        let seen = point.given("refaults")?;
        let (_, bytes) = Command::of(&seen.model).refaults(advice(point.job.case)?);
        (bytes > 0).then(|| {
            format!(
                "{}: refaults are a lower bound: {} of bytes given back were not followed",
                point.job.title(),
                count(bytes)
            )
        })
    });
    lost.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_its_advice_and_its_words() {
        let named = |name: &str| CASES.iter().find(|c| c.name == name).expect("a case");
        assert_eq!(CASES.len(), 4 * ADVICES.len());
        assert_eq!(advice(named("none")), None);
        assert_eq!(advice(named("pageout-map-press")), Some(libc::MADV_PAGEOUT));
        for case in CASES {
            let words: Vec<&str> = case.name.split('-').collect();
            assert!(
                ADVICES.iter().any(|(name, _)| *name == words[0]),
                "{case:?}"
            );
            assert_eq!(
                words.len(),
                1 + usize::from(has(case, MAPS)) + usize::from(has(case, PRESSED)),
                "{case:?}"
            );
        }
    }

    #[test]
    fn a_ratio_is_only_where_there_is_one() {
        assert_eq!(against(5, "free", 0), "free none");
        assert_eq!(against(100, "free", 50), "free 50: 2.00 to 1");
    }
}
