//! kernbench: times of kernel builds at several loads.
//!
//! Where deviations are printed, only the elapsed time is that of its phase; each other row of a later phase is the mean
//! over the phases so far. [`unpool`] takes the earlier ones out again.

use super::found::{Format, Found, Measurement, Outcome, Refusal};
use super::metric::{Direction, Metric, Work};
use super::number::{self, Printed};

/// Rows of a phase: label, name of the figure, unit, and which way it gets better.
const ROWS: [(&str, &str, &str, Option<Direction>); 6] = [
    ("Elapsed Time", "elapsed", "s", Some(Direction::Lower)),
    ("User Time", "user", "s", Some(Direction::Lower)),
    ("System Time", "system", "s", Some(Direction::Lower)),
    ("Percent CPU", "cpu", "%", None),
    ("Context Switches", "context switches", "count", None),
    ("Sleeps", "sleeps", "count", None),
];
const ELAPSED: usize = 0;
const USER: usize = 1;
const SYSTEM: usize = 2;
const CPU: usize = 3;

/// Share by which CPU time over elapsed time may differ from the CPU share that is printed.
const AGREES: f64 = 0.03;

/// A phase of one side.
#[derive(Debug, Clone)]
struct Phase {
    line: usize,
    load: &'static str,
    jobs: Option<u64>,
    has_deviations: bool,
    rows: [Option<Printed>; ROWS.len()],
}

/// Finds the phases of kernbench in `text`.
pub(super) fn parse(text: &str) -> Outcome {
    // Mails put two results side by side.
    let mut sides: Vec<Vec<Phase>> = Vec::new();
    let mut open = 0;
    for (at, line) in text.lines().enumerate() {
        let (number, line) = (at + 1, line.trim());
        let refuse = |reason: String| {
            Some(Err(Refusal::Line {
                line: number,
                reason,
            }))
        };
        let heads: Vec<Phase> = columns(line, "Average ")
            .into_iter()
            .filter_map(|text| head(text, number))
            .collect();
        if !heads.is_empty() {
            open = heads.len();
            if sides.len() < open {
                sides.resize_with(open, Vec::new);
            }
            for (side, head) in sides.iter_mut().zip(heads) {
                side.push(head);
            }
            continue;
        }
        let mut rows = ROWS.iter().enumerate();
        let Some((row, (label, ..))) = rows.find(|(_, row)| line.starts_with(row.0)) else {
            continue;
        };
        if open == 0 {
            continue;
        }
        let cells = columns(line, label);
        if cells.len() != open {
            return refuse(format!(
                "the line has {} values of \"{label}\", and the head above {open}; two sides without their labels cannot be \
                 told apart",
                cells.len()
            ));
        }
        for (side, cell) in sides.iter_mut().zip(cells) {
            let value = match value(&cell[label.len()..]) {
                Ok(value) => value,
                Err(reason) => return refuse(reason),
            };
            let Some(phase) = side.last_mut() else {
                continue;
            };
            if phase.rows[row].replace(value).is_some() {
                return refuse(format!("\"{label}\" stands twice below one head"));
            }
        }
    }
    (!sides.is_empty()).then(|| measure(sides))
}

/// The parts of a line that begin with `label`.
fn columns<'a>(line: &'a str, label: &str) -> Vec<&'a str> {
    let starts: Vec<usize> = line.match_indices(label).map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([line.len()]);
    if starts.first() != Some(&0) {
        return Vec::new();
    }
    starts
        .iter()
        .zip(ends)
        .map(|(start, end)| line[*start..end].trim())
        .collect()
}

/// `Average Half Load -j 4 Run:`, `Average Maximal load -j Run (std deviation):`.
fn head(text: &str, line: usize) -> Option<Phase> {
    let (words, after) = text.split_once("Run")?;
    let has_deviations = match after.trim() {
        ":" => false,
        "(std deviation):" => true,
        _ => return None,
    };
    let mut words = words.split_whitespace().skip(1);
    let load = match words.next()?.to_ascii_lowercase().as_str() {
        "half" => "half",
        "optimal" => "optimal",
        "maximal" | "maximum" => "maximal",
        _ => return None,
    };
    let mut jobs = None;
    while let Some(word) = words.next() {
        match word {
            "load" | "Load" => {}
            // Without a number there is no bound.
            "-j" => jobs = words.clone().next().and_then(number::parse_count),
            word => {
                number::parse_count(word)?;
            }
        }
    }
    Some(Phase {
        line,
        load,
        jobs,
        has_deviations,
        rows: [None; ROWS.len()],
    })
}

