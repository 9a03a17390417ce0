//! The Wilcoxon signed-rank test of paired rounds.
//!
//! Wilcoxon (1945), Biometrics Bulletin 1:80. Pairs without a difference are left out, as he did; equal sizes get
//! mid-ranks and the distribution of these is counted.

use super::rank::{count_subsets, doubled_ranks, two_sided};
use super::{EXACT_MAX, Method, Test, normal, real};

/// Tests whether the differences of pairs centre on 0; `None` if there are none or one is not finite.
///
/// Exact up to [`EXACT_MAX`] pairs that differ; above it the normal approximation with the tie and the continuity
/// correction (Hollander and Wolfe, 3.1). If no pair differs, p is 1.
#[must_use]
pub fn signed_rank(differences: &[f64]) -> Option<Test> {
    if differences.is_empty() || differences.iter().any(|d| !d.is_finite()) {
        return None;
    }
    let moved: Vec<f64> = differences
        .iter()
        .copied()
        .filter(|d| d.abs() > 0.0)
        .collect();
    let sizes: Vec<f64> = moved.iter().map(|d| d.abs()).collect();
    let (ranks, groups) = doubled_ranks(&sizes);
    let ups = moved.iter().zip(&ranks).filter(|(d, _)| **d > 0.0);
    let sum: usize = ups.map(|(_, rank)| rank).sum();
    let n = real(moved.len());
    if moved.len() > EXACT_MAX {
        let ties: f64 = groups.iter().map(|&g| real(g).powi(3) - real(g)).sum();
        let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ties / 48.0;
        let off = real(sum) / 2.0 - n * (n + 1.0) / 4.0;
        return Some(Test {
            p: normal::two_sided_corrected(off, variance.sqrt()),
            method: Method::Normal,
        });
    }
    Some(Test {
        p: two_sided(&count_subsets(&ranks), sum),
        method: Method::Exact,
    })
}
