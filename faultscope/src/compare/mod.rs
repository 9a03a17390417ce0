//! Two sets of runs side by side, with a verdict only where the runs allow one.
//!
//! [`Report::new`] decides in this order: may the sides be compared at all ([`gate`]); what do their figures say
//! ([`headline`], [`locks`], [`budget`], [`sweep`]); what does it mean ([`finding`]). [`render`] prints it.

pub mod align;
pub mod aspect;
pub mod budget;
mod cell;
pub mod configuration;
pub mod finding;
pub mod floor;
pub mod gate;
pub mod headline;
pub mod load;
pub mod locks;
pub mod loss;
pub mod observed;
pub mod quantile;
pub mod render;
pub mod stats;
pub mod sweep;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Failure;
use aspect::Details;
use budget::Budget;
use configuration::Meant;
use finding::{Finding, Look};
use gate::Comparability;
use headline::{Making, Role, Row};
use locks::{Locks, Per};
use observed::{Observed, real};
use quantile::Durations;
use stats::{Design, Order, Verdict, median, small_n};
use sweep::Sweep;

/// How to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Names of the sides.
    pub labels: [String; 2],
    /// Keys of [`gate::KEYS`] that are meant to differ.
    pub vary: Vec<String>,
    /// Whether to compare what should not be.
    pub is_forced: bool,
    /// What lock waits are divided by.
    pub per: Per,
    /// Smallest difference that matters, as a ratio.
    pub min_effect: f64,
    /// Whether margins are learnt from two halves of the side before.
    pub is_aa: bool,
    /// Whether the sides are two halves of one side.
    pub is_halved: bool,
    /// Whether runs are paired by round.
    pub is_paired: bool,
    /// Whether cells of one number of threads are told together only.
    pub is_by_threads: bool,
    /// Metrics with the percentage that they must not lose.
    pub gates: Vec<(String, f64)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            labels: ["before".to_owned(), "after".to_owned()],
            vary: Vec::new(),
            is_forced: false,
            per: Per::Fault,
            min_effect: 0.03,
            is_aa: false,
            is_halved: false,
            is_paired: false,
            is_by_threads: false,
            gates: Vec::new(),
        }
    }
}

/// How a comparison ends; the number is the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// No confirmed regression of a gated metric.
    Fine = 0,
    /// A confirmed one.
    Regressed = 1,
    /// No verdict, and one was required.
    Inconclusive = 3,
    /// The sides may not be compared.
    NotComparable = 4,
}

/// What became of a gated metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Gated {
    /// Name, as the user wrote it.
    pub metric: String,
    /// Percentage that it must not lose.
    pub percent: f64,
    /// Whether a regression beyond it is confirmed, in any configuration.
    pub is_regressed: bool,
}

/// Faults of one kind, as shares of all.
#[derive(Debug, Clone, PartialEq)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// Median share before and after, 0 to 1.
    pub share: [f64; 2],
}

/// A comparison.
#[derive(Debug, Clone)]
pub struct Report {
    /// How it was made.
    pub options: Options,
    /// The runs of each side.
    pub sides: [Vec<Observed>; 2],
    /// Runs that differ in nothing, kept to tell what chance does; empty if none were named.
    pub alike: Vec<Observed>,
    /// Whether they may be compared.
    pub comparability: Comparability,
    /// Keys of figures that are meant to differ, and are taken off the figures above.
    pub meant: Vec<Meant>,
    /// How the runs lie in time; `None` if that is not known.
    pub order: Option<Order>,
    /// How many pairs of runs there are, of all configurations; `None` if they are not paired.
    pub pairs: Option<usize>,
    /// The figures; empty if the comparison was refused.
    pub rows: Vec<Row>,
    /// Faults by kind.
    pub kinds: Vec<Kind>,
    /// The primary metric over configurations, if there are several.
    pub sweep: Option<Sweep>,
    /// Lock classes; `None` where they were not measured.
    pub locks: Option<Locks>,
    /// What stands behind the lock classes.
    pub details: Details,
    /// Latencies and waits by quantile.
    pub quantiles: Vec<Durations>,
    /// The time budget of a fault; `None` where it was not sampled.
    pub budget: Option<Budget>,
    /// What it means.
    pub findings: Vec<Finding>,
    /// What limits it: a sentence each.
    pub notes: Vec<String>,
    /// Metrics that are gated.
    pub gates: Vec<Gated>,
}

