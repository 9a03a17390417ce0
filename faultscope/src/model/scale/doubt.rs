//! When a fit of the law says nothing, or little, and why.

use std::collections::BTreeMap;

use super::{Curve, Law, Point};

/// Different numbers of threads that a fit needs to be shown at all.
pub const FEWEST: usize = 5;
/// Different numbers of threads that a fit needs to be sound.
pub const SOUND: usize = 6;
/// Most that a sound fit is off the throughput at any point, as a share of it.
pub const MOST_RESIDUAL: f64 = 0.15;
/// Efficiency at the knee: what contention and coherence take is as much as what is left.
pub const KNEE: f64 = 0.5;

/// A fall of throughput that begins a valley, as a share.
const FALL: f64 = 0.03;
/// A rise after it that ends one, as a share.
const RISE: f64 = 0.05;

/// Something of the machine that its threads run out of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// How many threads there are enough for.
    pub n: u32,
    /// What of, for a sentence: `CPUs of a node`.
    pub what: String,
}

/// Why the law is not fitted to all points, or what makes a fit weak.
#[derive(Debug, Clone, PartialEq)]
pub enum Doubt {
    /// There are fewer different numbers of threads than [`SOUND`].
    Few {
        /// How many there are.
        points: usize,
    },
    /// More threads than the machine has something for: another limit begins there.
    Beyond {
        /// Most threads measured.
        n: u32,
        /// What they are more than.
        limit: Limit,
    },
    /// Throughput falls and rises again, which no curve of the law does.
    Valley(Valley),
    /// The measurement ends where threads still do most of their share.
    BeforeKnee {
        /// Most threads measured.
        n: u32,
        /// Efficiency there.
        efficiency: f64,
    },
    /// The law misses a point.
    Residual {
        /// Threads of the point.
        n: u32,
        /// By what share of the throughput measured.
        share: f64,
    },
}

/// A fall of throughput followed by a rise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Valley {
    /// Threads where it begins.
    pub from: u32,
    /// Threads at its bottom.
    pub bottom: u32,
    /// Threads where it has risen most.
    pub to: u32,
    /// By what share throughput falls.
    pub fall: f64,
    /// By what share of the bottom's it rises.
    pub rise: f64,
}

impl Valley {
    /// The first valley of `points`.
    #[must_use]
    pub fn first(points: &[Point]) -> Option<Self> {
        let mut points = points.iter();
        let mut high = points.next()?;
        let mut low = high;
        let mut found: Option<(&Point, &Point, &Point)> = None;
        for point in points {
            if let Some((_, _, top)) = &mut found {
                // The rise goes on, or it has ended.
                if point.per_sec <= top.per_sec {
                    break;
                }
                *top = point;
            } else if low.per_sec < high.per_sec * (1.0 - FALL)
                && point.per_sec > low.per_sec * (1.0 + RISE)
            {
                found = Some((high, low, point));
            } else if point.per_sec > high.per_sec {
                (high, low) = (point, point);
            } else if point.per_sec < low.per_sec {
                low = point;
            }
        }
        found.map(|(high, low, top)| Self {
            from: high.n,
            bottom: low.n,
            to: top.n,
            fall: 1.0 - low.per_sec / high.per_sec,
            rise: top.per_sec / low.per_sec - 1.0,
        })
    }
}

impl Doubt {
    /// What forbids the law for all of `curve`, before anything is fitted.
    #[must_use]
    pub(super) fn of_curve(curve: &Curve, limits: &[Limit]) -> Vec<Self> {
        let mut doubts = Vec::new();
        if let Some(last) = curve.points.last() {
            // The narrowest is the first to be felt.
            let limit = limits.iter().filter(|l| l.n < last.n).min_by_key(|l| l.n);
            doubts.extend(limit.map(|limit| Self::Beyond {
                n: last.n,
                limit: limit.clone(),
            }));
        }
        doubts.extend(Valley::first(&curve.points).map(Self::Valley));
        doubts
    }

