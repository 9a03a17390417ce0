//! How often verdicts are wrong: thousands of comparisons of drawn runs, always the same ones.

use super::super::random::Random;
use super::super::*;

/// Comparisons for each number of runs and kind of noise.
const DRAWS: usize = 3000;

/// Margin of verdicts, as the command has it.
const MIN_EFFECT: f64 = 0.03;

/// How runs scatter.
#[derive(Debug, Clone, Copy)]
enum Noise {
    /// Log-normal, coefficient of variation 5 %.
    LogNormal,
    /// Three of ten runs 12 % higher, 1.5 % around both.
    Bimodal,
    /// One run of ten is 20 to 100 % higher.
    Outliers,
}

/// A source of runs.
struct Runs(Random);

impl Runs {
    /// Above 0, below 1.
    fn uniform(&mut self) -> f64 {
        real(self.0.below(1 << 50) + 1) / real((1 << 50) + 2)
    }

    /// Standard normal (Box and Muller, 1958).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn log_normal(&mut self, variation: f64) -> f64 {
        let sigma = (variation * variation).ln_1p().sqrt();
        (sigma * self.normal()).exp()
    }

    fn one(&mut self, noise: Noise) -> f64 {
        match noise {
            Noise::LogNormal => self.log_normal(0.05),
            Noise::Bimodal => {
                let level = if self.uniform() < 0.3 { 1.12 } else { 1.0 };
                level * self.log_normal(0.015)
            }
            Noise::Outliers => {
                let level = if self.uniform() < 0.1 {
                    1.2 + 0.8 * self.uniform()
                } else {
                    1.0
                };
                level * self.log_normal(0.03)
            }
        }
    }

    fn side(&mut self, noise: Noise, n: usize, ratio: f64) -> Vec<f64> {
        (0..n).map(|_| 100.0 * ratio * self.one(noise)).collect()
    }
}

/// Most that a share of `draws` may be when its true value is `share`: two standard errors above.
fn at_most(share: f64, draws: usize) -> f64 {
    share + 2.0 * (share * (1.0 - share) / real(draws)).sqrt()
}

fn share(of: usize, draws: usize) -> f64 {
    real(of) / real(draws)
}

#[test]
fn no_design_has_a_larger_size_or_a_smaller_coverage_than_it_says() {
    // Exact, by counting: what the simulations below can only estimate.
    for n in 4..=EXACT_MAX {
        let counts = rank::count_u(n, n);
        let all: f64 = counts.iter().sum();
        let size: f64 = (0..counts.len())
            .filter(|&u| rank::two_sided(&counts, u) <= ALPHA)
            .map(|u| counts[u])
            .sum();
        let (k, _) = Design::Sides(n, n)
            .interval_rank()
            .expect("four runs have one");
        let missed: f64 = 2.0 * counts[..k].iter().sum::<f64>();
        assert!(size / all <= 0.05 && missed / all <= 0.05, "n={n}");
    }
}

#[test]
fn identical_sides_and_intervals() {
    let mut runs = Runs(Random::new(1));
    for n in [4, 5, 8, 10] {
        for noise in [Noise::LogNormal, Noise::Bimodal, Noise::Outliers] {
            let (mut wrong, mut significant, mut covered) = (0, 0, 0);
            for _ in 0..DRAWS {
                let ratio = 1.1_f64;
                let before = runs.side(noise, n, 1.0);
                let same = runs.side(noise, n, 1.0);
                let compared = compare(&before, &same).expect("runs on both sides");
                let margin = Margin::new(MIN_EFFECT, 0.0, compared.before);
                let verdict =
                    compared.verdict(compared.test.p, ALPHA, Direction::HigherIsBetter, margin);
                significant += usize::from(compared.test.p <= ALPHA);
                wrong += usize::from(matches!(verdict, Verdict::Improved | Verdict::Regressed));
                let other: Vec<f64> = same.iter().map(|v| v * ratio).collect();
                let (low, high) = shift(&before, &other)
                    .and_then(|s| s.interval)
                    .expect("four runs have an interval");
                covered += usize::from(low <= ratio.ln() && ratio.ln() <= high);
            }
            let (wrong, significant, covered) = (
                share(wrong, DRAWS),
                share(significant, DRAWS),
                share(covered, DRAWS),
            );
            println!(
                "n={n} {noise:?}: false verdicts {:.1} %, p <= .05 {:.1} %, coverage {:.1} %",
                100.0 * wrong,
                100.0 * significant,
                100.0 * covered
            );
            assert!(wrong <= at_most(ALPHA, DRAWS) && significant <= at_most(ALPHA, DRAWS));
            assert!(covered >= 0.94);
        }
    }
}