impl Report {
    /// Compares two sides.
    ///
    /// # Errors
    /// [`Failure::Usage`] if a side is empty, runs cannot be paired though asked for, or a gate names no metric.
    pub fn new(sides: [Vec<Observed>; 2], options: Options) -> Result<Self, Failure> {
        Self::above(sides, Vec::new(), options)
    }

    /// Compares two sides, with margins learnt from other runs, which are of one kernel and `alike`.
    ///
    /// # Errors
    /// As [`Report::new`]; [`Failure::Usage`] if those runs are too few, or not comparable with the side before.
    pub fn above(
        mut sides: [Vec<Observed>; 2],
        mut alike: Vec<Observed>,
        options: Options,
    ) -> Result<Self, Failure> {
        let both = [sides[0].as_slice(), sides[1].as_slice()];
        check(both)?;
        floor::check(&alike, both, &options)?;
        let comparability = gate::examine(both[0], both[1], &options.vary);
        let meant = configuration::meant(both, &options.vary);
        let starts = both.map(|side| side.iter().map(|o| o.run.start_real_ns).collect::<Vec<_>>());
        for side in sides.iter_mut().chain([&mut alike]) {
            configuration::take_off(side, &meant);
        }
        let mut report = Self {
            order: stats::order(&starts[0], &starts[1]),
            comparability,
            meant,
            pairs: None,
            rows: Vec::new(),
            kinds: Vec::new(),
            sweep: None,
            locks: None,
            details: Details::default(),
            quantiles: Vec::new(),
            budget: None,
            findings: Vec::new(),
            notes: Vec::new(),
            gates: Vec::new(),
            options,
            sides,
            alike,
        };
        if report.is_refused() {
            return Ok(report);
        }
        report.fill()?;
        Ok(report)
    }

