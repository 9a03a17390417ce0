//! The normal distribution, for sides too large to count.

use statrs::function::erf::erfc;

/// 97.5 % quantile of the standard normal distribution.
pub(super) const Z_975: f64 = 1.959_963_984_540_054;

/// Two-sided p of a standard normal deviate.
pub(super) fn two_sided(z: f64) -> f64 {
    erfc(z.abs() / std::f64::consts::SQRT_2).min(1.0)
}

/// Two-sided p of a whole-numbered statistic at distance `off` from its mean, with continuity correction.
///
/// No spread means that all values are equal: nothing differs, p is 1.
pub(super) fn two_sided_corrected(off: f64, deviation: f64) -> f64 {
    if deviation <= 0.0 {
        return 1.0;
    }
    two_sided((off.abs() - 0.5).max(0.0) / deviation)
}
