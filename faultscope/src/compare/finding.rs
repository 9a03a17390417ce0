//! What the differences mean together: rules over the rows, each with its numbers.

use super::budget::Budget;
use super::gate::Comparability;
use super::headline::{ELAPSED, Role, Row};
use super::locks::Locks;
use super::observed::{GivenBack, Kernel, Observed, real};
use super::quantile::{Durations, Quantile};
use super::stats::{Direction, Presence, Verdict, median};
use super::sweep::{AtCount, Sweep};
use crate::model::scale::singular;
use crate::units::{format_bytes, format_ns};
use crate::workload::Format;

/// A rule that matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Name of the rule.
    pub id: &'static str,
    /// One sentence with its numbers.
    pub text: String,
}

/// Change of a time below which it did not move, percent.
const STILL: f64 = 2.0;

/// Change above which it did, percent.
const MOVED: f64 = 5.0;

/// What a quantile is known to, percent.
const QUARTER: f64 = 25.0;

/// Values that the quantiles below the tails need.
const FEW_TAIL: u64 = 100;

/// Faults on memory given back in a run below which their ratio is chance.
const FEWEST_REFAULTS: f64 = 64.0;

/// Ratio of them from which on it is told.
const REFAULTS_MOVED: f64 = 1.2;

/// Clock samples in page clearing of all runs of a side below which no time is told: their error is a fifth and less
/// from here on.
const FEWEST_SAMPLES: u64 = 100;

/// All that rules look at.
pub(super) struct Look<'a> {
    pub(super) sides: [&'a [Observed]; 2],
    pub(super) rows: &'a [Row],
    pub(super) locks: Option<&'a Locks>,
    pub(super) quantiles: &'a [Durations],
    pub(super) budget: Option<&'a Budget>,
    pub(super) sweep: Option<&'a Sweep>,
    pub(super) comparability: &'a Comparability,
}

/// Every finding, the ones that question the comparison first.
pub(super) fn findings(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut add = |id, text: Option<String>| found.extend(text.map(|text| Finding { id, text }));
    add("different_host", other_host(look));
    add("idle", idle(look));
    add("locks_against_throughput", against(look));
    add("locks_do_not_explain", explained(look));
    add("given_back", given_back(look));
    add("contention_not_cost", contention(look));
    add("number_of_faults", faults(look));
    add("crossover", crossover(look));
    add("gain_from", gain(look));
    add("tail", tail(look));
    add("from_zero", from_zero(look));
    add("budget", budget(look));
    found
}

fn percent(row: &Row) -> Option<f64> {
    row.comparison.shift.percent()
}

fn other_host(look: &Look<'_>) -> Option<String> {
    let all = look
        .comparability
        .refusals
        .iter()
        .chain(&look.comparability.flags);
    let host = all
        .into_iter()
        .find(|d| d.key == "host name" || d.key == "host_id")?;
    let names = look
        .sides
        .map(|side| side.first().map_or("", |o| o.run.host.as_str()));
    Some(format!(
        "the sides ran on different hosts ({} and {}): every difference may be the machine's",
        if names[0].is_empty() {
            &host.before
        } else {
            names[0]
        },
        if names[1].is_empty() {
            &host.after
        } else {
            names[1]
        },
    ))
}

/// Elapsed time moved, and CPU time did not.
fn idle(look: &Look<'_>) -> Option<String> {
    let named = |names: &[&str]| {
        look.rows
            .iter()
            .find(|r| r.cell.is_empty() && names.contains(&r.id.as_str()))
    };
    let elapsed = named(&ELAPSED).or_else(|| named(&["elapsed_ns"]))?;
    let user = named(&["user", "user_s", "command_user_ns"])?;
    let system = named(&["system", "system_s", "sys", "command_system_ns"])?;
    let (moved, user, system) = (percent(elapsed)?, percent(user)?, percent(system)?);
    // A difference within the noise of the runs is none.
    let is_noise = elapsed
        .comparison
        .shift
        .interval
        .is_some_and(|(low, high)| low <= 0.0 && high >= 0.0);
    (moved.abs() >= MOVED && user.abs() <= STILL && system.abs() <= STILL && !is_noise).then(|| {
        format!(
            "elapsed time {moved:+.1} %, but CPU time did not follow (user {user:+.1} %, system {system:+.1} %): the \
             difference is idle time"
        )
    })
}

