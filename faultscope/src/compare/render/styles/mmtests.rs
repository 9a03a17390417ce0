//! As `compare-mmtests` prints: positive is better, stars where the difference is significant.

use std::io::{self, Write};

use super::super::super::Report;
use super::super::super::stats::{Direction, Verdict};
use super::super::WIDTH;
use super::super::text::wrap;
use super::names::Names;
use super::{Line, comments, exponent, lines, mean, one_word, printed, values};

/// Columns of the first word, `Hmean`, and the blank after it.
const WORD: usize = 6;

/// Columns of a value with its change.
const CELL: usize = 23;

/// Means and changes that are positive where a figure got better; `-%` where no way is better.
pub(in super::super) fn write(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let mut names = Names::default();
    let mut rows = Vec::new();
    let mut negative = Vec::new();
    for line in lines(report) {
        let both = line.row.before.iter().chain(&line.row.after);
        if both.clone().any(|(v, _)| *v < 0.0) {
            negative.push(line.name.full.clone());
            continue;
        }
        let (word, cells) = cells(&line);
        let room = WIDTH.saturating_sub(WORD + cells.len());
        let name = names.fit(&line.name, room);
        rows.push(format!("{word:<WORD$}{name:<room$}{cells}"));
    }
    comments(out, report, &names.shortened)?;
    for name in negative {
        let text = format!("{name} is left out: a value below 0 stands for a failed run here");
        wrap(out, &text, "# ", "# ")?;
    }
    let [before, after] = report
        .options
        .labels
        .each_ref()
        .map(|label| one_word(label, CELL - 2));
    let runs = [0, 1].map(|side| report.sides[side].len());
    writeln!(
        out,
        "faultscope compare, means of {} and {} runs",
        runs[0], runs[1]
    )?;
    let room = WIDTH - 2 * CELL;
    writeln!(out, "{:room$}{before:>CELL$}{after:>CELL$}", "")?;
    for row in rows {
        writeln!(out, "{}", row.trim_end())?;
    }
    Ok(())
}

/// Which statistic it is, and value and change of both sides.
fn cells(line: &Line<'_>) -> (&'static str, String) {
    let direction = line.row.direction;
    let sides = [&line.row.before, &line.row.after].map(|side| values(side, line.scale));
    let has_zero = sides.iter().any(|side| mean(side) <= 0.0);
    let is_harmonic =
        direction == Direction::HigherIsBetter && sides.iter().flatten().all(|v| *v > 0.0);
    // A mean of 0 stands for a failed run.
    let word = if has_zero {
        "Max"
    } else if is_harmonic {
        "Hmean"
    } else {
        "Amean"
    };
    let [a, b] = sides.map(|side| {
        number(match word {
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
        word,
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