    /// Whether nothing was compared because the sides may not be.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        !self.options.is_forced && !self.comparability.refusals.is_empty()
    }

    fn fill(&mut self) -> Result<(), Failure> {
        let sides = [self.sides[0].as_slice(), self.sides[1].as_slice()];
        let pairs = self.options.is_paired.then(|| pairs(sides)).transpose()?;
        self.pairs = pairs.as_ref().map(Vec::len);
        let gated: Vec<String> = self
            .options
            .gates
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        let halves = if self.options.is_halved {
            interleaved(sides)
        } else {
            Vec::new()
        };
        let headline::Made {
            mut rows,
            unlike,
            without_floor,
        } = headline::rows(
            sides[0],
            sides[1],
            &Making {
                min_effect: self.options.min_effect,
                pairs: pairs.as_deref(),
                alike: if self.options.is_halved {
                    &halves
                } else if self.options.is_aa {
                    sides[0]
                } else {
                    &self.alike
                },
                is_halved: self.options.is_halved,
                gated: &gated,
            },
        );
        let mixture = sides
            .map(configuration::mixture)
            .into_iter()
            .find(|keys| !keys.is_empty());
        if let Some(keys) = mixture {
            rows.retain(|row| !row.cell.is_empty());
            let mut all = sides.into_iter().flatten();
            if all.any(|run| run.kernel.is_some()) {
                self.notes.push(format!(
                    "runs of one side differ ({}): kernel figures are not pooled over them; compare runs of one \
                     configuration for those",
                    keys.join("; ")
                ));
            }
        } else {
            self.locks = locks::locks(
                sides,
                pairs.as_deref(),
                self.options.per,
                self.options.min_effect,
            );
            self.details = aspect::details(sides, pairs.as_deref(), self.options.per);
            self.quantiles = quantile::quantiles(sides, pairs.as_deref());
            self.budget = budget::budget(sides);
            self.kinds = kinds(sides);
        }
        let has_primary = rows.iter().any(|row| row.role == Role::Primary);
        let unmatched =
            configuration::unmatched(sides, &self.options.vary).filter(|_| !has_primary);
        if rows.is_empty() {
            let unlike = (!unlike.is_empty()).then(|| unlike.join("; "));
            let reason = unmatched
                .or(unlike)
                .unwrap_or_else(|| "see what each holds with \"faultscope report\"".to_owned());
            return Err(Failure::Usage(format!(
                "the sides have no figure in common: {reason}"
            )));
        }
        self.notes.extend(
            unmatched.map(|reason| format!("the sides have no primary figure in common: {reason}")),
        );
        self.notes.extend(unlike);
        self.notes.extend(floor::without(&without_floor));
        self.sweep = sweep::sweep(&rows, sides);
        self.rows = rows;
        self.gates = self.gated()?;
        let notes = self.limits(pairs.as_deref());
        self.notes.splice(0..0, notes);
        self.findings = finding::findings(&Look {
            sides: [self.sides[0].as_slice(), self.sides[1].as_slice()],
            rows: &self.rows,
            locks: self.locks.as_ref(),
            quantiles: &self.quantiles,
            budget: self.budget.as_ref(),
            sweep: self.sweep.as_ref(),
            comparability: &self.comparability,
        });
        Ok(())
    }

    /// What became of the gates.
    fn gated(&self) -> Result<Vec<Gated>, Failure> {
        let gate = |(metric, percent): &(String, f64)| {
            let of_name: Vec<&Row> = self
                .rows
                .iter()
                .filter(|r| r.id == *metric || r.title == *metric)
                .collect();
            if of_name.is_empty() {
                let mut names: Vec<&str> = self.rows.iter().map(|r| r.id.as_str()).collect();
                names.dedup();
                return Err(Failure::Usage(format!(
                    "there is no metric \"{metric}\" on both sides for --gate; there are {}",
                    names.join(", ")
                )));
            }
            // Spreads under the name of a figure go no way, and do not keep it from being judged.
            if of_name
                .iter()
                .all(|r| r.direction == stats::Direction::None)
            {
                return Err(Failure::Usage(format!(
                    "\"{metric}\" has no better direction, so --gate cannot judge it"
                )));
            }
            let is_beyond = |r: &&Row| {
                r.comparison
                    .is_beyond_gate(r.adjusted_p.unwrap_or(1.0), r.direction, *percent)
            };
            Ok(Gated {
                metric: metric.clone(),
                percent: *percent,
                is_regressed: of_name.iter().any(is_beyond),
            })
        };
        self.options.gates.iter().map(gate).collect()
    }

    /// What the number and the order of the runs limit.
    fn limits(&self, pairs: Option<&[(usize, usize)]>) -> Vec<String> {
        let mut notes = Vec::new();
        if self.options.is_forced && !self.comparability.refusals.is_empty() {
            let keys: Vec<&str> = self
                .comparability
                .refusals
                .iter()
                .map(|d| d.key.as_str())
                .collect();
            notes.push(format!(
                "FORCED: the sides are not comparable ({})",
                keys.join(", ")
            ));
        }
        let primary = self.rows.iter().find(|r| r.role == Role::Primary);
        let design = primary.map_or_else(
            || match pairs {
                Some(pairs) => Design::Pairs(pairs.len()),
                None => Design::Sides(self.sides[0].len(), self.sides[1].len()),
            },
            |row| row.comparison.design,
        );
        let percent = primary
            .filter(|_| self.sweep.is_none())
            .and_then(|r| r.comparison.shift.percent());
        let tested = self
            .rows
            .iter()
            .filter(|r| r.role == Role::Headline)
            .count();
        let summary = self.summary(percent);
        let is_summary = summary.is_some();
        notes.extend(summary.or_else(|| small_n(design, percent)));
        if !is_summary
            && design.smaller() > 1
            && tested > 1
            && design.floor() > stats::ALPHA / real(tested as u64)
            && let Some(least) = design.least(stats::ALPHA / real(tested as u64))
        {
            notes.push(format!(
                "{tested} headline metrics are tested together: one alone can stand out from n={least} on"
            ));
        }
        // Two single runs are blocked by nature.
        let is_several = self.sides.iter().any(|side| side.len() > 1);
        if is_several && let Some(warning) = self.order.and_then(Order::warning) {
            notes.push(warning.to_owned());
        }
        notes.extend(self.unpaired());
        notes.extend(self.meant.iter().map(|meant| {
            let [from, to] = &meant.values;
            format!(
                "{} {from} -> {to} is what --vary command means: figures are matched without it",
                meant.key
            )
        }));
        if self.comparability.are_hosts_unknown {
            notes.push("hosts unknown".to_owned());
        }
        let all: Vec<&Row> = self
            .rows
            .iter()
            .filter(|r| r.role == Role::Primary)
            .collect();
        notes.extend(floor::sentence(&all, self.options.is_halved));
        notes
    }

    /// Which runs have no partner.
    fn unpaired(&self) -> Option<String> {
        let pairs = self.pairs?;
        let [before, after] = [0, 1].map(|side| self.sides[side].len().saturating_sub(pairs));
        (before + after > 0).then(|| {
            format!(
                "{pairs} pairs: {before} of the runs before and {after} of those after have no partner in their round, and do \
                 not count in paired figures"
            )
        })
    }

    /// What must be known of means whose runs nobody counted; `None` if figures are of runs.
    fn summary(&self, percent: Option<f64>) -> Option<String> {
        let mut formats: Vec<&str> = self
            .sides
            .iter()
            .flatten()
            .flat_map(|o| &o.metrics)
            .filter(|m| m.is_summary())
            .map(|m| m.format.as_str())
            .collect();
        formats.sort_unstable();
        formats.dedup();
        let is_one = self.rows.iter().any(|row| row.is_summary);
        let difference = percent.map_or_else(String::new, |p| format!(" Difference {p:+.1} %."));
        is_one.then(|| {
            format!(
                "figures of {} are means, and of how many runs is not printed: n unknown, so no interval and no p.{difference} \
                 No verdict possible. Compare the runs themselves.",
                formats.join(" and ")
            )
        })
    }

    /// How it ends.
    #[must_use]
    pub fn outcome(&self, is_verdict_required: bool) -> Outcome {
        if self.is_refused() {
            return Outcome::NotComparable;
        }
        if self.gates.iter().any(|g| g.is_regressed) {
            return Outcome::Regressed;
        }
        let asked = |r: &&Row| {
            let is_gated = self
                .gates
                .iter()
                .any(|g| g.metric == r.id || g.metric == r.title);
            r.role == Role::Primary || is_gated
        };
        let is_open = |r: &Row| {
            matches!(
                r.verdict,
                None | Some(Verdict::Inconclusive | Verdict::Moved)
            )
        };
        let mut asked = self.rows.iter().filter(asked).peekable();
        // Where nothing is judged, there is no verdict either.
        if is_verdict_required && (asked.peek().is_none() || asked.any(is_open)) {
            return Outcome::Inconclusive;
        }
        Outcome::Fine
    }
}

