//! The plots of the page.

use super::{Of, Report};
use crate::model::scale::{AllSeries, Series};
use crate::render::{
    flame::{Stacks, flame},
    number::{format_ns, format_ratio, format_si},
    scale,
    svg::{Heat, LEVELS, area, escape},
};
use crate::sample::{
    counters::LOCK_CLASS_NAMES,
    histogram::{BUCKETS, lower_bound},
    series::Bin,
};
use std::fmt::Write as _;

/// Rows of CPUs at most; more share a row.
const CPU_ROWS: usize = 64;
/// Labels beside a heat map at most.
const LABELS: usize = 8;
/// Stacks listed below a flame graph.
const LISTED: usize = 8;

/// The plots that stand first in a section.
pub(super) fn of_section(report: &Report, id: &str) -> Vec<String> {
    match id {
        "budget" => vec![flame_of(report, Of::Fault)],
        "scalability" => of_curves(&report.scaling),
        "faults" => vec![rate(report), latency(report)],
        "locks" => vec![
            waits(report),
            flame_of(report, Of::Wait),
            flame_of(report, Of::Hold),
        ],
        _ => Vec::new(),
    }
}

/// Throughput and efficiency of each curve.
pub(super) fn of_curves(all: &AllSeries) -> Vec<String> {
    all.series.iter().enumerate().map(curve).collect()
}

fn curve((at, series): (usize, &Series)) -> String {
    let Some(best) = series.scaling.curve.best() else {
        return String::new();
    };
    let throughput = format!("{}/s", format_si(best.per_sec * scale::TOP));
    let efficiency = format_ratio(scale::efficiency_top(series));
    let body = [
        (throughput, scale::throughput_svg(series)),
        (efficiency, scale::efficiency_svg(series)),
    ]
    .map(|(top, svg)| {
        format!(
            "<div class=\"plot\"><div class=\"y\"><span style=\"top:0%\">{}</span><span style=\"top:100%\">0</span></div>\
             <div class=\"box\">{svg}</div>{}</div>\n",
            escape(&top),
            numbers(series)
        )
    })
    .concat();
    let key = "<div class=\"key\"><span><i class=\"line\"></i>measured</span><span><i class=\"law\"></i>law</span>\
               <span><i class=\"ideal\"></i>linear</span></div>\n";
    figure(
        &format!("curve-{at}"),
        &scale::title(series),
        "throughput above, efficiency below; each doubling is as wide as every other; a dot is a run",
        &(body + key),
    )
}

/// The numbers of threads below a plot, the first and the last; the table has those between.
fn numbers(series: &Series) -> String {
    let points = &series.scaling.curve.points;
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return String::new();
    };
    format!(
        "<div class=\"x\"><span>{} {over}</span><span>{} {over}</span></div>",
        first.n,
        last.n,
        over = escape(series.over)
    )
}

/// A figure with its caption; `id` names it for links and tests.
fn figure(id: &str, title: &str, note: &str, body: &str) -> String {
    format!(
        "<figure id=\"plot-{id}\"><figcaption>{}<span>{}</span></figcaption>\n{body}</figure>\n",
        escape(title),
        escape(note)
    )
}

/// A figure without a plot, and why.
fn none(report: &Report, id: &str, title: &str, signal: &str) -> String {
    let reason = report.model.missing.iter().find(|m| &*m.signal == signal);
    let why = reason.map_or_else(
        || "nothing was counted in the range".to_owned(),
        |m| format!("not measured: {}", m.reason),
    );
    figure(id, title, &why, "")
}

fn per_sec(n: u64, bin: &Bin) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a shade or a height")]
    (bin.covered_ns > 0).then(|| n as f64 * 1e9 / bin.covered_ns as f64)
}

/// The time of a bin in words: how much of the run one column is.
fn column_note(report: &Report) -> String {
    match report.series.intervals_a_bin() {
        1 => "each column is one interval".to_owned(),
        n => format!("each column is {n} intervals"),
    }
}

