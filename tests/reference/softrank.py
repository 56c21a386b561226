"""SoftRank of one query: every outcome of the comparisons of a document, one by one."""

from itertools import product
from math import erf, exp, pi, sqrt

import numpy as np
from reference.gain_lists import gains_and_discounts, of_documents_that_count


@of_documents_that_count
def softrank(loss, s, y, **_):
    """The mean loss of the metric and its gradient, by the product rule over comparisons."""
    n = len(s)
    gain, discount = gains_and_discounts(loss.metric, y)
    value, grad = np.sort(gain)[::-1] @ discount, np.zeros(n)
    nodes, shares, tau = [0.0], [1.0], sqrt(2) * loss.sigma
    if loss.form == "exact":
        nodes, shares = np.polynomial.hermite_e.hermegauss(loss.nodes)
        shares, tau = shares / sqrt(2 * pi), loss.sigma
    for i in range(n):
        others = [j for j in range(n) if j != i]
        for z, share in zip(nodes, shares, strict=True):
            u = [(s[j] - s[i]) / tau - z for j in others]
            p = [(1 + erf(x / sqrt(2))) / 2 for x in u]
            density = [exp(-x * x / 2) / sqrt(2 * pi) / tau for x in u]
            for outcome in product((0, 1), repeat=n - 1):
                worth = share * gain[i] * discount[sum(outcome)]
                chance = [p[m] if up else 1 - p[m] for m, up in enumerate(outcome)]
                value -= worth * np.prod(chance)
                for m, up in enumerate(outcome):
                    rest = np.prod(chance[:m] + chance[m + 1 :])
                    gradient = worth * rest * density[m] * (1 if up else -1)
                    grad[others[m]] -= gradient
                    grad[i] += gradient
    return value, grad