    /// What makes `law` weak for `points`, which it was fitted to.
    #[must_use]
    pub(super) fn of_fit(law: &Law, points: &[Point]) -> Vec<Self> {
        let mut doubts = Self::of_number(points.len());
        if let Some(last) = points.last()
            && last.efficiency > KNEE
        {
            doubts.push(Self::BeforeKnee {
                n: last.n,
                efficiency: last.efficiency,
            });
        }
        doubts.extend(Self::of_residuals(law, points));
        doubts
    }

    pub(super) fn of_number(points: usize) -> Vec<Self> {
        let few = (points < SOUND).then_some(Self::Few { points });
        few.into_iter().collect()
    }

    pub(super) fn of_residuals(law: &Law, points: &[Point]) -> Option<Self> {
        let (n, share) = law.worst(&rates(points))?;
        // A residual that is no number is no small one.
        (share.is_nan() || share > MOST_RESIDUAL).then_some(Self::Residual { n, share })
    }

    /// The doubt as a clause; `unit` names what is counted: `threads`.
    #[must_use]
    pub fn reason(&self, unit: &str) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        match self {
            Self::Few { points } => {
                format!("it takes {SOUND} different numbers of {unit}, and there are {points}")
            }
            Self::Beyond { n, limit } => format!(
                "{n} {unit} are more than the {} {}: beyond them another limit begins",
                limit.n, limit.what
            ),
            Self::Valley(valley) => format!(
                "throughput falls by {} from {} to {} {unit} and rises by {} to {}: no curve of the law has a valley",
                percent(valley.fall),
                valley.from,
                valley.bottom,
                percent(valley.rise),
                valley.to
            ),
            Self::BeforeKnee { n, efficiency } => format!(
                "at {n} {unit}, the most measured, efficiency is still {}: the knee ({}) lies beyond, and what bends the \
                 curve there was not seen",
                percent(*efficiency),
                percent(KNEE)
            ),
            Self::Residual { n, share } => format!(
                "the law is {} off the throughput at {n} {unit}, and {} is the most it may be",
                percent(*share),
                percent(MOST_RESIDUAL)
            ),
        }
    }
}

impl Limit {
    /// What runs out at which number of threads, of a machine described as the fact `topology` of a run is:
    /// `node 0 LLC 0: 4 CPUs, 2 cores; …`. Other text gives none.
    #[must_use]
    pub fn of_topology(text: &str) -> Vec<Self> {
        let mut nodes: BTreeMap<u32, u32> = BTreeMap::new();
        let (mut cpus, mut cores) = (0_u32, 0_u32);
        for cache in text.split("; ") {
            let words: Vec<&str> = cache.split_whitespace().collect();
            let [
                "node",
                node,
                "LLC",
                _,
                some_cpus,
                "CPUs,",
                some_cores,
                "cores",
            ] = words[..]
            else {
                return Vec::new();
            };
            let (Ok(node), Ok(some_cpus), Ok(some_cores)) = (
                node.parse(),
                some_cpus.parse::<u32>(),
                some_cores.parse::<u32>(),
            ) else {
                return Vec::new();
            };
            let of_node = nodes.entry(node).or_default();
            *of_node = of_node.saturating_add(some_cpus);
            cpus = cpus.saturating_add(some_cpus);
            cores = cores.saturating_add(some_cores);
        }
        // The widest: threads may all be on it.
        let node = nodes.into_values().max().unwrap_or(cpus);
        let mut limits = vec![Self {
            n: cpus,
            what: "CPUs of the machine".to_owned(),
        }];
        if cores < cpus {
            limits.push(Self {
                n: cores,
                what: "cores of the machine".to_owned(),
            });
        }
        if node < cpus {
            limits.push(Self {
                n: node,
                what: "CPUs of a node".to_owned(),
            });
        }
        limits
    }
}

/// Threads and throughput of `points`.
pub(super) fn rates(points: &[Point]) -> Vec<(u32, f64)> {
    points.iter().map(|p| (p.n, p.per_sec)).collect()
}
