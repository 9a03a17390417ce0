//! A median and its interval from ranks: nothing here assumes how noise is distributed.

/// A median with two bounds around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::bench) struct Spread {
    pub(in crate::bench) low: f64,
    pub(in crate::bench) median: f64,
    pub(in crate::bench) high: f64,
}

/// Median; `None` without values.
pub(in crate::bench) fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let last = sorted.len().checked_sub(1)?;
    Some((sorted[last / 2] + sorted[last.div_ceil(2)]) / 2.0)
}

/// Median within its 95 % interval (the sign test turned round); `None` below six values, which cannot give 95 %.
///
/// It reaches from the k-th smallest to the k-th greatest value, with the greatest k for which fewer than k of n fair
/// coins show heads in at most 2.5 % of throws.
pub(in crate::bench) fn interval(values: &[f64]) -> Option<Spread> {
    let sorted = sorted(values);
    let n = sorted.len();
    // Logarithms: half to the power of a thousand is no number.
    let mut chance = -(n as f64) * std::f64::consts::LN_2;
    let mut below = chance.exp();
    let mut k = 0;
    while below <= 0.025 && k < n / 2 {
        chance += ((n - k) as f64 / (k + 1) as f64).ln();
        k += 1;
        below += chance.exp();
    }
    let first = k.checked_sub(1)?;
    Some(Spread {
        low: sorted[first],
        median: median(values)?,
        high: sorted[n - 1 - first],
    })
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks of the published tables (e.g. Conover, Practical Nonparametric Statistics); 1,000 from the normal
    /// approximation, 500 - 1.96 * sqrt(250).
    #[test]
    fn interval_takes_the_ranks_of_the_tables() {
        for (n, k) in [(6, 1), (12, 3), (25, 8), (100, 40), (1000, 469)] {
            let values: Vec<f64> = (1..=n).rev().map(f64::from).collect();
            let spread = interval(&values).expect("enough values");
            let ends = (f64::from(k), f64::from(n + 1 - k));
            assert!(
                (spread.low - ends.0).abs() < 1e-9 && (spread.high - ends.1).abs() < 1e-9,
                "n = {n}: {spread:?}"
            );
        }
        assert_eq!(interval(&[1.0; 5]), None);
    }

    #[test]
    fn median_of_an_even_number_lies_between_two() {
        assert_eq!(median(&[]), None);
        let four = median(&[4.0, 1.0, 3.0, 2.0]).expect("four values");
        assert!((four - 2.5).abs() < 1e-9);
    }
}
