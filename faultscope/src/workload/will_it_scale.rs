//! will-it-scale: the table of a test case by tasks, and what one binary prints.
//!
//! Rates are of all tasks together, whole numbers averaged over some seconds after a warm-up. `linear` is the best rate
//! of one task times the number of tasks, so it is no measurement and is not taken.

use super::found::{Format, Found, Measurement, Outcome, Refusal};
use super::metric::{Direction, Metric, Work};
use super::number::{self, Printed};

/// Columns of the table, as its first line names them.
const COLUMNS: [&str; 6] = [
    "tasks",
    "processes",
    "processes_idle",
    "threads",
    "threads_idle",
    "linear",
];

/// Key of the figures of one binary.
const TEST_CASE: &str = "testcase";

/// Finds tables and results of single binaries in `text`.
pub(super) fn parse(text: &str) -> Outcome {
    let mut found = Found::default();
    let mut is_there = false;
    let mut in_table = false;
    let mut open: Option<(usize, String)> = None;
    for (at, line) in text.lines().enumerate() {
        let (number, line) = (at + 1, line.trim());
        let refuse = |reason: String| {
            Some(Err(Refusal::Line {
                line: number,
                reason,
            }))
        };
        if line.split(',').eq(COLUMNS) {
            (is_there, in_table) = (true, true);
        } else if in_table && line.contains(',') {
            match row(line) {
                Ok((metrics, reasons)) => {
                    if !metrics.is_empty() {
                        found
                            .measurements
                            .push(Measurement::new(Format::WillItScale, metrics));
                    }
                    found
                        .reasons
                        .extend(reasons.into_iter().map(|r| format!("line {number}: {r}")));
                }
                Err(reason) => return refuse(reason),
            }
        } else if let Some(name) = line.strip_prefix("testcase:") {
            if let Some((begun, _)) = open {
                return refuse(unfinished(begun));
            }
            (is_there, in_table) = (true, false);
            open = Some((number, name.trim().to_owned()));
        } else if let Some(rest) = line.strip_prefix("average:")
            && let Some((_, name)) = open.take()
        {
            let Ok(value) = number::parse(rest.trim()) else {
                return refuse(format!("\"{rest}\" is no average of will-it-scale"));
            };
            let keys = vec![(TEST_CASE.to_owned(), name)];
            let metrics = vec![rate(value, keys)];
            found
                .measurements
                .push(Measurement::new(Format::WillItScale, metrics));
        } else {
            in_table = in_table && line.is_empty();
        }
    }
    if let Some((begun, _)) = open {
        return Some(Err(Refusal::Line {
            line: begun,
            reason: unfinished(begun),
        }));
    }
    is_there.then_some(Ok(found))
}

fn unfinished(begun: usize) -> String {
    format!(
        "the test case that begins in line {begun} has no \"average:\" line: it was cut short, and its lines of single \
         seconds are no result"
    )
}

/// Figures of a row, and what of it was not taken.
fn row(line: &str) -> Result<(Vec<Metric>, Vec<String>), String> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    let [
        tasks,
        processes,
        processes_idle,
        threads,
        threads_idle,
        linear,
    ] = cells[..]
    else {
        return Err(format!(
            "the row has {} cells and the header {}; where a locale writes a decimal comma the columns cannot be told \
             apart: run it with LC_ALL=C",
            cells.len(),
            COLUMNS.len()
        ));
    };
    let tasks =
        number::parse_count(tasks).ok_or_else(|| format!("\"{tasks}\" is no number of tasks"))?;
    read(linear)?;
    let sides = [
        ("processes", processes, processes_idle),
        ("threads", threads, threads_idle),
    ];
    let (mut metrics, mut reasons) = (Vec::new(), Vec::new());
    for (over, value, idle) in sides {
        let (value, idle) = (read(value)?, read(idle)?);
        // The first row is an origin for plots.
        if tasks == 0 {
            continue;
        }
        if value.value < 0.0 {
            reasons.push(format!("the run of {tasks} {over} died, so it has no rate"));
            continue;
        }
        let keys = vec![(over.to_owned(), tasks.to_string())];
        metrics.push(rate(value, keys.clone()));
        metrics.push(Metric {
            keys,
            work: Some(Work::Timed),
            ..Metric::printed(Format::WillItScale, "idle", idle, "%")
        });
    }
    Ok((metrics, reasons))
}

fn read(cell: &str) -> Result<Printed, String> {
    number::parse(cell).map_err(|error| format!("\"{cell}\" {}", error.reason()))
}

fn rate(value: Printed, keys: Vec<(String, String)>) -> Metric {
    Metric {
        keys,
        work: Some(Work::Timed),
        ..Metric::printed(Format::WillItScale, "ops/s", value, "1/s").better(Direction::Higher)
    }
}
