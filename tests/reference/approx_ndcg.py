"""NDCG and other metrics of soft ranks, of one query, written out over pairs.

The value comes from the formulas; the gradient from derivatives by rank and by count, which are
differences of the formulas where these are not the paper's.
"""

from math import exp, log, log2, tanh

import numpy as np
from reference.gain_lists import gains_and_discounts, of_documents_that_count


@of_documents_that_count
def approx_ndcg(loss, s, y, **_):
    n, T = len(s), loss.temperature
    if loss.metric != "ndcg":
        return other_metric(loss.metric, T, s, y)
    gain, _ = gains_and_discounts("ndcg", y)
    value, grad = 1.0, np.zeros(n)
    for i in range(n):
        above = [0.5 * (1 + tanh((s[j] - s[i]) / (2 * T))) for j in range(n)]
        rank = 1 + sum(above) - above[i]
        value -= gain[i] / log2(1 + rank)
        by_rank = gain[i] * log(2) / ((1 + rank) * log(1 + rank) ** 2)
        for j in range(n):
            gradient = by_rank * above[j] * (1 - above[j]) / T
            grad[j] += gradient
            grad[i] -= gradient
    return value, grad


def other_metric(name, T, s, y):
    """The derivatives of a term by each score are sums over the pairs of its document."""
    key, _, k = name.partition("@")
    n, relevant, k = len(s), y >= 1, int(k) if k else None
    if not relevant.any():
        return 0.0, np.zeros(n)
    found = relevant.sum()
    best = 1.0 if not k or key == "mrr" else min(found, k) / (k if key == "p" else found)
    gain = np.where(relevant, 1 / (k if key == "p" else found), 0.0)
    if key in ("ndcg", "dcg"):
        gain, discount = gains_and_discounts(name, y)
        best = np.sort(gain)[::-1] @ discount

    def term(rank, count):
        inside = 1 / (1 + exp(rank - k - 0.5)) if k else 1.0
        by_log = 1 / log2(1 + rank)
        part = {"ndcg": by_log, "dcg": by_log, "map": count / rank, "mrr": 1 / rank}.get(key, 1.0)
        return inside * part

    value, grad = best, np.zeros(n)
    for i in np.flatnonzero(gain):
        above = np.array([0.5 * (1 + tanh((s[j] - s[i]) / (2 * T))) for j in range(n)])
        above[i] = 0.0
        rank, count = 1 + above.sum(), 1 + above[relevant].sum()
        value -= gain[i] * term(rank, count)
        h = 1e-4  # differences of fourth order, exact to 1e-12
        for j in range(n):
            both = relevant[j]

            def along(d, both=both, rank=rank, count=count):
                return term(rank + d, count + d * both)

            slope = (8 * (along(h) - along(-h)) - along(2 * h) + along(-2 * h)) / (12 * h)
            gradient = -gain[i] * slope * above[j] * (1 - above[j]) / T
            grad[j] += gradient
            grad[i] -= gradient
    return value, grad
