//! A metric over configurations, such as numbers of threads: a ratio for each, and no single verdict.

use std::collections::BTreeSet;

use super::cell::cell;
use super::headline::{Role, Row};
use super::observed::Observed;
use super::stats::{Cell, Direction, Geomean, geomean};
use crate::model::scale::{AllSeries, Fit, OVER, Series};
use crate::sample::run::{Run, SOURCE};

/// The primary metric over its configurations.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// Name of the metric.
    pub metric: String,
    /// Ratios after / before, or turned over if less is better, by the cells' order.
    pub geomean: Option<Geomean>,
    /// What is counted in the fields below: `threads`, `processes` or another word of [`OVER`].
    pub over: &'static str,
    /// The same by that number, if cells have one.
    pub by_count: Vec<AtCount>,
    /// Efficiency by the number of threads, for each configuration that has a curve on both sides.
    pub curves: Vec<Curves>,
    /// Configurations of one side only, by side.
    pub one_sided: [Vec<String>; 2],
    /// Number from which on `after` is ahead, or behind, of where the other was below.
    pub crossovers: Vec<(u32, bool)>,
    /// Least number at which `after` gains 5 % or more and keeps it.
    pub gains_from: Option<u32>,
}

/// The cells of one number of threads, or of what else is counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AtCount {
    /// That number.
    pub count: u32,
    /// The Hodges-Lehmann ratio of its cell; of several, or of runs too few for an interval of that, the geometric mean
    /// of the ratios of their means.
    pub ratio: f64,
    /// 95 % interval, of exact ranks for a single cell, else by resampling runs; `None` with fewer than four.
    pub interval: Option<(f64, f64)>,
    /// Number of cells.
    pub cells: usize,
}

impl AtCount {
    /// Whether one side is ahead: where the interval holds 1, chance may have done it.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.interval
            .is_none_or(|(low, high)| low > 1.0 || high < 1.0)
    }
}

/// A throughput over the number of threads on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Curves {
    /// What sets it apart from others, as `gib 1`; empty if there is one.
    pub name: String,
    /// What is counted: `threads`, `processes` or another word of [`crate::model::scale::OVER`].
    pub over: &'static str,
    /// Threads, and efficiency before and after: the throughput over that of as many times the first point.
    pub efficiency: Vec<(u32, [f64; 2])>,
    /// Contention and coherence of the universal scalability law before and after, where it fits both sides whole.
    pub law: Option<[(f64, f64); 2]>,
    /// Why the law is not fitted, or weak: a sentence for each side that has a reason.
    pub doubts: Vec<String>,
}

/// What a gain is, as a ratio.
const GAIN: f64 = 1.05;

/// The number of a configuration such as `gib 1, threads 8`, of which `over` is `threads`, and the rest of it.
#[must_use]
pub fn count(cell: &str, over: &str) -> Option<(u32, String)> {
    let of_word = |word: &str| -> Option<u32> {
        let n = word.strip_prefix(over)?.strip_prefix(' ')?.parse().ok();
        n.filter(|n| *n > 0)
    };
    let n = cell.split(", ").find_map(of_word)?;
    let rest: Vec<&str> = cell.split(", ").filter(|w| of_word(w).is_none()).collect();
    Some((n, rest.join(", ")))
}

/// What the cells count: the first word of which they have several numbers, else the first they have at all.
fn counted(cells: &[&str]) -> &'static str {
    let numbers = |over: &str| -> BTreeSet<u32> {
        let all = cells.iter().filter_map(|cell| count(cell, over));
        all.map(|(n, _)| n).collect()
    };
    let first = |least: usize| OVER.into_iter().find(|over| numbers(over).len() >= least);
    first(2).or_else(|| first(1)).unwrap_or(OVER[0])
}

