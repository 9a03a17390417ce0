//! Whether two sides may be compared at all, and what else differs between them.
//!
//! A pure decision over what the runs say of themselves. What is not known on either side is a flag, never an
//! agreement.

mod command;

use std::collections::{BTreeMap, BTreeSet};

use super::configuration::COMMAND;
use super::observed::{Kernel, Observed};
use super::stats::median;
use crate::units::format_si;

/// Keys that `--vary` takes, and the facts that each lifts the refusal of.
pub const KEYS: &[(&str, &[&str])] = &[
    (
        "host",
        &[
            "host_id",
            "host name",
            "cpu_model",
            "cpus_online",
            "memory_bytes",
        ],
    ),
    ("cpus", &["cpu_model", "cpus_online"]),
    ("memory", &["memory_bytes"]),
    ("page-size", &["page_bytes"]),
    ("thp", &["thp", "pages"]),
    ("mglru", &["mglru"]),
    ("swap", &["swap"]),
    (COMMAND, &[COMMAND, "results"]),
    ("probes", &["probes"]),
    ("loss", &["loss"]),
    ("complete", &["complete"]),
    ("pages", &["pages"]),
];

/// Facts of which a difference is a refusal.
const REFUSED: [&str; 7] = [
    "host_id",
    "cpu_model",
    "cpus_online",
    "memory_bytes",
    "page_bytes",
    "mglru",
    "swap",
];

/// Facts that do not say how the machine was set up, or are told in another way.
const IGNORED: [&str; 3] = ["topology", "cgroup", "other_tasks"];

/// Signals whose figures are compared: other probes may differ.
const SIGNALS: [&str; 5] = [
    "faults",
    "contention",
    "fault_latency",
    "fault_budget",
    "refaults",
];

/// Share of the events that may be lost.
pub const MAX_LOSS: f64 = 0.001;

/// Ratio of page state beyond which the sides did other work.
const MAX_PAGES: f64 = 2.0;

/// Pages or huge pages below which their ratio is chance.
const MIN_PAGES: f64 = 64.0;

/// Steal beyond which it is told, and difference of it.
const MAX_STEAL: f64 = 0.01;

/// Something that is not the same on both sides, or not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What differs: a fact's id, or a word of [`KEYS`].
    pub key: String,
    /// Before, in words.
    pub before: String,
    /// After, in words.
    pub after: String,
    /// Whether it forbids a comparison.
    pub is_refusal: bool,
}

impl Difference {
    fn new(
        key: &str,
        before: impl Into<String>,
        after: impl Into<String>,
        is_refusal: bool,
    ) -> Self {
        Self {
            key: key.to_owned(),
            before: before.into(),
            after: after.into(),
            is_refusal,
        }
    }

    /// The `--vary` key that lifts the refusal, if there is one.
    #[must_use]
    pub fn lifted_by(&self) -> Option<&'static str> {
        let fact = if self.key.starts_with("thp") {
            "thp"
        } else {
            self.key.as_str()
        };
        // A key that lifts this and nothing else, before one that lifts more.
        let lifts = KEYS.iter().filter(|(_, facts)| facts.contains(&fact));
        lifts
            .min_by_key(|(_, facts)| facts.len())
            .map(|(key, _)| *key)
    }
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparability {
    /// What forbids a comparison.
    pub refusals: Vec<Difference>,
    /// What a reader should know.
    pub flags: Vec<Difference>,
    /// Whether both sides ran on one known host.
    pub is_same_host: bool,
    /// Whether no run names its host.
    pub are_hosts_unknown: bool,
}

