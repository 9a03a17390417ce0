//! Tables that compare-mmtests prints: a statistic and its change for each kernel.
//!
//! A change is positive if it is better, whichever way the figure goes, so the sign tells which way that is. Asterisks in
//! place of parentheses mean "significant" and change nothing here. The values are means over runs that the table does not
//! count; medians come from the raw results only.

use std::collections::BTreeMap;

use super::found::{Format, Found, Measurement, Outcome, Refusal};
use super::metric::{Direction, Metric, unit_of};
use super::number::{self, Printed};

/// First words of rows, but for a suffix as of `BHmean-95`.
const STATISTICS: [&str; 12] = [
    "Min",
    "Max",
    "Amean",
    "Hmean",
    "Gmean",
    "Stddev",
    "CoeffVar",
    "BAmean",
    "BHmean",
    "BGmean",
    "BCoeffVar",
    "BStddev",
];

/// A row that was read.
struct Row<'a> {
    line: usize,
    statistic: &'a str,
    name: &'a str,
    cells: Vec<(Option<Printed>, Option<Printed>)>,
}

/// Finds a table of mmtests in `text`.
pub(super) fn parse(text: &str) -> Outcome {
    let mut rows: Vec<Row<'_>> = Vec::new();
    let mut heads: Vec<&str> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        match row(line, at + 1) {
            None if rows.is_empty() && !line.trim().is_empty() => heads.push(line),
            None => {}
            Some(Err(reason)) => {
                return Some(Err(Refusal::Line {
                    line: at + 1,
                    reason,
                }));
            }
            Some(Ok(row)) => rows.push(row),
        }
    }
    (!rows.is_empty()).then(|| measure(&rows, &heads))
}

/// A statistic, a name, and a value with its change for each kernel; `None` if the line is something else.
fn row(line: &str, number: usize) -> Option<Result<Row<'_>, String>> {
    let mut words = line.split_whitespace();
    let statistic = words.next()?;
    let base = statistic
        .split_once('-')
        .map_or(statistic, |(base, _)| base);
    // The marks of a change may stand apart from it, or not.
    if !STATISTICS.contains(&base) || !line.contains("%)") && !line.contains("%*") {
        return None;
    }
    let name = words.next()?;
    // A name may be part of the statistic's.
    let (_, rest) = line.split_once(statistic)?;
    let (_, rest) = rest.split_once(name)?;
    let rest = rest.replace(['(', ')', '*'], " ");
    let words: Vec<&str> = rest.split_whitespace().collect();
    let mut cells = Vec::new();
    for pair in words.chunks(2) {
        let [value, change] = pair else {
            return Some(Err(format!("\"{}\" has no change behind it", pair[0])));
        };
        let Some(change) = change.strip_suffix('%') else {
            return Some(Err(format!(
                "\"{change}\" stands where a change in percent is expected; a column is missing"
            )));
        };
        let value = match missing_or(value) {
            // A run that failed is -1.
            Ok(value) => value.filter(|v| v.value >= 0.0),
            Err(reason) => return Some(Err(reason)),
        };
        let change = match missing_or(change) {
            Ok(change) => change,
            Err(reason) => return Some(Err(reason)),
        };
        cells.push((value, change));
    }
    Some(Ok(Row {
        line: number,
        statistic,
        name,
        cells,
    }))
}

/// A number, or one of the words for none.
fn missing_or(text: &str) -> Result<Option<Printed>, String> {
    let word = text.trim_start_matches(['-', '+']).to_ascii_lowercase();
    if matches!(word.as_str(), "nan" | "inf" | "") {
        return Ok(None);
    }
    number::parse(text)
        .map(Some)
        .map_err(|error| format!("\"{text}\" {}", error.reason()))
}

