//! The general table: the first column names what is measured, each further one is a variant.
//!
//! The format is described in `docs/import.md`.

use std::collections::BTreeMap;

use super::found::{Format, Found, Measurement, Outcome, Refusal};
use super::metric::{Direction, Metric, Work};
use super::number::{self, NotANumber};

/// What holds where the table does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Defaults {
    /// Name of the values of a table whose rows are keys.
    pub name: Option<String>,
    /// Their unit.
    pub unit: Option<String>,
    /// Which way they get better.
    pub direction: Option<Direction>,
}

/// First cell of the header of a table whose rows are figures of different kinds.
const METRIC: &str = "metric";

/// A value that a `#` line gives: to everything, or by name.
#[derive(Debug, Clone, Default)]
struct Given {
    all: Option<String>,
    by_name: BTreeMap<String, String>,
}

impl Given {
    /// Takes `VALUE` or `NAME=VALUE NAME=VALUE…`.
    fn take(&mut self, text: &str) -> Result<(), String> {
        if !text.contains('=') {
            self.all = Some(text.to_owned());
            return Ok(());
        }
        for word in text.split_whitespace() {
            match word.split_once('=') {
                Some((name, value)) if !name.is_empty() && !value.is_empty() => {
                    self.by_name.insert(name.to_owned(), value.to_owned());
                }
                _ => {
                    return Err(format!(
                        "\"{word}\" is not NAME=VALUE, as other words of the line are"
                    ));
                }
            }
        }
        Ok(())
    }

    fn of(&self, name: &str) -> Option<&String> {
        self.by_name.get(name).or(self.all.as_ref())
    }
}

#[derive(Debug, Clone, Default)]
struct Lines {
    host: Given,
    unit: Given,
    direction: Given,
    work: Given,
    name: Option<String>,
}

impl Lines {
    /// Takes a `#` line; one without a known word is a comment.
    fn take(&mut self, text: &str) -> Result<(), String> {
        let Some((word, value)) = text.split_once(':') else {
            return Ok(());
        };
        let value = value.trim();
        let given = match word.trim() {
            "host" => &mut self.host,
            "unit" => &mut self.unit,
            "direction" => &mut self.direction,
            "work" => &mut self.work,
            METRIC => {
                self.name = Some(value.to_owned());
                return Ok(());
            }
            _ => return Ok(()),
        };
        if value.is_empty() {
            return Err(format!("\"# {}:\" gives nothing", word.trim()));
        }
        given.take(value)
    }
}

/// Reads `text` as a table; if it `is_asked` for, the reason why it is none is told, else it is just none.
pub(super) fn parse(text: &str, defaults: &Defaults, is_asked: bool) -> Outcome {
    let is_table = is_asked || looks_like_one(text);
    is_table.then(|| read(text, defaults))
}

/// Whether a header and only rows of numbers as wide as it follow the `#` lines.
fn looks_like_one(text: &str) -> bool {
    let mut rows = text
        .lines()
        .filter(|l| !l.trim().is_empty() && !l.starts_with('#'))
        .map(cells);
    let Some(header) = rows.next() else {
        return false;
    };
    let mut count = 0;
    header.len() >= 2
        // A name that is a number, as of a kernel release, is one to ask for.
        && header.iter().all(|name| matches!(number::parse(name), Err(NotANumber::Other)))
        && rows.all(|row| {
            count += 1;
            row.len() == header.len() && row[1..].iter().all(|cell| is_value(cell))
        })
        && count > 0
}

fn is_value(cell: &str) -> bool {
    is_missing(cell) || !matches!(number::parse(cell), Err(NotANumber::Other))
}

fn is_missing(cell: &str) -> bool {
    cell.is_empty() || cell == "-"
}

/// The cells of a line: between tabs if it has any, else between blanks.
fn cells(line: &str) -> Vec<&str> {
    if line.contains('\t') {
        line.split('\t').map(str::trim).collect()
    } else {
        line.split_whitespace().collect()
    }
}