/// Holds two sides against each other; `vary` names what is meant to differ.
#[must_use]
pub fn examine(before: &[Observed], after: &[Observed], vary: &[String]) -> Comparability {
    let mut all = Vec::new();
    let hosts = hosts(before, after, &mut all);
    facts(before, after, &mut all);
    command::command(before, after, &mut all);
    probes(before, after, &mut all);
    whole(before, after, &mut all);
    pages(before, after, &mut all);
    steal(before, after, &mut all);
    others(before, after, &mut all);
    let mut found = Comparability {
        is_same_host: hosts == Some(true),
        are_hosts_unknown: hosts.is_none(),
        ..Comparability::default()
    };
    for difference in all {
        let is_meant = |key: &String| {
            let facts = KEYS.iter().find(|(known, _)| known == key);
            let fact = if difference.key.starts_with("thp") {
                "thp"
            } else {
                difference.key.as_str()
            };
            facts.is_some_and(|(_, facts)| facts.contains(&fact))
        };
        if difference.is_refusal && !vary.iter().any(is_meant) {
            found.refusals.push(difference);
        } else {
            found.flags.push(difference);
        }
    }
    found
}

/// Whether both sides ran on one host; `None` if a side does not tell.
///
/// A recording has the machine's id, which says more than its name; text has the name alone.
fn hosts(before: &[Observed], after: &[Observed], all: &mut Vec<Difference>) -> Option<bool> {
    let by = |name: &dyn Fn(&Observed) -> String| {
        [before, after].map(|side| side.iter().map(name).collect::<BTreeSet<String>>())
    };
    let is_same = |[from, to]: &[BTreeSet<String>; 2]| from == to && from.len() == 1;
    let ids = by(&|o| fact(o, "host_id").unwrap_or_default().to_owned());
    if !ids.iter().any(|side| side.contains("")) {
        return Some(is_same(&ids));
    }
    let names = by(&|o| o.run.host.clone());
    if names.iter().any(|side| side.contains("")) {
        return None;
    }
    if !is_same(&names) {
        let [from, to] = &names;
        all.push(Difference::new("host name", joined(from), joined(to), true));
    }
    Some(is_same(&names))
}

fn fact<'a>(run: &'a Observed, id: &str) -> Result<&'a str, &'a str> {
    let found = run.run.facts.iter().find(|f| f.id == id);
    match found.map(|f| &f.value) {
        Some(Ok(value)) => Ok(value),
        Some(Err(reason)) => Err(reason),
        None => Err("not recorded"),
    }
}

fn facts(before: &[Observed], after: &[Observed], all: &mut Vec<Difference>) {
    let mut ids: Vec<&str> = Vec::new();
    let mut known = BTreeSet::new();
    for run in before.iter().chain(after) {
        for fact in &run.run.facts {
            if known.insert(fact.id.as_str()) && !IGNORED.contains(&fact.id.as_str()) {
                ids.push(&fact.id);
            }
        }
    }
    let mut unknown: Vec<&str> = Vec::new();
    for id in ids {
        let values = |side: &[Observed]| -> (BTreeSet<String>, bool) {
            let all = side.iter().map(|o| fact(o, id));
            let known: BTreeSet<String> = all
                .clone()
                .filter_map(Result::ok)
                .map(str::to_owned)
                .collect();
            // "no: ..." is what the kernel lacks: an answer.
            let answers = all
                .clone()
                .filter_map(Result::err)
                .filter_map(|r| r.strip_prefix("no: "));
            let known = known
                .into_iter()
                .chain(answers.map(|r| format!("no ({r})")))
                .collect();
            let is_unknown = all.filter_map(Result::err).any(|r| !r.starts_with("no: "));
            (known, is_unknown)
        };
        let ((from, is_from_unknown), (to, is_to_unknown)) = (values(before), values(after));
        if is_from_unknown || is_to_unknown {
            if REFUSED.contains(&id) || id == "thp" {
                unknown.push(id);
            }
            continue;
        }
        if from != to || from.len() > 1 {
            let is_refusal = REFUSED.contains(&id) || id == "thp" || id.starts_with("thp_");
            all.push(Difference::new(id, joined(&from), joined(&to), is_refusal));
        }
    }
    if !unknown.is_empty() {
        all.push(Difference::new("unknown", unknown.join(", "), "", false));
    }
    let releases = |side: &[Observed]| -> BTreeSet<String> {
        side.iter()
            .map(|o| o.run.kernel.clone())
            .filter(|k| !k.is_empty())
            .collect()
    };
    let (from, to) = (releases(before), releases(after));
    let is_told = all.iter().any(|d| d.key == "kernel_release");
    if !is_told && from != to {
        all.push(Difference::new(
            "kernel_release",
            joined(&from),
            joined(&to),
            false,
        ));
    }
    config(before, after, all);
}

