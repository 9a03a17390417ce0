//! Plots of the page: the runs of a figure, ratios and throughput by the number of threads or the like.
//!
//! Labels are HTML beside the marks, so that they stay readable on a narrow page. Nothing needs a script.

use std::collections::BTreeMap;

use super::super::Report;
use super::super::cell;
use super::super::headline::{Role, Row};
use super::super::observed::real;
use super::super::stats::{Scale, median};
use super::super::sweep::{AtCount, Sweep, count};
use crate::model::scale::singular;
use crate::render::svg::{Line, escape, lines};

/// Figures whose runs are plotted.
const STRIPS: usize = 8;

/// Curves that are plotted.
const CURVES: usize = 12;

/// Numbers that have labels of their own below a plot.
const LABELS: usize = 8;

/// Share of the plot beside the marks, as [`lines`] leaves it free.
const MARGIN: f64 = 0.012;

/// The runs of each tested figure, with median and interval; those of a sweep have curves instead.
pub(super) fn strips(report: &Report) -> Vec<String> {
    let rows = report
        .rows
        .iter()
        .filter(|r| r.role != Role::Context)
        .filter(|r| report.sweep.is_none() || r.role != Role::Primary);
    rows.take(STRIPS).map(strip).collect()
}

fn strip(row: &Row) -> String {
    let sides = [&row.before, &row.after];
    let mut all: Vec<f64> = sides
        .iter()
        .flat_map(|side| side.iter().map(|(v, _)| *v))
        .collect();
    let moved = moved(row);
    all.extend(moved.iter().flat_map(|(low, high)| [*low, *high]));
    let (low, high) = all
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(*v), high.max(*v))
        });
    // Runs that are all alike still have a place.
    let pad = if high > low {
        0.04 * (high - low)
    } else {
        0.05 * high.abs().max(1.0)
    };
    let ends = [low - pad, high + pad];
    let mut marks = vec![Line::dots("pad", vec![(ends[0], 0.0), (ends[1], 0.0)])];
    if let Some((from, to)) = moved {
        marks.push(Line::new("interval", vec![(from, 0.3), (to, 0.3)]));
    }
    for (side, level, dots, line) in [
        (&row.before, 3.2, "before dots", "before median"),
        (&row.after, 1.5, "after dots", "after median"),
    ] {
        // From the top in the order of their starts.
        let last = real(side.len().saturating_sub(1).max(1) as u64);
        let at = |(i, (v, _)): (usize, &(f64, u64))| {
            let down = if side.len() > 1 {
                real(i as u64) / last
            } else {
                0.5
            };
            (*v, level + 0.5 - down)
        };
        marks.push(Line::dots(dots, side.iter().enumerate().map(at).collect()));
        let values: Vec<f64> = side.iter().map(|(v, _)| *v).collect();
        if let Some(m) = median(&values) {
            marks.push(Line::new(line, vec![(m, level - 0.7), (m, level + 0.7)]));
        }
    }
    let change = super::cells::change(&row.comparison, &|v| row.shown.value(v));
    let verdict = row.verdict.map_or("", |v| v.word());
    let title = if row.cell.is_empty() {
        row.title.clone()
    } else {
        format!("{}, {}", row.title, row.cell)
    };
    let interval = if moved.is_some() {
        "; the bar below is the median before, moved by the 95 % interval of the change"
    } else {
        "; too few runs for an interval"
    };
    let note = format!(
        "{}, 95 % {}, {verdict}; a dot is a run, in the order of starts from the top, a stroke the median{interval}",
        change.0, change.1
    );
    let y =
        "<i>before</i><span style=\"top:24%\">before</span><span style=\"top:62%\">after</span>"
            .to_owned();
    let x = ends
        .map(|v| format!("<span>{}</span>", escape(&row.shown.value(v))))
        .concat();
    let svg = lines(&marks, 4.0, &format!("runs of {title}"));
    figure(
        &format!("runs-{}", row.id),
        &title,
        &note,
        "strip",
        &y,
        &x,
        &svg,
    )
}