fn read(text: &str, defaults: &Defaults) -> Result<Found, Refusal> {
    let mut lines = Lines::default();
    let mut header: Option<Vec<&str>> = None;
    let mut found = Found::default();
    for (at, line) in text.lines().enumerate() {
        let refuse = |reason: String| Refusal::Line {
            line: at + 1,
            reason,
        };
        if let Some(text) = line.strip_prefix('#') {
            lines.take(text).map_err(refuse)?;
            continue;
        }
        if line.trim().is_empty() {
            continue;
        }
        let row = cells(line);
        match &header {
            None => {
                check_header(&row).map_err(refuse)?;
                check_hosts(&lines.host, &row[1..]).map_err(refuse)?;
                header = Some(row);
            }
            Some(header) => {
                let row = Row::parse(header, &row, &lines, defaults).map_err(refuse)?;
                found.measurements.extend(row.measurements(header, &lines));
            }
        }
    }
    if found.measurements.is_empty() {
        return Err(Refusal::Invalid(
            "there is no table in it: a header and rows of numbers are missing".to_owned(),
        ));
    }
    Ok(found)
}

fn check_header(header: &[&str]) -> Result<(), String> {
    if header.len() < 2 {
        return Err("the header of the table has one column; the first names the rows, further ones the variants".to_owned());
    }
    if let Some(at) = header.iter().position(|name| name.is_empty()) {
        return Err(format!("column {} of the header has no name", at + 1));
    }
    for (at, name) in header.iter().enumerate().skip(1) {
        if header[1..at].contains(name) {
            return Err(format!(
                "two columns are named \"{name}\"; repetitions are rows of the same key"
            ));
        }
    }
    Ok(())
}

fn check_hosts(hosts: &Given, variants: &[&str]) -> Result<(), String> {
    match hosts
        .by_name
        .keys()
        .find(|name| !variants.contains(&name.as_str()))
    {
        Some(name) => Err(format!(
            "\"# host:\" names \"{name}\", which is no column of the table"
        )),
        None => Ok(()),
    }
}

/// A row that was read.
struct Row {
    name: String,
    unit: String,
    direction: Option<Direction>,
    work: Option<Work>,
    keys: Vec<(String, String)>,
    values: Vec<Option<number::Printed>>,
}

impl Row {
    fn parse(
        header: &[&str],
        cells: &[&str],
        lines: &Lines,
        defaults: &Defaults,
    ) -> Result<Self, String> {
        if cells.len() != header.len() {
            return Err(format!(
                "the row has {} cells and the header {}; write \"-\" for a value that is missing",
                cells.len(),
                header.len()
            ));
        }
        let first = cells[0];
        if first.is_empty() {
            return Err("the row has no name in its first column".to_owned());
        }
        let mut values = Vec::new();
        for cell in &cells[1..] {
            values.push(if is_missing(cell) {
                None
            } else {
                Some(
                    number::parse(cell)
                        .map_err(|error| format!("\"{cell}\" {}", error.reason()))?,
                )
            });
        }
        let (name, keys) = if header[0] == METRIC {
            (first.to_owned(), Vec::new())
        } else {
            let name = lines
                .name
                .clone()
                .or_else(|| defaults.name.clone())
                .unwrap_or_else(|| "value".to_owned());
            (name, vec![(header[0].to_owned(), first.to_owned())])
        };
        let direction = match lines.direction.of(&name).map(String::as_str) {
            None => defaults.direction,
            Some("higher") => Some(Direction::Higher),
            Some("lower") => Some(Direction::Lower),
            Some(other) => {
                return Err(format!(
                    "\"# direction:\" gives \"{other}\"; it is higher or lower"
                ));
            }
        };
        let work = match lines.work.of(&name).map(String::as_str) {
            None => None,
            Some("fixed") => Some(Work::Fixed),
            Some("timed") => Some(Work::Timed),
            Some(other) => {
                return Err(format!(
                    "\"# work:\" gives \"{other}\"; it is fixed or timed"
                ));
            }
        };
        Ok(Self {
            unit: lines
                .unit
                .of(&name)
                .or(defaults.unit.as_ref())
                .cloned()
                .unwrap_or_default(),
            direction,
            work,
            name,
            keys,
            values,
        })
    }

    fn measurements<'a>(
        &'a self,
        header: &'a [&str],
        lines: &'a Lines,
    ) -> impl Iterator<Item = Measurement> + 'a {
        header[1..]
            .iter()
            .zip(&self.values)
            .filter_map(|(variant, value)| {
                let metric = Metric {
                    direction: self.direction,
                    work: self.work,
                    keys: self.keys.clone(),
                    ..Metric::printed(Format::Table, &self.name, (*value)?, &self.unit)
                };
                Some(Measurement {
                    variant: Some((*variant).to_owned()),
                    host: lines.host.of(variant).cloned(),
                    ..Measurement::new(Format::Table, vec![metric])
                })
            })
    }
}
