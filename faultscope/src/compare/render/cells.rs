//! Cells of tables: a figure, a lock class, what the machine was like.

use super::super::Report;
use super::super::headline::Row;
use super::super::locks::{LockRow, Locks};
use super::super::stats::{Comparison, PoissonInterval, Presence, Scale};
use crate::units::{format_ns, format_ratio, format_si};

/// THP, MGLRU, steal and losses of both sides.
pub(super) fn state(report: &Report) -> Option<String> {
    let fact = |side: usize, id: &str| -> Option<String> {
        let first = report.sides[side].first()?;
        let fact = first.run.facts.iter().find(|f| f.id == id)?;
        fact.value.clone().ok()
    };
    let pair = |name: &str, id: &str| Some(format!("{name} {}/{}", fact(0, id)?, fact(1, id)?));
    let of_kernel = |side: usize| report.sides[side].iter().filter_map(|o| o.kernel.as_ref());
    let lost = |side: usize| -> u64 {
        of_kernel(side)
            .flat_map(|k| &k.losses)
            .map(|(_, n)| n)
            .sum()
    };
    let steal = |side: usize| {
        let all: Vec<f64> = of_kernel(side).filter_map(|k| k.steal_ratio).collect();
        super::super::stats::median(&all)
    };
    let has_kernel = of_kernel(0).next().is_some() && of_kernel(1).next().is_some();
    let words = [
        pair("THP", "thp"),
        pair("MGLRU", "mglru"),
        steal(0)
            .zip(steal(1))
            .map(|(a, b)| format!("steal {}/{}", format_ratio(a), format_ratio(b))),
        has_kernel.then(|| format!("lost {}/{}", lost(0), lost(1))),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join("  "))
}

/// Name, medians, change, interval, p and verdict.
pub(super) fn figure(row: &Row) -> Vec<String> {
    let comparison = &row.comparison;
    let value = |v: f64| row.shown.value(v);
    let (change, interval) = change(comparison, &value);
    vec![
        row.title.clone(),
        value(comparison.before),
        value(comparison.after),
        change,
        interval,
        row.adjusted_p.map_or_else(String::new, p_value),
        row.verdict
            .map_or_else(String::new, |v| v.word().to_owned()),
    ]
}

fn change(comparison: &Comparison, value: &dyn Fn(f64) -> String) -> (String, String) {
    let shift = &comparison.shift;
    match shift.scale {
        Scale::Ratio => (
            shift
                .percent()
                .map_or_else(String::new, |p| format!("{}%", signed(p))),
            shift.percent_interval().map_or_else(
                || "none".to_owned(),
                |(low, high)| format!("[{},{}]", signed(low), signed(high)),
            ),
        ),
        Scale::Difference => {
            let signed = |v: f64| format!("{}{}", if v < 0.0 { "-" } else { "+" }, value(v.abs()));
            (
                signed(shift.estimate),
                shift.interval.map_or_else(
                    || "none".to_owned(),
                    |(low, high)| format!("[{},{}]", signed(low), signed(high)),
                ),
            )
        }
    }
}

/// A percentage with its sign, one decimal where that is worth it.
fn signed(percent: f64) -> String {
    if percent.abs() < 99.95 {
        format!("{percent:+.1}")
    } else {
        format!("{percent:+.0}")
    }
}

/// A lock class: its wait and its number of waits.
pub(super) fn lock(row: &LockRow, locks: &Locks) -> Vec<Vec<String>> {
    let name = row.class.name();
    let one_sided = |upper: f64, word: &str| {
        let count = |i: &PoissonInterval| {
            format!(
                "{} [{},{}]",
                format_si(i.rate),
                format_si(i.low),
                format_si(i.high)
            )
        };
        let zero = format!("0 [0,{}]", format_si(upper));
        let shown = |at: usize| {
            if row.waits[at].0 == 0 {
                zero.clone()
            } else {
                count(&row.counts[at])
            }
        };
        vec![vec![
            name.clone(),
            format_si(row.counts[0].rate),
            format_si(row.counts[1].rate),
            String::new(),
            if word == "appeared" {
                shown(1)
            } else {
                shown(0)
            },
            String::new(),
            word.to_owned(),
        ]]
    };
    match row.presence {
        Presence::Nowhere => Vec::new(),
        Presence::Appeared { upper } => one_sided(upper, "appeared"),
        Presence::Vanished { upper } => one_sided(upper, "vanished"),
        Presence::Rare => one_sided(0.0, "too few"),
        Presence::Both => {
            let Some(comparison) = &row.comparison else {
                return Vec::new();
            };
            let (moved, interval) = change(comparison, &format_ns);
            let mut rows = vec![vec![
                name,
                format_ns(comparison.before),
                format_ns(comparison.after),
                moved,
                interval,
                row.q.map_or_else(String::new, p_value),
                row.verdict
                    .map_or_else(String::new, |v| v.word().to_owned()),
            ]];
            if let Some(rates) = &row.rates {
                let (moved, interval) = change(rates, &format_si);
                rows.push(vec![
                    format!("  waits{}", locks.per.waits_per()),
                    format_si(rates.before),
                    format_si(rates.after),
                    moved,
                    interval,
                    String::new(),
                    String::new(),
                ]);
            }
            if let [Some(before), Some(after)] = row.p99_ns {
                rows.push(vec![
                    "  p99 wait".to_owned(),
                    format_ns(before),
                    format_ns(after),
                    String::new(),
                    String::new(),
                    String::new(),
                    String::new(),
                ]);
            }
            rows
        }
    }
}

/// As `.0012`, `.61`, `<.0001`.
fn p_value(p: f64) -> String {
    if p < 0.0001 {
        "<.0001".to_owned()
    } else if p >= 0.995 {
        "1.0".to_owned()
    } else if p < 0.1 {
        format!("{p:.4}").trim_start_matches('0').to_owned()
    } else {
        format!("{p:.2}").trim_start_matches('0').to_owned()
    }
}