/// The runs of which the sides are every other.
fn interleaved(sides: [&[Observed]; 2]) -> Vec<Observed> {
    let longest = sides[0].len().max(sides[1].len());
    let both = |i| [sides[0].get(i), sides[1].get(i)];
    (0..longest).flat_map(both).flatten().cloned().collect()
}

fn check(sides: [&[Observed]; 2]) -> Result<(), Failure> {
    if sides.iter().any(|side| side.is_empty()) {
        return Err(Failure::Usage("a side has no run".to_owned()));
    }
    for run in sides[0] {
        if let Some(same) = sides[1].iter().find(|o| o.run.id == run.run.id) {
            return Err(Failure::Usage(format!(
                "\"{}\" and \"{}\" are the same run, on both sides",
                run.file, same.file
            )));
        }
    }
    Ok(())
}

/// Pairs runs by their rounds.
fn pairs(sides: [&[Observed]; 2]) -> Result<Vec<(usize, usize)>, Failure> {
    let refuse = |reason: String| {
        Failure::Usage(format!(
            "--paired pairs runs by round: {reason}; make them with \"record --alternate\" or \"bench --reps\""
        ))
    };
    // A round of a sweep has a run for each configuration.
    let is_sweep = sides
        .iter()
        .any(|side| !configuration::mixture(side).is_empty());
    let rounds = |side: &[Observed]| -> Result<BTreeMap<(String, u32, String), usize>, Failure> {
        let mut found = BTreeMap::new();
        for (i, run) in side.iter().enumerate() {
            let Some(round) = &run.run.round else {
                return Err(refuse(format!("\"{}\" is of no round", run.file)));
            };
            let cells: BTreeSet<String> = run
                .metrics
                .iter()
                .filter(|_| is_sweep)
                .map(cell::cell)
                .collect();
            let cells: Vec<String> = cells.into_iter().collect();
            let place = (round.series.clone(), round.number, cells.join("; "));
            if found.insert(place, i).is_some() {
                return Err(refuse(format!("a side has round {} twice", round.number)));
            }
        }
        Ok(found)
    };
    let (before, after) = (rounds(sides[0])?, rounds(sides[1])?);
    let paired: Vec<(usize, usize)> = before
        .iter()
        .filter_map(|(round, i)| Some((*i, *after.get(round)?)))
        .collect();
    let series = |side: &[Observed]| -> BTreeSet<String> {
        let rounds = side.iter().filter_map(|run| run.run.round.as_ref());
        rounds.map(|round| round.series.clone()).collect()
    };
    if paired.is_empty() && !series(sides[0]).is_disjoint(&series(sides[1])) {
        return Err(refuse("the sides have no round in common".to_owned()));
    }
    if paired.is_empty() {
        return Err(Failure::Usage(
            "--paired pairs runs by round, and the rounds of the sides were not made in one go: they share nothing that \
             pairing takes out; compare without it, or make them with \"record --alternate\""
                .to_owned(),
        ));
    }
    Ok(paired)
}

