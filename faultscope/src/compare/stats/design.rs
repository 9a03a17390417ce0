//! What the number of runs allows, before any value is seen.

use super::normal::Z_975;
use super::rank::{count_subsets, count_u, interval_rank};
use super::{EXACT_MAX, Method, real};

/// How many values there are and how they belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Design {
    /// Two independent sides of so many runs.
    Sides(usize, usize),
    /// So many pairs of runs.
    Pairs(usize),
}

/// The most runs per side or pairs that are proposed to a user.
const MAX_PROPOSED: usize = 64;

impl Design {
    /// Smallest two-sided p that the rank test can give: 2 / C(n + m, n), or 2 / 2^n for pairs; at most 1.
    #[must_use]
    pub fn floor(self) -> f64 {
        let arrangements = match self {
            Self::Sides(n, m) => {
                let (n, m) = (n.min(m), n.max(m));
                (1..=n).fold(1.0, |c, i| c * real(m + i) / real(i))
            }
            Self::Pairs(n) => 2_f64.powf(real(n)),
        };
        (2.0 / arrangements).min(1.0)
    }

    /// The rank of a 95 % interval among the sorted pairwise values, from both ends; `None` if no rank covers 95 %.
    ///
    /// Independent sides: 1 for 4 and 4, 3 for 5 and 5, 6 for 6 and 6, 14 for 8 and 8, 24 for 10 and 10.
    #[must_use]
    pub fn interval_rank(self) -> Option<(usize, Method)> {
        let (k, method) = match self {
            Self::Sides(n, m) if n.max(m) <= EXACT_MAX => {
                (interval_rank(&count_u(n, m)), Method::Exact)
            }
            Self::Pairs(n) if n <= EXACT_MAX => {
                let ranks: Vec<usize> = (1..=n).collect();
                (interval_rank(&count_subsets(&ranks)), Method::Exact)
            }
            // Hollander and Wolfe, (4.40) and (3.32), with the continuity correction that the tests have.
            Self::Sides(n, m) => {
                let product = real(n * m);
                let deviation = (product * real(n + m + 1) / 12.0).sqrt();
                (normal_rank(product / 2.0, deviation), Method::Normal)
            }
            Self::Pairs(n) => {
                let walsh = real(n * (n + 1));
                let deviation = (walsh * real(2 * n + 1) / 24.0).sqrt();
                (normal_rank(walsh / 4.0, deviation), Method::Normal)
            }
        };
        (k > 0).then_some((k, method))
    }

    /// Least number of runs per side, or of pairs, with which p can be `alpha` or less; `None` beyond 64.
    #[must_use]
    pub fn least(self, alpha: f64) -> Option<usize> {
        (2..=MAX_PROPOSED).find(|&n| {
            let design = match self {
                Self::Sides(..) => Self::Sides(n, n),
                Self::Pairs(_) => Self::Pairs(n),
            };
            design.floor() <= alpha
        })
    }

    /// The number of runs per side, or of pairs, that is proposed to a user: the least with which p can be `alpha` or
    /// less. Of independent sides one run more, so that it still can if one run is bad: n against n - 1. `None` beyond
    /// 64.
    ///
    /// 5 runs per side or 6 pairs for .05.
    #[must_use]
    pub fn enough(self, alpha: f64) -> Option<usize> {
        match self {
            Self::Sides(..) => (2..=MAX_PROPOSED).find(|&n| Self::Sides(n, n - 1).floor() <= alpha),
            Self::Pairs(_) => self.least(alpha),
        }
    }

    /// Runs of the smaller side, or pairs.
    #[must_use]
    pub fn smaller(self) -> usize {
        match self {
            Self::Sides(n, m) => n.min(m),
            Self::Pairs(n) => n,
        }
    }
}

/// The rank at which the normal approximation leaves 2.5 % below.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at least 0, and at most the number of pairwise values"
)]
fn normal_rank(mean: f64, deviation: f64) -> usize {
    (mean + 0.5 - Z_975 * deviation).floor().max(0.0) as usize
}