fn primary<'a>(look: &Look<'a>) -> Option<&'a Row> {
    let mut of_role = look.rows.iter().filter(|r| r.role == Role::Primary);
    let row = of_role.next()?;
    // A sweep has no single one.
    of_role.next().is_none().then_some(row)
}

fn lock_row<'a>(look: &Look<'a>) -> Option<&'a Row> {
    look.rows.iter().find(|r| r.id == "lock_wait_per_fault_ns")
}

/// Locks and throughput moved in opposite directions.
fn against(look: &Look<'_>) -> Option<String> {
    let (primary, lock) = (primary(look)?, lock_row(look)?);
    let opposite = matches!(
        (primary.verdict, lock.verdict),
        (Some(Verdict::Improved), Some(Verdict::Regressed))
            | (Some(Verdict::Regressed), Some(Verdict::Improved))
    );
    // Fewer faults, each with more wait, may be less wait in all.
    let faults = look
        .rows
        .iter()
        .find(|r| r.id == "faults")
        .and_then(percent);
    let total = |each: f64| (1.0 + each / 100.0) * (1.0 + faults.unwrap_or(0.0) / 100.0) - 1.0;
    let is_shared = percent(lock).is_none_or(|each| each * total(each) > 0.0);
    (opposite && is_shared).then(|| {
        format!(
            "LOCKS AND {} DISAGREE: lock wait per fault {}, {} {}; judge the patch by the latter",
            primary.title.to_ascii_uppercase(),
            shown(lock),
            primary.title,
            shown(primary)
        )
    })
}

fn shown(row: &Row) -> String {
    percent(row).map_or_else(
        || {
            format!(
                "{} -> {}",
                row.shown.value(row.comparison.before),
                row.shown.value(row.comparison.after)
            )
        },
        |p| format!("{p:+.1} %"),
    )
}

/// How much of the change in time per transaction the lock waits are.
fn explained(look: &Look<'_>) -> Option<String> {
    let primary = primary(look)?;
    if !matches!(
        primary.verdict,
        Some(Verdict::Improved | Verdict::Regressed)
    ) {
        return None;
    }
    // Thread-seconds for a piece of work, and lock wait for it, of each run.
    let per_work = |side: &[Observed]| -> Option<(f64, f64)> {
        let (mut times, mut waits) = (Vec::new(), Vec::new());
        for run in side {
            let work = super::locks::Per::Transaction.divisor(run)?;
            let threads: f64 = run.metrics.iter().find_map(|m| {
                let mut keys = m.keys.iter();
                keys.find(|(key, _)| key == "threads")
                    .and_then(|(_, n)| n.parse().ok())
            })?;
            let kernel = run.kernel.as_ref()?;
            let wait: u64 = kernel.classes.as_ref()?.values().map(|w| w.wait_ns).sum();
            times.push(threads * real(run.elapsed_ns()?) / work);
            waits.push(real(wait) / work);
        }
        Some((median(&times)?, median(&waits)?))
    };
    let (before, after) = (per_work(look.sides[0])?, per_work(look.sides[1])?);
    let (time, wait) = (after.0 - before.0, after.1 - before.1);
    let share = wait / time;
    (share < 0.5).then(|| {
        format!(
            "a transaction takes {} of thread time in place of {}, and lock waits are {:.0} % of that change: they do not \
             explain it",
            format_ns(after.0),
            format_ns(before.0),
            100.0 * share.max(0.0)
        )
    })
}