#[test]
fn identical_paired_rounds_that_drift() {
    let mut runs = Runs(Random::new(2));
    for n in [6, 8, 10] {
        let (mut wrong, mut covered) = (0, 0);
        for _ in 0..DRAWS {
            // 0.4 % more with each round, which pairing takes out.
            let pair = |i: usize| {
                let level = 100.0 * (0.004 * real(i)).exp();
                (
                    level * runs.one(Noise::Outliers),
                    level * runs.one(Noise::Outliers),
                )
            };
            let pairs: Vec<(f64, f64)> = (0..n).map(pair).collect();
            let compared = compare_pairs(&pairs).expect("there are pairs");
            wrong += usize::from(compared.test.p <= ALPHA);
            let (low, high) = compared.shift.interval.expect("six pairs have one");
            covered += usize::from(low <= 0.0 && 0.0 <= high);
        }
        println!("{n} pairs: p <= .05 {wrong}, covered {covered} of {DRAWS}");
        assert!(share(wrong, DRAWS) <= at_most(ALPHA, DRAWS));
        assert!(share(covered, DRAWS) >= 0.94);
    }
}

#[test]
fn power_of_the_rank_test() {
    // Runs per side, true ratio, and how often it is found: compare.md, section 2.
    let mut runs = Runs(Random::new(3));
    for (n, ratio, expected) in [
        (5, 1.05, 0.19),
        (10, 1.05, 0.49),
        (20, 1.05, 0.83),
        (5, 1.10, 0.62),
        (8, 1.10, 0.93),
    ] {
        let found = (0..DRAWS)
            .filter(|_| {
                let before = runs.side(Noise::LogNormal, n, 1.0);
                let after = runs.side(Noise::LogNormal, n, ratio);
                mann_whitney(&before, &after).is_some_and(|t| t.p <= ALPHA)
            })
            .count();
        println!(
            "n={n} x{ratio}: power {:.3}, expected {expected}",
            share(found, DRAWS)
        );
        assert!(share(found, DRAWS) >= expected - 0.02);
    }
}

#[test]
fn families_of_headline_metrics() {
    // Six metrics, of which four did not change: one false verdict in any of them is an error of the family.
    const FAMILIES: usize = 1500;
    let mut runs = Runs(Random::new(4));
    let mut wrong = 0;
    for _ in 0..FAMILIES {
        let p: Vec<f64> = (0..6)
            .map(|metric| {
                let ratio = if metric < 4 { 1.0 } else { 1.2 };
                let before = runs.side(Noise::LogNormal, 8, 1.0);
                let after = runs.side(Noise::LogNormal, 8, ratio);
                mann_whitney(&before, &after).expect("runs on both sides").p
            })
            .collect();
        wrong += usize::from(holm(&p)[..4].iter().any(|p| *p <= ALPHA));
    }
    println!("family-wise errors: {wrong} of {FAMILIES}");
    assert!(share(wrong, FAMILIES) <= at_most(ALPHA, FAMILIES));
}

