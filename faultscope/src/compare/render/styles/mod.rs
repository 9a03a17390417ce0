//! Tables in the styles of the kernel test robot (LKP) and of mmtests.
//!
//! Both are read back by the parsers of `workload`: values as printed, units by the end of the name. What a table of that
//! kind cannot say stands above it, in lines that begin with `#`.

mod lkp;
mod mmtests;
mod names;

pub(super) use lkp::write as write_lkp;
pub(super) use mmtests::write as write_mmtests;

use std::io::{self, Write};

use super::super::Report;
use super::super::headline::{Row, Shown};
use super::text::{ascii, wrap};
use crate::model::Unit;
use names::Name;

/// A row as a style prints it.
struct Line<'a> {
    row: &'a Row,
    /// Full name, without blanks.
    name: Name,
    /// What values are multiplied by.
    scale: f64,
}

/// The rows of the report with their names, each once.
fn lines(report: &Report) -> Vec<Line<'_>> {
    let line = |row| Line {
        row,
        name: Name::new(row),
        scale: if is_seconds(row) { 1e-9 } else { 1.0 },
    };
    report.rows.iter().map(line).collect()
}

/// Whether a time of ns is shown in the unit that people read.
fn is_seconds(row: &Row) -> bool {
    matches!(row.shown, Shown::Of(Unit::Ns))
        && (row.id.contains("elapsed") || row.id.starts_with("command_"))
}

/// A side's name in one word of at most `width` columns.
fn one_word(label: &str, width: usize) -> String {
    let word = ascii(label).replace(' ', "_");
    // The end of a kernel's name says more than its start.
    word.get(word.len().saturating_sub(width)..)
        .unwrap_or_default()
        .to_owned()
}

/// Values of a side, scaled.
fn values(side: &[(f64, u64)], scale: f64) -> Vec<f64> {
    side.iter().map(|(v, _)| scale * v).collect()
}

/// The arithmetic mean; 0 of nothing.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / super::super::observed::real(values.len().max(1) as u64)
}

/// A number with at least four digits that matter, and two after the point: whole from a thousand on, an exponent where
/// it would be long.
fn four_digits(v: f64) -> String {
    let size = v.abs();
    if size >= 1e8 || (size > 0.0 && size < 1e-4) {
        exponent(v, 3)
    } else if size >= 1000.0 {
        format!("{v:.0}")
    } else if size >= 10.0 || size <= 0.0 {
        format!("{v:.2}")
    } else if size >= 1.0 {
        format!("{v:.3}")
    } else if size >= 0.1 {
        format!("{v:.4}")
    } else {
        format!("{v:.6}")
    }
}

/// As C writes it: at least two digits of exponent, with a sign.
fn exponent(v: f64, decimals: usize) -> String {
    let text = format!("{v:.decimals$e}");
    match text.split_once('e') {
        Some((digits, power)) => {
            let (sign, power) = match power.strip_prefix('-') {
                Some(power) => ('-', power),
                None => ('+', power),
            };
            format!("{digits}e{sign}{power:0>2}")
        }
        None => text,
    }
}

/// The number that a reader of this text gets.
fn printed(text: &str) -> f64 {
    text.trim().parse().unwrap_or(0.0)
}

/// What must be said of the figures, and the full names of those that are shortened.
fn comments(out: &mut dyn Write, report: &Report, names: &[(String, String)]) -> io::Result<()> {
    for note in &report.notes {
        wrap(out, note, "# ", "# ")?;
    }
    for (short, full) in names {
        wrap(out, &format!("{short} is {full}"), "# ", "# ")?;
    }
    Ok(())
}
