//! How a series of points grows with its members.

use super::point::Point;
use crate::model::scale::{Curve, Observation};

/// The points of one series, as `report` has it for runs of other programs.
fn curve(point: &Point, all: &[Point]) -> Curve {
    let series = point.job.series();
    let observations: Vec<Observation> = all
        .iter()
        .filter(|p| p.job.series() == series)
        .filter_map(|p| {
            Some(Observation {
                n: u32::try_from(p.job.members).ok()?,
                per_sec: p.rate()?,
                cpu_ns_per_op: None,
            })
        })
        .collect();
    Curve::new(&observations)
}

/// Rate for each member against that of the fewest members of the same series, 1 if it grows in proportion;
/// repetitions are one point.
pub(super) fn efficiency(point: &Point, all: &[Point]) -> Option<f64> {
    let n = u32::try_from(point.job.members).ok()?;
    Some(curve(point, all).at(n)?.efficiency)
}

/// What each member more than the next smaller number brought, as a share of what one does among the fewest.
pub(super) fn marginal_gain(point: &Point, all: &[Point]) -> Option<f64> {
    let n = u32::try_from(point.job.members).ok()?;
    curve(point, all).at(n)?.marginal
}
