//! Lock classes of two sides: a family of tests that many small classes cannot blind.

use std::collections::{BTreeMap, BTreeSet};

use super::align::Class;
use super::observed::{Observed, Waits, real};
use super::stats::{
    Blind, Comparison, Design, Direction, FDR, Filtered, Margin, PoissonInterval, Presence,
    Verdict, benjamini_hochberg, compare_runs, filter_blind, poisson_interval, presence, too_small,
};

/// What waits are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// A fault (waits: a million of them).
    Fault,
    /// A transaction, query or event, whichever the workload counts.
    Transaction,
    /// A second of the run.
    Second,
}

impl Per {
    /// Name on the command line.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Transaction => "transaction",
            Self::Second => "second",
        }
    }

    /// What waits are counted per, short.
    #[must_use]
    pub const fn waits_per(self) -> &'static str {
        match self {
            Self::Fault => "/Mf",
            Self::Transaction => "/tx",
            Self::Second => "/s",
        }
    }

    /// How many of it a count of waits is for.
    const fn scale(self) -> f64 {
        match self {
            Self::Fault => 1e6,
            Self::Transaction | Self::Second => 1.0,
        }
    }

    /// What a run is divided by; `None` where it is not known.
    #[must_use]
    pub fn divisor(self, run: &Observed) -> Option<f64> {
        let kernel = run.kernel.as_ref()?;
        let found = match self {
            Self::Fault => real(kernel.faults?),
            Self::Second => real(kernel.covered_ns) / 1e9,
            Self::Transaction => {
                let of_name = |name: &&str| {
                    let mut found = run.metrics.iter().filter(|m| m.name == **name);
                    // Of several configurations none stands for the run.
                    found
                        .next()
                        .filter(|_| found.next().is_none())
                        .map(|m| m.value)
                };
                ["transactions", "queries", "events"]
                    .iter()
                    .find_map(of_name)?
            }
        };
        (found > 0.0).then_some(found)
    }
}

/// A lock class on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct LockRow {
    /// The class.
    pub class: Class,
    /// Waits and runs of each side.
    pub waits: [(u64, usize); 2],
    /// On which sides it was waited for.
    pub presence: Presence,
    /// Waits per run of each side with their exact intervals.
    pub counts: [PoissonInterval; 2],
    /// Wait per fault, transaction or second: ns by run of each side.
    pub wait: [Vec<f64>; 2],
    /// Waits per million faults, transaction or second, by run.
    pub rate: [Vec<f64>; 2],
    /// The wait of both sides compared, where it was tested.
    pub comparison: Option<Comparison>,
    /// The number of waits compared.
    pub rates: Option<Comparison>,
    /// The wait over the time inside `handle_mm_fault`, compared; `None` where a run did not measure that.
    pub of_fault: Option<Comparison>,
    /// p, adjusted for the family.
    pub q: Option<f64>,
    /// The verdict; `None` where it was not tested.
    pub verdict: Option<Verdict>,
    /// Medians of the 99 % quantile of each side, ns.
    pub p99_ns: [Option<f64>; 2],
}

/// All lock classes.
#[derive(Debug, Clone, PartialEq)]
pub struct Locks {
    /// What waits are divided by.
    pub per: Per,
    /// Those tested and those on one side, the most waited for first.
    pub rows: Vec<LockRow>,
    /// Number of classes tested.
    pub tested: usize,
    /// Number of classes left out before testing.
    pub filtered: usize,
    /// Their share of the pooled wait, 0 to 1.
    pub filtered_share: f64,
    /// Why none of them could stand out alone, if so.
    pub too_small: Option<String>,
    /// Classes that only one side has, by name.
    pub unmatched: [Vec<String>; 2],
    /// Whether they are told by call site.
    pub has_sites: bool,
}

/// Compares the lock classes of both sides; `None` where a side did not measure waits, or lacks the divisor.
#[must_use]
pub fn locks(
    sides: [&[Observed]; 2],
    pairs: Option<&[(usize, usize)]>,
    per: Per,
    min_effect: f64,
) -> Option<Locks> {
    let tables = |by_site: bool| -> Option<[Vec<Run<'_>>; 2]> {
        let side = |side: &'_ [Observed]| -> Option<()> {
            let is_there = |o: &Observed| {
                let kernel = o.kernel.as_ref()?;
                let table = if by_site {
                    &kernel.sites
                } else {
                    &kernel.classes
                };
                table
                    .as_ref()
                    .filter(|t| !by_site || !t.is_empty())
                    .map(|_| ())
            };
            side.iter().try_for_each(is_there)
        };
        side(sides[0])?;
        side(sides[1])?;
        Some(sides.map(|side| side.iter().filter_map(|o| run(o, by_site, per)).collect()))
    };
    let (runs, has_sites) = match tables(true) {
        Some(runs) => (runs, true),
        None => (tables(false)?, false),
    };
    if runs[0].len() < sides[0].len()
        || runs[1].len() < sides[1].len()
        || runs[0].is_empty()
        || runs[1].is_empty()
    {
        return None;
    }
    let (mut rows, filtered) = rows_kept(&runs, pairs, per, |_| true);
    let tested: Vec<usize> = (0..rows.len())
        .filter(|&i| rows[i].comparison.is_some())
        .collect();
    let p: Vec<f64> = tested
        .iter()
        .filter_map(|&i| rows[i].comparison.map(|c| c.test.p))
        .collect();
    for (&i, q) in tested.iter().zip(benjamini_hochberg(&p)) {
        let row = &mut rows[i];
        row.q = Some(q);
        row.verdict = row.comparison.map(|c| {
            let margin = Margin::new(min_effect, 0.0, c.before);
            c.verdict(q, FDR, Direction::LowerIsBetter, margin)
        });
    }
    let design = match pairs {
        Some(pairs) => Design::Pairs(pairs.len()),
        None => Design::Sides(runs[0].len(), runs[1].len()),
    };
    let only = |here: usize| -> Vec<String> {
        let has = |side: &[Run<'_>], class: &Class| side.iter().any(|r| r.waits(class).waits > 0);
        let is_only = |class: &&&Class| has(&runs[here], class) && !has(&runs[1 - here], class);
        classes(&runs)
            .iter()
            .filter(is_only)
            .map(|c| c.name())
            .collect()
    };
    Some(Locks {
        per,
        too_small: too_small(design, tested.len()),
        tested: tested.len(),
        filtered: filtered.dropped,
        filtered_share: filtered.dropped_share,
        unmatched: [only(0), only(1)],
        rows,
        has_sites,
    })
}

