"""Random data with what SciPy says of it, as JSON: the reference for faultscope's statistics.

    python vectors.py SEED > FILE

`cargo xtask test` runs this with other seeds than that of the committed file.
"""

import itertools
import json
import sys

import numpy as np
from scipy import stats

EXACT_MAX = 20
ALPHA = 0.05


def sample(rng, size, shift, ties):
    values = 100.0 * np.exp(rng.normal(shift, 0.1, size))
    return np.round(values, 0 if ties else 9)


def permutation():
    return stats.PermutationMethod(n_resamples=np.inf)


def rank_sum(a, b, ties):
    if max(len(a), len(b)) > EXACT_MAX:
        return stats.mannwhitneyu(a, b, method="asymptotic", use_continuity=True).pvalue
    return stats.mannwhitneyu(a, b, method=permutation() if ties else "exact").pvalue


def signed_rank(d, ties):
    moved = d[d != 0]
    if len(moved) == 0:
        return 1.0
    if len(moved) > EXACT_MAX:
        return stats.wilcoxon(moved, method="asymptotic", correction=True).pvalue
    return stats.wilcoxon(moved, method=permutation() if ties else "exact").pvalue


def inverted(pairwise, p_at):
    """The interval of all shifts that the test does not reject, one segment between pairwise values at a time."""
    d = np.sort(pairwise)
    kept = [i for i in range(len(d) - 1) if p_at((d[i] + d[i + 1]) / 2) > ALPHA]
    # Rejected outside the outermost values too, or the interval would have no end there.
    reach = d[-1] - d[0] + 1.0
    if not kept or p_at(d[0] - reach) > ALPHA:
        return None
    return [float(d[kept[0]]), float(d[kept[-1] + 1])]


def sides(rng, n, m, shift, ties):
    a, b = sample(rng, n, 0.0, ties), sample(rng, m, shift, ties)
    pairwise = np.subtract.outer(np.log(b), np.log(a)).ravel()
    case = {
        "before": a.tolist(),
        "after": b.tolist(),
        "p": float(rank_sum(a, b, ties)),
        "estimate": float(np.median(pairwise)),
    }
    if not ties:
        case["interval"] = inverted(pairwise, lambda s: rank_sum(np.log(a) + s, np.log(b), False))
    return case


def pairs(rng, n, shift, ties):
    a = sample(rng, n, 0.0, ties)
    b = np.round(a * np.exp(rng.normal(shift, 0.05, n)), 0 if ties else 9)
    # Whole differences for ties: log ratios of whole numbers are hardly ever equal.
    if ties:
        a = a - np.median(a)
        b = b - np.median(b)
    d = b - a if ties else np.log(b / a)
    walsh = np.array([(d[i] + d[j]) / 2 for i in range(n) for j in range(i, n)])
    case = {
        "before": a.tolist(),
        "after": b.tolist(),
        "p": float(signed_rank(d, ties)),
        "estimate": float(np.median(walsh)),
    }
    if not ties:
        case["interval"] = inverted(walsh, lambda s: signed_rank(d - s, False))
    return case


def holm(p):
    """By closed testing with Bonferroni tests: the worst family that holds the hypothesis."""
    subsets = [s for k in range(1, len(p) + 1) for s in itertools.combinations(range(len(p)), k)]
    return [min(1.0, max(len(s) * min(p[j] for j in s) for s in subsets if i in s)) for i in range(len(p))]


def family(rng, m, ties):
    p = rng.beta(0.4, 2.0, m)
    p = np.round(p, 2 if ties else 12)
    return {
        "p": p.tolist(),
        "holm": holm(p.tolist()),
        "bh": stats.false_discovery_control(p, method="bh").tolist(),
    }


def drift(rng, n):
    values = sample(rng, n, 0.0, False) + rng.choice([0.0, 3.0]) * np.arange(n)
    found = stats.kendalltau(np.arange(n), values, method="exact" if n <= EXACT_MAX else "asymptotic")
    return {"values": values.tolist(), "tau": float(found.statistic), "p": float(found.pvalue)}


def poisson(count):
    low = stats.chi2.ppf(ALPHA / 2, 2 * count) / 2 if count else 0.0
    return {"count": count, "low": float(low), "high": float(stats.chi2.ppf(1 - ALPHA / 2, 2 * count + 2) / 2)}


def main():
    rng = np.random.default_rng(int(sys.argv[1]))
    sizes = [(1, 1), (2, 3), (3, 3), (4, 4), (5, 5), (5, 10), (6, 6), (8, 8), (10, 10), (12, 7), (20, 20), (21, 21), (5, 30)]
    small = [(4, 4), (5, 5), (3, 9), (6, 6), (8, 8), (7, 9), (21, 21), (25, 8)]
    shifts = [0.0, 0.08]
    vectors = {
        "sides": [sides(rng, n, m, s, False) for n, m in sizes for s in shifts],
        "tied_sides": [sides(rng, n, m, s, True) for n, m in small for s in shifts],
        "pairs": [pairs(rng, n, s, False) for n in [1, 5, 6, 8, 10, 15, 20, 24] for s in shifts],
        "tied_pairs": [pairs(rng, n, s, True) for n in [5, 6, 8, 10, 12, 40] for s in shifts],
        "families": [family(rng, m, t) for m in [1, 2, 5, 8, 10] for t in [False, True]],
        "drifts": [drift(rng, n) for n in [3, 4, 5, 8, 10, 20, 30] for _ in shifts],
        "counts": [poisson(int(n)) for n in [0, 1, 2, 5, 19, *rng.integers(20, 2000, 4)]],
    }
    json.dump(vectors, sys.stdout, indent=None, separators=(",", ":"))
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
