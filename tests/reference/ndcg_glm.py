"""Divergences from gains over the ideal DCG, of one query."""

from math import ceil, floor, log, log2

import numpy as np


def discounts(w):
    """Sum of 1/log2(rank + 1) over the first w ranks, the last of them in part."""
    whole = sum(1 / log2(rank + 1) for rank in range(1, floor(w) + 1))
    return whole + ((w - floor(w)) / log2(ceil(w) + 1) if w > floor(w) else 0.0)


def targets(y, w):
    gain, ideal, filled = 2.0**y - 1, 0.0, 0.0
    for i in np.argsort(-gain, kind="stable"):
        ideal += gain[i] * (discounts(filled + w[i]) - discounts(filled))
        filled += w[i]
    return gain / ideal


def ndcg_glm(loss, s, y, w, **_):
    r = targets(y, w)
    if loss.divergence == "square":
        miss = s - r - np.average(s - r, weights=w)
        return (w * miss**2).sum() / 2, w * miss
    total = (w * r).sum()
    log_p = s - max(s) - log((w * np.exp(s - max(s))).sum())
    known = np.log(np.where(r > 0, r, 1.0)) - log(total)
    return (w * r * (known - log_p)).sum(), w * (total * np.exp(log_p) - r)