/// Classes of all runs.
fn classes<'a>(runs: &'a [Vec<Run<'_>>; 2]) -> Vec<&'a Class> {
    let classes: BTreeSet<&Class> = runs.iter().flatten().flat_map(|r| r.table.keys()).collect();
    classes.into_iter().collect()
}

/// Rows of the classes that the blind pre-filter keeps and `is_wanted`, the longest waits first, and what it dropped.
pub(super) fn rows_kept(
    runs: &[Vec<Run<'_>>; 2],
    pairs: Option<&[(usize, usize)]>,
    per: Per,
    is_wanted: impl Fn(&Blind) -> bool,
) -> (Vec<LockRow>, Filtered) {
    let classes = classes(runs);
    let blind: Vec<Blind> = classes
        .iter()
        .map(|class| {
            let waits = || runs.iter().flatten().map(|r| r.waits(class));
            Blind {
                wait_ns: waits().map(|w| real(w.wait_ns)).sum(),
                events: waits().map(|w| w.waits).sum(),
            }
        })
        .collect();
    let filtered = filter_blind(&blind, runs[0].len() + runs[1].len());
    let mut rows: Vec<(f64, LockRow)> = filtered
        .kept
        .iter()
        .filter(|&&i| is_wanted(&blind[i]))
        .filter_map(|&i| Some((blind[i].wait_ns, row(classes[i], runs, pairs, per)?)))
        .collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    (rows.into_iter().map(|(_, row)| row).collect(), filtered)
}

/// The waits of a run and what they are divided by.
pub(super) struct Run<'a> {
    pub(super) table: &'a BTreeMap<Class, Waits>,
    divisor: f64,
    /// Time inside `handle_mm_fault`, ns.
    fault_ns: Option<f64>,
}

impl<'a> Run<'a> {
    /// `None` if the run lacks what waits are divided by.
    pub(super) fn new(
        table: &'a BTreeMap<Class, Waits>,
        observed: &Observed,
        per: Per,
    ) -> Option<Self> {
        let fault_ns = observed.kernel.as_ref().and_then(|k| k.fault_ns);
        Some(Self {
            table,
            divisor: per.divisor(observed)?,
            fault_ns: fault_ns.map(real).filter(|ns| *ns > 0.0),
        })
    }

    pub(super) fn waits(&self, class: &Class) -> Waits {
        self.table.get(class).copied().unwrap_or_default()
    }
}

fn run(observed: &Observed, by_site: bool, per: Per) -> Option<Run<'_>> {
    let kernel = observed.kernel.as_ref()?;
    let table = if by_site {
        &kernel.sites
    } else {
        &kernel.classes
    };
    Run::new(table.as_ref()?, observed, per)
}

/// A class on both sides; `None` if a side has no runs.
fn row(
    class: &Class,
    runs: &[Vec<Run<'_>>; 2],
    pairs: Option<&[(usize, usize)]>,
    per: Per,
) -> Option<LockRow> {
    let side = |i: usize| runs[i].iter().map(|r| (r.waits(class), r.divisor));
    let sum = |i: usize| -> (u64, usize) { (side(i).map(|(w, _)| w.waits).sum(), runs[i].len()) };
    let waits = [sum(0), sum(1)];
    let presence = presence(waits[0], waits[1])?;
    let wait = [0, 1].map(|i| {
        side(i)
            .map(|(w, d)| real(w.wait_ns) / d)
            .collect::<Vec<_>>()
    });
    let rate = [0, 1].map(|i| {
        side(i)
            .map(|(w, d)| per.scale() * real(w.waits) / d)
            .collect::<Vec<_>>()
    });
    let p99_ns = [0, 1].map(|i| {
        let all: Vec<f64> = side(i).filter_map(|(w, _)| w.p99_ns).collect();
        super::stats::median(&all)
    });
    let test = |values: &[Vec<f64>; 2]| compare_runs(values, pairs);
    let is_tested = presence == Presence::Both;
    let of_fault = |i: usize| -> Option<Vec<f64>> {
        let share = |r: &Run<'_>| Some(real(r.waits(class).wait_ns) / r.fault_ns?);
        runs[i].iter().map(share).collect()
    };
    let of_fault = of_fault(0).zip(of_fault(1)).map(|(a, b)| [a, b]);
    Some(LockRow {
        class: class.clone(),
        counts: [
            poisson_interval(waits[0].0, waits[0].1)?,
            poisson_interval(waits[1].0, waits[1].1)?,
        ],
        waits,
        presence,
        comparison: is_tested.then(|| test(&wait)).flatten(),
        rates: is_tested.then(|| test(&rate)).flatten(),
        of_fault: of_fault.filter(|_| is_tested).and_then(|both| test(&both)),
        wait,
        rate,
        q: None,
        verdict: None,
        p99_ns,
    })
}
