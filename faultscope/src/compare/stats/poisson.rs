//! Counts too small for a percentage.

use statrs::function::gamma::gamma_lr;

use super::{ALPHA, MIN_EVENTS};

/// A rate per run with its exact interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoissonInterval {
    /// Events per run.
    pub rate: f64,
    /// Lower end, events per run.
    pub low: f64,
    /// Upper end, events per run.
    pub high: f64,
}

/// The rate of `count` events in `runs` runs with its exact 95 % interval; `None` without runs.
///
/// Garwood (1936), Biometrika 28:437. The events are taken as independent: those of a burst are fewer than they seem.
#[must_use]
pub fn poisson_interval(count: u64, runs: usize) -> Option<PoissonInterval> {
    let runs = Some(super::real(runs)).filter(|n| *n > 0.0)?;
    let count = events(count);
    let low = if count > 0.0 {
        gamma_quantile(count, ALPHA / 2.0)
    } else {
        0.0
    };
    Some(PoissonInterval {
        rate: count / runs,
        low: low / runs,
        high: gamma_quantile(count + 1.0, 1.0 - ALPHA / 2.0) / runs,
    })
}

/// Events per run that are not exceeded with 95 % confidence when none were seen in `runs` runs: 3.0 / runs.
#[must_use]
pub fn poisson_upper(runs: usize) -> Option<f64> {
    let runs = Some(super::real(runs)).filter(|n| *n > 0.0)?;
    Some(-ALPHA.ln() / runs)
}

/// On which sides something was seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Presence {
    /// Not at all.
    Nowhere,
    /// Only after; before, at most so many per run.
    Appeared {
        /// 95 % upper bound of the rate before, events per run.
        upper: f64,
    },
    /// Only before; after, at most so many per run.
    Vanished {
        /// 95 % upper bound of the rate after, events per run.
        upper: f64,
    },
    /// On both, on one fewer than 20 times per run: a percentage would tell of chance.
    Rare,
    /// On both, often enough for a percentage.
    Both,
}

/// On which sides events were counted, from sums over the runs of each side; `None` if a side has no runs.
#[must_use]
pub fn presence(before: (u64, usize), after: (u64, usize)) -> Option<Presence> {
    let is_rare = |(count, runs): (u64, usize)| count < MIN_EVENTS.saturating_mul(runs as u64);
    let upper = (poisson_upper(before.1)?, poisson_upper(after.1)?);
    Some(match (before.0, after.0) {
        (0, 0) => Presence::Nowhere,
        (0, _) => Presence::Appeared { upper: upper.0 },
        (_, 0) => Presence::Vanished { upper: upper.1 },
        _ if is_rare(before) || is_rare(after) => Presence::Rare,
        _ => Presence::Both,
    })
}

#[expect(clippy::cast_precision_loss, reason = "below 2^52 events in a run")]
fn events(count: u64) -> f64 {
    count as f64
}

/// Quantile of the gamma distribution with this shape and scale 1, by halving: the distribution is monotone.
fn gamma_quantile(shape: f64, probability: f64) -> f64 {
    let (mut low, mut high) = (0.0, shape + 10.0 * shape.sqrt() + 20.0);
    // Each step halves an interval of some tens to relative 1e-12 at most.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if gamma_lr(shape, middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}
