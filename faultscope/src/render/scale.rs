//! A curve of throughput by the number of threads: its table, its sentences and its plots.

use super::cell::{ABSENT, align, is_right_aligned, scrub, width};
use super::columns::GAP;
use super::number::{format_ns, format_ratio, format_si};
use super::svg::{Line, lines};
use crate::model::scale::{Curve, Fit, Interval, Point, Scaling, Series};
use crate::model::{Field, Kind, Unit};

/// Points between two numbers of threads at which a law is drawn.
const FINE: u32 = 16;

macro_rules! columns {
    ($($name:ident = $id:literal $title:literal $unit:ident $kind:ident $prio:literal $doc:literal;)*) => {
        $(static $name: Field = Field {
            id: $id, title: $title, unit: Unit::$unit, kind: Kind::$kind,
            priority: $prio, signal: "", description: $doc,
        };)*
    };
}

columns! {
    THREADS = "threads" "THREADS" Number Key 0 "Threads that worked at the same time.";
    PROCESSES = "processes" "PROCESSES" Number Key 0 "Processes that worked at the same time.";
    TASKS = "tasks" "TASKS" Number Key 0 "Tasks that worked at the same time.";
    CLIENTS = "clients" "CLIENTS" Number Key 0 "Clients that worked at the same time.";
    INSTANCES = "instances" "INSTANCES" Number Key 0 "Instances that worked at the same time.";
    RUNS = "runs" "RUNS" Number Gauge 5 "Runs that the point is the geometric mean of.";
    PER_SEC = "per_sec" "PER SEC" PerSec Gauge 0 "Throughput, operations per second, all together.";
    SPREAD = "spread" "SPREAD" Ratio Gauge 6 "Greatest of the runs less the least, as a share of their mean.";
    SPEEDUP = "speedup" "SPEED-UP" Number Gauge 2 "Throughput over that of the fewest.";
    EFFICIENCY = "efficiency" "EFFICIENCY" Ratio Gauge 0 "Speed-up over the number: X(n) / (n X(1)).";
    GAIN = "marginal" "GAIN" Ratio Gauge 1 "What each one beyond the line before brought, as a share of what one does alone.";
    COST = "cpu_ns_per_op" "CPU/OP" Ns Gauge 3 "CPU time for one operation.";
    LAW = "law_off" "LAW OFF" Ratio Gauge 4 "How far the fitted law is above the throughput, as a share of it.";
    NOTE = "note" "NOTE" None Gauge 4 "What is odd about the line.";
}

/// A curve as a table and sentences.
#[derive(Debug, Clone, Default)]
pub struct Sheet {
    /// What it is a curve of.
    pub title: String,
    /// Columns that say something.
    pub fields: Vec<&'static Field>,
    /// A text for each column.
    pub rows: Vec<Vec<String>>,
    /// Peak, fits and refusals, a sentence each.
    pub notes: Vec<String>,
}

/// Name of a curve with what sets it apart.
#[must_use]
pub fn title(series: &Series) -> String {
    let keys = series.keys.iter();
    let keys: Vec<String> = keys.map(|(key, value)| format!("{key} {value}")).collect();
    let name = format!("{} by {}", series.name, series.over);
    let title = if keys.is_empty() {
        name
    } else {
        format!("{name}: {}", keys.join(", "))
    };
    scrub(&title).into_owned()
}

/// Table and sentences of a curve.
#[must_use]
pub fn sheet(series: &Series) -> Sheet {
    let scaling = &series.scaling;
    let points = &scaling.curve.points;
    let all: Vec<(&'static Field, Vec<String>)> = columns(series.over)
        .into_iter()
        .map(|field| {
            let cells = points.iter().map(|point| cell(field, point, scaling));
            (field, cells.collect())
        })
        .collect();
    let says = |(field, cells): &(&Field, Vec<String>)| match field.id {
        // One run each is the usual case.
        "runs" => points.iter().any(|p| p.runs.len() > 1),
        _ => cells.iter().any(|cell| cell != ABSENT && !cell.is_empty()),
    };
    let shown: Vec<_> = all.into_iter().filter(says).collect();
    Sheet {
        title: title(series),
        fields: shown.iter().map(|(field, _)| *field).collect(),
        rows: (0..points.len())
            .map(|row| shown.iter().map(|(_, cells)| cells[row].clone()).collect())
            .collect(),
        notes: notes(series),
    }
}

impl Sheet {
    /// Title, aligned table and sentences as lines, these not wrapped.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let heads: Vec<String> = self.fields.iter().map(|f| f.title.to_owned()).collect();
        let table: Vec<&Vec<String>> = std::iter::once(&heads).chain(&self.rows).collect();
        let widths: Vec<usize> = (0..heads.len())
            .map(|at| table.iter().map(|row| width(&row[at])).max().unwrap_or(0))
            .collect();
        let mut all = vec![self.title.clone()];
        all.extend(table.iter().map(|row| {
            let cells: Vec<String> = self
                .fields
                .iter()
                .zip(*row)
                .zip(&widths)
                .map(|((field, cell), width)| align(cell, *width, is_right_aligned(field), '~'))
                .collect();
            cells.join(&" ".repeat(GAP)).trim_end().to_owned()
        }));
        all.extend(self.notes.iter().cloned());
        all
    }
}

