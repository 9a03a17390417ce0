//! Cells of tables: a figure, a lock class, what the machine was like.

use super::super::Report;
use super::super::headline::Row;
use super::super::locks::{LockRow, Per};
use super::super::stats::{Comparison, Presence, Scale};
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
            .map(|loss| loss.lost)
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

/// The change and its interval.
pub(super) fn change(comparison: &Comparison, value: &dyn Fn(f64) -> String) -> (String, String) {
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

/// Deviations of means before and after; `-` where none is printed.
pub(super) fn deviations(both: [Option<f64>; 2]) -> String {
    let [before, after] =
        both.map(|pct| pct.map_or_else(|| "-".to_owned(), |p| format!("{p:.0}%")));
    format!("{before} / {after}")
}

/// A number of things, in the singular if it is one.
pub(super) fn counted(n: usize, thing: &str) -> String {
    let plural = match thing.strip_suffix('s') {
        Some(_) => format!("{thing}es"),
        None => format!("{thing}s"),
    };
    if n == 1 {
        format!("1 {thing}")
    } else {
        format!("{n} {plural}")
    }
}

/// A percentage with its sign, one decimal where that is worth it.
fn signed(percent: f64) -> String {
    if percent.abs() < 99.95 {
        format!("{percent:+.1}")
    } else if percent.abs() < 1e5 {
        format!("{percent:+.0}")
    } else {
        format!("{percent:+.1e}")
    }
}

/// A lock class: its wait and its number of waits; or, where that is too rare to divide, its counts in a line of their own.
pub(super) fn lock(row: &LockRow, per: Per) -> Vec<Vec<String>> {
    let mut rows = brief(row, per, "waits");
    if row.presence != Presence::Both {
        return rows;
    }
    let mut add =
        |name: &str, before: String, after: String, (moved, interval): (String, String)| {
            let mut cells = vec![format!("  {name}"), before, after, moved, interval];
            cells.resize(7, String::new());
            rows.push(cells);
        };
    if let [Some(before), Some(after)] = row.p99_ns {
        let none = (String::new(), String::new());
        add("p99 wait", format_ns(before), format_ns(after), none);
    }
    if let Some(share) = &row.of_fault {
        add(
            "of fault time",
            format_ratio(share.before),
            format_ratio(share.after),
            change(share, &format_ratio),
        );
    }
    rows
}

/// The time of a class, and the number of what is `counted`.
pub(super) fn brief(row: &LockRow, per: Per, counted: &str) -> Vec<Vec<String>> {
    match row.presence {
        Presence::Nowhere => Vec::new(),
        Presence::Appeared { upper } => rare(row, "appeared", upper, counted),
        Presence::Vanished { upper } => rare(row, "vanished", upper, counted),
        Presence::Rare => rare(row, "too few", 0.0, counted),
        Presence::Both => {
            let Some(comparison) = &row.comparison else {
                return Vec::new();
            };
            let (moved, interval) = change(comparison, &format_ns);
            let mut rows = vec![vec![
                row.class.name(),
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
                    format!("  {counted}{}", per.waits_per()),
                    format_si(rates.before),
                    format_si(rates.after),
                    moved,
                    interval,
                    String::new(),
                    String::new(),
                ]);
            }
            rows
        }
    }
}

/// A class without a change: its name with a word, and its counts with what chance makes of them.
fn rare(row: &LockRow, word: &str, upper: f64, counted: &str) -> Vec<Vec<String>> {
    let count = |side: usize| {
        let i = &row.counts[side];
        if row.waits[side].0 == 0 {
            format!("0 [0,{}]", format_si(upper))
        } else {
            format!(
                "{} [{},{}]",
                format_si(i.rate),
                format_si(i.low),
                format_si(i.high)
            )
        }
    };
    let mut name = vec![row.class.name()];
    name.resize(6, String::new());
    name.push(word.to_owned());
    let mut counts = vec![format!("  {counted} a run: {} -> {}", count(0), count(1))];
    counts.resize(7, String::new());
    vec![name, counts]
}

/// Whether the change goes the other way than the medians that stand beside it.
pub(super) fn is_against_medians(comparison: &Comparison) -> bool {
    let shift = &comparison.shift;
    let medians = comparison.after - comparison.before;
    let is_shown = shift.percent().is_none_or(|p| p.abs() >= 0.05);
    is_shown && shift.estimate * medians < 0.0
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
