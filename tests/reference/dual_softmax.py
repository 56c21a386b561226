"""Slow twin of dual_softmax: the sum over documents of a query, and the best effects by SciPy."""

from itertools import pairwise

import numpy as np
from scipy.optimize import minimize


def dual_softmax(_loss, s, y, w, **_):
    """Return value and gradient of a query without positions."""
    clicks = w * y
    share = w * np.exp(s - s.max())
    share = share / share.sum()
    value = -sum(c * (np.log(p) - np.log(n)) for c, p, n in zip(clicks, share, w, strict=True))
    return value, clicks.sum() * share - clicks


def with_positions(loss, s, y, w, place, indptr):
    """Return the value over queries at the best effects, and these; ``place`` counts from 0."""

    def value(free):
        effect = np.append(0.0, free)
        total = loss.ridge / 2 * (free**2).sum()
        for lo, hi in pairwise(indptr):
            z = s[lo:hi] + effect[place[lo:hi]]
            total += (w * y)[lo:hi] @ (np.log((w[lo:hi] * np.exp(z)).sum()) - z)
        return total

    found = minimize(value, np.zeros(place.max()), method="BFGS", options={"gtol": 1e-9})
    return found.fun, np.append(0.0, found.x)