fn columns(over: &str) -> Vec<&'static Field> {
    let first = match over {
        "processes" => &PROCESSES,
        "tasks" => &TASKS,
        "clients" => &CLIENTS,
        "instances" => &INSTANCES,
        _ => &THREADS,
    };
    vec![
        first,
        &RUNS,
        &PER_SEC,
        &SPREAD,
        &SPEEDUP,
        &EFFICIENCY,
        &GAIN,
        &COST,
        &LAW,
        &NOTE,
    ]
}

fn cell(field: &Field, point: &Point, scaling: &Scaling) -> String {
    let ratio = |x: Option<f64>| x.map_or_else(|| ABSENT.to_owned(), format_ratio);
    match field.id {
        "runs" => point.runs.len().to_string(),
        "per_sec" => format_si(point.per_sec),
        "spread" => ratio(spread(point)),
        "speedup" => format!("{:.2}", point.speedup),
        "efficiency" => format_ratio(point.efficiency),
        "marginal" => ratio(point.marginal),
        "cpu_ns_per_op" => point
            .cpu_ns_per_op
            .map_or_else(|| ABSENT.to_owned(), format_ns),
        "law_off" => fit_of(scaling, point.n).map_or_else(
            || ABSENT.to_owned(),
            |fit| {
                let off = fit.law.per_sec(f64::from(point.n)) / point.per_sec - 1.0;
                // Adding zero turns a negative zero into a plain one.
                format!("{:+.1}%", (off * 1000.0).round() / 10.0 + 0.0)
            },
        ),
        "note" if point.is_above_linear() => "above linear".to_owned(),
        "note" => String::new(),
        _ => point.n.to_string(),
    }
}

fn spread(point: &Point) -> Option<f64> {
    let least = point.runs.iter().copied().reduce(f64::min)?;
    let greatest = point.runs.iter().copied().reduce(f64::max)?;
    (point.runs.len() > 1).then_some((greatest - least) / point.per_sec)
}

fn fit_of(scaling: &Scaling, n: u32) -> Option<&Fit> {
    scaling
        .fits
        .iter()
        .find(|fit| (fit.from..=fit.to).contains(&n))
}

fn notes(series: &Series) -> Vec<String> {
    let (scaling, over) = (&series.scaling, series.over);
    let mut notes = Vec::new();
    notes.extend(scaling.curve.best().map(|best| {
        format!(
            "greatest throughput: {}/s at {} {over}",
            format_si(best.per_sec),
            best.n
        )
    }));
    if let Some(base) = scaling.curve.base().filter(|n| *n != 1) {
        notes.push(format!(
            "efficiency is against {base} {over}, the fewest measured: that of 1 is not known"
        ));
    }
    notes.extend(above_linear(&scaling.curve, over));
    if scaling.is_efficiency_only() {
        notes.push(format!("no scalability law: {}", reasons(scaling, over)));
        return notes;
    }
    if !scaling.refused.is_empty() {
        notes.push(format!(
            "no sound law for all points: {}",
            reasons(scaling, over)
        ));
    }
    for fit in &scaling.fits {
        notes.push(law(fit, series));
        notes.push(interval(fit.interval.as_ref(), over));
    }
    for segment in &scaling.unfitted {
        notes.push(format!(
            "{} to {} {over}: {} points, no law",
            segment.from, segment.to, segment.points
        ));
    }
    notes
}

fn reasons(scaling: &Scaling, over: &str) -> String {
    let reasons = scaling.refused.iter().map(|doubt| doubt.reason(over));
    reasons.collect::<Vec<_>>().join("; ")
}

fn above_linear(curve: &Curve, over: &str) -> Option<String> {
    let above = curve.points.iter().filter(|point| point.is_above_linear());
    let at: Vec<String> = above.map(|point| point.n.to_string()).collect();
    (!at.is_empty()).then(|| {
        format!(
            "above linear at {} {over}: the base is bad, or there is more cache or memory of another node to use",
            at.join(", ")
        )
    })
}

