//! stress-ng: the metrics that it prints, and those of `--yaml`.
//!
//! What a bogo operation is differs between versions, so figures compare between runs of one version only.

mod yaml;

use super::found::{Format, Found, Measurement, Outcome, Refusal};
use super::metric::{Direction, Metric, Work};
use super::number::{self, Printed};

/// Columns behind the name and the bogo operations, in their order: figure, unit, direction.
const COLUMNS: [(&str, &str, Option<Direction>); 8] = [
    ("bogo-ops", "count", None),
    ("real", "s", None),
    ("user", "s", None),
    ("system", "s", None),
    ("bogo-ops/s", "1/s", Some(Direction::Higher)),
    ("bogo-ops/cpu-s", "1/s", Some(Direction::Higher)),
    ("cpu", "%", None),
    ("max rss", "KiB", None),
];
/// Columns that every version prints.
const FEWEST: usize = 6;
const OPS: usize = 0;
const REAL: usize = 1;
const RATE: usize = 4;

/// Key that names what a line is of.
const STRESSOR: &str = "stressor";
/// Key that says how many of it ran.
const INSTANCES: &str = "instances";

/// Finds the metrics of stress-ng in `text`.
pub(super) fn parse(text: &str) -> Outcome {
    if text.lines().any(|line| line.trim() == "metrics:")
        && text.lines().any(|line| yaml::entry(line).is_some())
    {
        return Some(yaml::parse(text));
    }
    let mut reader = Reader::default();
    for (at, line) in text.lines().enumerate() {
        let Some((level, rest)) = message(line) else {
            continue;
        };
        if let Err(reason) = reader.take(level, rest) {
            return Some(Err(Refusal::Line {
                line: at + 1,
                reason,
            }));
        }
    }
    reader.is_there.then(|| Ok(reader.finish()))
}

/// `stress-ng: [12:34:56.78] LEVEL: [PID] REST`: level and rest.
fn message(line: &str) -> Option<(&str, &str)> {
    let rest = line.trim().strip_prefix("stress-ng:")?.trim_start();
    let (level, rest) = rest.split_once('[')?;
    let (pid, rest) = rest.split_once(']')?;
    number::parse_count(pid.trim())?;
    // A time stamp stands before the level.
    let level = level.split_whitespace().last()?.strip_suffix(':')?;
    Some((level, rest.trim()))
}

#[derive(Default)]
struct Reader {
    is_there: bool,
    instances: Vec<(String, String)>,
    found: Found,
    /// Figures of the run that is read.
    metrics: Vec<Metric>,
}

