//! Results of the built-in benches: what the process that does the work prints, and how it is read back.
//!
//! ```text
//! faultscope-bench fault
//! key case anon
//! key threads 2
//! figure fault/wsec 369606.184 1/s higher
//! figure faults 16384 count
//! note the page cache of ext4 has folios of several pages
//! end
//! ```
//!
//! One line for each key, figure and note; names and units have no blanks. Without `end` the output was cut off and
//! nothing of it counts.

use std::fmt::Write as _;

use super::found::{Format, Found, Measurement, Outcome, Refusal};
use super::metric::{Direction, Metric, Work};
use super::number;

/// First word of the first line.
const MARK: &str = "faultscope-bench";
/// The last line.
const END: &str = "end";

/// A figure of a bench.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchFigure {
    /// Name without blanks: `fault/wsec`.
    pub name: String,
    /// Value; finite.
    pub value: f64,
    /// Unit without blanks: `1/s`, `s`, `ns`, `count`.
    pub unit: String,
    /// Which way it gets better, if it does.
    pub direction: Option<Direction>,
}

/// What one point of a bench says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BenchResult {
    /// Name of the bench.
    pub bench: String,
    /// What sets the point apart from others: `case` = `anon`, `threads` = `2`. Names have no blanks.
    pub keys: Vec<(String, String)>,
    /// Its figures.
    pub figures: Vec<BenchFigure>,
    /// Sentences to keep in mind, each on one line.
    pub notes: Vec<String>,
}

impl BenchResult {
    /// A result without figures yet.
    #[must_use]
    pub fn new(bench: &str, keys: &[(&str, String)]) -> Self {
        Self {
            bench: bench.to_owned(),
            keys: keys
                .iter()
                .map(|(key, value)| ((*key).to_owned(), value.clone()))
                .collect(),
            ..Self::default()
        }
    }

    /// Adds a figure; one that is not finite is left out, for it was not measured.
    pub fn add(&mut self, name: &str, value: f64, unit: &str, direction: Option<Direction>) {
        if value.is_finite() {
            self.figures.push(BenchFigure {
                name: name.to_owned(),
                value,
                unit: unit.to_owned(),
                direction,
            });
        }
    }

    /// Adds a number of events.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a bench counts fewer than 2^53 events"
    )]
    pub fn count(&mut self, name: &str, n: u64) {
        self.add(name, n as f64, "count", None);
    }

    /// Value of a figure.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        let figure = self.figures.iter().find(|f| f.name == name)?;
        Some(figure.value)
    }

    /// The same as a number of events.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "negative ones are none, and 2^53 is enough"
    )]
    pub fn events(&self, name: &str) -> Option<u64> {
        self.get(name).map(|n| n.round() as u64)
    }

    /// The lines that [`read`] takes.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{MARK} {}\n", self.bench);
        // Writing to a string cannot fail.
        for (key, value) in &self.keys {
            writeln!(text, "key {key} {value}").ok();
        }
        for figure in &self.figures {
            let BenchFigure {
                name, value, unit, ..
            } = figure;
            match unit.as_str() {
                "s" => write!(text, "figure {name} {value:.9} {unit}").ok(),
                "count" => write!(text, "figure {name} {value:.0} {unit}").ok(),
                _ => write!(text, "figure {name} {value:.3} {unit}").ok(),
            };
            match figure.direction {
                Some(Direction::Higher) => text.push_str(" higher\n"),
                Some(Direction::Lower) => text.push_str(" lower\n"),
                None => text.push('\n'),
            }
        }
        for note in &self.notes {
            writeln!(text, "note {}", note.replace(['\n', '\r'], " ")).ok();
        }
        text.push_str(END);
        text.push('\n');
        text
    }
}

/// Reads every result in `text`; lines outside of results are passed over.
///
/// # Errors
/// The first line of a result that is none, or a result without its last line.
pub fn read(text: &str) -> Result<Vec<BenchResult>, Refusal> {
    let mut all = Vec::new();
    let mut open: Option<(usize, BenchResult)> = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let refuse = |reason: String| Refusal::Line {
            line: at + 1,
            reason,
        };
        let (word, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let rest = rest.trim();
        if word == MARK {
            if open.is_some() {
                return Err(refuse(
                    "a result of a bench begins before the one above it ended".to_owned(),
                ));
            }
            open = Some((at + 1, BenchResult::new(rest, &[])));
            continue;
        }
        let Some((_, result)) = &mut open else {
            continue;
        };
        match word {
            "key" => {
                let (key, value) = rest
                    .split_once(' ')
                    .ok_or_else(|| refuse("a key of a bench has a name and a value".to_owned()))?;
                result.keys.push((key.to_owned(), value.trim().to_owned()));
            }
            "figure" => result.figures.push(figure(rest).map_err(refuse)?),
            "note" => result.notes.push(rest.to_owned()),
            END if rest.is_empty() => all.extend(open.take().map(|(_, result)| result)),
            _ => {
                return Err(refuse(format!(
                    "inside a result of a bench a line begins with key, figure, note or {END}"
                )));
            }
        }
    }
    match open {
        None => Ok(all),
        Some((line, _)) => Err(Refusal::Line {
            line,
            reason: format!(
                "the result of a bench that begins here has no \"{END}\": it was cut off"
            ),
        }),
    }
}

fn figure(text: &str) -> Result<BenchFigure, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (name, value, unit, direction) = match words.as_slice() {
        [name, value, unit] => (name, value, unit, None),
        [name, value, unit, "higher"] => (name, value, unit, Some(Direction::Higher)),
        [name, value, unit, "lower"] => (name, value, unit, Some(Direction::Lower)),
        _ => {
            return Err(
                "a figure of a bench has a name, a value, a unit and maybe \"higher\" or \"lower\""
                    .to_owned(),
            );
        }
    };
    let printed =
        number::parse(value).map_err(|error| format!("\"{value}\" {}", error.reason()))?;
    Ok(BenchFigure {
        name: (*name).to_owned(),
        value: printed.value,
        unit: (*unit).to_owned(),
        direction,
    })
}

/// Finds results of benches in `text`.
pub(super) fn parse(text: &str) -> Outcome {
    let results = match read(text) {
        Ok(results) => results,
        Err(refusal) => return Some(Err(refusal)),
    };
    if results.is_empty() {
        return None;
    }
    let mut found = Found::default();
    for result in results {
        let page_size = result.events("page_size");
        if result.figures.is_empty() {
            found
                .reasons
                .push(format!("a result of bench {} has no figure", result.bench));
            continue;
        }
        found.measurements.push(Measurement {
            page_size,
            ..Measurement::new(Format::Bench, result.metrics())
        });
    }
    Some(Ok(found))
}

impl BenchResult {
    /// The figures as those of any workload.
    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        self.figures
            .iter()
            .map(|figure| Metric {
                name: figure.name.clone(),
                value: figure.value,
                unit: figure.unit.clone(),
                direction: figure.direction,
                work: Some(Work::Fixed),
                resolution: match figure.unit.as_str() {
                    "s" => 1e-9,
                    "count" => 1.0,
                    _ => 1e-3,
                },
                format: Format::Bench.id().to_owned(),
                keys: std::iter::once(("bench".to_owned(), self.bench.clone()))
                    .chain(self.keys.iter().cloned())
                    .collect(),
            })
            .collect()
    }
}
