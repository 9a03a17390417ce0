//! Ranks, and the null distributions of rank statistics by counting.
//!
//! Counts are `f64`: with the sizes that are counted (20 and 20 at most, 1.4e11 arrangements) they are exact.

/// Ranks of `values` from 1, doubled so that mid-ranks stay whole, and the sizes of the groups of equal values.
///
/// Values must be finite; they are ordered by `f64::total_cmp`, and 0.0 equals -0.0.
pub(super) fn doubled_ranks(values: &[f64]) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0; values.len()];
    let mut groups = Vec::new();
    let mut first = 0;
    while let Some(&start) = order.get(first) {
        let is_equal = |&&i: &&usize| values[i] <= values[start];
        let size = order[first..].iter().take_while(is_equal).count();
        // Ranks first + 1 ..= first + size; twice their mean is the sum of both ends.
        for &i in &order[first..first + size] {
            ranks[i] = 2 * first + size + 1;
        }
        groups.push(size);
        first += size;
    }
    (ranks, groups)
}

/// Whether no two values are equal.
pub(super) fn is_untied(groups: &[usize]) -> bool {
    groups.iter().all(|&size| size == 1)
}

/// Number of arrangements of `n` and `m` untied values with each Mann-Whitney U, from 0 to n * m.
///
/// The recurrence of Mann and Whitney (1947), run as a product of Gaussian binomials: only additions, so nothing
/// cancels. Row `j` holds the counts for `j` of the first side.
pub(super) fn count_u(n: usize, m: usize) -> Vec<f64> {
    let (n, m) = (n.min(m), n.max(m));
    let top = n * m;
    let mut rows = vec![vec![0.0; top + 1]; n + 1];
    rows[0][0] = 1.0;
    // Adding the t-th of all values: it is of the first side and beats t - j of the other, or it is not.
    for t in 1..=n + m {
        for j in (1..=n.min(t)).rev() {
            let beaten = t - j;
            if beaten > m {
                continue;
            }
            let (below, here) = rows.split_at_mut(j);
            // j values that beat at most t - j each.
            for u in (beaten..=j * beaten).rev() {
                here[0][u] += below[j - 1][u - beaten];
            }
        }
    }
    rows.swap_remove(n)
}

/// Number of ways to choose `n` of the doubled ranks with each sum.
pub(super) fn count_sums(ranks: &[usize], n: usize) -> Vec<f64> {
    let top: usize = ranks.iter().sum();
    let mut rows = vec![vec![0.0; top + 1]; n + 1];
    rows[0][0] = 1.0;
    for &rank in ranks {
        for j in (1..=n).rev() {
            let (below, here) = rows.split_at_mut(j);
            for sum in (rank..=top).rev() {
                here[0][sum] += below[j - 1][sum - rank];
            }
        }
    }
    rows.swap_remove(n)
}

/// Number of subsets of the weights with each sum: the null of a signed-rank sum.
pub(super) fn count_subsets(weights: &[usize]) -> Vec<f64> {
    let top: usize = weights.iter().sum();
    let mut counts = vec![0.0; top + 1];
    counts[0] = 1.0;
    for &weight in weights {
        for sum in (weight..=top).rev() {
            counts[sum] += counts[sum - weight];
        }
    }
    counts
}

/// Number of orders of `n` values with each number of inversions: the null of Kendall's rank correlation.
pub(super) fn count_inversions(n: usize) -> Vec<f64> {
    let mut counts = vec![1.0];
    for i in 2..=n {
        let mut next = vec![0.0; counts.len() + i - 1];
        for (inversions, count) in counts.iter().enumerate() {
            for slot in &mut next[inversions..inversions + i] {
                *slot += count;
            }
        }
        counts = next;
    }
    counts
}

/// Two-sided p of a statistic: twice the smaller tail that holds `at`, at most 1.
pub(super) fn two_sided(counts: &[f64], at: usize) -> f64 {
    let all: f64 = counts.iter().sum();
    let low: f64 = counts[..=at.min(counts.len() - 1)].iter().sum();
    let high: f64 = counts[at.min(counts.len())..].iter().sum();
    (2.0 * low.min(high) / all).min(1.0)
}

/// The rank `k` of a 95 % interval: the largest whose two tails below `k` hold at most 5 %; 0 if there is none.
pub(super) fn interval_rank(counts: &[f64]) -> usize {
    let all: f64 = counts.iter().sum();
    let mut below = 0.0;
    let mut k = 0;
    for count in counts {
        below += count;
        // Counts are whole and exact; the tolerance is for the division.
        if 2.0 * below / all > super::ALPHA * (1.0 + 1e-12) {
            break;
        }
        k += 1;
    }
    k
}