impl Reader {
    fn take(&mut self, level: &str, text: &str) -> Result<(), String> {
        if level == "fail" {
            return Err(format!(
                "a stressor failed, so the run has no result: {text}"
            ));
        }
        invalid(text)?;
        if let Some(list) = text.strip_prefix("dispatching hogs:") {
            // Another run begins.
            self.end();
            self.instances = instances(list);
            return Ok(());
        }
        // Until 0.14 metrics were an info.
        if !matches!(level, "metrc" | "info") {
            return Ok(());
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some((name, rest)) = words.split_first() else {
            return Ok(());
        };
        if *name == STRESSOR {
            self.is_there = true;
            return Ok(());
        }
        if !self.is_there {
            return Ok(());
        }
        match rest {
            [value, words @ ..] if words.iter().any(|w| is_word(w)) => {
                if let ("metrc", Ok(value)) = (level, number::parse(value)) {
                    let metric = extra(self.keys(name), value, &words.join(" "));
                    self.metrics.push(metric);
                }
                Ok(())
            }
            [_, ..] if rest.len() >= FEWEST => {
                let metrics = row(&self.keys(name), rest)?;
                self.metrics.extend(metrics);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn keys(&self, name: &str) -> Vec<(String, String)> {
        let mut keys = vec![(STRESSOR.to_owned(), name.to_owned())];
        let count = self.instances.iter().find(|(of, _)| of == name);
        keys.extend(count.map(|(_, n)| (INSTANCES.to_owned(), n.clone())));
        keys
    }

    fn end(&mut self) {
        if !self.metrics.is_empty() {
            let metrics = std::mem::take(&mut self.metrics);
            self.found
                .measurements
                .push(Measurement::new(Format::StressNg, metrics));
        }
    }

    fn finish(mut self) -> Found {
        self.end();
        self.found
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Refuses a run that says itself that its metrics are worth nothing; `metrics untrustworthy: 0` is no such word.
fn invalid(text: &str) -> Result<(), String> {
    let is_named = text.contains("untrustworthy")
        || text.contains("metrics corrupted")
        || text.contains("unsuccessful run");
    let is_none = text
        .rsplit_once(':')
        .is_some_and(|(_, count)| count.trim() == "0");
    if is_named && !is_none {
        return Err(format!(
            "stress-ng says that its metrics cannot be trusted: {text}"
        ));
    }
    Ok(())
}

/// `2 fault, 1 vm` as names with their numbers.
fn instances(list: &str) -> Vec<(String, String)> {
    let each = list.split(',').filter_map(|item| {
        let (count, name) = item.trim().split_once(' ')?;
        number::parse_count(count)?;
        Some((name.trim().to_owned(), count.to_owned()))
    });
    each.collect()
}

fn row(keys: &[(String, String)], cells: &[&str]) -> Result<Vec<Metric>, String> {
    let mut values = Vec::with_capacity(cells.len());
    // Later versions may add columns at the end.
    for cell in cells.iter().take(COLUMNS.len()) {
        values.push(number::parse(cell).map_err(|e| format!("\"{cell}\" {}", e.reason()))?);
    }
    check(values[OPS], values[REAL], values[RATE])?;
    let named = COLUMNS.iter().zip(values);
    Ok(named
        .map(|((name, unit, direction), value)| {
            figure(keys.to_vec(), name, value, unit, *direction)
        })
        .collect())
}

/// Operations by time are the rate, or the columns are not what they seem.
fn check(ops: Printed, real: Printed, rate: Printed) -> Result<(), String> {
    // The time is cut to hundredths, and to three digits in scientific notation.
    let allowed = (real.resolution() / real.value + 0.01) * rate.value + rate.resolution();
    let off = (ops.value / real.value - rate.value).abs();
    // A run too short for its clock tells nothing.
    if real.value <= 0.0 || off <= allowed {
        Ok(())
    } else {
        Err(format!(
            "the row does not add up: {} operations in {} s are not {} per second; a digit is damaged or a column is missing",
            ops.value, real.value, rate.value
        ))
    }
}

/// `minor page faults per sec (geometic mean of 2 instances)`: the wording differs between versions, and what is
/// averaged how is a different figure.
fn extra(mut keys: Vec<(String, String)>, value: Printed, text: &str) -> Metric {
    let (name, over) = match text.split_once(" (") {
        Some((name, over)) => (name, over.trim_end_matches(')')),
        None => (text, ""),
    };
    let kind = [
        "geometric mean",
        "geometic mean",
        "harmonic mean",
        "average",
        "total",
        "maximum",
    ]
    .into_iter()
    .find(|kind| over.starts_with(kind));
    keys.extend(kind.map(|kind| {
        // As stress-ng 0.15 spells it.
        let kind = if kind == "geometic mean" {
            "geometric mean"
        } else {
            kind
        };
        ("over instances".to_owned(), kind.to_owned())
    }));
    figure(keys, name, value, unit_of(name), None)
}

fn unit_of(name: &str) -> &'static str {
    if name.ends_with(" per sec") || name.ends_with(" per second") {
        "1/s"
    } else if name.starts_with("nanosecs ") {
        "ns"
    } else {
        ""
    }
}

fn figure(
    keys: Vec<(String, String)>,
    name: &str,
    value: Printed,
    unit: &str,
    direction: Option<Direction>,
) -> Metric {
    Metric {
        direction,
        work: Some(Work::Timed),
        keys,
        ..Metric::printed(Format::StressNg, name, value, unit)
    }
}
