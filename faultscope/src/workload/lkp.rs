//! Tables that LKP mails, and `compare --style lkp` writes: values of two or more commits with their changes.
//!
//! The mark before a deviation is lost or mangled in many archives, so nothing is split at it: values and changes are told
//! apart by the sign of a change, and by what they must add up to. A change without a percent sign is absolute. The sign
//! is raw, so there is no better way. How many runs a value is of is not printed.

use super::found::{Format, Found, Measurement, Outcome, Refusal};
use super::metric::{DEVIATION, Metric, unit_of};
use super::number::{self, Printed};

/// Finds the tables of LKP in `text`.
pub(super) fn parse(text: &str) -> Outcome {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Found::default();
    let mut table: Option<Table> = None;
    let mut is_there = false;
    let mut job: Option<Job> = None;
    let mut variants: Option<Vec<String>> = None;
    let mut failures = 0_usize;
    for (at, line) in lines.iter().enumerate() {
        let refuse = |reason: String| {
            Some(Err(Refusal::Line {
                line: at + 1,
                reason,
            }))
        };
        if let Some(described) = lines.get(at + 1).and_then(|next| Job::new(line, next)) {
            job = Some(described);
            table = None;
        }
        // The head of another report, which did not say of which job.
        if line.trim() == "commit:" && table.take().is_some() {
            job = None;
        }
        if line.contains("%change") && line.contains("%stddev") {
            is_there = true;
            let new = Table::new(line, &lines[..at]);
            if variants.as_ref().is_some_and(|old| *old != new.variants) {
                return refuse(
                    "a table of other commits follows; import the tables one by one".to_owned(),
                );
            }
            if variants.is_some() && (job.is_none() || table.is_some()) {
                return refuse(
                    "a second table follows, and of which job it is is not said; import the tables one by one".to_owned(),
                );
            }
            variants = Some(new.variants.clone());
            table = Some(new);
            continue;
        }
        if line.contains("%reproduction") {
            is_there = true;
            table = None;
            continue;
        }
        if is_failure(line) {
            failures += 1;
            continue;
        }
        let Some(table) = &table else {
            continue;
        };
        match row(line, table.variants.len()) {
            None => {}
            Some(Err(reason)) => return refuse(reason),
            Some(Ok((name, values))) => {
                for ((value, deviation), variant) in values.iter().zip(&table.variants) {
                    let mut metric = Metric::printed(Format::Lkp, name, *value, unit_of(name));
                    metric.keys.extend(job.as_ref().map(Job::key));
                    let deviation =
                        deviation.map(|pct| (DEVIATION.to_owned(), pct.value.to_string()));
                    metric.keys.extend(deviation);
                    found.measurements.push(Measurement {
                        variant: Some(variant.clone()),
                        host: job.as_ref().map(|job| job.host.clone()),
                        ..Measurement::new(Format::Lkp, vec![metric])
                    });
                }
            }
        }
    }
    if failures > 0 {
        found.reasons.push(if failures == 1 {
            "1 line counts runs that failed; it is no figure and was not taken".to_owned()
        } else {
            format!(
                "{failures} lines count runs that failed; they are no figures and were not taken"
            )
        });
    }
    is_there.then_some(Ok(found))
}

/// What stands above a table.
struct Table {
    variants: Vec<String>,
}

impl Table {
    /// As many commits as the head has deviations; their names are in the line above the rule, if there is one.
    fn new(head: &str, above: &[&str]) -> Self {
        let columns = head.matches("%stddev").count().max(2);
        let is_rule = |line: &&&str| line.trim_start().starts_with("-----");
        let rule = above.iter().rev().take(3).position(|line| is_rule(&line));
        let names: Vec<String> = rule
            .and_then(|back| above.len().checked_sub(back + 2))
            .and_then(|at| above.get(at))
            .map(|line| line.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default();
        let is_named = names.len() == columns && {
            let mut unique = names.clone();
            unique.sort_unstable();
            unique.dedup();
            unique.len() == columns
        };
        Self {
            variants: if is_named {
                names
            } else {
                (1..=columns).map(|at| format!("commit-{at}")).collect()
            },
        }
    }
}

/// What a table is of, from the two lines that describe it: names and values between slashes.
struct Job {
    host: String,
    /// The values but that of the machine.
    values: String,
}

impl Job {
    fn new(names: &str, values: &str) -> Option<Self> {
        let names = names.trim().strip_suffix(':')?;
        let at = names.split('/').position(|name| name == "tbox_group")?;
        let mut values: Vec<&str> = values.trim().split('/').collect();
        let host = (values.len() > at).then(|| values.remove(at).to_owned())?;
        (!host.is_empty()).then(|| Self {
            host,
            values: values.join("/"),
        })
    }

