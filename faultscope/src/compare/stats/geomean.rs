//! The geometric mean of ratios over cells, such as thread counts or benchmarks.

use std::collections::BTreeMap;

use super::normal::{Z_975, two_sided};
use super::random::Random;
use super::real;

/// Fewest runs, of those that cover the same cells, that are resampled.
pub const MIN_RESAMPLED: usize = 4;

/// Runs per side below which the interval is called approximate.
const APPROXIMATE_BELOW: usize = 20;

/// Times the runs are drawn again: enough that some lie beyond the ends of four runs' interval.
const DRAWS: usize = 10_000;

/// Any number: it only has to be the same each time.
const SEED: u64 = 0x6661_756c_7473_636f;

/// A cell: values of both sides, each with the number of its run among the runs of its side.
///
/// A run that covers several cells stands in each under the same number, and is drawn for all of them together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cell {
    /// Run and value before.
    pub before: Vec<(usize, f64)>,
    /// Run and value after.
    pub after: Vec<(usize, f64)>,
    /// Whether a lower value is better: its ratio is turned over, so that above 1 is better everywhere.
    pub is_lower_better: bool,
}

/// A geometric mean of ratios after / before, above 1 for better.
#[derive(Debug, Clone, PartialEq)]
pub struct Geomean {
    /// The mean.
    pub ratio: f64,
    /// 95 % interval by resampling runs; `None` with fewer than four runs to draw from.
    pub interval: Option<(f64, f64)>,
    /// Whether a side has fewer than 20 runs: the interval is widened for that, and not exact.
    pub is_approximate: bool,
    /// Number of cells in it.
    pub cells: usize,
    /// Cells that only one side has, by index.
    pub left_out: Vec<usize>,
    /// Index and ratio of the worst cell.
    pub worst: (usize, f64),
    /// Index and ratio of the best cell.
    pub best: (usize, f64),
}

/// The mean over the cells of both sides; `None` if there is none, or a value is 0, below it or not finite.
///
/// The ratio of a cell is that of the means of its values. Runs are drawn with replacement among those that cover the
/// same cells (Efron and Tibshirani, 1993, chapter 13), never cells: these are no sample of anything.
#[must_use]
pub fn geomean(cells: &[Cell]) -> Option<Geomean> {
    let is_common = |c: &Cell| !c.before.is_empty() && !c.after.is_empty();
    let (common, left_out): (Vec<usize>, Vec<usize>) =
        (0..cells.len()).partition(|&i| is_common(&cells[i]));
    let values = common
        .iter()
        .flat_map(|&i| cells[i].before.iter().chain(&cells[i].after));
    if common.is_empty() || values.into_iter().any(|(_, v)| !v.is_finite() || *v <= 0.0) {
        return None;
    }
    let lists = |of: fn(&Cell) -> &[(usize, f64)]| -> Vec<&[(usize, f64)]> {
        common.iter().map(|&i| of(&cells[i])).collect()
    };
    let before = Side::new(&lists(|c| &c.before));
    let after = Side::new(&lists(|c| &c.after));
    let inverted: Vec<bool> = common.iter().map(|&i| cells[i].is_lower_better).collect();
    let logs = log_ratios(
        &before.means(&before.once()),
        &after.means(&after.once()),
        &inverted,
    );
    let at = |i: usize| (common[i], logs[i].exp());
    let by_ratio = |a: &usize, b: &usize| logs[*a].total_cmp(&logs[*b]);
    let smallest = before.smallest().min(after.smallest());
    Some(Geomean {
        ratio: mean(&logs).exp(),
        interval: (smallest >= MIN_RESAMPLED)
            .then(|| resample(&before, &after, &inverted, tail(smallest))),
        is_approximate: smallest < APPROXIMATE_BELOW,
        cells: common.len(),
        left_out,
        worst: at((0..logs.len()).min_by(by_ratio)?),
        best: at((0..logs.len()).max_by(by_ratio)?),
    })
}

