//! Speed-up, efficiency and gain of each number of threads.

use std::collections::BTreeMap;

/// Efficiency above which a point is flagged: more than its share of the load is done by no thread that only shares.
pub const ABOVE_LINEAR: f64 = 1.02;

/// One run at one number of threads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// Threads, processes or tasks, from 1.
    pub n: u32,
    /// Operations per second, all threads together; finite and above 0.
    pub per_sec: f64,
    /// CPU time for one operation, ns, all CPUs together, where it is known.
    pub cpu_ns_per_op: Option<f64>,
}

/// What was seen at one number of threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Threads, processes or tasks.
    pub n: u32,
    /// Throughput of each run, operations per second, in the order given.
    pub runs: Vec<f64>,
    /// Geometric mean of the runs, operations per second.
    pub per_sec: f64,
    /// Throughput over that of the base.
    pub speedup: f64,
    /// Speed-up over the number of threads of a base of 1: `X(n) / (n X(1))`.
    pub efficiency: f64,
    /// Mean CPU time for one operation, ns, where a run tells.
    pub cpu_ns_per_op: Option<f64>,
    /// What each thread beyond the point before brought, as a share of what a thread of the base does; below 0 it cost.
    pub marginal: Option<f64>,
}

impl Point {
    /// Whether it does more than its share: a bad base, more cache, or memory of another node.
    #[must_use]
    pub fn is_above_linear(&self) -> bool {
        self.efficiency > ABOVE_LINEAR
    }
}

/// Throughput by the number of threads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve {
    /// Points by ascending number of threads, each once.
    pub points: Vec<Point>,
}

impl Curve {
    /// The points of `observations`; runs at the same number of threads make one.
    ///
    /// Observations without threads, or with a throughput that is not above 0 and finite, are left out: nothing can be
    /// divided by them. The base is the point with the fewest threads. If that is not 1, efficiency is
    /// `n0 X(n) / (n X(n0))`.
    #[must_use]
    pub fn new(observations: &[Observation]) -> Self {
        let mut by_n: BTreeMap<u32, Vec<&Observation>> = BTreeMap::new();
        for one in observations {
            if one.n > 0 && one.per_sec.is_finite() && one.per_sec > 0.0 {
                by_n.entry(one.n).or_default().push(one);
            }
        }
        let mut points: Vec<Point> = Vec::with_capacity(by_n.len());
        for (n, runs) in by_n {
            let runs_per_sec: Vec<f64> = runs.iter().map(|o| o.per_sec).collect();
            let per_sec = geometric_mean(&runs_per_sec);
            let threads = f64::from(n);
            // A thread's share at the base; the first point is its own.
            let share = points
                .first()
                .map_or(per_sec / threads, |base| base.per_sec / f64::from(base.n));
            let marginal = points
                .last()
                .map(|before| (per_sec - before.per_sec) / (threads - f64::from(before.n)) / share);
            let base = points.first().map_or(per_sec, |base| base.per_sec);
            let cpu: Vec<f64> = runs.iter().filter_map(|o| o.cpu_ns_per_op).collect();
            points.push(Point {
                n,
                runs: runs_per_sec,
                per_sec,
                speedup: per_sec / base,
                efficiency: per_sec / (threads * share),
                cpu_ns_per_op: mean(&cpu),
                marginal,
            });
        }
        Self { points }
    }

    /// Threads of the point that efficiency is relative to.
    #[must_use]
    pub fn base(&self) -> Option<u32> {
        self.points.first().map(|point| point.n)
    }

    /// The point with the greatest throughput, the first of such: the peak as measured.
    #[must_use]
    pub fn best(&self) -> Option<&Point> {
        self.points
            .iter()
            .rev()
            .max_by(|a, b| a.per_sec.total_cmp(&b.per_sec))
    }

    /// The point at `n` threads.
    #[must_use]
    pub fn at(&self, n: u32) -> Option<&Point> {
        self.points.iter().find(|point| point.n == n)
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a number of runs")]
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Mean on a log scale: the one whose distance to the runs the law's fit measures.
pub(super) fn geometric_mean(values: &[f64]) -> f64 {
    match values {
        // Exact: its digits are shown beside the workload's own.
        [only] => *only,
        _ => {
            let logs: Vec<f64> = values.iter().map(|x| x.ln()).collect();
            mean(&logs).map_or(f64::NAN, f64::exp)
        }
    }
}