fn law(fit: &Fit, series: &Series) -> String {
    let (over, law) = (series.over, &fit.law);
    let peak = law.peak().map_or_else(
        || "no peak".to_owned(),
        |n| format!("peak at {n:.1} {over}"),
    );
    let mut text = format!(
        "law for {} to {} {over}, {} points: s {}, k {}, {peak}; at worst {} off",
        fit.from,
        fit.to,
        fit.points,
        small(law.s),
        small(law.k),
        format_ratio(fit.worst)
    );
    // The doubts of a fit to everything stand above.
    let own = fit
        .doubts
        .iter()
        .filter(|d| !series.scaling.refused.contains(d));
    let own: Vec<String> = own.map(|doubt| doubt.reason(over)).collect();
    if !fit.doubts.is_empty() {
        text.push_str("; weak");
    }
    if !own.is_empty() {
        text.push_str(": ");
        text.push_str(&own.join("; "));
    }
    text
}

/// Three digits of a number that may be a millionth.
fn small(x: f64) -> String {
    if x < 1e-9 {
        "0".to_owned()
    } else if x < 0.001 {
        format!("{x:.2e}")
    } else if x < 0.01 {
        format!("{x:.5}")
    } else if x < 0.1 {
        format!("{x:.4}")
    } else {
        format!("{x:.3}")
    }
}

fn interval(interval: Option<&Interval>, over: &str) -> String {
    let Some(interval) = interval else {
        return format!("no interval: not every number of {over} has two runs");
    };
    let span = |[low, high]: [f64; 2]| format!("{} to {}", small(low), small(high));
    let peak = match interval.peak {
        [Some(low), Some(high)] => format!("peak {low:.1} to {high:.1}"),
        [Some(low), None] => format!("peak {low:.1} or more"),
        [None, _] => "no peak".to_owned(),
    };
    let care = if interval.runs < 20 {
        ", approximate with so few runs"
    } else {
        ""
    };
    format!(
        "95 % interval from {} runs or more at each point{care}: s {}, k {}, {peak}",
        interval.runs,
        span(interval.s),
        span(interval.k)
    )
}

/// Throughput as an SVG plot: what was measured, the laws, and what linear scaling would be. Threads stand at even
/// distances for each doubling.
#[must_use]
pub fn throughput_svg(series: &Series) -> String {
    let points = &series.scaling.curve.points;
    let (Some(first), Some(best)) = (points.first(), series.scaling.curve.best()) else {
        return String::new();
    };
    let top = best.per_sec * TOP;
    let share = first.per_sec / f64::from(first.n);
    // Where the line leaves the plot.
    let end = (top / share).min(points.last().map_or(1.0, |last| f64::from(last.n)));
    let ideal = fine(f64::from(first.n), end)
        .map(|n| (n.log2(), share * n))
        .collect();
    let mut all = vec![Line::new("ideal", ideal)];
    for fit in &series.scaling.fits {
        let law = fine(f64::from(fit.from), f64::from(fit.to))
            .map(|n| (n.log2(), fit.law.per_sec(n)))
            .collect();
        all.push(Line::new("law", law));
    }
    let measured = |p: &Point| (f64::from(p.n).log2(), p.per_sec);
    all.push(Line::new("line", points.iter().map(measured).collect()));
    let runs = points.iter().flat_map(|p| {
        let x = f64::from(p.n).log2();
        p.runs.iter().map(move |per_sec| (x, *per_sec))
    });
    all.push(Line::dots("dots", runs.collect()));
    lines(&all, top, &format!("throughput, {}", title(series)))
}

/// Efficiency as an SVG plot, with a line at 100 %.
#[must_use]
pub fn efficiency_svg(series: &Series) -> String {
    let points = &series.scaling.curve.points;
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return String::new();
    };
    let x = |n: u32| f64::from(n).log2();
    let measured: Vec<(f64, f64)> = points.iter().map(|p| (x(p.n), p.efficiency)).collect();
    let all = [
        Line::new("ideal", vec![(x(first.n), 1.0), (x(last.n), 1.0)]),
        Line::new("line", measured.clone()),
        Line::dots("dots", measured),
    ];
    lines(
        &all,
        efficiency_top(series),
        &format!("efficiency, {}", title(series)),
    )
}

/// Room above the greatest value, as a factor.
pub const TOP: f64 = 1.05;

/// Upper end of the efficiency plot.
#[must_use]
pub fn efficiency_top(series: &Series) -> f64 {
    let points = series.scaling.curve.points.iter();
    points.map(|p| p.efficiency).fold(1.0, f64::max) * TOP
}

/// Numbers from `first` to `last`, evenly spaced for each doubling.
fn fine(first: f64, last: f64) -> impl Iterator<Item = f64> {
    let doublings = (last / first).log2().max(0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 32 doublings"
    )]
    let steps = ((doublings * f64::from(FINE)).ceil() as u32).max(1);
    (0..=steps).map(move |i| first * (doublings * f64::from(i) / f64::from(steps)).exp2())
}

#[cfg(test)]
mod tests;
