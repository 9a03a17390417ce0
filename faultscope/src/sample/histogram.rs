//! Log-linear histograms of durations: add, quantile.

pub use faultscope_common::latency::{BUCKETS, lower_bound};

/// Counts by bucket of `faultscope_common::latency`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram(pub [u64; BUCKETS]);

impl Default for Histogram {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl Histogram {
    /// Adds another histogram.
    pub fn add(&mut self, other: &Self) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a = a.saturating_add(*b);
        }
    }

    /// Values counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The value in ns below which a share `q` (0 to 1) of the values lies: the
    /// midpoint of its bucket, off by at most 25 %. `None` without values.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank of at most 2^53"
    )]
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = ((count as f64 * q).ceil() as u64).clamp(1, count);
        let mut seen = 0;
        for (bucket, n) in (0_u32..).zip(&self.0) {
            seen += n;
            if seen >= rank {
                let low = lower_bound(bucket);
                let high = if bucket as usize + 1 < BUCKETS {
                    lower_bound(bucket + 1)
                } else {
                    low
                };
                return Some(low.midpoint(high));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faultscope_common::latency::bucket;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_quantile_is_within_a_quarter_of_the_value(mut values in prop::collection::vec(256_u64..1 << 33, 1..200), q in 0.01_f64..1.0) {
            let mut h = Histogram::default();
            for v in &values {
                h.0[bucket(*v) as usize] += 1;
            }
            values.sort_unstable();
            let rank = ((values.len() as f64 * q).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1] as f64;
            let got = h.quantile_ns(q).expect("not empty") as f64;
            prop_assert!((got - exact).abs() <= 0.25 * exact + 1.0, "{got} for {exact}");
        }
    }

    #[test]
    fn nothing_has_no_quantile() {
        assert_eq!(Histogram::default().quantile_ns(0.5), None);
    }
}