#[test]
fn forty_lock_classes() {
    const FAMILIES: usize = 400;
    let mut runs = Runs(Random::new(5));
    for (n, changed) in [(5, 0), (8, 0), (8, 10)] {
        let (mut with_any, mut false_share) = (0, 0.0);
        for _ in 0..FAMILIES {
            // 40 that did not change, and those that did.
            let p: Vec<f64> = (0..40 + changed)
                .map(|class| {
                    let ratio = if class < 40 { 1.0 } else { 1.3 };
                    let before = runs.side(Noise::LogNormal, n, 1.0);
                    let after = runs.side(Noise::LogNormal, n, ratio);
                    mann_whitney(&before, &after).expect("runs on both sides").p
                })
                .collect();
            let flagged = benjamini_hochberg(&p);
            let is_flagged = |q: &&f64| **q <= FDR;
            let wrong = flagged[..40].iter().filter(is_flagged).count();
            let all = flagged.iter().filter(is_flagged).count();
            with_any += usize::from(wrong > 0);
            false_share += if all > 0 {
                real(wrong) / real(all)
            } else {
                0.0
            };
        }
        let mean = false_share / real(FAMILIES);
        println!(
            "n={n}, {changed} of {} changed: {with_any} families with a false one, false share {mean:.3}",
            40 + changed
        );
        assert!(mean <= at_most(FDR, FAMILIES));
    }
}

#[test]
fn flags_are_rare_on_one_cluster_and_common_on_two() {
    let mut runs = Runs(Random::new(6));
    for n in [6, 8, 10, 20] {
        let count = |runs: &mut Runs, noise, has: fn(&[f64]) -> bool| {
            (0..DRAWS)
                .filter(|_| has(&runs.side(noise, n, 1.0)))
                .count()
        };
        let is_split = |v: &[f64]| clusters(v, 0.0).is_some();
        let is_apart = |v: &[f64]| !outliers(v, 0.0).is_empty();
        let alone = share(count(&mut runs, Noise::LogNormal, is_split), DRAWS);
        let two = share(count(&mut runs, Noise::Bimodal, is_split), DRAWS);
        let quiet = share(count(&mut runs, Noise::LogNormal, is_apart), DRAWS);
        let loud = share(count(&mut runs, Noise::Outliers, is_apart), DRAWS);
        println!("n={n}: two clusters {alone:.3} / {two:.3}, outliers {quiet:.3} / {loud:.3}");
        assert!(alone <= at_most(ALPHA, DRAWS) && loud > 2.0 * quiet);
        // Of twenty runs in two clusters one often lies between them.
        assert!(two > 0.4 || n > 10);
    }
}

/// Plain quantiles of resampled means hold the truth in nine of ten with so few runs.
#[test]
fn intervals_of_means_over_cells_hold_the_truth() {
    const TRIALS: usize = 200;
    const RUNS: usize = 5;
    const CELLS: usize = 3;
    let mut runs = Runs(Random::new(11));
    let mut side = |first: usize| -> Vec<(usize, f64)> {
        (first..first + RUNS)
            .map(|run| (run, runs.log_normal(0.05)))
            .collect()
    };
    let (mut held, mut width) = (0, 0.0);
    for _ in 0..TRIALS {
        let cells: Vec<Cell> = (0..CELLS)
            .map(|cell| Cell {
                before: side(cell * RUNS),
                after: side(cell * RUNS),
                is_lower_better: false,
            })
            .collect();
        let (low, high) = geomean(&cells)
            .and_then(|mean| mean.interval)
            .expect("five runs of each cell");
        held += usize::from(low <= 1.0 && 1.0 <= high);
        width += (high / low).ln() / real(TRIALS);
    }
    println!("intervals that hold 1: {held} of {TRIALS}, {width:.3} wide");
    // The mean of three ratios of means of five, 5 % each, is known to 1.8 %: four of it at best, not the double.
    assert!(width < 2.0 * 4.0 * 0.018, "{width}");
    assert!(held >= TRIALS * 94 / 100, "{held} of {TRIALS}");
}
