//! The universal scalability law, fitted to a curve.
//!
//! `X(n) = lam n / (1 + s (n - 1) + k n (n - 1))`: N. J. Gunther, "Guerrilla Capacity Planning", 2007, chapter 4. `s` is
//! the share of the work that only one thread at a time can do, `k` what keeping each pair of threads coherent costs.

/// Values of `s` and `k` that the search begins with: the sum of squares may have more than one valley.
const STARTS: [f64; 4] = [0.0, 1e-4, 1e-2, 0.3];
/// Steps of a search at most.
const STEPS: usize = 200;

/// The law with its three numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Law {
    /// Throughput of one thread that the law gives, operations per second.
    pub lam: f64,
    /// Contention, 0 or more: what a thread adds to the time of each other one, as a share of an operation.
    pub s: f64,
    /// Coherence, 0 or more: what a pair of threads adds, as a share of an operation.
    pub k: f64,
}

impl Law {
    /// Throughput at `n` threads, operations per second.
    #[must_use]
    pub fn per_sec(&self, n: f64) -> f64 {
        self.lam * n / divisor(n, self.s, self.k)
    }

    /// Number of threads with the greatest throughput, `sqrt((1 - s) / k)`, at least 1; `None` if more threads are
    /// always faster.
    #[must_use]
    pub fn peak(&self) -> Option<f64> {
        let n = ((1.0 - self.s).max(0.0) / self.k).sqrt();
        // 0 by 0 has no peak either: the throughput stays at that of one thread.
        n.is_finite().then_some(n.max(1.0))
    }

    /// The law of the least sum of squared log residuals, each point with the same weight.
    ///
    /// Points are a number of threads and operations per second. `None` for fewer than three, which the law's three
    /// numbers would meet exactly.
    #[must_use]
    pub fn fit(points: &[(u32, f64)]) -> Option<Self> {
        let starts = STARTS.iter().flat_map(|s| STARTS.map(|k| [*s, k]));
        Self::search(points, starts)
    }

    /// The same for points that are near those this law was fitted to.
    #[must_use]
    pub(super) fn fit_near(&self, points: &[(u32, f64)]) -> Option<Self> {
        Self::search(points, [[self.s, self.k], [STARTS[2], STARTS[1]]])
    }

    fn search(points: &[(u32, f64)], starts: impl IntoIterator<Item = [f64; 2]>) -> Option<Self> {
        if points.len() < 3 {
            return None;
        }
        let data: Vec<(f64, f64)> = points
            .iter()
            .map(|(n, per_sec)| (f64::from(*n), (per_sec / f64::from(*n)).ln()))
            .collect();
        let (_, [s, k]) = starts
            .into_iter()
            .map(|start| descend(&data, start))
            .min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(Self {
            lam: log_lam(&data, [s, k]).exp(),
            s,
            k,
        })
    }

    /// The point that the law misses most, and by what share of the throughput measured there.
    #[must_use]
    pub fn worst(&self, points: &[(u32, f64)]) -> Option<(u32, f64)> {
        points
            .iter()
            .map(|(n, per_sec)| (*n, (self.per_sec(f64::from(*n)) / per_sec - 1.0).abs()))
            .max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

fn divisor(n: f64, s: f64, k: f64) -> f64 {
    1.0 + s * (n - 1.0) + k * n * (n - 1.0)
}

/// The best `ln lam` for given `s` and `k`: the mean of what is left.
fn log_lam(data: &[(f64, f64)], [s, k]: [f64; 2]) -> f64 {
    let sum: f64 = data.iter().map(|(n, y)| y + divisor(*n, s, k).ln()).sum();
    #[expect(clippy::cast_precision_loss, reason = "a number of points")]
    let count = data.len() as f64;
    sum / count
}

fn squares(data: &[(f64, f64)], at: [f64; 2]) -> f64 {
    let lam = log_lam(data, at);
    data.iter()
        .map(|(n, y)| (y + divisor(*n, at[0], at[1]).ln() - lam).powi(2))
        .sum()
}

/// Levenberg-Marquardt on `s` and `k`, cut off at 0, with `lam` eliminated: the sum of squares and where it is.
fn descend(data: &[(f64, f64)], start: [f64; 2]) -> (f64, [f64; 2]) {
    let (mut at, mut best) = (start, squares(data, start));
    let mut damping = 1e-3;
    for _ in 0..STEPS {
        let [mut gradient, mut curvature] = [[0.0; 2]; 2];
        let mut cross = 0.0;
        let lam = log_lam(data, at);
        let slope = |n: f64| {
            let d = divisor(n, at[0], at[1]);
            [(n - 1.0) / d, n * (n - 1.0) / d]
        };
        #[expect(clippy::cast_precision_loss, reason = "a number of points")]
        let count = data.len() as f64;
        let mean = [0, 1].map(|i| data.iter().map(|(n, _)| slope(*n)[i]).sum::<f64>() / count);
        for (n, y) in data {
            let residual = y + divisor(*n, at[0], at[1]).ln() - lam;
            let d = [0, 1].map(|i| slope(*n)[i] - mean[i]);
            for i in 0..2 {
                gradient[i] += residual * d[i];
                curvature[i] += d[i] * d[i];
            }
            cross += d[0] * d[1];
        }
        // A number at its bound that would go below it stays.
        let is_held = [0, 1].map(|i| at[i] <= 0.0 && gradient[i] > 0.0);
        let mut moved = false;
        while damping < 1e12 {
            let diagonal = curvature.map(|c| c * (1.0 + damping) + f64::MIN_POSITIVE);
            let step = match is_held {
                [true, true] => return (best, at),
                [true, false] => [0.0, -gradient[1] / diagonal[1]],
                [false, true] => [-gradient[0] / diagonal[0], 0.0],
                [false, false] => {
                    let determinant = diagonal[0] * diagonal[1] - cross * cross;
                    [
                        (cross * gradient[1] - diagonal[1] * gradient[0]) / determinant,
                        (cross * gradient[0] - diagonal[0] * gradient[1]) / determinant,
                    ]
                }
            };
            let next = [0, 1].map(|i| (at[i] + step[i]).max(0.0));
            let sum = squares(data, next);
            if sum < best {
                let is_done = best - sum <= best * 1e-14;
                (at, best, damping) = (next, sum, damping / 10.0);
                if is_done {
                    return (best, at);
                }
                moved = true;
                break;
            }
            damping *= 10.0;
        }
        if !moved {
            break;
        }
    }
    (best, at)
}
