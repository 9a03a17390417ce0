//! The page-fault test: tables of 2004, 2005 and later, and those of `bench fault --style pft`.
//!
//! The digits after the point of `Wall` are padded centiseconds in 2004 and decimals later; what the row must add up to
//! decides ([`wall`]). `fault/wsec` is the figure to compare: the time is cut off at 10 ms.

mod row;
mod wall;

use std::collections::BTreeMap;

use row::Row;
use wall::{Layout, Reading, Unit, Way};

use super::found::{Format, Found, Measurement, Outcome, Refusal};
use super::metric::{Direction, Metric, REPETITIONS, Work};
use super::number::Printed;

/// Finds the rows of the page-fault test in `text`.
pub(super) fn parse(text: &str) -> Outcome {
    let mut rows: Vec<Row> = Vec::new();
    let mut layout: Option<Layout> = None;
    let (mut table, mut iteration) = (0, 0);
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let refuse = |reason| {
            Some(Err(Refusal::Line {
                line: at + 1,
                reason,
            }))
        };
        if line
            .strip_prefix("Iteration:")
            .is_some_and(|n| n.trim().parse::<u64>().is_ok())
        {
            iteration += 1;
        } else if is_header(line) {
            let this = match parse_header(line) {
                Ok(this) => this,
                Err(reason) => return refuse(reason),
            };
            // A header without rows says nothing of the rows before.
            if !rows.is_empty() && layout.is_some_and(|l| l != this) {
                return refuse("the columns differ from those of the table before; import the tables one by one".to_owned());
            }
            layout = Some(this);
            table += 1;
        } else if let Some(row) = row::parse(line) {
            match row {
                Ok(row) => rows.push(Row {
                    line: at + 1,
                    table,
                    iteration,
                    ..row
                }),
                Err(reason) => return refuse(reason),
            }
        }
    }
    (!rows.is_empty()).then(|| measure(&rows, layout))
}

fn is_header(line: &str) -> bool {
    line.contains("flt/cpu/s") && line.contains("fault/wsec")
}

fn parse_header(line: &str) -> Result<Layout, String> {
    let names: Vec<&str> = line
        .split_whitespace()
        .take_while(|n| *n != "User")
        .take(8)
        .collect();
    Ok(match names.as_slice() {
        ["Gb", "Rep", "Threads" | "Thr"] => Layout::REPEATED,
        ["Gb", "Thr" | "Threads", "CLine"] => Layout::SINGLE,
        ["Gb", "Rep", "Thr" | "Threads", "CLine"] => Layout::BOTH,
        ["Mb", "Rep", "Thr" | "Threads", "CLine"] => Layout {
            unit: Unit::Mib,
            ..Layout::BOTH
        },
        _ => {
            return Err("a header of pft with columns before User that are not known: known are Gb or Mb, Rep, Threads or \
                        Thr, and CLine"
                .to_owned());
        }
    })
}

/// Decides how the table is to be read and takes its figures.
fn measure(rows: &[Row], layout: Option<Layout>) -> Result<Found, Refusal> {
    let way = decide(rows, layout)?;
    let mut found = Found::default();
    check_tables(rows, way.layout)?;
    for row in rows {
        if !wall::is_verifiable(row) {
            found.reasons.push(format!(
                "line {}: the size is printed as 0, so nothing confirms how this row is read: unverified",
                row.line
            ));
        }
        let metrics = metrics(row, way.layout, way.reading).ok_or_else(|| Refusal::Line {
            line: row.line,
            reason: "the row lacks a column that others have".to_owned(),
        })?;
        found.measurements.push(Measurement {
            page_size: way.page_size,
            ..Measurement::new(Format::Pft, metrics)
        });
    }
    if way.page_size.is_none() && rows.iter().any(wall::is_verifiable) {
        found
            .reasons
            .push("the times are too short to tell the page size".to_owned());
    }
    Ok(found)
}

/// What holds for the whole text.
struct Decision {
    layout: Layout,
    reading: Reading,
    page_size: Option<u64>,
}

