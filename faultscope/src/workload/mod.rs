//! Results of workloads: one pure parser per output format.
//!
//! A parser takes text and gives measurements, or a sentence that says why not. Damage by mail is undone before
//! ([`mail`]); what can be read in two ways is refused.

pub mod bench;
mod found;
mod kernbench;
mod lkp;
pub mod mail;
mod metric;
mod mmtests;
mod number;
mod perf_lock;
mod perf_stat;
mod pft;
mod reaim;
mod rule;
mod stress_ng;
mod sysbench;
mod table;
#[cfg(test)]
mod tests;
mod time;
mod will_it_scale;

pub use found::{Format, Found, Measurement, Refusal, RunSet, runs};
pub use metric::{Direction, Metric, REPETITIONS, Work, unit_of};
pub use rule::MetricRule;
pub use sysbench::settle_work;
pub use table::Defaults;

use std::collections::BTreeMap;

use found::Outcome;

/// Takes what a workload says about itself from what it wrote: one run, so one value for each name and keys.
///
/// The second part holds a sentence for each figure that was there, or asked for, and could not be taken. Output in no
/// known format gives neither.
#[must_use]
pub fn results(output: &str, rules: &[MetricRule]) -> (Vec<Metric>, Vec<String>) {
    let output = &mail::scrub(output);
    let (mut metrics, mut reasons) = (Vec::new(), Vec::new());
    for (format, outcome) in [
        (Format::Sysbench, sysbench::parse(output)),
        (Format::Pft, pft::parse(output)),
        (Format::Time, time::parse(output)),
        (Format::Bench, bench::parse(output)),
        (Format::WillItScale, will_it_scale::parse(output)),
        (Format::Kernbench, kernbench::parse(output)),
        (Format::StressNg, stress_ng::parse(output)),
        (Format::Reaim, reaim::parse(output)),
        (Format::PerfLock, perf_lock::parse(output)),
        (Format::PerfStat, perf_stat::parse(output)),
    ] {
        match outcome {
            None => {}
            Some(Err(refusal)) => reasons.push(format!("{format}: {refusal}")),
            Some(Ok(found)) => {
                reasons.extend(
                    found
                        .reasons
                        .into_iter()
                        .map(|reason| format!("{format}: {reason}")),
                );
                let all = found
                    .measurements
                    .into_iter()
                    .flat_map(|m| m.metrics)
                    .collect();
                let (kept, refused) = keep_single(all);
                metrics.extend(kept);
                reasons.extend(refused);
            }
        }
    }
    let (named, refused) = apply(rules, output);
    metrics.extend(named);
    reasons.extend(refused);
    (metrics, reasons)
}

/// Takes the figures that `rules` name from `output`, and a sentence for each that cannot be had.
#[must_use]
pub fn apply(rules: &[MetricRule], output: &str) -> (Vec<Metric>, Vec<String>) {
    let (mut metrics, mut reasons) = (Vec::new(), Vec::new());
    for rule in rules {
        match rule.apply(output) {
            Ok(metric) => metrics.push(metric),
            Err(reason) => reasons.push(reason),
        }
    }
    (metrics, reasons)
}

/// Drops every figure that one run gives more than once, with one sentence for each configuration.
fn keep_single(all: Vec<Metric>) -> (Vec<Metric>, Vec<String>) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for metric in &all {
        *counts.entry(metric.identity()).or_default() += 1;
    }
    let mut reasons = Vec::new();
    let mut kept = Vec::new();
    for metric in all {
        let count = counts[&metric.identity()];
        if count == 1 {
            kept.push(metric);
            continue;
        }
        let keys: Vec<String> = metric
            .configuration()
            .map(|(k, v)| format!("{k} {v}"))
            .collect();
        let at = if keys.is_empty() {
            String::new()
        } else {
            format!(" for {}", keys.join(", "))
        };
        let reason = format!(
            "{}: {count} results{at} in one run, and which of them counts is not said; record each by itself",
            metric.format
        );
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    (kept, reasons)
}

/// Finds out the format of a text and reads it; mail damage is undone first.
///
/// A result of `time` may stand beside one other format, if both measured as often: it timed that workload.
///
/// # Errors
/// The reason, if no format fits, two do, or the one that does is damaged.
pub fn parse(text: &str, defaults: &Defaults) -> Result<Found, Refusal> {
    let text = mail::undo(text);
    let mut outcomes: Vec<(Format, Result<Found, Refusal>)> = Format::ALL
        .into_iter()
        .filter_map(|format| Some((format, outcome(&text, format, defaults, false)?)))
        .collect();
    let timed = outcomes
        .iter()
        .position(|(format, _)| *format == Format::Time)
        .filter(|_| outcomes.len() > 1)
        .map(|at| outcomes.remove(at).1);
    let (first, found) = match outcomes.len() {
        0 => return Err(Refusal::NotRecognised),
        1 => outcomes.remove(0),
        _ => {
            let names: Vec<&str> = outcomes.iter().map(|(format, _)| format.id()).collect();
            return Err(Refusal::Ambiguous(format!(
                "it reads as {}; say which with --format",
                names.join(" and as ")
            )));
        }
    };
    let mut found = found?;
    if let Some(timed) = timed {
        let timed = timed?;
        let (ours, theirs) = (most_repeated(&found), most_repeated(&timed));
        if ours != theirs {
            return Err(Refusal::Ambiguous(format!(
                "it holds {ours} results of {first} and {theirs} of time, and which belong together is not said; choose one \
                 with --format"
            )));
        }
        found.measurements.extend(timed.measurements);
        found.reasons.extend(timed.reasons);
    }
    if_any(found, first)
}

/// Reads a text as `format`; mail damage is undone first.
///
/// # Errors
/// The reason, if it is not in that format or damaged.
pub fn parse_as(text: &str, format: Format, defaults: &Defaults) -> Result<Found, Refusal> {
    let found = outcome(&mail::undo(text), format, defaults, true)
        .unwrap_or(Err(Refusal::NotThis(format)))?;
    if_any(found, format)
}

/// What was found, unless all of it was refused.
fn if_any(found: Found, format: Format) -> Result<Found, Refusal> {
    match (found.measurements.is_empty(), found.reasons.is_empty()) {
        (false, _) => Ok(found),
        (true, true) => Err(Refusal::NotThis(format)),
        (true, false) => Err(Refusal::Invalid(found.reasons.join("; "))),
    }
}

fn outcome(text: &str, format: Format, defaults: &Defaults, is_asked: bool) -> Outcome {
    match format {
        Format::Sysbench => sysbench::parse(text),
        Format::Pft => pft::parse(text),
        Format::Time => time::parse(text),
        Format::Bench => bench::parse(text),
        Format::WillItScale => will_it_scale::parse(text),
        Format::Kernbench => kernbench::parse(text),
        Format::StressNg => stress_ng::parse(text),
        Format::Mmtests => mmtests::parse(text),
        Format::Lkp => lkp::parse(text),
        Format::Reaim => reaim::parse(text),
        Format::PerfLock => perf_lock::parse(text),
        Format::PerfStat => perf_stat::parse(text),
        Format::Table => table::parse(text, defaults, is_asked),
        Format::Rules => None,
    }
}

/// How often the configuration that was measured most often was measured.
fn most_repeated(found: &Found) -> usize {
    runs(found.measurements.clone())
        .iter()
        .map(|run| run.repetition)
        .max()
        .unwrap_or(0)
}