/// Draws that lie beyond each end of a 95 % interval from `runs` runs.
///
/// The quantiles of resampled means are those of the normal distribution with a deviation that is too small by the root
/// of (n - 1) / n. Those further out stand where Student's t would (Hesterberg, 2015, The American Statistician 69:371,
/// "expanded percentile intervals"); of five runs plain ones hold the truth nine times of ten.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of the draws"
)]
fn tail(runs: usize) -> usize {
    let n = real(runs);
    let out = (n / (n - 1.0)).sqrt() * student_975(n - 1.0);
    (0.5 * two_sided(out) * real(DRAWS)) as usize
}

/// The 97.5 % quantile of Student's t, off by less than .005 from 3 degrees of freedom on: Cornish and Fisher's expansion
/// (Abramowitz and Stegun, 26.7.5).
fn student_975(freedom: f64) -> f64 {
    let z = Z_975;
    let square = z * z;
    let terms = [
        (square + 1.0) / 4.0,
        ((5.0 * square + 16.0) * square + 3.0) / 96.0,
        (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0,
        ((((79.0 * square + 776.0) * square + 1482.0) * square - 1920.0) * square - 945.0)
            / 92160.0,
    ];
    let sum = terms
        .iter()
        .rev()
        .fold(0.0, |sum, term| (sum + term) / freedom);
    z * (1.0 + sum)
}

fn resample(before: &Side, after: &Side, inverted: &[bool], tail: usize) -> (f64, f64) {
    let mut random = Random::new(SEED);
    let mut drawn: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let from = before.means(&before.draw(&mut random));
            let to = after.means(&after.draw(&mut random));
            mean(&log_ratios(&from, &to, inverted))
        })
        .collect();
    drawn.sort_by(f64::total_cmp);
    (drawn[tail].exp(), drawn[DRAWS - 1 - tail].exp())
}

fn log_ratios(before: &[f64], after: &[f64], inverted: &[bool]) -> Vec<f64> {
    let pairs = before.iter().zip(after).zip(inverted);
    pairs
        .map(|((from, to), is_inverted)| {
            let log = (to / from).ln();
            if *is_inverted { -log } else { log }
        })
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / real(values.len())
}

/// The runs of a side.
struct Side {
    /// Values of each cell, each with the place of its run in `weights`.
    cells: Vec<Vec<(usize, f64)>>,
    /// Places of runs that cover the same cells.
    strata: Vec<Vec<usize>>,
    runs: usize,
}

impl Side {
    fn new(cells: &[&[(usize, f64)]]) -> Self {
        let mut places = BTreeMap::new();
        let mut covers: Vec<Vec<usize>> = Vec::new();
        let mut placed = Vec::new();
        for (cell, values) in cells.iter().enumerate() {
            let mut row = Vec::with_capacity(values.len());
            for (run, value) in *values {
                let place = *places.entry(*run).or_insert_with(|| {
                    covers.push(Vec::new());
                    covers.len() - 1
                });
                covers[place].push(cell);
                row.push((place, *value));
            }
            placed.push(row);
        }
        let mut strata: BTreeMap<&[usize], Vec<usize>> = BTreeMap::new();
        for (place, cover) in covers.iter().enumerate() {
            strata.entry(cover).or_default().push(place);
        }
        Self {
            cells: placed,
            strata: strata.into_values().collect(),
            runs: covers.len(),
        }
    }

    fn smallest(&self) -> usize {
        self.strata.iter().map(Vec::len).min().unwrap_or_default()
    }

    /// Each run once.
    fn once(&self) -> Vec<f64> {
        vec![1.0; self.runs]
    }

    /// How often each run was drawn.
    fn draw(&self, random: &mut Random) -> Vec<f64> {
        let mut weights = vec![0.0; self.runs];
        for stratum in &self.strata {
            for _ in 0..stratum.len() {
                weights[stratum[random.below(stratum.len())]] += 1.0;
            }
        }
        weights
    }

    /// Weighted mean of each cell. Every stratum is drawn from, so no cell is without weight.
    fn means(&self, weights: &[f64]) -> Vec<f64> {
        let cell = |values: &Vec<(usize, f64)>| {
            let total: f64 = values.iter().map(|(run, _)| weights[*run]).sum();
            let sum: f64 = values
                .iter()
                .map(|(run, value)| weights[*run] * value)
                .sum();
            sum / total
        };
        self.cells.iter().map(cell).collect()
    }
}
