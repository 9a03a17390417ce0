//! `%stddev %change %stddev`, as the kernel test robot mails it.

use std::io::{self, Write};

use super::super::super::Report;
use super::super::super::stats::Scale;
use super::super::WIDTH;
use super::names::Names;
use super::{Line, comments, exponent, four_digits, lines, mean, one_word, printed, values};

/// Means with their deviations, and raw changes: medians and verdicts are in the other formats.
pub(in super::super) fn write(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let mut names = Names::default();
    let rows: Vec<String> = lines(report)
        .iter()
        .map(|line| {
            let numbers = numbers(line);
            let name = names.fit(&line.name, WIDTH.saturating_sub(numbers.len()));
            format!("{numbers}{name}")
        })
        .collect();
    comments(out, report, &names.shortened)?;
    let [before, after] = report.options.labels.each_ref();
    writeln!(out, "{:<16} {}", one_word(before, 16), one_word(after, 27))?;
    writeln!(out, "{} {}", "-".repeat(16), "-".repeat(27))?;
    writeln!(out, "         %stddev     %change         %stddev")?;
    writeln!(out, "             \\          |                \\")?;
    for row in rows {
        writeln!(out, "{row}")?;
    }
    Ok(())
}

/// Everything before the name.
fn numbers(line: &Line<'_>) -> String {
    let side = |side: &[(f64, u64)]| {
        let values = values(side, line.scale);
        let mean = mean(&values);
        (four_digits(mean), deviation(&values, mean))
    };
    let ((a, deviation_a), (b, deviation_b)) = (side(&line.row.before), side(&line.row.after));
    let deviations = line.row.deviations.unwrap_or([deviation_a, deviation_b]);
    let [deviation_a, deviation_b] = deviations.map(mark);
    let change = change(line.row.comparison.shift.scale, printed(&a), printed(&b));
    format!("{a:>10}{deviation_a:<7} {change:>10} {b:>10}{deviation_b:<7}  ")
}

/// Standard deviation in percent of the mean, divided by n as LKP does; `None` where there is no mean.
fn deviation(values: &[f64], mean: f64) -> Option<f64> {
    let squares: Vec<f64> = values.iter().map(|v| (v - mean).powi(2)).collect();
    let percent = 100.0 * super::mean(&squares).sqrt() / mean.abs();
    percent.is_finite().then_some(percent)
}

/// LKP leaves out what is 2 % or less.
fn mark(percent: Option<f64>) -> String {
    percent
        .filter(|p| *p > 2.0)
        .map_or_else(String::new, |p| format!(" +-{p:>3.0}%"))
}

/// The raw change from one printed value to the other: in percent, or absolute where there is a 0.
fn change(scale: Scale, a: f64, b: f64) -> String {
    let percent = 100.0 * (b / a - 1.0);
    if scale == Scale::Ratio && percent.is_finite() {
        return if percent.abs() < 1e6 {
            format!("{percent:+.1}%")
        } else {
            format!("+{}%", exponent(percent, 1))
        };
    }
    let difference = b - a;
    if difference < 0.0 {
        four_digits(difference)
    } else {
        format!("+{}", four_digits(difference))
    }
}