fn rate(report: &Report) -> String {
    let title = "Fault rate by CPU over time";
    let cpus = report.series.cpus();
    let each = cpus.len().div_ceil(CPU_ROWS).max(1);
    let groups: Vec<&[u32]> = cpus.chunks(each).collect();
    let cells = groups
        .iter()
        .map(|group| {
            let sum = |bin: &Bin| {
                let faults = group.iter().filter_map(|cpu| bin.faults.get(cpu));
                faults.fold(0_u64, |sum, n| sum.saturating_add(*n))
            };
            let bins = report.series.bins().iter();
            bins.map(|bin| per_sec(sum(bin), bin)).collect()
        })
        .collect();
    let heat = Heat::new(cells, 3.0);
    if heat.is_blank() {
        return none(report, "rate", title, "faults");
    }
    let labels: Vec<String> = groups
        .iter()
        .map(|group| match group {
            [cpu] => format!("CPU {cpu}"),
            [first, .., last] => format!("CPU {first}-{last}"),
            [] => String::new(),
        })
        .collect();
    let note = format!(
        "faults per second, the steps are logarithmic; {}",
        column_note(report)
    );
    heat_map(report, "rate", title, &note, &heat, &labels, &|x| {
        format!("{}/s", format_si(x))
    })
}

fn latency(report: &Report) -> String {
    let title = "Fault latency over time";
    // Buckets of one power of two share a row, the longest at the top.
    let mut rows: Vec<(u64, Vec<usize>)> = Vec::new();
    for bucket in 0..BUCKETS {
        let low = lower_bound(u32::try_from(bucket).unwrap_or(u32::MAX));
        let power = low.checked_ilog2().map_or(0, |log| 1_u64 << log);
        match rows.last_mut() {
            Some((of, buckets)) if *of == power => buckets.push(bucket),
            _ => rows.push((power, vec![bucket])),
        }
    }
    let count = |bin: &Bin, buckets: &[usize]| {
        let n = buckets.iter().map(|b| bin.latency.0[*b]);
        n.fold(0_u64, u64::saturating_add)
    };
    let is_used = |(_, buckets): &(u64, Vec<usize>)| {
        report
            .series
            .bins()
            .iter()
            .any(|bin| count(bin, buckets) > 0)
    };
    let (Some(first), Some(last)) = (
        rows.iter().position(is_used),
        rows.iter().rposition(is_used),
    ) else {
        return none(report, "latency", title, "fault_latency");
    };
    let shown: Vec<&(u64, Vec<usize>)> = rows[first..=last].iter().rev().collect();
    let cells = shown
        .iter()
        .map(|(_, buckets)| {
            let bins = report.series.bins().iter();
            bins.map(|bin| per_sec(count(bin, buckets), bin)).collect()
        })
        .collect();
    let heat = Heat::new(cells, 5.0);
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let labels: Vec<String> = shown
        .iter()
        .map(|(low, _)| format_ns(*low as f64))
        .collect();
    let note = format!(
        "faults per second by time inside handle_mm_fault, each row from its label to the next; {}",
        column_note(report)
    );
    heat_map(report, "latency", title, &note, &heat, &labels, &|x| {
        format!("{}/s", format_si(x))
    })
}

fn heat_map(
    report: &Report,
    id: &str,
    title: &str,
    note: &str,
    heat: &Heat,
    labels: &[String],
    format: &dyn Fn(f64) -> String,
) -> String {
    let rows = labels.len();
    let height = (rows * 22).clamp(44, 420);
    let step = rows.div_ceil(LABELS).max(1);
    let mut y = String::new();
    for (i, label) in labels.iter().enumerate().step_by(step) {
        #[expect(clippy::cast_precision_loss, reason = "a place on a screen")]
        let top = (i as f64 + 0.5) / rows as f64 * 100.0;
        write!(y, "<span style=\"top:{top:.1}%\">{}</span>", escape(label)).ok();
    }
    let mut key = String::from("<span><i class=\"h0\"></i>0</span>");
    for (i, bound) in heat.bounds.iter().enumerate().take(LEVELS) {
        let level = i + 1;
        write!(
            key,
            "<span><i class=\"h{level}\"></i>to {}</span>",
            escape(&format(*bound))
        )
        .ok();
    }
    let body = format!(
        "<div class=\"plot\"><div class=\"y\">{y}</div><div style=\"height:{height}px\">{}</div>{}</div>\
         <div class=\"key\">{key}</div>\n",
        heat.svg(title),
        x_axis(report)
    );
    figure(id, title, note, &body)
}