/// The sweep over the rows of the primary metric; `None` if it was measured in one configuration.
#[must_use]
pub fn sweep(rows: &[Row], sides: [&[Observed]; 2]) -> Option<Sweep> {
    let primary: Vec<&Row> = rows.iter().filter(|r| r.role == Role::Primary).collect();
    let metric = primary.first()?.id.clone();
    let cells = |side: &[Observed]| -> BTreeSet<String> {
        let of_metric = side
            .iter()
            .flat_map(|o| o.metrics.iter().filter(|m| m.name == metric));
        of_metric
            .map(cell)
            // Another statistic of a figure that has a row is no configuration of its own.
            .filter(|cell| {
                !rows
                    .iter()
                    .any(|r| r.id == metric && r.cell == *cell && r.role == Role::Context)
            })
            .collect()
    };
    let (before, after) = (cells(sides[0]), cells(sides[1]));
    let only = |here: &BTreeSet<String>, there: &BTreeSet<String>| -> Vec<String> {
        let mut cells: Vec<String> = here.difference(there).cloned().collect();
        cells.sort_by(|a, b| super::cell::order(a, b));
        cells
    };
    if before.union(&after).count() < 2 {
        return None;
    }
    // Runs that started at one known time are one run, in whatever cell; imported text has no times.
    let numbered = |values: &[(f64, u64)]| -> Vec<(usize, f64)> {
        let number = |(i, (value, start)): (usize, &(f64, u64))| {
            (
                usize::try_from(*start).ok().filter(|n| *n > 0).unwrap_or(i),
                *value,
            )
        };
        values.iter().enumerate().map(number).collect()
    };
    let as_cell = |row: &&Row| Cell {
        before: numbered(&row.before),
        after: numbered(&row.after),
        is_lower_better: row.direction == Direction::LowerIsBetter,
    };
    let all: Vec<Cell> = primary.iter().map(as_cell).collect();
    let over = counted(&primary.iter().map(|r| r.cell.as_str()).collect::<Vec<_>>());
    let number = |row: &Row| count(&row.cell, over).map(|(n, _)| n);
    let mut counts: Vec<u32> = primary.iter().filter_map(|r| number(r)).collect();
    counts.sort_unstable();
    counts.dedup();
    let by_count: Vec<AtCount> = counts
        .into_iter()
        .filter_map(|n| {
            let of_n: Vec<(&Row, &Cell)> = primary
                .iter()
                .copied()
                .zip(&all)
                .filter(|(row, _)| number(row) == Some(n))
                .collect();
            if let [(row, _)] = of_n.as_slice()
                && (row.comparison.shift.interval.is_some() || row.is_summary)
            {
                return alone(n, row);
            }
            // Too few pairs have no exact interval: the sides, resampled, have an approximate one.
            let cells: Vec<Cell> = of_n.into_iter().map(|(_, cell)| cell.clone()).collect();
            let found = geomean(&cells)?;
            Some(AtCount {
                count: n,
                ratio: found.ratio,
                interval: found.interval,
                cells: found.cells,
            })
        })
        .collect();
    Some(Sweep {
        crossovers: crossovers(&by_count),
        gains_from: gains_from(&by_count),
        geomean: geomean(&all),
        over,
        by_count,
        curves: curves(sides),
        one_sided: [only(&before, &after), only(&after, &before)],
        metric,
    })
}

/// The ratio of a single cell, as its own row has it.
fn alone(count: u32, row: &Row) -> Option<AtCount> {
    let shift = &row.comparison.shift;
    let ratio = |percent: f64| {
        let ratio = 1.0 + percent / 100.0;
        if row.direction == Direction::LowerIsBetter {
            1.0 / ratio
        } else {
            ratio
        }
    };
    let interval = shift.percent_interval().filter(|_| !row.is_summary);
    Some(AtCount {
        count,
        ratio: ratio(shift.percent()?),
        interval: interval.map(|(low, high)| {
            let (a, b) = (ratio(low), ratio(high));
            (a.min(b), a.max(b))
        }),
        cells: 1,
    })
}