/// Shares of each kind of fault; empty unless every run counted them.
fn kinds(sides: [&[Observed]; 2]) -> Vec<Kind> {
    let is_counted = |o: &Observed| {
        o.kernel
            .as_ref()
            .is_some_and(|k| k.faults.is_some_and(|n| n > 0))
    };
    if !sides.iter().all(|side| side.iter().all(is_counted)) {
        return Vec::new();
    }
    let Some(first) = sides[0].first().and_then(|o| o.kernel.as_ref()) else {
        return Vec::new();
    };
    let share = |o: &Observed, name: &str| -> Option<f64> {
        let kernel = o.kernel.as_ref()?;
        let (_, n) = kernel.kinds.iter().find(|(known, _)| known == name)?;
        Some(real(*n) / real(kernel.faults?))
    };
    first
        .kinds
        .iter()
        // What follows the kinds are other counts.
        .filter(|(name, _)| {
            name.starts_with("user ") || name.starts_with("kernel ") || name == "major"
        })
        .filter_map(|(name, _)| {
            let of_side = |side: &[Observed]| {
                median(
                    &side
                        .iter()
                        .filter_map(|o| share(o, name))
                        .collect::<Vec<_>>(),
                )
            };
            Some(Kind {
                name: name.clone(),
                share: [of_side(sides[0])?, of_side(sides[1])?],
            })
        })
        .filter(|kind| kind.share[0].max(kind.share[1]) >= 0.01)
        .collect()
}