fn decide(rows: &[Row], layout: Option<Layout>) -> Result<Decision, Refusal> {
    let mut left: Option<Vec<Way>> = None;
    for row in rows {
        let layouts: &[Layout] = match (&layout, row.counts.len()) {
            (Some(layout), _) => std::slice::from_ref(layout),
            (None, 3) => &[Layout::REPEATED, Layout::SINGLE],
            (None, _) => &[Layout::BOTH],
        };
        let refuse = |reason: &str| {
            Err(Refusal::Line {
                line: row.line,
                reason: reason.to_owned(),
            })
        };
        let ways = wall::ways(row, layouts);
        if ways.is_empty() {
            return refuse(
                "this row of pft does not add up: size by page size is not rate by time, whether Wall is read as a \
                 decimal or as padded centiseconds; a digit is damaged or a column is missing",
            );
        }
        let next: Vec<Way> = match &left {
            None => ways,
            Some(left) => ways.into_iter().filter(|way| left.contains(way)).collect(),
        };
        if next.is_empty() {
            return refuse(
                "this row of pft adds up only if it is read otherwise than those before (columns, Wall or page size); import \
                 the tables one by one",
            );
        }
        left = Some(next);
    }
    let left = left.unwrap_or_default();
    // Three padded digits are the mark of 2004 where the times are too short to tell.
    let reading = if left.iter().any(|w| w.reading == Reading::Padded) {
        Reading::Padded
    } else {
        Reading::Decimal
    };
    let mut left = left.into_iter().filter(|w| w.reading == reading);
    let Some(first) = left.next() else {
        return Err(Refusal::NotThis(Format::Pft));
    };
    let rest: Vec<Way> = left.collect();
    if rest.iter().any(|w| w.layout != first.layout) {
        return Err(Refusal::Ambiguous(
            "without its header a table of pft may begin with Gb Rep Threads or with Gb Thr CLine, and both add up; put the \
             header above it"
                .to_owned(),
        ));
    }
    Ok(Decision {
        layout: first.layout,
        reading,
        page_size: rest.is_empty().then(|| 1 << first.page_shift),
    })
}

/// Refuses what looks like two tables of different runs in one text.
fn check_tables(rows: &[Row], layout: Layout) -> Result<(), Refusal> {
    let repetitions = |row: &Row| row.counts.get(layout.repetitions?).copied();
    let mut seen: BTreeMap<Vec<u64>, &Row> = BTreeMap::new();
    for row in rows {
        if let (Some(first), Some(here)) = (rows.first().and_then(repetitions), repetitions(row))
            && first != here
        {
            return Err(Refusal::Ambiguous(format!(
                "Rep is {first} at first and {here} in line {}: two tables in one text; import them one by one",
                row.line
            )));
        }
        let before = seen.entry(row.counts.clone()).or_insert(row);
        if before.table != row.table && before.iteration == row.iteration {
            return Err(Refusal::Ambiguous(format!(
                "lines {} and {} measure the same under two headers: before and after, or a repetition; import the tables \
                 one by one, or take the second header out if they are repetitions",
                before.line, row.line
            )));
        }
    }
    Ok(())
}

fn metrics(row: &Row, layout: Layout, reading: Reading) -> Option<Vec<Metric>> {
    let (wall, step) = wall::wall(row, reading)?;
    let wall = Printed {
        value: wall,
        decimals: 0,
    };
    let key = |name: &str, at: usize| Some((name.to_owned(), row.counts.get(at)?.to_string()));
    let mut keys = vec![key(layout.unit.key(), 0)?, key("threads", layout.threads)?];
    if let Some(at) = layout.repetitions {
        keys.push(key(REPETITIONS, at)?);
    }
    if let Some(at) = layout.cache_line {
        keys.push(key("cache line", at)?);
    }
    let figure = |name, value, unit| Metric::printed(Format::Pft, name, value, unit);
    let mut metrics = vec![
        figure("fault/wsec", row.rate, "1/s").better(Direction::Higher),
        figure("flt/cpu/s", row.cpu_rate, "1/s").better(Direction::Higher),
        figure("user", row.user, "s").better(Direction::Lower),
        figure("system", row.system, "s").better(Direction::Lower),
        figure("wall", wall, "s")
            .better(Direction::Lower)
            .resolved(step),
    ];
    for metric in &mut metrics {
        metric.work = Some(Work::Fixed);
        metric.keys.clone_from(&keys);
    }
    Some(metrics)
}