/// Memory given back by madvise is faulted in again more, or less, often; and what clearing it took.
fn given_back(look: &Look<'_>) -> Option<String> {
    let runs = look.sides.map(|side| -> Option<Vec<&Kernel>> {
        let kernels: Option<Vec<&Kernel>> = side.iter().map(|o| o.kernel.as_ref()).collect();
        kernels.filter(|all| all.iter().all(|k| k.given_back.is_some()))
    });
    let [Some(before), Some(after)] = runs else {
        return None;
    };
    let typical = |side: &[&Kernel], of: fn(GivenBack) -> u64| -> Option<f64> {
        let values = side.iter().filter_map(|k| k.given_back);
        median(&values.map(|given| real(of(given))).collect::<Vec<_>>())
    };
    let refaults = [
        typical(&before, |g| g.refaults)?,
        typical(&after, |g| g.refaults)?,
    ];
    let bytes = [
        typical(&before, |g| g.bytes)?,
        typical(&after, |g| g.bytes)?,
    ];
    let (low, high) = (refaults[0].min(refaults[1]), refaults[0].max(refaults[1]));
    if high < FEWEST_REFAULTS || high < REFAULTS_MOVED * low {
        return None;
    }
    let is_bound = before
        .iter()
        .chain(&after)
        .any(|k| k.given_back.is_some_and(|g| g.lost_bytes > 0));
    let mut text = format!(
        "memory given back ({} -> {} a run) was faulted in again {}{:.0} -> {:.0} times a run",
        format_bytes(bytes[0]),
        format_bytes(bytes[1]),
        if is_bound { "at least " } else { "" },
        refaults[0],
        refaults[1],
    );
    if low > 0.0 {
        text.push_str(&format!(" ({:.1} to 1)", high / low));
    }
    if let [Some(from), Some(to)] = look.sides.map(zeroed) {
        text.push_str(&format!(
            ", of the pages used again {from:.0} -> {to:.0} came back zeroed"
        ));
    }
    if let Some(clearing) = clearing([&before, &after]) {
        text.push_str(&clearing);
    }
    let is_fewer = refaults[1] < refaults[0];
    let verdict = primary(look).and_then(|row| row.verdict);
    let explains = match (verdict, is_fewer) {
        (Some(Verdict::Improved), true) => "the gain is faults and zeroing that are not done",
        (Some(Verdict::Regressed), false) => "the loss is faults and zeroing that are done again",
        _ => return Some(text),
    };
    Some(format!("{text}: {explains}"))
}

/// Pages that a run of `bench madvise` found zeroed; `None` of other workloads.
fn zeroed(side: &[Observed]) -> Option<f64> {
    let of_run = |o: &Observed| {
        let mut metrics = o.metrics.iter();
        let found = metrics.find(|m| m.name == "zeroed" && m.format == Format::Bench.id());
        found.map(|m| m.value)
    };
    let values: Option<Vec<f64>> = side.iter().map(of_run).collect();
    median(&values?)
}

/// CPU time of page clearing a run, before and after; `None` where the clock was not sampled, or hardly struck in it.
fn clearing(sides: [&[&Kernel]; 2]) -> Option<String> {
    let sums = sides.map(|side| {
        let all: Option<Vec<(u64, u64)>> = side.iter().map(|k| k.clearing).collect();
        all.map(|all| {
            let runs = real(all.len() as u64);
            let ns: u64 = all.iter().map(|(ns, _)| ns).sum();
            let samples: u64 = all.iter().map(|(_, samples)| samples).sum();
            (real(ns) / runs, samples)
        })
    });
    let [Some((before, n)), Some((after, m))] = sums else {
        return None;
    };
    (n.max(m) >= FEWEST_SAMPLES).then(|| {
        format!(
            ", and clearing pages took {} -> {} of CPU time a run",
            format_ns(before),
            format_ns(after)
        )
    })
}

/// One thread unchanged, several moved.
fn contention(look: &Look<'_>) -> Option<String> {
    let sweep = look.sweep?;
    let first = sweep.by_count.first()?;
    let size = |at: &&AtCount| at.ratio.ln().abs();
    let most = sweep
        .by_count
        .iter()
        .filter(|at| at.is_decided())
        .max_by(|a, b| size(a).total_cmp(&size(b)))?;
    let (first, one, many, ratio) = (first.count, first.ratio, most.count, most.ratio);
    let change = |ratio: f64| 100.0 * (ratio - 1.0);
    (first == 1 && change(one).abs() <= 3.0 && change(ratio).abs() >= 2.0 * MOVED).then(|| {
        format!(
            "one {} {:+.1} %, {many} {} {:+.1} %: what changed is contention, not the cost of an operation",
            singular(sweep.over),
            change(one),
            sweep.over,
            change(ratio)
        )
    })
}

/// The ratio of lock waits is due to another number of faults.
fn faults(look: &Look<'_>) -> Option<String> {
    let faults = look.rows.iter().find(|r| r.id == "faults")?;
    let moved = percent(faults)?;
    let locks = look.locks?;
    let totals = |i: usize| -> f64 { locks.rows.iter().map(|r| real(r.waits[i].0)).sum() };
    let runs = look.sides.map(|side| real(side.len() as u64));
    let (before, after) = (totals(0) / runs[0], totals(1) / runs[1]);
    let rates = look.rows.iter().find(|r| r.id == "lock_waits_per_mfault")?;
    let normalised = percent(rates)?;
    let raw = 100.0 * (after / before - 1.0);
    (before > 0.0 && moved.abs() >= 2.0 * MOVED && raw.abs() >= 2.0 * MOVED && normalised.abs() < raw.abs() / 2.0).then(|| {
        format!(
            "lock waits {raw:+.0} %, but faults {moved:+.0} %: per million faults they are {normalised:+.1} %"
        )
    })
}

