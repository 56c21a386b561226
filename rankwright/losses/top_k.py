"""Cross entropy over the first k ranks: value, gradient and curvature of queries.

Documents are sampled one after the other without replacement. With softmax shares t of the labels
and p of the scores among the remaining documents, one rank adds the cross entropy
sum_i t_i (log sum_j w_j exp(s_j) - s_i), whose gradient is p - t and whose Hessian has the diagonal
p (1 - p). Each order of fewer than k documents counts by its probability under the labels.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.core.jit import kernel
from rankwright.core.kernels import hash_step, hash_uniform, query_seed
from rankwright.core.types import F64

MOST_ORDERS = 10_000
_TINY = 1e-250  # a smaller sum of probabilities has lost its precision


class _Query(NamedTuple):
    """One query with work arrays."""

    x: F64  # scores
    g: F64  # labels
    w: F64  # weights
    all_x: F64  # softmax of the scores of all documents
    all_g: F64  # softmax of the labels of all documents
    p: F64  # softmax of the scores of the remaining documents
    remaining: NDArray[np.bool_]  # whether a document is not sampled yet


@kernel
def top_k_queries(queries, indptr, s, random_key, y, w, k, samples, value, grad, curv):
    """Write value, gradient and curvature of the queries."""
    most = 0
    for q in queries:
        most = max(most, indptr[q + 1] - indptr[q])
    work, remaining = np.empty((3, most)), np.empty(most, np.bool_)
    shares, chance, chosen = np.empty((k, most)), np.ones(k), np.empty(k, np.int64)
    for q in queries:
        a, b = indptr[q], indptr[q + 1]
        n = b - a
        query = _Query(
            s[a:b], y[a:b], w[a:b], work[0, :n], work[1, :n], work[2, :n], remaining[:n]
        )  # fmt: skip
        for i in range(n):
            query.remaining[i] = True
        _softmax(query.x, query.w, query.remaining, query.all_x)
        _softmax(query.g, query.w, query.remaining, query.all_g)
        steps = min(k, n) - 1
        value[q] = _add_rank(1.0, query, shares[0], grad[a:b], curv[a:b])
        if samples:
            seed = query_seed(random_key, q)
            value[q] += _sampled_orders(seed, samples, steps, query, shares, grad[a:b], curv[a:b])
        else:
            value[q] += _all_orders(steps, query, shares, chance, chosen, grad[a:b], curv[a:b])


@kernel
def _softmax(x, w, remaining, out):
    """Write the softmax over the remaining documents, and 0 for the others."""
    top = -np.inf
    for i in range(len(x)):
        if remaining[i]:
            top = max(top, x[i])
    total = 0.0
    for i in range(len(x)):
        out[i] = w[i] * math.exp(x[i] - top) if remaining[i] else 0.0
        total += out[i]
    for i in range(len(x)):
        out[i] /= total


@kernel
def _renormalise(x, w, remaining, all_x, out):
    """Write the softmax over the remaining documents, from that of all if it is precise enough."""
    total = 0.0
    for i in range(len(x)):
        out[i] = all_x[i] if remaining[i] else 0.0
        total += out[i]
    if total < _TINY:
        _softmax(x, w, remaining, out)
    else:
        for i in range(len(x)):
            out[i] /= total


@kernel
def _add_rank(chance, query, share, gradient, curvature):
    """Add one rank of the remaining documents; write their softmax of the labels to ``share``."""
    _renormalise(query.x, query.w, query.remaining, query.all_x, query.p)
    _renormalise(query.g, query.w, query.remaining, query.all_g, share)
    heavy = 0
    total = 0.0
    for i in range(len(query.x)):
        heavy = i if query.p[i] > query.p[heavy] else heavy
    for i in range(len(query.x)):
        if query.remaining[i]:
            total += share[i] * (query.x[heavy] - query.x[i])
        gradient[i] += chance * (query.p[i] - share[i])
        curvature[i] += chance * query.p[i] * (1.0 - query.p[i])
    return chance * (total + math.log(query.w[heavy] / query.p[heavy]))


@kernel
def _all_orders(steps, query, shares, chance, chosen, gradient, curvature):
    """Add the ranks that follow every order of 1 to ``steps`` documents, depth first."""
    total, depth = 0.0, 0
    chosen[0] = -1
    while depth >= 0 and steps > 0:
        if chosen[depth] >= 0:
            query.remaining[chosen[depth]] = True
        chosen[depth] += 1
        while chosen[depth] < len(query.x) and not query.remaining[chosen[depth]]:
            chosen[depth] += 1
        if chosen[depth] == len(query.x):
            depth -= 1
            continue
        query.remaining[chosen[depth]] = False
        chance[depth + 1] = chance[depth] * shares[depth, chosen[depth]]
        if chance[depth + 1] > 0.0:
            total += _add_rank(chance[depth + 1], query, shares[depth + 1], gradient, curvature)
            if depth + 1 < steps:
                depth += 1
                chosen[depth] = -1
    return total


@kernel
def _sampled_orders(seed, samples, steps, query, shares, gradient, curvature):
    """Add the ranks that follow sampled orders: by labels plus Gumbel noise, highest first."""
    total, noisy = 0.0, shares[0]
    for m in range(samples):
        state = hash_step(seed, m)
        for i in range(len(query.x)):
            query.remaining[i] = True
            u = max(hash_uniform(hash_step(state, i)), 2.0**-54)
            noisy[i] = query.g[i] - math.log(-math.log(u)) + math.log(query.w[i])
        for _ in range(steps):
            best = -1
            for i in range(len(query.x)):
                if query.remaining[i] and (best < 0 or noisy[i] > noisy[best]):
                    best = i
            query.remaining[best] = False
            total += _add_rank(1.0 / samples, query, shares[1], gradient, curvature)
    return total