fn measure(rows: &[Row<'_>], heads: &[&str]) -> Result<Found, Refusal> {
    let columns = rows[0].cells.len();
    if let Some(row) = rows.iter().find(|row| row.cells.len() != columns) {
        return Err(Refusal::Line {
            line: row.line,
            reason: format!(
                "the row has {} values and the first one {columns}; two tables are to be imported one by one",
                row.cells.len()
            ),
        });
    }
    let mut found = Found::default();
    let variants = variants(heads, columns);
    let directions = directions(rows)?;
    for row in rows {
        for ((value, _), variant) in row.cells.iter().zip(&variants) {
            match value {
                Some(value) if value.value > 0.0 || !is_mean(row.statistic) => {
                    let direction = directions.get(row.name).copied().flatten();
                    let metric = metric(row, *value, direction);
                    found.measurements.push(Measurement {
                        variant: Some(variant.clone()),
                        ..Measurement::new(Format::Mmtests, vec![metric])
                    });
                }
                _ => found.reasons.push(format!(
                    "line {}: {} {} of \"{variant}\" is missing: -1, NaN and a mean of 0 stand for a run that failed",
                    row.line, row.statistic, row.name
                )),
            }
        }
    }
    Ok(found)
}

fn is_mean(statistic: &str) -> bool {
    statistic.contains("mean")
}

/// Which way each figure gets better, from the signs of its changes; a change that does not follow from its values is
/// refused.
fn directions<'a>(rows: &[Row<'a>]) -> Result<BTreeMap<&'a str, Option<Direction>>, Refusal> {
    let mut directions: BTreeMap<&str, Option<Direction>> = BTreeMap::new();
    for row in rows {
        let known = directions.entry(row.name).or_default();
        // Deviations have a better way of their own.
        if !is_mean(row.statistic) && !matches!(row.statistic, "Min" | "Max") {
            continue;
        }
        let Some((Some(base), _)) = row.cells.first() else {
            continue;
        };
        for (value, change) in &row.cells[1..] {
            let (Some(value), Some(change)) = (value, change) else {
                continue;
            };
            let raw = 100.0 * (value.value / base.value - 1.0);
            let step = 100.0 * (value.resolution() + base.resolution()) / base.value;
            let off = (raw.abs() - change.value.abs()).abs();
            let refuse = |reason: String| Refusal::Line {
                line: row.line,
                reason,
            };
            // A table that is cut to few digits is known to its digits.
            if !raw.is_finite() || base.value == 0.0 || value.value == 0.0 {
                continue;
            }
            if off > step + change.resolution() {
                return Err(refuse(format!(
                    "the change of {} does not follow from {} and {}: a digit is damaged",
                    change.value, base.value, value.value
                )));
            }
            if change.value == 0.0 || raw.abs() <= step {
                continue;
            }
            let direction = if (raw > 0.0) == (change.value > 0.0) {
                Direction::Higher
            } else {
                Direction::Lower
            };
            if known.is_some_and(|known| known != direction) {
                return Err(refuse(format!(
                    "the sign of a change of {} contradicts that of another: which way is better is not told",
                    row.name
                )));
            }
            *known = Some(direction);
        }
    }
    Ok(directions)
}

/// Names of the kernels: the two lines above the table are one name cut at its first hyphen.
fn variants(heads: &[&str], columns: usize) -> Vec<String> {
    let words = |line: Option<&&str>| -> Vec<String> {
        line.map(|line| line.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default()
    };
    let last = words(heads.last());
    let before = words(heads.len().checked_sub(2).and_then(|at| heads.get(at)));
    let names: Vec<String> = if last.len() != columns {
        (1..=columns).map(|at| format!("kernel-{at}")).collect()
    } else if before.len() == columns {
        let both = before.iter().zip(&last);
        both.map(|(a, b)| format!("{a}-{b}")).collect()
    } else {
        last
    };
    // Two columns of one name are two kernels.
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let numbered = names.into_iter().map(|name| {
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            format!("{name}-{count}")
        } else {
            name
        }
    });
    numbered.collect()
}

fn metric(row: &Row<'_>, value: Printed, direction: Option<Direction>) -> Metric {
    // `faults/sec-4` is of 4 clients.
    let (name, clients) = match row.name.rsplit_once('-') {
        Some((name, n)) if number::parse_count(n).is_some() => (name, Some(n)),
        _ => (row.name, None),
    };
    let mut keys = vec![("statistic".to_owned(), row.statistic.to_owned())];
    keys.extend(clients.map(|n| ("clients".to_owned(), n.to_owned())));
    let unit = unit_of(name);
    let is_spread = !is_mean(row.statistic) && !matches!(row.statistic, "Min" | "Max");
    Metric {
        direction: direction.filter(|_| !is_spread),
        keys,
        ..Metric::printed(Format::Mmtests, name, value, unit)
    }
}