    fn key(&self) -> (String, String) {
        ("job".to_owned(), self.values.clone())
    }
}

/// `2:4 -50% :4 dmesg.…`: runs that failed.
fn is_failure(line: &str) -> bool {
    let Some(first) = line.split_whitespace().next() else {
        return false;
    };
    first.split_once(':').is_some_and(|(failed, runs)| {
        let is_digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
        is_digits(failed) && !runs.is_empty() && is_digits(runs)
    })
}

/// A value with its deviation, percent; that of 2 % or less is not printed.
type Cell = (Printed, Option<Printed>);

/// Name and values of a row; `None` if the line is none.
fn row(line: &str, columns: usize) -> Option<Result<(&str, Vec<Cell>), String>> {
    let (rest, name) = line.trim().rsplit_once(char::is_whitespace)?;
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    // Whatever the mark became, it is no digit and no sign of a number.
    let plain: String = rest
        .replace("+-", " ")
        .replace("+/-", " ")
        .chars()
        .map(|c| {
            if c.is_ascii_digit() || "+-.%eE".contains(c) {
                c
            } else {
                ' '
            }
        })
        .collect();
    let words = plain
        .split_whitespace()
        .filter(|word| word.bytes().any(|b| b.is_ascii_digit()));
    let (mut values, mut changes): (Vec<Cell>, Vec<(Printed, bool)>) = (Vec::new(), Vec::new());
    for word in words {
        let is_change = word.starts_with(['+', '-']) && values.len() > changes.len();
        let (digits, is_percent) = match word.strip_suffix('%') {
            Some(digits) => (digits, true),
            None => (word, false),
        };
        let number = number::parse(digits);
        if is_percent && !is_change {
            // The deviation of the value before.
            if let Some((_, deviation)) = values.last_mut() {
                *deviation = number.ok();
            }
            continue;
        }
        let Ok(number) = number else {
            return values.first().map(|_| Err(unclear(line)));
        };
        if is_change {
            changes.push((number, is_percent));
        } else {
            values.push((number, None));
        }
    }
    if values.is_empty() {
        return None;
    }
    if values.len() != columns || changes.len() != columns - 1 {
        return Some(Err(unclear(line)));
    }
    let base = values[0].0;
    for ((change, is_percent), (value, _)) in changes.iter().zip(&values[1..]) {
        if !follows(base, *value, *change, *is_percent) {
            return Some(Err(format!(
                "the change of {} does not follow from {} and {}: a digit or a column is damaged",
                change.value, base.value, value.value
            )));
        }
    }
    Some(Ok((name, values)))
}

fn unclear(line: &str) -> String {
    let start: String = line.trim().chars().take(60).collect();
    format!(
        "\"{start}\" cannot be told apart into values and changes: a mark or a column is damaged"
    )
}

/// Whether a change is that from `base` to `value`, to the digits printed.
fn follows(base: Printed, value: Printed, change: Printed, is_percent: bool) -> bool {
    let step = base.resolution() + value.resolution();
    if !is_percent {
        return (value.value - base.value - change.value).abs() <= step + change.resolution();
    }
    // A base that is printed as next to nothing gives any percentage.
    if base.value.abs() <= 10.0 * base.resolution() {
        return true;
    }
    let raw = 100.0 * (value.value / base.value - 1.0);
    let allowed = 100.0 * step * value.value.abs().max(base.value.abs()) / base.value.powi(2);
    (raw - change.value).abs() <= allowed + change.resolution()
}
