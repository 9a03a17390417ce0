//! reaim: jobs per minute by the number of tasks.
//!
//! "Max Jobs per Minute" is the greatest of many noisy figures and so biased; it is not taken. Compare at a number of
//! tasks.

use super::found::{Format, Found, Measurement, Outcome, Refusal};
use super::metric::{Direction, Metric, Work};
use super::number::{self, Printed};

/// Figures of a row behind the number of tasks: name, unit, and which way they get better. The rate of one task is
/// that of all by their number, and only checked.
const FIGURES: [Option<(&str, &str, Option<Direction>)>; 8] = [
    Some(("parent time", "s", Some(Direction::Lower))),
    Some(("child system", "s", Some(Direction::Lower))),
    Some(("child user", "s", Some(Direction::Lower))),
    Some(("jobs/min", "1/min", Some(Direction::Higher))),
    None,
    Some(("time deviation", "s", None)),
    Some(("time deviation share", "%", None)),
    Some(("job timing index", "", None)),
];

/// Finds the rows below the headers of reaim in `text`.
pub(super) fn parse(text: &str) -> Outcome {
    let mut found = Found::default();
    let mut is_there = false;
    for (at, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // The head of the last column stands in the first of two or three lines.
        if words.last() == Some(&"JTI") {
            is_there = true;
            continue;
        }
        let is_row = words
            .first()
            .is_some_and(|w| number::parse_count(w).is_some());
        if !is_there || !is_row {
            continue;
        }
        match row(&words) {
            Ok(metrics) => found
                .measurements
                .push(Measurement::new(Format::Reaim, metrics)),
            Err(reason) => {
                return Some(Err(Refusal::Line {
                    line: at + 1,
                    reason,
                }));
            }
        }
    }
    is_there.then_some(Ok(found))
}

fn row(words: &[&str]) -> Result<Vec<Metric>, String> {
    let mut numbers = Vec::with_capacity(words.len());
    for word in words {
        numbers
            .push(number::parse(word).map_err(|error| format!("\"{word}\" {}", error.reason()))?);
    }
    let [tasks, figures @ ..] = numbers.as_slice() else {
        return Err("the row is empty".to_owned());
    };
    if figures.len() != FIGURES.len() {
        return Err(format!(
            "a row of reaim has {} columns, and this one {}",
            FIGURES.len() + 1,
            numbers.len()
        ));
    }
    check(*tasks, figures[3], figures[4])?;
    let keys = vec![("tasks".to_owned(), words[0].to_owned())];
    let named = FIGURES.iter().zip(figures).filter_map(|(figure, value)| {
        let (name, unit, direction) = (*figure)?;
        Some(Metric {
            direction,
            work: Some(Work::Fixed),
            keys: keys.clone(),
            ..Metric::printed(Format::Reaim, name, *value, unit)
        })
    });
    Ok(named.collect())
}

/// The rate of one task is that of all by their number, or the columns are not what they seem.
fn check(tasks: Printed, all: Printed, one: Printed) -> Result<(), String> {
    let off = (all.value / tasks.value - one.value).abs();
    let allowed = one.resolution() + all.resolution() / tasks.value;
    if off.is_finite() && off <= allowed {
        Ok(())
    } else {
        Err(format!(
            "the row does not add up: {} jobs per minute by {} tasks are not {}; a digit is damaged or a column is missing",
            all.value, tasks.value, one.value
        ))
    }
}
