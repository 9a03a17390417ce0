//! Tables in the styles of the kernel test robot (LKP) and of mmtests.

use std::io::{self, Write};

use super::super::Report;
use super::super::headline::{Row, Shown};
use super::super::stats::{Direction, Scale, Verdict};
use super::text::ascii;

/// Mean and standard deviation of the values, the deviation as both tools take it: divided by n.
fn spread(side: &[(f64, u64)]) -> (f64, f64) {
    let n = super::super::observed::real(side.len().max(1) as u64);
    let mean = side.iter().map(|(v, _)| v).sum::<f64>() / n;
    let variance = side.iter().map(|(v, _)| (v - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

/// A name without blanks: the workload's configuration, then the figure.
fn name(row: &Row) -> String {
    let cell = row.cell.replace(", ", ".").replace(' ', "-");
    let mut id = row.id.replace(' ', "_");
    if is_seconds(row) && id.ends_with("_ns") {
        id.replace_range(id.len() - "_ns".len().., "_s");
    }
    ascii(&if cell.is_empty() {
        id
    } else {
        format!("{cell}.{id}")
    })
}

/// Whether a time of ns is shown in the unit that people read.
fn is_seconds(row: &Row) -> bool {
    matches!(row.shown, Shown::Of(crate::model::Unit::Ns))
        && (row.id.contains("elapsed") || row.id.starts_with("command_"))
}

/// What the value is multiplied by.
fn shown(row: &Row) -> f64 {
    if is_seconds(row) { 1e-9 } else { 1.0 }
}

/// `%stddev %change %stddev`, as LKP's mails: medians and verdicts are in the other formats.
pub(super) fn write_lkp(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    banner(out, report)?;
    writeln!(out, "         %stddev     %change         %stddev")?;
    writeln!(out, "             \\          |                \\")?;
    for row in &report.rows {
        let scale = shown(row);
        let ((a, deviation_a), (b, deviation_b)) = (spread(&row.before), spread(&row.after));
        let share = |mean: f64, deviation: f64| {
            let pct = 100.0 * deviation / mean.abs();
            // LKP leaves out what is 2 % or less.
            if pct.is_finite() && pct > 2.0 {
                format!(" +-{pct:>3.0}%")
            } else {
                String::new()
            }
        };
        let change = if row.comparison.shift.scale == Scale::Ratio {
            format!("{:+.1}%", 100.0 * (b / a - 1.0))
        } else {
            format!("{:+.1}", scale * (b - a))
        };
        writeln!(
            out,
            "{:>10}{:<7} {change:>10} {:>10}{:<7}  {}",
            four_digits(scale * a),
            share(a, deviation_a),
            four_digits(scale * b),
            share(b, deviation_b),
            name(row)
        )?;
    }
    Ok(())
}

/// As LKP prints numbers: whole above a thousand, two digits below, an exponent from 1e8 on.
fn four_digits(v: f64) -> String {
    if v.abs() >= 1e8 {
        format!("{v:.3e}")
    } else if v.abs() >= 1000.0 {
        format!("{v:.0}")
    } else {
        format!("{v:.2}")
    }
}

/// As mmtests: positive is better, stars where the difference is significant.
pub(super) fn write_mmtests(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    banner(out, report)?;
    let [before, after] = &report.options.labels;
    writeln!(out, "{:<34}{:>22}{:>22}", "", ascii(before), ascii(after))?;
    writeln!(out, "{:<34}{:>22}{:>22}", "", "", "")?;
    for row in &report.rows {
        let is_higher = row.direction != Direction::LowerIsBetter;
        let scale = shown(row);
        let means = [&row.before, &row.after].map(|side| {
            let n = super::super::observed::real(side.len() as u64);
            let is_harmonic = is_higher && side.iter().all(|(v, _)| *v > 0.0);
            if is_harmonic {
                n / side.iter().map(|(v, _)| 1.0 / v).sum::<f64>()
            } else {
                side.iter().map(|(v, _)| v).sum::<f64>() / n
            }
        });
        let change = 100.0 * (means[1] / means[0] - 1.0);
        let better = if is_higher { change } else { -change };
        let is_significant = matches!(
            row.verdict,
            Some(Verdict::Improved | Verdict::Regressed | Verdict::Moved)
        );
        let (open, close) = if is_significant {
            ('*', '*')
        } else {
            ('(', ')')
        };
        let word = if is_higher { "Hmean" } else { "Amean" };
        let zero = if better.is_finite() { better } else { f64::NAN };
        writeln!(
            out,
            "{word:<10}{:<24}{:>12.2} ({:>7.2}%){:>12.2} {open}{zero:>7.2}%{close}",
            name(row),
            scale * means[0],
            0.0,
            scale * means[1],
        )?;
    }
    Ok(())
}

/// What must stand before figures that were forced, as a comment.
fn banner(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    for note in report.notes.iter().filter(|n| n.starts_with("FORCED")) {
        writeln!(out, "# {}", ascii(note))?;
    }
    Ok(())
}