/// Build options that differ between the first runs of the sides, by name.
fn config(before: &[Observed], after: &[Observed], all: &mut Vec<Difference>) {
    let options = |side: &[Observed]| -> BTreeMap<String, String> {
        side.first()
            .map(|o| o.run.kernel_config.iter().cloned().collect())
            .unwrap_or_default()
    };
    let (from, to) = (options(before), options(after));
    if from.is_empty() || to.is_empty() || from == to {
        return;
    }
    let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    for name in names {
        let (a, b) = (from.get(name), to.get(name));
        if a != b {
            let shown = |v: Option<&String>| v.map_or("not set", String::as_str).to_owned();
            all.push(Difference::new(name, shown(a), shown(b), false));
        }
    }
}

fn joined(values: &BTreeSet<String>) -> String {
    values.iter().cloned().collect::<Vec<_>>().join(" or ")
}

/// Signals by whether they were measured, and how.
fn probes(before: &[Observed], after: &[Observed], all: &mut Vec<Difference>) {
    let told = |side: &[Observed], signal: &str| -> BTreeSet<String> {
        side.iter()
            .filter_map(|o| o.kernel.as_ref().map(|k| (o, k)))
            .map(|(o, kernel)| measured(o, kernel, signal))
            .collect()
    };
    for signal in SIGNALS {
        let (from, to) = (told(before, signal), told(after, signal));
        if from.is_empty() || to.is_empty() {
            continue;
        }
        if from != to || from.len() > 1 {
            let named = |set| format!("{signal}: {}", joined(set));
            all.push(Difference::new("probes", named(&from), named(&to), true));
        }
    }
    let with = |side: &[Observed]| side.iter().filter(|o| o.kernel.is_some()).count();
    let (from, to) = (with(before), with(after));
    if (from == 0) != (to == 0) || (0 < from && from < before.len()) || (0 < to && to < after.len())
    {
        let named = |n: usize, of: usize| format!("{n} of {of} runs have kernel figures");
        all.push(Difference::new(
            "kernel figures",
            named(from, before.len()),
            named(to, after.len()),
            false,
        ));
    }
}

/// How a run measured a signal, in words that are equal where figures are comparable.
fn measured(run: &Observed, kernel: &Kernel, signal: &str) -> String {
    if !kernel.has(signal) {
        return "not measured".to_owned();
    }
    let of_signal = run
        .run
        .probes
        .iter()
        .filter(|p| p.signal == signal && p.is_attached);
    let programs: BTreeSet<String> = of_signal.map(|p| p.program.clone()).collect();
    let mut text = joined(&programs).replace(" or ", "+");
    if signal == "contention" && kernel.spinlock.is_exact {
        text.push_str(", spinlocks exact");
    }
    text
}

