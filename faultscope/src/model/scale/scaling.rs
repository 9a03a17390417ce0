//! A curve with the fits that its points allow.

use super::doubt::{FEWEST, rates};
use super::resample::{self, Interval};
use super::{Curve, Doubt, Law, Limit, Observation, Point};

/// Points that a fit takes at most: more are no sweep, and would take long.
const MOST: usize = 1024;

/// A curve, and what the universal scalability law says of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scaling {
    /// Efficiency by the number of threads.
    pub curve: Curve,
    /// Why there is no sound fit to all points; empty if there is one.
    pub refused: Vec<Doubt>,
    /// The fit to all points; or to segments, and those that are weak say why.
    pub fits: Vec<Fit>,
    /// Segments without a fit.
    pub unfitted: Vec<Unfitted>,
}

/// The law fitted to successive points.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Fewest threads of it.
    pub from: u32,
    /// Most threads of it.
    pub to: u32,
    /// Different numbers of threads.
    pub points: usize,
    /// The law.
    pub law: Law,
    /// Most that it is off the throughput at any point, as a share of it; what it is judged by.
    pub worst: f64,
    /// What makes it weak.
    pub doubts: Vec<Doubt>,
    /// Intervals of its numbers; `None` unless every point has two runs or more.
    pub interval: Option<Interval>,
}

/// Successive points that have no fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfitted {
    /// Fewest threads.
    pub from: u32,
    /// Most threads.
    pub to: u32,
    /// Different numbers of threads.
    pub points: usize,
}

impl Scaling {
    /// Computes everything from `observations`; `limits` are what the machine has of CPUs, where that is known.
    #[must_use]
    pub fn new(observations: &[Observation], limits: &[Limit]) -> Self {
        let curve = Curve::new(observations);
        let mut refused = Doubt::of_curve(&curve, limits);
        let whole = refused.is_empty().then(|| fit(&curve.points)).flatten();
        match whole {
            Some(whole) if whole.doubts.is_empty() => {
                return Self {
                    curve,
                    fits: vec![whole],
                    ..Self::default()
                };
            }
            Some(whole) => refused.extend(whole.doubts),
            None => refused
                .splice(..0, Doubt::of_number(curve.points.len()))
                .for_each(drop),
        }
        let (mut fits, mut unfitted) = (Vec::new(), Vec::new());
        for piece in pieces(&curve.points, limits) {
            let fitted = longest(piece);
            let taken = fitted.as_ref().map_or(0, |fit| fit.points);
            fits.extend(fitted);
            if let [first, .., last] | [first @ last] = &piece[taken..] {
                unfitted.push(Unfitted {
                    from: first.n,
                    to: last.n,
                    points: piece.len() - taken,
                });
            }
        }
        Self {
            curve,
            refused,
            fits,
            unfitted,
        }
    }

    /// Whether points are too few for any fit.
    #[must_use]
    pub fn is_efficiency_only(&self) -> bool {
        self.curve.points.len() < FEWEST
    }
}

/// Cuts the points where something runs out and at the bottom of valleys.
fn pieces<'a>(points: &'a [Point], limits: &[Limit]) -> Vec<&'a [Point]> {
    let mut pieces = Vec::new();
    let mut rest = points;
    while let [first, ..] = rest {
        let limit = limits.iter().map(|l| l.n).filter(|n| *n >= first.n).min();
        let end = limit.map_or(rest.len(), |n| rest.partition_point(|p| p.n <= n));
        let valley = super::doubt::Valley::first(&rest[..end]);
        let end = valley.map_or(end, |v| rest.partition_point(|p| p.n <= v.bottom));
        let (piece, after) = rest.split_at(end.max(1));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// The fit to as many of the first points as the law meets. If there are just enough points for a fit, it is that of
/// all, however weak.
fn longest(piece: &[Point]) -> Option<Fit> {
    let mut last: Option<Law> = None;
    let mut ends = (FEWEST..=piece.len().min(MOST)).rev();
    let met = ends.find(|end| {
        let points = &piece[..*end];
        let rates = rates(points);
        let law = match last {
            // One point less is nearly the same; the fit that is shown is searched in full.
            Some(law) => law.fit_near(&rates),
            None => Law::fit(&rates),
        };
        last = law;
        law.is_some_and(|law| Doubt::of_residuals(&law, points).is_none())
    });
    let end = met.or((piece.len() == FEWEST).then_some(FEWEST))?;
    fit(&piece[..end])
}

fn fit(points: &[Point]) -> Option<Fit> {
    let ([first, .., last], true) = (points, (FEWEST..=MOST).contains(&points.len())) else {
        return None;
    };
    let law = Law::fit(&rates(points))?;
    let (_, worst) = law.worst(&rates(points))?;
    Some(Fit {
        from: first.n,
        to: last.n,
        points: points.len(),
        law,
        worst,
        doubts: Doubt::of_fit(&law, points),
        interval: resample::interval(&law, points),
    })
}