/// The first number, which may have its deviation behind it in parentheses.
fn value(text: &str) -> Result<Printed, String> {
    let mut words = text.split_whitespace();
    let first = words.next().ok_or("the row has no value")?;
    let value = number::parse(first).map_err(|error| format!("\"{first}\" {}", error.reason()))?;
    let rest = words.collect::<Vec<_>>().join(" ");
    let is_deviation = rest.starts_with('(') && rest.ends_with(')');
    if rest.is_empty() || is_deviation {
        Ok(value)
    } else {
        Err(format!(
            "\"{rest}\" follows the value: two sides without their labels cannot be told apart; give each side the label, or \
             make a general table of them"
        ))
    }
}

fn measure(sides: Vec<Vec<Phase>>) -> Result<Found, Refusal> {
    let mut found = Found::default();
    let is_single = sides.len() == 1;
    for (at, mut phases) in sides.into_iter().enumerate() {
        unpool(&mut phases, &mut found.reasons);
        for phase in phases {
            if phase.rows[ELAPSED].is_none() {
                return Err(Refusal::Line {
                    line: phase.line,
                    reason: "a head of kernbench without an elapsed time below it".to_owned(),
                });
            }
            found.measurements.push(Measurement {
                variant: (!is_single).then(|| format!("column-{}", at + 1)),
                ..Measurement::new(Format::Kernbench, metrics(&phase))
            });
        }
    }
    Ok(found)
}

/// Takes the earlier phases of each result out of the rows that average them in.
///
/// A mean over the first p phases is M(p), so the p-th phase itself is p M(p) - (p - 1) M(p - 1): every phase has as many
/// builds. One phase whose CPU time by its elapsed time is not the CPU share it prints shows that all are averaged.
fn unpool(phases: &mut [Phase], reasons: &mut Vec<String>) {
    let mut rest = phases;
    while let [first, others @ ..] = &*rest {
        // A load that was there before begins another result.
        let mut loads = vec![first.load];
        let more = others.iter().take_while(|p| {
            let is_new = !loads.contains(&p.load);
            loads.push(p.load);
            is_new
        });
        let end = 1 + more.count();
        let (result, after) = rest.split_at_mut(end);
        if result
            .iter()
            .any(|p| p.has_deviations && agrees(&p.rows) == Some(false))
        {
            unpool_result(result, reasons);
        }
        rest = after;
    }
}

fn unpool_result(phases: &mut [Phase], reasons: &mut Vec<String>) {
    let printed = phases.to_vec();
    for (at, phase) in phases.iter_mut().enumerate() {
        let (line, load) = (phase.line, phase.load);
        let rows = match at.checked_sub(1) {
            None => phase.rows,
            Some(before) => without(&printed[before], phase, at + 1),
        };
        if agrees(&rows) == Some(true) {
            phase.rows = rows;
            if at > 0 {
                reasons.push(format!(
                    "line {line}: kernbench averaged earlier phases into all rows of the {load} load but the elapsed time; \
                     they are taken out again"
                ));
            }
        } else {
            let elapsed = phase.rows[ELAPSED];
            phase.rows = [None; ROWS.len()];
            phase.rows[ELAPSED] = elapsed;
            reasons.push(format!(
                "line {line}: CPU time by elapsed time is not the CPU share of the {load} load, and averaging over earlier \
                 phases does not explain it; only the elapsed time is taken"
            ));
        }
    }
}

/// Whether CPU time by elapsed time is the CPU share; `None` if a row is missing.
fn agrees(rows: &[Option<Printed>; ROWS.len()]) -> Option<bool> {
    let of = |row: usize| rows[row].map(|v| v.value);
    let share = 100.0 * (of(USER)? + of(SYSTEM)?) / of(ELAPSED)?;
    Some((share / of(CPU)? - 1.0).abs() <= AGREES)
}

fn without(before: &Phase, phase: &Phase, count: usize) -> [Option<Printed>; ROWS.len()] {
    #[expect(clippy::cast_precision_loss, reason = "three phases")]
    let count = count as f64;
    std::array::from_fn(|row| {
        let (mean, earlier) = (phase.rows[row]?, before.rows[row]);
        if row == ELAPSED {
            return Some(mean);
        }
        Some(Printed {
            value: count * mean.value - (count - 1.0) * earlier?.value,
            // The last digit of each is multiplied.
            decimals: mean.decimals.saturating_sub(1),
        })
    })
}

fn metrics(phase: &Phase) -> Vec<Metric> {
    let mut keys = vec![("load".to_owned(), phase.load.to_owned())];
    keys.extend(phase.jobs.map(|n| ("jobs".to_owned(), n.to_string())));
    let rows = ROWS.iter().zip(phase.rows);
    rows.filter_map(|((_, name, unit, direction), value)| {
        // What was taken out of a mean may be beyond any number.
        let value = value.filter(|v| v.value.is_finite() && v.resolution().is_finite())?;
        Some(Metric {
            direction: *direction,
            work: Some(Work::Fixed),
            keys: keys.clone(),
            ..Metric::printed(Format::Kernbench, name, value, unit)
        })
    })
    .collect()
}
