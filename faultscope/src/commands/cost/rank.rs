//! Medians, quartiles and a rank-based interval: nothing here assumes how noise is distributed.

use serde::Serialize;

/// A median with two bounds around it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Lower bound.
    pub low: f64,
    /// Median.
    pub median: f64,
    /// Upper bound.
    pub high: f64,
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Value at `share` (0 to 1) of ascending values, interpolated between neighbours.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share * last as f64;
    let below = place.floor() as usize;
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    Some(low + (high - low) * (place - below as f64))
}

/// Median; `None` without values.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    quantile(&sorted(values), 0.5)
}

/// Median between the quartiles; `None` without values.
pub(super) fn quartiles(values: &[f64]) -> Option<Spread> {
    let sorted = sorted(values);
    Some(Spread {
        low: quantile(&sorted, 0.25)?,
        median: quantile(&sorted, 0.5)?,
        high: quantile(&sorted, 0.75)?,
    })
}

/// Median within its 95 % interval from ranks alone (the sign test turned round); `None` below six values, which
/// cannot give 95 %.
///
/// The interval reaches from the k-th smallest to the k-th greatest value, with the greatest k for which fewer than
/// k of n fair coins show heads in at most 2.5 % of throws.
pub(super) fn interval(values: &[f64]) -> Option<Spread> {
    let sorted = sorted(values);
    let n = sorted.len();
    let mut chance = 0.5_f64.powi(i32::try_from(n).ok()?);
    let mut below = chance;
    let mut k = 0;
    while below <= 0.025 && k < n / 2 {
        // From "at most k heads" to "at most k + 1".
        chance *= (n - k) as f64 / (k + 1) as f64;
        k += 1;
        below += chance;
    }
    let first = k.checked_sub(1)?;
    Some(Spread {
        low: sorted[first],
        median: quantile(&sorted, 0.5)?,
        high: sorted[n - 1 - first],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn medians_and_quartiles_do_not_care_for_order() {
        assert!(median(&[]).is_none() && quartiles(&[]).is_none());
        assert!(close(median(&[7.0]).expect("one"), 7.0));
        assert!(close(median(&[4.0, 1.0, 3.0, 2.0]).expect("four"), 2.5));
        let spread = quartiles(&[5.0, 1.0, 4.0, 2.0, 3.0]).expect("five");
        assert!(close(spread.low, 2.0) && close(spread.median, 3.0) && close(spread.high, 4.0));
    }

    #[test]
    fn an_outlier_moves_nothing_but_itself() {
        let calm = quartiles(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("five");
        let wild = quartiles(&[1.0, 2.0, 3.0, 4.0, 5e9]).expect("five");
        assert_eq!(calm, wild);
    }

    /// Ranks of the published tables of the sign-test interval (e.g. Conover, Practical Nonparametric Statistics).
    #[test]
    fn interval_takes_the_ranks_of_the_tables() {
        for (n, k) in [
            (6, 1),
            (8, 1),
            (9, 2),
            (10, 2),
            (15, 4),
            (20, 6),
            (25, 8),
            (50, 18),
            (100, 40),
        ] {
            let values: Vec<f64> = (1..=n).rev().map(f64::from).collect();
            let spread = interval(&values).expect("enough values");
            assert!(
                close(spread.low, f64::from(k)) && close(spread.high, f64::from(n + 1 - k)),
                "n = {n}: {spread:?}"
            );
        }
        assert!(interval(&[1.0; 5]).is_none());
        assert!(interval(&[]).is_none());
    }

    #[test]
    fn interval_encloses_the_median_up_to_120_pairs() {
        for n in 6..=120 {
            let values: Vec<f64> = (0..n).map(f64::from).collect();
            let spread = interval(&values).expect("enough values");
            assert!(
                spread.low < spread.median && spread.median < spread.high,
                "{n}"
            );
        }
    }
}
