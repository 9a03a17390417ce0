//! What sets measurements of one figure apart, and which of it the user means to compare.

use std::collections::{BTreeMap, BTreeSet};

use super::cell::cell;
use super::observed::Observed;
use crate::model::scale::OVER;
use crate::workload::Metric;

/// Word of the command line that runs a point of a bench.
const BENCH_LOAD: &str = "bench-load";

/// Its option whose number only says how often the work was repeated.
const ROUNDS: &str = "--rounds";

/// Begins the name of the memory cgroup of a bench's point; a process id follows.
const GROUP: &str = "faultscope-bench-";

/// The key of `--vary` that says commands are meant to differ.
pub const COMMAND: &str = "command";

/// The command of a run without what changes from one run to the next of the same work: repetitions of a bench's point,
/// the number of its memory cgroup, and where faultscope itself lies. Empty for imported text.
#[must_use]
pub fn command(run: &Observed) -> String {
    let Some(workload) = &run.run.workload else {
        return String::new();
    };
    let is_bench = workload.argv.get(1).is_some_and(|word| word == BENCH_LOAD);
    if !is_bench {
        return workload.argv.join(" ");
    }
    let mut words = Vec::new();
    let mut rest = workload.argv.iter();
    words.extend(rest.next().map(|own| {
        let name = own.rsplit('/').next();
        name.unwrap_or(own).to_owned()
    }));
    while let Some(word) = rest.next() {
        if word == ROUNDS {
            rest.next();
        } else {
            words.push(without_process(word));
        }
    }
    words.join(" ")
}

/// A path without the process id in the name of a bench's memory cgroup.
fn without_process(word: &str) -> String {
    let Some((path, rest)) = word.split_once(GROUP) else {
        return word.to_owned();
    };
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{path}{GROUP}PID{rest}")
}

/// Commands of a side, with the number of runs of each; runs of imported text have none.
#[must_use]
pub fn commands(side: &[Observed]) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for run in side {
        let command = command(run);
        if !command.is_empty() {
            *all.entry(command).or_default() += 1;
        }
    }
    all
}

/// A key that has one value on each side, and not the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meant {
    /// The key: `case`.
    pub key: String,
    /// Its value before and after: `dontneed`, `free`.
    pub values: [String; 2],
}

/// Values of each key of the figures of a side.
fn values(side: &[Observed]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let metrics = side.iter().flat_map(|run| &run.metrics);
    for (key, value) in metrics.flat_map(Metric::configuration) {
        all.entry(key).or_default().insert(value);
    }
    all
}

/// Keys of which the sides share no value, with their values: in these no figure has a partner.
#[must_use]
pub fn apart(sides: [&[Observed]; 2]) -> Vec<(String, [Vec<String>; 2])> {
    let [before, after] = sides.map(values);
    let owned = |set: &BTreeSet<&str>| set.iter().map(|v| (*v).to_owned()).collect();
    before
        .iter()
        .filter_map(|(key, from)| {
            let to = after.get(key)?;
            from.is_disjoint(to)
                .then(|| ((*key).to_owned(), [owned(from), owned(to)]))
        })
        .collect()
}

/// Keys that only mirror what the user means to differ: with `--vary command` those of one value on each side, and
/// another one.
#[must_use]
pub fn meant(sides: [&[Observed]; 2], vary: &[String]) -> Vec<Meant> {
    if !vary.iter().any(|key| key == COMMAND) {
        return Vec::new();
    }
    let single = |(key, [from, to]): (String, [Vec<String>; 2])| {
        let ([from], [to]) = (from.as_slice(), to.as_slice()) else {
            return None;
        };
        Some(Meant {
            key,
            values: [from.clone(), to.clone()],
        })
    };
    apart(sides).into_iter().filter_map(single).collect()
}

/// Takes the keys that are meant to differ off the figures, so that these are matched.
pub fn take_off(side: &mut [Observed], meant: &[Meant]) {
    let metrics = side.iter_mut().flat_map(|run| &mut run.metrics);
    for metric in metrics {
        metric
            .keys
            .retain(|(key, _)| meant.iter().all(|m| m.key != *key));
    }
}

/// Why two sides that measured something have no figure in common, and what to do; `None` if it is not their
/// configuration.
#[must_use]
pub fn unmatched(sides: [&[Observed]; 2], vary: &[String]) -> Option<String> {
    let apart = apart(sides);
    let (first, _) = apart.first()?;
    let told: Vec<String> = apart
        .iter()
        .map(|(key, [from, to])| format!("{key} ({} -> {})", from.join(", "), to.join(", ")))
        .collect();
    let advice = if vary.iter().any(|key| key == COMMAND) {
        format!(
            "--vary command matches sides of one {first} each, so name the runs of one on either side"
        )
    } else {
        "if that is what you mean to compare, say so with --vary command".to_owned()
    };
    Some(format!("they differ in {}; {advice}", told.join(" and ")))
}

/// What runs of a side were made with that sets them apart from each other, as `threads 1, 2`; empty if their kernel
/// figures are of one kind of work.
///
/// Numbers of threads always count; other keys where the runs are also of several commands.
#[must_use]
pub fn mixture(side: &[Observed]) -> Vec<String> {
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut within: BTreeSet<&str> = BTreeSet::new();
    for run in side {
        for (key, values) in values(std::slice::from_ref(run)) {
            // A run that has several values has no kernel figures for each of them in any case.
            if values.len() > 1 {
                within.insert(key);
            }
            all.entry(key).or_default().extend(values);
        }
    }
    let are_several = commands(side).len() > 1;
    all.into_iter()
        .filter(|(key, values)| {
            values.len() > 1 && !within.contains(key) && (are_several || OVER.contains(key))
        })
        .map(|(key, values)| {
            let values: Vec<&str> = values.into_iter().collect();
            format!("{key} {}", values.join(", "))
        })
        .collect()
}

/// Whether each configuration of figures belongs to one command, so that runs of several commands are compared one by
/// one.
#[must_use]
pub fn tells_commands_apart(sides: [&[Observed]; 2]) -> bool {
    let mut by_cells: BTreeMap<BTreeSet<String>, String> = BTreeMap::new();
    sides.iter().flat_map(|side| side.iter()).all(|run| {
        let cells: BTreeSet<String> = run.metrics.iter().map(cell).collect();
        let command = command(run);
        !cells.is_empty() && *by_cells.entry(cells).or_insert_with(|| command.clone()) == command
    })
}
