"""Slow twin of the hinge on pairs: every pair of a query, one by one.

IR-SVM's weights need all queries at once: ``most_pairs`` is the pair count of the largest one.
"""

from itertools import permutations
from math import floor, log2

import numpy as np


def pair_hinge(loss, s, y, w, most_pairs=None, **_):
    value, grad = 0.0, np.zeros(len(s))
    for (i, j), weight in pair_weights(loss, y, w, most_pairs).items():
        miss = max(loss.margin - s[i] + s[j], 0.0)
        if loss.form == "squared":
            value += weight * miss**2
            gradient = 2 * weight * miss
        else:
            value += weight * miss
            gradient = weight * (miss > 0)
        grad[i] -= gradient
        grad[j] += gradient
    return value, grad


def pair_weights(loss, y, w, most_pairs=None):
    """The weight of every pair (better, worse)."""
    pairs = {
        (i, j): w[i] * w[j] * min(y[i] - y[j], 1.0)
        for i, j in permutations(range(len(y)), 2)
        if y[i] > y[j]
    }
    count = sum(pairs.values())
    if loss.pairs == "query":
        return {pair: weight / count for pair, weight in pairs.items()}
    if loss.pairs == "ir":
        drop = ndcg_drops(y, w)
        size = (most_pairs or count) / count
        return {(i, j): w[i] * w[j] * size * drop[y[i], y[j]] for i, j in pairs}
    return pairs


def ndcg_drops(y, w):
    """The mean change of NDCG over swaps of two grades in the ideal list, by pair of grades.

    The list has a share of a place for each piece of a document: pieces are cut where a document
    or a place ends, and a piece of a place has the same piece of its discount.
    """
    pieces, at = [], 0.0  # (grade, length, discount)
    for i in np.argsort(-y, kind="stable"):
        end = at + w[i]
        while at < end:
            stop = min(end, floor(at) + 1.0)
            pieces.append((y[i], stop - at, 1 / log2(floor(at) + 2)))
            at = stop
    ideal = sum(length * discount * (2**grade - 1) for grade, length, discount in pieces)
    total, size = {}, {}
    for a, m, d in pieces:
        for b, n, e in pieces:
            if a > b:
                lost = ((2**a - 1) * d + (2**b - 1) * e - (2**a - 1) * e - (2**b - 1) * d) / ideal
                total[a, b] = total.get((a, b), 0.0) + m * n * lost
                size[a, b] = size.get((a, b), 0.0) + m * n
    return {pair: total[pair] / size[pair] for pair in total}