fn crossover(look: &Look<'_>) -> Option<String> {
    let sweep = look.sweep?;
    let told: Vec<String> = sweep
        .crossovers
        .iter()
        .map(|(n, is_up)| {
            let word = if *is_up { "ahead" } else { "behind" };
            format!("{word} from {n} {} on", sweep.over)
        })
        .collect();
    (!told.is_empty()).then(|| {
        format!(
            "crossover of {}: after is {}",
            sweep.metric,
            told.join(", ")
        )
    })
}

fn gain(look: &Look<'_>) -> Option<String> {
    let sweep = look.sweep?;
    let from = sweep.gains_from?;
    let first = sweep.by_count.first()?.count;
    (from > first).then(|| {
        format!(
            "the gain in {} starts at {from} {} (5 % or more from there on)",
            sweep.metric, sweep.over
        )
    })
}

/// The slow ones moved and the common ones did not: the first tail of which that is sure.
fn tail(look: &Look<'_>) -> Option<String> {
    let moved = |q: &Quantile| {
        let shift = &q.comparison.as_ref()?.shift;
        Some((shift.percent()?, shift.percent_interval()))
    };
    look.quantiles.iter().find_map(|durations| {
        let (common, _) = moved(durations.quantiles.first()?)?;
        let tails = durations.quantiles.iter().filter(|q| q.needed > FEW_TAIL);
        let (name, percent, (low, high)) = tails
            .filter_map(|q| {
                let (percent, interval) = moved(q)?;
                Some((q.name, percent, interval?))
            })
            .find(|(_, percent, (low, high))| {
                percent.abs() >= QUARTER && (*low > 0.0 || *high < 0.0)
            })?;
        (common.abs() < QUARTER / 2.0).then(|| {
            format!(
                "tail of \"{}\": {name} {percent:+.0} % [{low:+.0},{high:+.0}], but p50 {common:+.0} %: the slow ones changed, \
                 not the common case",
                durations.name
            )
        })
    })
}

/// Something where there was nothing.
fn from_zero(look: &Look<'_>) -> Option<String> {
    let is_zero = |row: &&Row| {
        let before = row.before.iter().all(|(v, _)| v.abs() <= 0.0);
        before
            && row.verdict == Some(Verdict::Regressed)
            && row.direction == Direction::LowerIsBetter
    };
    let row = look.rows.iter().find(is_zero).map(|row| {
        format!(
            "{} was 0 before and is {} after: a regression from zero has no percentage",
            row.title,
            row.shown.value(row.comparison.after)
        )
    });
    row.or_else(|| {
        // A wait or two that one side happened to have are no regression.
        let appeared = |r: &&super::locks::LockRow| matches!(r.presence, Presence::Appeared { upper } if r.counts[1].low > upper);
        let row = look.locks?.rows.iter().find(appeared)?;
        Some(format!(
            "waits for {} appeared: none in {} runs before, {} in {} after",
            row.class.name(),
            row.waits[0].1,
            row.waits[1].0,
            row.waits[1].1
        ))
    })
}

/// The part of the budget that changed most, if the whole did.
fn budget(look: &Look<'_>) -> Option<String> {
    let budget = look.budget?;
    let total = budget.total.change();
    let largest = budget
        .parts
        .iter()
        .max_by(|a, b| a.change().abs().total_cmp(&b.change().abs()))?;
    let is_large = budget.total.ns[0] > 0.0 && total.abs() / budget.total.ns[0] >= MOVED / 100.0;
    (is_large && largest.change() * total > 0.0).then(|| {
        format!(
            "CPU time of a fault {} -> {}; {} changed most, by {}{}",
            format_ns(budget.total.ns[0]),
            format_ns(budget.total.ns[1]),
            largest.name,
            if largest.change() < 0.0 { "-" } else { "+" },
            format_ns(largest.change().abs())
        )
    })
}
