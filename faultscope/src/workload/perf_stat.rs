//! `perf stat`: counts and times, as printed for people.
//!
//! The numbers obey the locale: `0,80 msec` is refused, and so are thousands set apart by commas, because nothing tells
//! which of the two a comma is.

use super::found::{Format, Found, Measurement, Outcome, Refusal};
use super::metric::{Direction, Metric};
use super::number::{self, NotANumber, Printed};

/// Units that may stand between a value and its event.
const UNITS: [&str; 4] = ["msec", "Joules", "MiB", "ns"];

/// Times at the end of a block.
const TIMES: [(&str, &str); 3] = [
    ("seconds time elapsed", "elapsed"),
    ("seconds user", "user"),
    ("seconds sys", "system"),
];

/// Finds the blocks of `perf stat` in `text`.
pub(super) fn parse(text: &str) -> Outcome {
    let mut found = Found::default();
    let mut is_there = false;
    let mut metrics = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("Performance counter stats for ") {
            is_there = true;
            take(&mut found, &mut metrics);
            continue;
        }
        // Without its head it is known by the comment that perf adds.
        is_there |= line.contains("CPUs utilized");
        if !is_there {
            continue;
        }
        match count(line) {
            Some(Ok(metric)) => metrics.push(metric),
            Some(Err(reason)) => {
                return Some(Err(Refusal::Line {
                    line: at + 1,
                    reason,
                }));
            }
            None => {}
        }
    }
    take(&mut found, &mut metrics);
    is_there.then_some(Ok(found))
}

fn take(found: &mut Found, metrics: &mut Vec<Metric>) {
    if !metrics.is_empty() {
        let metrics = std::mem::take(metrics);
        found
            .measurements
            .push(Measurement::new(Format::PerfStat, metrics));
    }
}

/// A line of a value; `None` if it is another, or its event was not counted.
fn count(line: &str) -> Option<Result<Metric, String>> {
    let (first, rest) = line.split_once(char::is_whitespace)?;
    let value = match number::parse(first) {
        Ok(value) => value,
        Err(NotANumber::Comma) => return Some(Err(comma(first))),
        Err(NotANumber::Other) => return None,
    };
    let mut rest = rest.trim_start();
    // Over repetitions a time has its deviation behind it.
    if let Some(deviation) = rest.strip_prefix("+-") {
        rest = deviation
            .trim_start()
            .split_once(char::is_whitespace)
            .map_or("", |(_, rest)| rest.trim_start());
    }
    for (words, name) in TIMES {
        if rest.starts_with(words) {
            let metric = figure(name, value, "s");
            return Some(Ok(metric.better(Direction::Lower)));
        }
    }
    // What follows the event is computed from it, or its spread over repetitions.
    let mut words = rest.split_whitespace();
    let first = words.next()?;
    let (unit, event) = if UNITS.contains(&first) {
        (if first == "msec" { "ms" } else { first }, words.next()?)
    } else {
        ("count", first)
    };
    let is_event = event.starts_with(|c: char| c.is_ascii_alphabetic());
    is_event.then(|| Ok(figure(event, value, unit)))
}

fn comma(text: &str) -> String {
    format!(
        "\"{text}\" has a comma: the locale of this perf stat (de_DE and others) writes one for the decimal point, en_US one \
         between thousands, and nothing tells which; run perf with LC_ALL=C"
    )
}

fn figure(name: &str, value: Printed, unit: &str) -> Metric {
    Metric::printed(Format::PerfStat, name, value, unit)
}
