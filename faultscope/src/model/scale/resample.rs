//! Intervals of the law's numbers, by drawing runs anew at each number of threads.
//!
//! B. Efron, R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13: percentile intervals. With few runs
//! they are too narrow, so whoever shows them says that they are approximate.

use super::efficiency::geometric_mean;
use super::{Law, Point};

/// Times that the runs are drawn anew.
pub const DRAWS: usize = 1000;

/// Seed of the draws: the same runs give the same interval.
const SEED: u64 = 0x66_6c_74_73_63_70;

/// Middle 95 % of the numbers of laws fitted to runs drawn anew.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Of contention.
    pub s: [f64; 2],
    /// Of coherence.
    pub k: [f64; 2],
    /// Of the number of threads with the greatest throughput; an end is `None` where there is no peak.
    pub peak: [Option<f64>; 2],
    /// Fewest runs at any number of threads.
    pub runs: usize,
}

/// The interval of `law`, fitted to `points`; `None` unless each has two runs or more.
pub(super) fn interval(law: &Law, points: &[Point]) -> Option<Interval> {
    let runs = points.iter().map(|p| p.runs.len()).min()?;
    if runs < 2 {
        return None;
    }
    let mut random = Random(SEED);
    let mut laws = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        let drawn: Vec<(u32, f64)> = points
            .iter()
            .map(|point| {
                let all = &point.runs;
                let runs: Vec<f64> = all.iter().map(|_| all[random.below(all.len())]).collect();
                (point.n, geometric_mean(&runs))
            })
            .collect();
        laws.push(law.fit_near(&drawn)?);
    }
    let middle = |of: &dyn Fn(&Law) -> f64| {
        let mut values: Vec<f64> = laws.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        // Of 1000 sorted values the 26th and the 975th.
        [values[DRAWS / 40], values[DRAWS - 1 - DRAWS / 40]]
    };
    let peak = middle(&|law| law.peak().unwrap_or(f64::INFINITY));
    Some(Interval {
        s: middle(&|law| law.s),
        k: middle(&|law| law.k),
        peak: peak.map(|n| n.is_finite().then_some(n)),
        runs,
    })
}

/// Numbers that look drawn: SplitMix64, G. L. Steele and others, OOPSLA 2014.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is small: the bias of the remainder is not seen.
    fn below(&mut self, n: usize) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "below n")]
        let at = (self.next() % n.max(1) as u64) as usize;
        at
    }
}
