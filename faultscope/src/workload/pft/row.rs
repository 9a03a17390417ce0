//! One row of the page-fault test, read character by character: the `s` of a time may be all that parts two columns.

use crate::workload::number::{self, Printed};

/// Whole numbers that a row begins with, at most: `Gb Rep Thr CLine`.
const MOST_COUNTS: usize = 4;

/// A row as printed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// Number of its line, from 1.
    pub(super) line: usize,
    /// Place among the tables of the text: those of one header belong together.
    pub(super) table: usize,
    /// Place among repetitions that the text announces.
    pub(super) iteration: usize,
    /// The whole numbers it begins with: three or four.
    pub(super) counts: Vec<u64>,
    pub(super) user: Printed,
    pub(super) system: Printed,
    pub(super) wall: Wall,
    /// Faults per second of CPU time.
    pub(super) cpu_rate: Printed,
    /// Faults per second of wall time.
    pub(super) rate: Printed,
}

/// The wall time, undecided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Wall {
    /// Read as a decimal number, s.
    pub(super) decimal: Printed,
    /// Read as seconds and centiseconds padded to three digits, s, if it can be.
    pub(super) padded: Option<f64>,
}

/// Reads a trimmed line; `None` if it is no row at all.
///
/// # Errors
/// A clause, if it begins like a row and does not go on like one.
pub(super) fn parse(line: &str) -> Option<Result<Row, String>> {
    let mut counts = Vec::new();
    let mut rest = line;
    let (user, mut rest) = loop {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let (digits, after) = rest.split_at(end);
        if let Some(taken) = take_seconds(rest) {
            break taken;
        }
        if digits.is_empty() || !after.starts_with([' ', '\t']) || counts.len() == MOST_COUNTS {
            return None;
        }
        counts.push(digits.parse().ok()?);
        rest = after.trim_start();
    };
    // "4 1.5s" may be prose; two numbers before a time are taken for a row.
    if counts.len() < 2 {
        return None;
    }
    let mut seconds = |name: &str| {
        let (text, after) = take_seconds(rest.trim_start())
            .ok_or_else(|| format!("a row of pft, and its {name} time is not there"))?;
        rest = after;
        Ok(text)
    };
    let times = seconds("System").and_then(|system| Ok((system, seconds("Wall")?)));
    Some(times.and_then(|(system, wall)| finish(counts, user, system, wall, rest)))
}

/// `12.345s` at the start of `text`: the number, and what follows the `s`.
fn take_seconds(text: &str) -> Option<(&str, &str)> {
    let end = text.find('s')?;
    let (number, after) = text.split_at(end);
    let (whole, fraction) = number.split_once('.')?;
    let is_digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    (is_digits(whole) && is_digits(fraction)).then_some((number, &after[1..]))
}

fn finish(
    counts: Vec<u64>,
    user: &str,
    system: &str,
    wall: &str,
    rest: &str,
) -> Result<Row, String> {
    if counts.len() < 3 {
        return Err("a row of pft, and a column before User is not there".to_owned());
    }
    let read =
        |text: &str| number::parse(text).map_err(|error| format!("\"{text}\" {}", error.reason()));
    let rates: Vec<&str> = rest.split_whitespace().take(3).collect();
    let [cpu_rate, rate] = rates.as_slice() else {
        return Err("a row of pft, and two rates do not follow its times".to_owned());
    };
    let (cpu_rate, rate) = (read(cpu_rate)?, read(rate)?);
    if cpu_rate.value <= 0.0 || rate.value <= 0.0 {
        return Err("a row of pft, and a rate is not above 0".to_owned());
    }
    let decimal = read(wall)?;
    Ok(Row {
        line: 0,
        table: 0,
        iteration: 0,
        counts,
        user: read(user)?,
        system: read(system)?,
        wall: Wall {
            decimal,
            padded: padded(wall),
        },
        cpu_rate,
        rate,
    })
}

/// `6.054` as 6.54: three digits of which the first is the padding.
fn padded(text: &str) -> Option<f64> {
    let (whole, fraction) = text.split_once('.')?;
    if fraction.len() != 3 || !fraction.starts_with('0') {
        return None;
    }
    let (whole, hundredths): (f64, f64) = (whole.parse().ok()?, fraction.parse().ok()?);
    let value = whole + hundredths / 100.0;
    value.is_finite().then_some(value)
}
