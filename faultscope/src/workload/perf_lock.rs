//! `perf lock contention`: contended waits by caller or by lock.
//!
//! An empty list is unknown, not zero: perf prints the same if it could not attach. Rows of one function at several
//! places are one figure, since the places move from kernel to kernel.

use super::found::{Format, Found, Measurement, Outcome, Refusal};
use super::metric::{Direction, Metric};
use super::number::{self, Printed};

/// Columns of times: head, figure, direction. A sum depends on how long perf looked.
const TIMES: [(&str, &str, Option<Direction>); 4] = [
    ("total wait", "wait total", None),
    ("max wait", "wait max", Some(Direction::Lower)),
    ("min wait", "wait min", None),
    ("avg wait", "wait avg", Some(Direction::Lower)),
];
const TOTAL: usize = 0;
const MAX: usize = 1;
const MIN: usize = 2;
const AVERAGE: usize = 3;

/// Units of a time and what each is in ns.
const UNITS: [(&str, f64); 7] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("sec", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];

/// A list that is read.
#[derive(Default)]
struct List {
    /// Columns before the name: `None` is the count, else the place in [`TIMES`].
    columns: Vec<Option<usize>>,
    /// Heads of the columns behind them.
    tail: Vec<String>,
    rows: Vec<Row>,
}

/// Waits of one caller or lock.
struct Row {
    keys: Vec<(String, String)>,
    contended: Option<f64>,
    /// ns, and the smallest step.
    times: [Option<(f64, f64)>; TIMES.len()],
}

/// Finds the lists of `perf lock contention` in `text`.
pub(super) fn parse(text: &str) -> Outcome {
    let mut lists: Vec<List> = Vec::new();
    let mut found = Found::default();
    let mut unnamed = 0_usize;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(list) = head(line) {
            lists.push(list);
            continue;
        }
        let Some(list) = lists.last_mut() else {
            continue;
        };
        if let Some(reason) = lost(line) {
            found.reasons.push(format!("line {}: {reason}", at + 1));
            continue;
        }
        match row(line, list) {
            None => {}
            Some(Err(reason)) => {
                return Some(Err(Refusal::Line {
                    line: at + 1,
                    reason,
                }));
            }
            Some(Ok(None)) => unnamed += 1,
            Some(Ok(Some(row))) => add(&mut list.rows, row),
        }
    }
    if lists.is_empty() {
        return None;
    }
    if lists.iter().all(|list| list.rows.is_empty()) && unnamed == 0 {
        return Some(Err(Refusal::Invalid(
            "perf lock contention printed no lock: that is unknown, not zero, for it prints the same if it could not attach"
                .to_owned(),
        )));
    }
    if unnamed > 0 {
        found.reasons.push(format!(
            "{unnamed} locks have an address and no name; addresses differ from boot to boot, so they were not taken"
        ));
    }
    for list in lists {
        let metrics: Vec<Metric> = list.rows.iter().flat_map(metrics).collect();
        if !metrics.is_empty() {
            found
                .measurements
                .push(Measurement::new(Format::PerfLock, metrics));
        }
    }
    Some(Ok(found))
}

/// The head of a list: which columns there are, for `-F` chooses them.
fn head(line: &str) -> Option<List> {
    let mut rest = line;
    let mut list = List::default();
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix("contended") {
            list.columns.push(None);
            rest = after;
            continue;
        }
        let Some(time) = TIMES.iter().position(|(head, ..)| rest.starts_with(head)) else {
            break;
        };
        list.columns.push(Some(time));
        rest = &rest[TIMES[time].0.len()..];
    }
    list.tail = rest.split_whitespace().map(str::to_owned).collect();
    let is_known = matches!(
        list.tail.iter().map(String::as_str).collect::<Vec<_>>()[..],
        ["type", "caller"] | ["address", "symbol"] | ["pid", "comm"]
    );
    (!list.columns.is_empty() && is_known).then_some(list)
}

/// What perf says of events that it could not use.
fn lost(line: &str) -> Option<String> {
    let text = line.strip_prefix("bad: ")?;
    let (bad, total) = text.split_once(", total: ")?;
    let bad = number::parse_count(bad)?;
    (bad > 0).then(|| format!("perf could not use {bad} of {total} events"))
}

