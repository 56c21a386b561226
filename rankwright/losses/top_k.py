"""Cross entropy over the first k ranks: value, gradient and Hessian products of queries.

With softmax shares t of the grades and p of the scores among the documents that are left, one rank
adds the cross entropy sum_i t_i (log sum_j w_j exp(s_j) - s_i), whose gradient is p - t and whose
Hessian is diag(p) - p p'. Over k ranks, each order of fewer than k documents leaves others behind
and counts by its probability under the grades.
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
_TINY = 1e-250  # below, what is left of the exponentials is too little to be exact


class _Query(NamedTuple):
    x: F64  # scores
    g: F64  # grades
    mass: F64  # weights
    all_x: F64  # probabilities by score before any is sampled
    all_g: F64  # and by grade
    p: F64  # probabilities by score of those that are left
    left: NDArray[np.bool_]  # which documents are not sampled yet


# --- kernels ---------------------------------------------------------------------------------


@kernel
def top_k_queries(queries, indptr, s, random_key, y, w, k, samples, value, grad, curv):
    """Write value, gradient and curvature of the queries."""
    most = 0
    for q in queries:
        most = max(most, indptr[q + 1] - indptr[q])
    work, left = np.empty((3, most)), np.empty(most, np.bool_)
    shares, chance, chosen = np.empty((k, most)), np.ones(k), np.empty(k, np.int64)
    for q in queries:
        start, end = indptr[q], indptr[q + 1]
        gradient, curvature = grad[start:end], curv[start:end]
        n = end - start
        one = _Query(
            s[start:end], y[start:end], w[start:end], work[0, :n], work[1, :n], work[2, :n],
            left[:n],
        )  # fmt: skip
        steps = min(k, _begin(one)) - 1
        value[q] = _add_rank(1.0, one, shares[0], gradient, curvature)
        if samples:
            seed = query_seed(random_key, q)
            value[q] += _sampled_orders(seed, samples, steps, one, shares, gradient, curvature)
        else:
            value[q] += _all_orders(steps, one, shares, chance, chosen, gradient, curvature)


@kernel
def _begin(one):
    """Prepare a query with no document sampled; return how many there are."""
    count = 0
    for i in range(len(one.x)):
        one.left[i] = one.mass[i] > 0.0
        count += one.left[i]
    _softmax(one.x, one.mass, one.left, one.all_x)
    _softmax(one.g, one.mass, one.left, one.all_g)
    return count


@kernel
def _softmax(x, mass, left, out):
    """Write the probabilities of those that are left; return log sum_j w_j exp(x_j)."""
    top = -np.inf
    for i in range(len(x)):
        if left[i]:
            top = max(top, x[i])
    total = 0.0
    for i in range(len(x)):
        out[i] = mass[i] * math.exp(x[i] - top) if left[i] else 0.0
        total += out[i]
    for i in range(len(x)):
        out[i] /= total
    return top + math.log(total)


@kernel
def _rescaled(x, mass, left, before, out):
    """As `_softmax`, from what it gave ``before`` any was sampled, where enough is left of that."""
    total = 0.0
    for i in range(len(x)):
        out[i] = before[i] if left[i] else 0.0
        total += out[i]
    if total < _TINY:
        _softmax(x, mass, left, out)
    else:
        for i in range(len(x)):
            out[i] /= total


@kernel
def _add_rank(chance, one, share, gradient, curvature):
    """Add one sample from those that are left; ``share`` takes their probabilities by grade."""
    _rescaled(one.x, one.mass, one.left, one.all_x, one.p)
    _rescaled(one.g, one.mass, one.left, one.all_g, share)
    heavy = 0
    total = 0.0
    for i in range(len(one.x)):
        heavy = i if one.p[i] > one.p[heavy] else heavy
    for i in range(len(one.x)):
        if one.left[i]:
            total += share[i] * (one.x[heavy] - one.x[i])
        gradient[i] += chance * (one.p[i] - share[i])
        curvature[i] += chance * one.p[i] * (1.0 - one.p[i])
    return chance * (total + math.log(one.mass[heavy] / one.p[heavy]))


@kernel
def _all_orders(steps, one, shares, chance, chosen, gradient, curvature):
    """Add the draws that follow every order of 1 to ``steps`` documents, depth first."""
    total, depth = 0.0, 0
    chosen[0] = -1
    while depth >= 0 and steps > 0:
        if chosen[depth] >= 0:
            one.left[chosen[depth]] = True
        chosen[depth] += 1
        while chosen[depth] < len(one.x) and not one.left[chosen[depth]]:
            chosen[depth] += 1
        if chosen[depth] == len(one.x):
            depth -= 1
            continue
        one.left[chosen[depth]] = False
        chance[depth + 1] = chance[depth] * shares[depth, chosen[depth]]
        if chance[depth + 1] > 0.0:
            total += _add_rank(chance[depth + 1], one, shares[depth + 1], gradient, curvature)
            if depth + 1 < steps:
                depth += 1
                chosen[depth] = -1
    return total


@kernel
def _sampled_orders(seed, samples, steps, one, shares, gradient, curvature):
    """As `_all_orders`, for orders sampled by grade: the highest grades plus Gumbel noise first."""
    total, noisy = 0.0, shares[0]
    for m in range(samples):
        state = hash_step(seed, m)
        for i in range(len(one.x)):
            one.left[i] = one.mass[i] > 0.0
            u = max(hash_uniform(hash_step(state, i)), 2.0**-54)
            noisy[i] = one.g[i] - math.log(-math.log(u))
            noisy[i] += math.log(one.mass[i]) if one.left[i] else 0.0
        for _ in range(steps):
            best = -1
            for i in range(len(one.x)):
                if one.left[i] and (best < 0 or noisy[i] > noisy[best]):
                    best = i
            one.left[best] = False
            total += _add_rank(1.0 / samples, one, shares[1], gradient, curvature)
    return total
