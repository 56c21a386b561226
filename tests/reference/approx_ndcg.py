"""NDCG of soft ranks, of one query, written out over pairs."""

from math import log, log2, tanh

import numpy as np
from reference.gain_lists import gains_and_discounts, of_documents_that_count


@of_documents_that_count
def approx_ndcg(loss, s, y, **_):
    n, T = len(s), loss.temperature
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