/// A row; `Ok(None)` is one whose lock has no name, `None` no row at all.
fn row(line: &str, list: &List) -> Option<Result<Option<Row>, String>> {
    let mut words = line.split_whitespace();
    let mut row = Row {
        keys: Vec::new(),
        contended: None,
        times: [None; TIMES.len()],
    };
    let begins = line.starts_with(|c: char| c.is_ascii_digit()) && !line.starts_with("0x");
    if !begins {
        return None;
    }
    for column in &list.columns {
        let Some(word) = words.next() else {
            return Some(Err("the row ends before its head does".to_owned()));
        };
        let value = match number::parse(word) {
            Ok(value) => value,
            Err(error) => return Some(Err(format!("\"{word}\" {}", error.reason()))),
        };
        match column {
            None => row.contended = Some(value.value),
            Some(time) => {
                let unit = words.next().unwrap_or_default();
                let Some((_, ns)) = UNITS.iter().find(|(of, _)| *of == unit) else {
                    return Some(Err(format!("\"{word}\" has no unit of time behind it")));
                };
                row.times[*time] = Some((value.value * ns, value.resolution() * ns));
            }
        }
    }
    let tail: Vec<&str> = words.collect();
    Some(finish(row, list, &tail))
}

fn finish(mut row: Row, list: &List, tail: &[&str]) -> Result<Option<Row>, String> {
    check(&row)?;
    let key = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    match (list.tail[0].as_str(), tail) {
        ("type", [kind, caller]) => {
            row.keys = vec![key("type", kind), key("caller", &place_less(caller))];
        }
        // A name is followed by its type in parentheses.
        ("address", [_]) => return Ok(None),
        ("address", [_, kind]) if kind.starts_with('(') => return Ok(None),
        ("address", [_, name, ..]) => {
            row.keys = vec![key("lock", name)];
            let kind = tail.get(2).map(|kind| kind.trim_matches(['(', ')']));
            row.keys.extend(kind.map(|kind| key("type", kind)));
        }
        // The number of a process is of one run.
        ("pid", [_, comm @ ..]) if !comm.is_empty() => {
            row.keys = vec![key("comm", &comm.join(" "))];
        }
        _ => return Err("the row has other columns than its head".to_owned()),
    }
    Ok(Some(row))
}

/// The function of `folio_lruvec_lock_irqsave+0x5e`, without what the compiler appended.
fn place_less(caller: &str) -> String {
    let name = caller.split_once('+').map_or(caller, |(name, _)| name);
    let end = [".isra.", ".constprop.", ".part.", ".cold", ".llvm."]
        .iter()
        .filter_map(|suffix| name.find(suffix))
        .min();
    name[..end.unwrap_or(name.len())].to_owned()
}

/// The sum of the waits is about their number by their average, or a unit or several digits are damaged. perf 6.1 divides
/// by a number of its own: by 20 in a row that says 23.
fn check(row: &Row) -> Result<(), String> {
    let (Some(n), Some((total, total_step)), Some((average, step))) =
        (row.contended, row.times[TOTAL], row.times[AVERAGE])
    else {
        return Ok(());
    };
    let divisor = total / average;
    let allowed = 3.0 + divisor.max(n) * (0.5 + total_step / total + step / average);
    if average <= 0.0 || (divisor - n).abs() <= allowed {
        Ok(())
    } else {
        Err(format!(
            "the row does not add up: {total} ns in {n} waits are not {average} ns each; a digit or a unit is damaged"
        ))
    }
}

/// Adds a row to one of the same keys.
fn add(rows: &mut Vec<Row>, row: Row) {
    let Some(old) = rows.iter_mut().find(|old| old.keys == row.keys) else {
        rows.push(row);
        return;
    };
    let join = |a: Option<(f64, f64)>, b: Option<(f64, f64)>, of: fn(f64, f64) -> f64| {
        let ((a, s), (b, t)) = (a?, b?);
        Some((of(a, b), s.max(t)))
    };
    old.contended = old.contended.zip(row.contended).map(|(a, b)| a + b);
    old.times[TOTAL] = join(old.times[TOTAL], row.times[TOTAL], |a, b| a + b);
    old.times[MAX] = join(old.times[MAX], row.times[MAX], f64::max);
    old.times[MIN] = join(old.times[MIN], row.times[MIN], f64::min);
    // Without number and sum there is no average of both.
    let average = old.times[TOTAL].zip(old.contended);
    old.times[AVERAGE] = old.times[AVERAGE]
        .and(average)
        .map(|((total, step), n)| (total / n, step / n));
}

fn metrics(row: &Row) -> Vec<Metric> {
    let figure = |name: &str, value: f64, step: f64, unit: &str, direction| Metric {
        direction,
        keys: row.keys.clone(),
        ..Metric::printed(Format::PerfLock, name, Printed { value, decimals: 0 }, unit)
            .resolved(step)
    };
    let contended = row
        .contended
        .filter(|n| n.is_finite())
        .map(|n| figure("waits", n, 1.0, "count", None));
    let times = TIMES
        .iter()
        .zip(row.times)
        .filter_map(|((_, name, direction), time)| {
            let (ns, step) = time?;
            (ns.is_finite() && step.is_finite()).then(|| figure(name, ns, step, "ns", *direction))
        });
    contended.into_iter().chain(times).collect()
}