/// Curves that both sides have.
fn curves(sides: [&[Observed]; 2]) -> Vec<Curves> {
    let all = sides.map(of_side);
    let same = |a: &Series, b: &Series| a.name == b.name && a.over == b.over && a.keys == b.keys;
    all[0]
        .iter()
        .filter_map(|before| Some((before, all[1].iter().find(|after| same(before, after))?)))
        .map(|(before, after)| {
            let both = [before, after];
            let points = before.scaling.curve.points.iter();
            let at = |n| after.scaling.curve.at(n).map(|p| p.efficiency);
            let efficiency = points.filter_map(|p| Some((p.n, [p.efficiency, at(p.n)?])));
            let whole = |series: &Series| -> Option<(f64, f64)> {
                let points = series.scaling.curve.points.len();
                let is_whole = |f: &&Fit| f.points == points;
                let fit = series.scaling.fits.iter().find(is_whole)?;
                Some((fit.law.s, fit.law.k))
            };
            let doubts = ["before", "after"]
                .iter()
                .zip(both)
                .filter_map(|(side, series)| {
                    let reasons: Vec<String> = series
                        .scaling
                        .refused
                        .iter()
                        .map(|doubt| doubt.reason(series.over))
                        .collect();
                    (!reasons.is_empty()).then(|| format!("{side}: {}", reasons.join("; ")))
                });
            let words: Vec<String> = before
                .keys
                .iter()
                .map(|(k, v)| format!("{k} {v}"))
                .collect();
            Curves {
                name: words.join(", "),
                over: before.over,
                efficiency: efficiency.collect(),
                law: whole(before).zip(whole(after)).map(|(a, b)| [a, b]),
                doubts: doubts.collect(),
            }
        })
        .collect()
}

/// The curves of a side. Its runs are alike, whatever files their texts came from.
fn of_side(side: &[Observed]) -> Vec<Series> {
    let without_source = |o: &Observed| {
        let mut run = o.run.clone();
        run.labels.remove(SOURCE);
        run
    };
    let runs: Vec<Run> = side.iter().map(without_source).collect();
    let metrics = side.iter().map(|o| o.metrics.as_slice());
    AllSeries::new(runs.iter().zip(metrics)).series
}

/// Where the ratio goes from 1 or below to above it (true), or back, and is still there at the next count.
fn crossovers(by_count: &[AtCount]) -> Vec<(u32, bool)> {
    let decided: Vec<&AtCount> = by_count.iter().filter(|at| at.is_decided()).collect();
    let is_up = |i: usize| decided[i].ratio > 1.0;
    (1..decided.len())
        .filter(|&i| is_up(i) != is_up(i - 1))
        // A side that is ahead at a single count is not ahead.
        .filter(|&i| i + 1 >= decided.len() || is_up(i + 1) == is_up(i))
        .map(|i| (decided[i].count, is_up(i)))
        .collect()
}

fn gains_from(by_count: &[AtCount]) -> Option<u32> {
    let is_gain = |at: &&AtCount| at.ratio >= GAIN && at.is_decided();
    let kept = by_count.iter().rev().take_while(is_gain);
    kept.last().map(|at| at.count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chance_alone_may_do_is_no_crossover_and_no_gain() {
        let at = |count, ratio, interval| AtCount {
            count,
            ratio,
            interval,
            cells: 1,
        };
        let known = |spread: Option<f64>| {
            [(1, 0.92), (2, 0.98), (4, 1.06), (8, 1.08)]
                .map(|(n, ratio)| at(n, ratio, spread.map(|s| (ratio - s, ratio + s))))
        };
        for sure in [known(None), known(Some(0.01))] {
            assert_eq!(crossovers(&sure), [(4, true)]);
            assert_eq!(gains_from(&sure), Some(4));
        }
        let vague = known(Some(0.1));
        assert!(crossovers(&vague).is_empty(), "{vague:?}");
        assert_eq!(gains_from(&vague), None);
    }
}
