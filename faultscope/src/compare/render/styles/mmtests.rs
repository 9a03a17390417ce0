//! As `compare-mmtests` prints: positive is better, stars where the difference is significant.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::super::super::Report;
use super::super::super::headline::Row;
use super::super::super::stats::{Direction, Verdict};
use super::super::WIDTH;
use super::super::text::wrap;
use super::names::{Name, Names, statistic};
use super::{Line, comments, exponent, lines, mean, one_word, printed, values};

/// Columns of the first word, `Hmean`, and the blank after it.
const WORD: usize = 6;

/// Columns of a value with its change.
const CELL: usize = 23;

/// Means and changes that are positive where a figure got better; `-%` where no way is better.
pub(in super::super) fn write(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    // The same figure may have several statistics.
    let mut names: BTreeMap<String, Names> = BTreeMap::new();
    let mut rows = Vec::new();
    let mut negative = Vec::new();
    for line in lines(report) {
        let both = line.row.before.iter().chain(&line.row.after);
        if both.clone().any(|(v, _)| *v < 0.0) {
            negative.push(line.name.full.clone());
            continue;
        }
        let (word, cells) = cells(&line);
        rows.push((word, Name::of_mmtests(line.row), cells));
    }
    let widest = rows.iter().map(|(word, ..)| word.len() + 1).max();
    let first = widest.unwrap_or_default().max(WORD);
    let mut made = Vec::new();
    for (word, name, cells) in rows {
        let room = WIDTH.saturating_sub(first + 1 + cells.len());
        let name = names.entry(word.clone()).or_default().fit(&name, room);
        made.push(format!("{word:<first$}{name:<room$} {cells}"));
    }
    let shortened: Vec<(String, String)> = names.into_values().flat_map(|n| n.shortened).collect();
    comments(out, report, &shortened)?;
    for name in negative {
        let text = format!("{name} is left out: a value below 0 stands for a failed run here");
        wrap(out, &text, "# ", "# ")?;
    }
    let [before, after] = report
        .options
        .labels
        .each_ref()
        .map(|label| one_word(label, CELL - 2));
    writeln!(out, "faultscope compare, {}", means(report))?;
    let room = WIDTH - 2 * CELL;
    writeln!(out, "{:room$}{before:>CELL$}{after:>CELL$}", "")?;
    for row in made {
        writeln!(out, "{}", row.trim_end())?;
    }
    Ok(())
}

/// What the values are, and of how many runs.
fn means(report: &Report) -> String {
    if report.rows.iter().any(|row| row.is_summary) {
        return "means of a number of runs that is not known".to_owned();
    }
    // A configuration of a sweep has runs of its own.
    let of_side = |side: fn(&Row) -> usize| {
        let least = report.rows.iter().map(side).min().unwrap_or_default();
        let most = report.rows.iter().map(side).max().unwrap_or_default();
        if least == most {
            least.to_string()
        } else {
            format!("{least} to {most}")
        }
    };
    format!(
        "means of {} and {} runs",
        of_side(|row| row.before.len()),
        of_side(|row| row.after.len())
    )
}

/// Which statistic it is, and value and change of both sides.
fn cells(line: &Line<'_>) -> (String, String) {
    let direction = line.row.direction;
    let sides = [&line.row.before, &line.row.after].map(|side| values(side, line.scale));
    let has_zero = sides.iter().any(|side| mean(side) <= 0.0);
    let is_harmonic =
        direction == Direction::HigherIsBetter && sides.iter().flatten().all(|v| *v > 0.0);
    // What was read from such a table is the statistic that it was. A mean of 0 stands for a failed run.
    let word = if let Some((statistic, _)) = statistic(line.row) {
        statistic
    } else if has_zero {
        "Max"
    } else if is_harmonic {
        "Hmean"
    } else {
        "Amean"
    };
    let [a, b] = sides.map(|side| {
        number(match word {
            "Min" => side.iter().copied().fold(f64::INFINITY, f64::min),
            "Max" => side.iter().copied().fold(0.0, f64::max),
            "Hmean" => 1.0 / mean(&side.iter().map(|v| 1.0 / v).collect::<Vec<_>>()),
            _ => mean(&side),
        })
    });
    let change = change(direction, printed(&a), printed(&b));
    let is_significant = matches!(
        line.row.verdict,
        Some(Verdict::Improved | Verdict::Regressed | Verdict::Moved)
    );
    let (open, close) = if is_significant {
        ('*', '*')
    } else {
        ('(', ')')
    };
    let none = if change == "-" { "-" } else { "0.00" };
    (
        word.to_owned(),
        format!("{a:>12} ({none:>7}%){b:>12} {open}{change:>7}%{close}"),
    )
}

/// The change in percent, positive if better; `-` where that cannot be said.
fn change(direction: Direction, a: f64, b: f64) -> String {
    let raw = 100.0 * (b / a - 1.0);
    let better = match direction {
        Direction::HigherIsBetter => raw,
        Direction::LowerIsBetter => -raw,
        Direction::None => return "-".to_owned(),
    };
    if !better.is_finite() {
        "-".to_owned()
    } else if better.abs() < 1e5 {
        format!("{better:.2}")
    } else {
        exponent(better, 2)
    }
}

/// Two digits after the point, more for what is small, an exponent for what is long.
fn number(v: f64) -> String {
    let size = v.abs();
    if size >= 1e9 || (size > 0.0 && size < 1e-4) {
        exponent(v, 5)
    } else if size >= 10.0 || size <= 0.0 {
        format!("{v:.2}")
    } else if size >= 1.0 {
        format!("{v:.3}")
    } else {
        format!("{v:.6}")
    }
}
