//! Which figures of which runs make a curve.

use std::collections::BTreeMap;

use super::{Limit, Observation, Scaling};
use crate::sample::run::Run;
use crate::workload::{Direction, Format, Metric};

/// Keys that count what works at the same time: the word in the plural.
pub const OVER: [&str; 5] = ["threads", "processes", "tasks", "clients", "instances"];

/// A word of [`OVER`] for one of them.
#[must_use]
pub fn singular(over: &str) -> &str {
    over.strip_suffix("sses")
        .map(|_| &over[..over.len() - 2])
        .or_else(|| over.strip_suffix('s'))
        .unwrap_or(over)
}

/// Rates, and the rate per second of CPU time that the same workload prints beside it.
const PER_CPU_SECOND: &[(&str, &str)] = &[
    ("fault/wsec", "flt/cpu/s"),
    ("bogo-ops/s", "bogo-ops/cpu-s"),
    ("faults/sec", "faults/cpu"),
];

/// Unit of rates that workloads print per minute; other rates are per second.
const PER_MINUTE: &str = "1/min";

/// Labels that tell one run from another of the same configuration.
const OF_ONE_RUN: [&str; 2] = ["repetition", "exit_status"];

/// Series that are made at most: nobody reads more, and a file may hold anything.
pub const MOST_SERIES: usize = 256;

/// A throughput over the number of threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name of the figure: `fault/wsec`.
    pub name: String,
    /// Its unit: `1/s`.
    pub unit: String,
    /// Workload that it is of.
    pub format: String,
    /// What is counted: a word of [`OVER`].
    pub over: &'static str,
    /// What sets it apart from others: keys of the figure, then labels and the host where runs differ in them.
    pub keys: Vec<(String, String)>,
    /// Runs that it is made of.
    pub runs: usize,
    /// The curve and its fits.
    pub scaling: Scaling,
}

/// Every curve that some runs make.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AllSeries {
    /// The curves, in the order in which the runs have them.
    pub series: Vec<Series>,
    /// A sentence for each figure that looks like a curve and was not taken.
    pub reasons: Vec<String>,
}

/// What a curve is known by while it is collected.
type Place = (
    String,
    String,
    &'static str,
    Vec<(String, String)>,
    Vec<(String, String)>,
);

#[derive(Default)]
struct Collected {
    unit: String,
    observations: Vec<Observation>,
    runs: usize,
    last_run: Option<usize>,
    limits: Vec<Limit>,
}

impl AllSeries {
    /// Whether there is no curve, and nothing that looks like one.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.series.is_empty() && self.reasons.is_empty()
    }

    /// Makes the curves of the rates of `runs` that say at how many threads they were measured.
    ///
    /// A workload's first rate is its throughput; others of the same output say the same in other words. One number of
    /// threads is no curve.
    #[must_use]
    pub fn new<'a>(runs: impl IntoIterator<Item = (&'a Run, &'a [Metric])>) -> Self {
        let mut order: Vec<Place> = Vec::new();
        let mut found: BTreeMap<Place, Collected> = BTreeMap::new();
        let mut first_rate: BTreeMap<String, String> = BTreeMap::new();
        let (mut reasons, mut left_out) = (Vec::new(), 0_usize);
        for (at, (run, metrics)) in runs.into_iter().enumerate() {
            let costs = Costs::of(metrics);
            let limits = limits(run);
            for metric in metrics {
                let Some((over, n)) = threads(metric) else {
                    continue;
                };
                match kind(metric) {
                    Kind::Rate => {}
                    Kind::Untold => {
                        let reason = untold(metric);
                        if !reasons.contains(&reason) {
                            reasons.push(reason);
                        }
                        continue;
                    }
                    Kind::Other => continue,
                }
                let name = first_rate
                    .entry(metric.format.clone())
                    .or_insert_with(|| metric.name.clone());
                if *name != metric.name {
                    continue;
                }
                let place = (
                    metric.format.clone(),
                    metric.name.clone(),
                    over,
                    other_keys(metric, over),
                    of_run(run),
                );
                if !found.contains_key(&place) {
                    if order.len() == MOST_SERIES {
                        left_out += 1;
                        continue;
                    }
                    order.push(place.clone());
                }
                let collected = found.entry(place).or_default();
                collected.unit.clone_from(&metric.unit);
                collected.observations.push(Observation {
                    n,
                    per_sec: metric.value / units_per_second(metric),
                    cpu_ns_per_op: costs.of_metric(metric),
                });
                if collected.last_run != Some(at) {
                    collected.last_run = Some(at);
                    collected.runs += 1;
                }
                if collected.limits.is_empty() {
                    collected.limits.clone_from(&limits);
                }
            }
        }
        if left_out > 0 {
            reasons.push(format!(
                "{left_out} figures of more than {MOST_SERIES} configurations make no curve here; report fewer runs at once"
            ));
        }
        let shared = shared(&order);
        let mut series = Vec::new();
        for place in order {
            let Some(collected) = found.remove(&place) else {
                continue;
            };
            let scaling = Scaling::new(&collected.observations, &collected.limits);
            if scaling.curve.points.len() < 2 {
                continue;
            }
            let (format, name, over, mut keys, of_run) = place;
            keys.extend(of_run.into_iter().filter(|pair| !shared.contains(pair)));
            series.push(Series {
                name,
                unit: collected.unit,
                format,
                over,
                keys,
                runs: collected.runs,
                scaling,
            });
        }
        Self { series, reasons }
    }
}