/// The ends of the change's interval, from the median before.
fn moved(row: &Row) -> Option<(f64, f64)> {
    let (low, high) = row.comparison.shift.interval?;
    let from = row.comparison.before;
    let ends = match row.comparison.shift.scale {
        Scale::Ratio => (from * low.exp(), from * high.exp()),
        Scale::Difference => (from + low, from + high),
    };
    (ends.0.is_finite() && ends.1.is_finite()).then_some(ends)
}

/// Ratios by the number of threads or the like, and the throughput of both sides.
pub(super) fn sweeps(report: &Report) -> Vec<String> {
    let Some(sweep) = &report.sweep else {
        return Vec::new();
    };
    let mut all: Vec<String> = ratios(sweep).into_iter().collect();
    let mut curves: BTreeMap<String, Vec<(u32, &Row)>> = BTreeMap::new();
    for row in report.rows.iter().filter(|r| r.role == Role::Primary) {
        if let Some((n, name)) = count(&row.cell, sweep.over) {
            curves.entry(name).or_default().push((n, row));
        }
    }
    let mut curves: Vec<(String, Vec<(u32, &Row)>)> = curves.into_iter().collect();
    curves.sort_by(|a, b| cell::order(&a.0, &b.0));
    for (at, (name, points)) in curves.iter().enumerate() {
        if points.len() > 1 && at < CURVES {
            all.push(curve(at, sweep, name, points));
        }
    }
    all
}

fn ratios(sweep: &Sweep) -> Option<String> {
    let by_count = &sweep.by_count;
    let first = by_count.first()?;
    let last = by_count.last().filter(|last| last.count > first.count)?;
    let ends = |at: &AtCount| at.interval.unwrap_or((at.ratio, at.ratio));
    let low = by_count.iter().map(|at| ends(at).0).fold(1.0, f64::min);
    let high = by_count.iter().map(|at| ends(at).1).fold(1.0, f64::max);
    let pad = (0.08 * (high - low)).max(0.005);
    let (low, high) = (low - pad, high + pad);
    let y = |ratio: f64| (ratio - low) / (high - low);
    let x = |n: u32| f64::from(n).log2();
    let points: Vec<(f64, f64)> = by_count
        .iter()
        .map(|at| (x(at.count), y(at.ratio)))
        .collect();
    let mut marks = vec![Line::new(
        "one",
        vec![(x(first.count), y(1.0)), (x(last.count), y(1.0))],
    )];
    for at in by_count {
        if let Some((from, to)) = at.interval {
            let x = x(at.count);
            marks.push(Line::new("interval", vec![(x, y(from)), (x, y(to))]));
        }
    }
    marks.push(Line::new("after", points.clone()));
    marks.push(Line::dots("after dots", points));
    let label = |ratio: f64| {
        format!(
            "<span style=\"top:{:.1}%\">{ratio:.2}</span>",
            100.0 * (1.0 - y(ratio))
        )
    };
    // A label at the side that is next to 1 would lie over it.
    let is_apart = |ratio: f64| (y(ratio) - y(1.0)).abs() > 0.12;
    let mut labels = format!("<i>0.00</i>{}", label(1.0));
    for ratio in [low, high] {
        if is_apart(ratio) {
            labels.push_str(&label(ratio));
        }
    }
    let has_intervals = by_count.iter().any(|at| at.interval.is_some());
    let note = if has_intervals {
        "above 1 is better; a bar is the 95 % interval, of exact ranks or from resampled runs"
    } else {
        "above 1 is better; too few runs for intervals"
    };
    let counts: Vec<u32> = by_count.iter().map(|at| at.count).collect();
    let about = format!("after over before by number of {}", sweep.over);
    let svg = lines(&marks, 1.0, &about);
    Some(figure(
        "ratio",
        &format!("ratio by {}, after / before", sweep.over),
        note,
        "tall",
        &labels,
        &x_labels(&counts, sweep.over),
        &svg,
    ))
}

