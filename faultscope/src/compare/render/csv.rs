//! A row for each figure, each lock class and what is behind it, and each quantile.

use std::io::{self, Write};

use super::super::Report;
use super::super::headline::{Role, Row, Shown};
use super::super::stats::{Comparison, Scale};

const HEAD: &str = "kind,id,cell,unit,runs_before,runs_after,before,after,change,change_low,change_high,scale,p,adjusted_p,verdict";

pub(super) fn write(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    writeln!(out, "{HEAD}")?;
    if report.is_refused() {
        for refusal in &report.comparability.refusals {
            writeln!(
                out,
                "not_comparable,{},,,{},{},{},{},,,,,,,",
                quoted(&refusal.key),
                report.sides[0].len(),
                report.sides[1].len(),
                quoted(&refusal.before),
                quoted(&refusal.after)
            )?;
        }
        return Ok(());
    }
    for row in &report.rows {
        figure(out, row)?;
    }
    for row in report.locks.iter().flat_map(|l| &l.rows) {
        if let Some(comparison) = &row.comparison {
            let verdict = row.verdict.map_or("", |v| v.word());
            let runs = [row.wait[0].len(), row.wait[1].len()];
            let head = ["lock", &row.class.name(), "", "ns"].map(str::to_owned);
            line(out, &head, runs, comparison, row.q, verdict)?;
        }
    }
    details(out, report)
}

/// What is behind the lock classes, and quantiles: told, not tested.
fn details(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    for told in &report.details.told {
        for row in &told.rows {
            if let Some(comparison) = &row.comparison {
                let runs = [row.wait[0].len(), row.wait[1].len()];
                let head = [told.aspect.id(), &row.class.name(), "", "ns"].map(str::to_owned);
                line(out, &head, runs, comparison, None, "")?;
            }
        }
    }
    for bounce in &report.details.bounces {
        let runs = [bounce.shares[0].len(), bounce.shares[1].len()];
        let name = bounce.class.name();
        let head = ["handoffs", &name, bounce.distance, "ratio"].map(str::to_owned);
        line(out, &head, runs, &bounce.comparison, None, "")?;
    }
    for durations in &report.quantiles {
        for quantile in &durations.quantiles {
            if let Some(comparison) = &quantile.comparison {
                let runs = [quantile.values[0].len(), quantile.values[1].len()];
                let head = ["duration", &durations.name, quantile.name, "ns"].map(str::to_owned);
                line(out, &head, runs, comparison, None, "")?;
            }
        }
    }
    Ok(())
}

fn figure(out: &mut dyn Write, row: &Row) -> io::Result<()> {
    let kind = match row.role {
        Role::Primary => "primary",
        Role::Headline => "headline",
        Role::Context => "context",
    };
    let unit = match &row.shown {
        Shown::In(unit) => unit.clone(),
        Shown::Of(unit) => format!("{unit:?}").to_lowercase(),
    };
    let head = [kind.to_owned(), row.id.clone(), row.cell.clone(), unit];
    let verdict = row.verdict.map_or("", |v| v.word());
    line(
        out,
        &head,
        [row.before.len(), row.after.len()],
        &row.comparison,
        row.adjusted_p,
        verdict,
    )
}

fn line(
    out: &mut dyn Write,
    head: &[String; 4],
    runs: [usize; 2],
    comparison: &Comparison,
    adjusted: Option<f64>,
    verdict: &str,
) -> io::Result<()> {
    let shift = &comparison.shift;
    let (change, interval, scale) = match shift.scale {
        Scale::Ratio => (shift.percent(), shift.percent_interval(), "percent"),
        Scale::Difference => (Some(shift.estimate), shift.interval, "difference"),
    };
    let number = |v: Option<f64>| v.map_or_else(String::new, |v| v.to_string());
    let head: Vec<String> = head.iter().map(|c| quoted(c)).collect();
    writeln!(
        out,
        "{},{},{},{},{},{},{},{},{scale},{},{},{verdict}",
        head.join(","),
        runs[0],
        runs[1],
        comparison.before,
        comparison.after,
        number(change),
        number(interval.map(|i| i.0)),
        number(interval.map(|i| i.1)),
        comparison.test.p,
        number(adjusted)
    )
}

/// A cell as RFC 4180 quotes it; one that a spreadsheet would take for a formula begins with a quote mark.
fn quoted(text: &str) -> String {
    let text = if text.starts_with(['=', '+', '-', '@']) {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}