/// Losses and ends.
fn whole(before: &[Observed], after: &[Observed], all: &mut Vec<Difference>) {
    let (from, to) = (worst_loss(before), worst_loss(after));
    if from.is_some() || to.is_some() {
        let share = |loss: &Option<(f64, String)>| loss.as_ref().map_or(0.0, |(share, _)| *share);
        let told =
            |loss: Option<(f64, String)>| loss.map_or_else(|| "none".to_owned(), |(_, text)| text);
        let is_refusal = share(&from).max(share(&to)) > MAX_LOSS;
        all.push(Difference::new("loss", told(from), told(to), is_refusal));
    }
    let cut = |side: &[Observed]| -> Vec<String> {
        let reasons = |o: &Observed| {
            let damaged = (o.damaged > 0).then(|| format!("{} intervals are damaged", o.damaged));
            o.cut_short()
                .or(damaged)
                .map(|why| format!("\"{}\": {why}", o.file))
        };
        side.iter().filter_map(reasons).collect()
    };
    let (from, to) = (cut(before), cut(after));
    if !from.is_empty() || !to.is_empty() {
        let told = |list: Vec<String>| {
            if list.is_empty() {
                "whole".to_owned()
            } else {
                list.join("; ")
            }
        };
        all.push(Difference::new("complete", told(from), told(to), true));
    }
}

/// The largest loss of a side as a share of the events of its table.
fn worst_loss(side: &[Observed]) -> Option<(f64, String)> {
    let losses = side
        .iter()
        .filter_map(|o| o.kernel.as_ref())
        .flat_map(|kernel| &kernel.losses)
        .map(|loss| (loss.share(), loss.text()));
    losses.max_by(|a, b| a.0.total_cmp(&b.0))
}

/// The state of pages that the runs really used.
fn pages(before: &[Observed], after: &[Observed], all: &mut Vec<Difference>) {
    let values = |side: &[Observed], name: &str| -> Option<f64> {
        let of_runs: Vec<f64> = side
            .iter()
            .filter_map(|o| o.kernel.as_ref()?.pages.get(name).copied())
            .collect();
        median(&of_runs)
    };
    for name in [
        "AnonHugePages_bytes",
        "thp_fault_alloc",
        "pgsteal_kswapd",
        "pgsteal_direct",
    ] {
        let (Some(from), Some(to)) = (values(before, name), values(after, name)) else {
            continue;
        };
        let huge_page = 2.0 * 1024.0 * 1024.0;
        let least = if name.ends_with("bytes") {
            MIN_PAGES * huge_page
        } else {
            MIN_PAGES
        };
        let (low, high) = (from.min(to), from.max(to));
        if high >= least && high > MAX_PAGES * low {
            let named = |v: f64| format!("{name} {}", format_si(v));
            all.push(Difference::new("pages", named(from), named(to), true));
        }
    }
}

fn steal(before: &[Observed], after: &[Observed], all: &mut Vec<Difference>) {
    let steal = |side: &[Observed]| -> Option<f64> {
        let ratios: Vec<f64> = side
            .iter()
            .filter_map(|o| o.kernel.as_ref()?.steal_ratio)
            .collect();
        median(&ratios)
    };
    if let (Some(from), Some(to)) = (steal(before), steal(after))
        && from.max(to) > MAX_STEAL
    {
        let told = |ratio: f64| format!("{:.1} % of CPU time", 100.0 * ratio);
        all.push(Difference::new("steal", told(from), told(to), false));
    }
}

/// The busiest of the other tasks above 5 % of a CPU, where there were any.
fn others(before: &[Observed], after: &[Observed], all: &mut Vec<Difference>) {
    let share = |task: &str| -> Option<(f64, String)> {
        let (_, percent) = task.strip_suffix(" %")?.rsplit_once(' ')?;
        Some((percent.parse().ok()?, task.to_owned()))
    };
    let busiest = |side: &[Observed]| {
        let tasks = side
            .iter()
            .filter_map(|o| fact(o, "other_tasks").ok())
            .flat_map(|list| list.split(", "))
            .filter_map(share);
        tasks
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, task)| task)
    };
    let (from, to) = (busiest(before), busiest(after));
    if from.is_some() || to.is_some() {
        let told = |task: Option<String>| task.unwrap_or_else(|| "none".to_owned());
        all.push(Difference::new(
            "busiest other task",
            told(from),
            told(to),
            false,
        ));
    }
}