fn curve(at: usize, sweep: &Sweep, name: &str, points: &[(u32, &Row)]) -> String {
    let x = |n: u32| f64::from(n).log2();
    let side = |row: &Row, is_after: bool| -> Vec<f64> {
        let side = if is_after { &row.after } else { &row.before };
        side.iter().map(|(v, _)| *v).collect()
    };
    let mut marks = Vec::new();
    let mut top = 0.0_f64;
    for (is_after, line, dots) in [
        (false, "before", "before dots"),
        (true, "after", "after dots"),
    ] {
        let mut middle = Vec::new();
        let mut runs = Vec::new();
        for (n, row) in points {
            let values = side(row, is_after);
            top = values.iter().copied().fold(top, f64::max);
            middle.extend(median(&values).map(|m| (x(*n), m)));
            runs.extend(values.into_iter().map(|v| (x(*n), v)));
        }
        marks.push(Line::new(line, middle));
        marks.push(Line::dots(dots, runs));
    }
    let top = 1.05 * top;
    let shown = points
        .first()
        .map_or_else(String::new, |(_, row)| row.shown.value(top));
    let y = format!(
        "<i>{0}</i><span style=\"top:4%\">{0}</span><span style=\"top:96%\">0</span>",
        escape(&shown)
    );
    let counts: Vec<u32> = points.iter().map(|(n, _)| *n).collect();
    let title = if name.is_empty() {
        sweep.metric.clone()
    } else {
        format!("{}, {name}", sweep.metric)
    };
    let svg = lines(&marks, top, &format!("{title} by number of {}", sweep.over));
    figure(
        &format!("curve-{at}"),
        &title,
        &format!(
            "a line joins the medians, a dot is a run; each doubling of {} is as wide as every other",
            sweep.over
        ),
        "tall",
        &y,
        &x_labels(&counts, sweep.over),
        &svg,
    )
}

/// Numbers where they lie, the first with the word `over`; of many the first, the last and some between.
fn x_labels(counts: &[u32], over: &str) -> String {
    let (Some(first), Some(last)) = (counts.first(), counts.last()) else {
        return String::new();
    };
    let x = |n: u32| f64::from(n).log2();
    let step = counts.len().div_ceil(LABELS).max(1);
    let unit = if *first == 1 { singular(over) } else { over };
    let mut text = format!("<span>{first} {unit}</span>");
    for n in counts.iter().skip(step).step_by(step) {
        let share = (x(*n) - x(*first)) / (x(*last) - x(*first));
        // Between the words at the ends.
        if (0.28..0.85).contains(&share) {
            let left = 100.0 * (MARGIN + share * (1.0 - 2.0 * MARGIN));
            text.push_str(&format!("<span style=\"left:{left:.1}%\">{n}</span>"));
        }
    }
    text.push_str(&format!("<span>{last}</span>"));
    text
}

fn figure(id: &str, title: &str, note: &str, class: &str, y: &str, x: &str, svg: &str) -> String {
    let marks = [
        ("class=\"before", "b", "before"),
        ("class=\"after", "a", "after"),
        ("class=\"interval", "c", "95 % interval"),
    ];
    let key: String = marks
        .iter()
        .filter(|(class, ..)| svg.contains(class))
        .map(|(_, colour, word)| format!("<span><i class=\"{colour}\"></i>{word}</span>"))
        .collect();
    format!(
        "<figure id=\"plot-{}\"><figcaption>{}<span>{}</span></figcaption>\n<div class=\"plot {class}\"><div class=\"y\">{y}</div>\
         <div class=\"box\">{svg}</div><div class=\"x\">{x}</div></div>\n<div class=\"key\">{key}</div></figure>\n",
        escape(id),
        escape(title),
        escape(note)
    )
}
