//! Whether both sides did the same work: commands, formats of their results, repetitions.

use std::collections::{BTreeMap, BTreeSet};

use super::{Difference, joined};
use crate::compare::configuration::{COMMAND, commands, tells_commands_apart};
use crate::compare::observed::Observed;

/// Commands of a side that are named.
const COMMANDS: usize = 3;

/// The command, formats of its results and repetitions.
pub(super) fn command(before: &[Observed], after: &[Observed], all: &mut Vec<Difference>) {
    let (from, to) = (commands(before), commands(after));
    let names = |of: &BTreeMap<String, usize>| of.keys().cloned().collect::<BTreeSet<_>>();
    if names(&from) != names(&to) {
        all.push(Difference::new(
            COMMAND,
            some(&from, &to),
            some(&to, &from),
            true,
        ));
    } else if !is_same_mix(&from, &to) && !tells_commands_apart([before, after]) {
        // What is not told apart would be held against a mean of something else.
        let mix = |of: &BTreeMap<String, usize>| {
            let runs = of.iter().map(|(command, n)| format!("{n} of {command}"));
            runs.collect::<Vec<_>>().join(" and ")
        };
        all.push(Difference::new(COMMAND, mix(&from), mix(&to), true));
    }
    let formats = |side: &[Observed]| -> BTreeSet<String> {
        side.iter()
            .flat_map(|o| o.metrics.iter().map(|m| m.format.clone()))
            .collect()
    };
    let (from, to) = (formats(before), formats(after));
    if from != to && !from.is_empty() && !to.is_empty() {
        all.push(Difference::new("results", joined(&from), joined(&to), true));
    }
    let repetitions = |side: &[Observed]| -> BTreeSet<String> {
        let keys = side
            .iter()
            .flat_map(|o| o.metrics.iter().flat_map(|m| &m.keys));
        keys.filter(|(key, _)| key == crate::workload::REPETITIONS)
            .map(|(_, v)| v.clone())
            .collect()
    };
    let (from, to) = (repetitions(before), repetitions(after));
    if from != to {
        all.push(Difference::new(
            "repetitions",
            joined(&from),
            joined(&to),
            false,
        ));
    }
}

/// Commands of a side; where both have several, the ones that the other has not.
fn some(of: &BTreeMap<String, usize>, other: &BTreeMap<String, usize>) -> String {
    let mut own: Vec<&String> = of.keys().collect();
    if of.len() > 1 {
        own.retain(|command| !other.contains_key(*command));
    }
    let shown: Vec<&str> = own.iter().take(COMMANDS).map(|c| c.as_str()).collect();
    let mut text = shown.join(" or ");
    if own.len() > COMMANDS {
        text.push_str(&format!(" or {} more", own.len() - COMMANDS));
    }
    if own.is_empty() {
        "none that the other side has not".clone_into(&mut text);
    }
    text
}

/// Whether each command has the same share of the runs of both sides.
fn is_same_mix(from: &BTreeMap<String, usize>, to: &BTreeMap<String, usize>) -> bool {
    let runs = |of: &BTreeMap<String, usize>| of.values().sum::<usize>();
    let (all_from, all_to) = (runs(from), runs(to));
    from.iter().all(|(command, n)| {
        let other = to.get(command).copied().unwrap_or_default();
        n * all_to == other * all_from
    })
}
