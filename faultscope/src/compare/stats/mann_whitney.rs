//! The Mann-Whitney U test of two independent sides.
//!
//! Mann and Whitney (1947), Annals of Mathematical Statistics 18:50. Tied values get mid-ranks, and the exact
//! distribution is then that of these mid-ranks over all choices of a side, as Streitberg and Röhmel (1986) count it.

use super::rank::{count_sums, count_u, doubled_ranks, is_untied, two_sided};
use super::{EXACT_MAX, Method, Test, normal, real};

/// Tests whether two sides differ; `None` if one is empty or a value is not finite.
///
/// Exact up to [`EXACT_MAX`] values per side, ties included; above it the normal approximation with the tie and the
/// continuity correction (Hollander and Wolfe, 4.1).
#[must_use]
pub fn mann_whitney(before: &[f64], after: &[f64]) -> Option<Test> {
    let (n, m) = (before.len(), after.len());
    let all: Vec<f64> = before.iter().chain(after).copied().collect();
    if n == 0 || m == 0 || all.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let (ranks, groups) = doubled_ranks(&all);
    // Twice the rank sum of the first side; its least value is n (n + 1).
    let sum: usize = ranks[..n].iter().sum();
    if n.max(m) > EXACT_MAX {
        let twice_u = real(sum - n * (n + 1));
        let size = real(n + m);
        let ties: f64 = groups.iter().map(|&g| real(g).powi(3) - real(g)).sum();
        let variance = real(n * m) / 12.0 * (size + 1.0 - ties / (size * (size - 1.0)));
        let p = normal::two_sided_corrected((twice_u - real(n * m)) / 2.0, variance.sqrt());
        return Some(Test {
            p,
            method: Method::Normal,
        });
    }
    let p = if is_untied(&groups) {
        two_sided(&count_u(n, m), (sum - n * (n + 1)) / 2)
    } else {
        two_sided(&count_sums(&ranks, n), sum)
    };
    Some(Test {
        p,
        method: Method::Exact,
    })
}