/// What a figure is for a curve.
enum Kind {
    Rate,
    /// It may be a rate, and the text did not say.
    Untold,
    Other,
}

fn kind(metric: &Metric) -> Kind {
    let is_cost = PER_CPU_SECOND.iter().any(|(_, cost)| *cost == metric.name);
    match (metric.direction, metric.unit.as_str()) {
        _ if is_cost => Kind::Other,
        (Some(Direction::Higher), unit) if unit.ends_with("/s") || unit == PER_MINUTE => Kind::Rate,
        // Other formats know what their figures are.
        (None | Some(Direction::Higher), "") | (None, "1/s")
            if metric.format == Format::Table.id() || metric.format == Format::Rules.id() =>
        {
            Kind::Untold
        }
        _ => Kind::Other,
    }
}

/// How much of a figure is one per second.
fn units_per_second(metric: &Metric) -> f64 {
    if metric.unit == PER_MINUTE { 60.0 } else { 1.0 }
}

fn untold(metric: &Metric) -> String {
    format!(
        "\"{}\" of {} says at how many threads it was measured, but not that it is a rate: import it with --unit 1/s \
         --direction higher, or with \"# unit:\" and \"# direction:\" lines",
        metric.name, metric.format
    )
}

/// At how many of what a figure was measured.
fn threads(metric: &Metric) -> Option<(&'static str, u32)> {
    OVER.into_iter().find_map(|over| {
        let (_, n) = metric.keys.iter().find(|(key, _)| key == over)?;
        Some((over, n.parse().ok()?))
    })
}

fn other_keys(metric: &Metric, over: &str) -> Vec<(String, String)> {
    let keys = metric.configuration().filter(|(key, _)| key != over);
    keys.cloned().collect()
}

/// What sets runs apart: labels, the side of alternating runs, the host.
fn of_run(run: &Run) -> Vec<(String, String)> {
    let labels = run.labels.iter();
    let labels = labels.filter(|(key, _)| !OF_ONE_RUN.contains(&key.as_str()));
    let mut all: Vec<(String, String)> = labels.map(|(k, v)| (k.clone(), v.clone())).collect();
    if let Some(round) = run.round.as_ref().filter(|r| !r.side.is_empty()) {
        all.push(("side".to_owned(), round.side.clone()));
    }
    if !run.host.is_empty() {
        all.push(("host".to_owned(), run.host.clone()));
    }
    all
}

/// What all curves have in common says nothing about one of them.
fn shared(order: &[Place]) -> Vec<(String, String)> {
    let Some((first, rest)) = order.split_first() else {
        return Vec::new();
    };
    let is_shared = |pair: &&(String, String)| rest.iter().all(|place| place.4.contains(pair));
    first.4.iter().filter(is_shared).cloned().collect()
}

fn limits(run: &Run) -> Vec<Limit> {
    let topology = run.facts.iter().find(|fact| fact.id == "topology");
    topology
        .and_then(|fact| fact.value.as_deref().ok())
        .map(Limit::of_topology)
        .unwrap_or_default()
}

/// CPU time by configuration, from the rates per second of it.
struct Costs<'a>(BTreeMap<Configured<'a>, f64>);

/// Name and keys of a figure.
type Configured<'a> = (&'a str, &'a [(String, String)]);

impl<'a> Costs<'a> {
    fn of(metrics: &'a [Metric]) -> Self {
        let costs = metrics.iter().filter_map(|metric| {
            let mut names = PER_CPU_SECOND.iter();
            let (rate, _) = names.find(|(_, cost)| *cost == metric.name)?;
            let ns = 1e9 / metric.value;
            (ns.is_finite() && ns > 0.0).then_some(((*rate, metric.keys.as_slice()), ns))
        });
        Self(costs.collect())
    }

    fn of_metric(&self, metric: &Metric) -> Option<f64> {
        let place = (metric.name.as_str(), metric.keys.as_slice());
        self.0.get(&place).copied()
    }
}