/// Beginning, middle and end of the bins after the start of the run.
fn x_axis(report: &Report) -> String {
    let bins = report.series.bins();
    let (Some(first), Some(last)) = (bins.first(), bins.last()) else {
        return String::new();
    };
    let after = |t: u64| clock(t.saturating_sub(report.run.start_mono_ns));
    format!(
        "<div class=\"x\"><span>{}</span><span>{}</span><span>{}</span></div>",
        after(first.start_ns),
        after(first.start_ns.midpoint(last.end_ns)),
        after(last.end_ns)
    )
}

/// Minutes and seconds, tenths in the first minute.
fn clock(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    if seconds < 60 {
        format!("{seconds}.{} s", ns / 100_000_000 % 10)
    } else {
        format!("{}:{:02} min", seconds / 60, seconds % 60)
    }
}

fn waits(report: &Report) -> String {
    let title = "Lock wait over time by class";
    let bins = report.series.bins();
    let mut body = String::new();
    for (class, name) in LOCK_CLASS_NAMES.iter().enumerate() {
        let total = bins
            .iter()
            .fold(0_u64, |sum, bin| sum.saturating_add(bin.wait_ns[class]));
        if total == 0 {
            continue;
        }
        let values: Vec<Option<f64>> = bins
            .iter()
            .map(|bin| per_sec(bin.wait_ns[class], bin))
            .collect();
        let peak = values.iter().flatten().copied().fold(0.0, f64::max);
        #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
        let total = format_ns(total as f64);
        writeln!(
            body,
            "<div class=\"row\"><span>{name}</span>{}<span class=\"n\">peak {}/s, sum {total}</span></div>",
            area(&values, &format!("{name} wait over time")),
            format_ns(peak)
        )
        .ok();
    }
    if body.is_empty() {
        return none(report, "waits", title, "contention");
    }
    let axis = format!(
        "<div class=\"row\"><span></span><div class=\"plot\" style=\"display:block\">{}</div></div>",
        x_axis(report)
    );
    let note = format!(
        "time that all tasks waited, per second; each class on its own scale; {}",
        column_note(report)
    );
    figure("waits", title, &note, &(body + &axis))
}

fn flame_of(report: &Report, of: Of) -> String {
    let id = format!("flame-{}", of.id());
    let title = format!("Flame graph: {}", of.title());
    let stacks = of.stacks(&report.merged);
    if stacks.is_empty() {
        return none(report, &id, &title, of.signal());
    }
    let note = "as wide as its time; what it was called from is below it";
    let format = |ns: u64| {
        #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
        format_ns(ns as f64)
    };
    let body = flame(&stacks, "all", &title, format) + &listed(&stacks, format);
    figure(&id, &title, note, &body)
}

/// The greatest stacks in words, for narrow screens and for those who cannot see the graph.
fn listed(stacks: &Stacks, format: fn(u64) -> String) -> String {
    let total = stacks.total();
    let mut list = String::from("<details><summary>The greatest in words</summary><ol>");
    for (frames, weight) in stacks.greatest().into_iter().take(LISTED) {
        #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
        let share = weight as f64 / total.max(1) as f64 * 100.0;
        write!(
            list,
            "<li>{} ({share:.1} %): {}</li>",
            escape(&format(weight)),
            escape(&frames.join(" > "))
        )
        .ok();
    }
    list + "</ol></details>\n"
}
