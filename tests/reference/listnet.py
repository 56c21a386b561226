"""ListNet of one query: top-one shares, or every order of the first k documents."""

from itertools import permutations
from math import log

import numpy as np
from reference import losses, metrics
from reference.hashing import mixed


def listnet(loss, s, y, w, place=(0, 0)):
    if loss.k > 1 and loss.samples:
        return sampled(loss, s, y, w, place)
    if loss.k > 1:
        return top_k(loss, s, y, w)
    if loss.target == "softmax":
        shares = w * np.exp(y) / (w * np.exp(y)).sum()
    else:
        gain = 2.0**y - 1
        shares = w * gain / metrics.dcg(sorted(y)[::-1], None)
    return losses.cross_entropy(s, w, shares)[:2]


def order_chance(order, x, w):
    """Probability that these documents are sampled first, by w exp(x) of those that are left."""
    left, chance = w * np.exp(x), 1.0
    for i in order:
        chance *= left[i] / left.sum()
        left = np.where(np.arange(len(x)) == i, 0.0, left)
    return chance


def top_k(loss, s, y, w):
    """The cross entropy over all orders of k documents, as ListNet's paper writes it."""
    value, grad = 0.0, np.zeros(len(s))
    kept = np.flatnonzero(w > 0)
    k = min(loss.k, len(kept))
    for order in permutations(kept, k):
        target = order_chance(order, y, w)
        value -= target * log(order_chance(order, s, w) / np.prod(w[list(order)]))
        for t in range(k):
            left = w * np.exp(s)
            left[list(order[:t])] = 0.0
            grad += target * left / left.sum()
            grad[order[t]] -= target
    return value, grad


def sampled(loss, s, y, w, place):
    """Draws after orders of k - 1 documents, each in expectation over the next document."""
    value, grad = 0.0, np.zeros(len(s))
    for m in range(loss.samples):
        state = 0
        for word in (loss.random_state % 2**64, *place, m):
            state = mixed(state, word)
        uniform = [(mixed(state, i) >> 11) / 2**53 for i in range(len(s))]
        noisy = y + np.log(w) - np.log(-np.log(uniform))
        order = np.argsort(-noisy, kind="stable")
        for t in range(min(loss.k, len(s))):
            left = np.sort(order[t:])
            shares = w[left] * np.exp(y[left])
            part, gradient, _ = losses.cross_entropy(s[left], w[left], shares / shares.sum())
            value += part / loss.samples
            grad[left] += gradient / loss.samples
    return value, grad
