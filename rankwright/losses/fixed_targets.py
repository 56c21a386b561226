"""Divergences of the scores from targets that do not depend on them.

With targets r_i and document weights w_i, the loss of a query is one of

    square   sum_i w_i/2 (s_i - b - r_i)^2                                                      (1)
    kl       sum_i w_i [r_i (log r_i - s_i + b) - r_i + exp(s_i - b)]                           (2)

with b = 0, or minimised over b if the level of the scores is ``free``, plus

    ridge/2 sum_i w_i (s_i - level)^2  +  constant                                              (3)

where the level is the weighted mean of s if it is free, and 0 otherwise. In (1) the best b is the
weighted mean of s - r. In (2) it is log sum_j w_j exp(s_j) - log R with R = sum_i w_i r_i, so that
(2) is sum_i w_i r_i (log(r_i / R) - log p_i) with p_i = exp(s_i) / sum_j w_j exp(s_j).

Without (3) the gradients are w (s - b - r) and w (R p - r). The Hessians are diag(w) - w w' / sum w
and R (diag(w p) - (w p)(w p)'), or diag(w) and diag(w exp(s)) if the level is not free.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.team import once, shared_range, team_max, team_sum
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import (
    BoundKernel,
    document_weight,
    order_weight,
    weighted_mean,
)

LARGEST = 300.0  # largest argument of exp(s) if the level is not free


@kernel
def square(queries, indptr, s, r, w, free, ridge, constant, _share, value, grad, curv):
    """Compute (1) and (3)."""
    for q in queries:
        a, b = indptr[q], indptr[q + 1]
        level = weighted_mean(a, b, s, w) if free else 0.0
        offset = level - weighted_mean(a, b, r, w) if free else 0.0
        total = once(constant[q])
        for i in shared_range(a, b):
            error, height = s[i] - offset - r[i], s[i] - level
            total += 0.5 * w[i] * (error * error + ridge * height * height)  # (1), (3)
            grad[i] = w[i] * (error + ridge * height)
            curv[i] = w[i] * (1.0 + ridge)
        value[q] = team_sum(total)


@kernel
def square_hessian(queries, indptr, _s, _r, w, free, ridge, _constant, _share, v, out):
    """Multiply the Hessian of (1) and (3) by v."""
    for q in queries:
        a, b = indptr[q], indptr[q + 1]
        mean = weighted_mean(a, b, v, w) if free else 0.0
        for i in shared_range(a, b):
            out[i] = w[i] * (1.0 + ridge) * (v[i] - mean)


@kernel
def shares(a, b, s, w, free, share):
    """Write p of (2), or exp(s) if the level is not free; return s - log p, which is constant."""
    shift = 0.0
    if free:
        top, total = -np.inf, 0.0
        for i in shared_range(a, b):
            top = max(top, s[i])
        top = team_max(top)
        for i in shared_range(a, b):
            total += w[i] * math.exp(s[i] - top)
        shift = top + math.log(team_sum(total))
    for i in shared_range(a, b):
        share[i] = math.exp(min(s[i] - shift, LARGEST))
    return shift


@kernel
def kl(queries, indptr, s, r, w, free, ridge, constant, share, value, grad, curv):
    """Compute (2) and (3)."""
    for q in queries:
        a, b = indptr[q], indptr[q + 1]
        shift = shares(a, b, s, w, free, share)
        level = weighted_mean(a, b, s, w) if free else 0.0
        scale = _scale(a, b, r, w, free)
        total = once(constant[q])
        for i in shared_range(a, b):
            height, log_share = s[i] - level, min(s[i] - shift, LARGEST)
            if r[i] > 0.0:
                total += w[i] * r[i] * (math.log(r[i] / scale) - log_share)  # (2)
            if not free:
                total += w[i] * (share[i] - r[i])
            total += 0.5 * ridge * w[i] * height * height  # (3)
            grad[i] = w[i] * (scale * share[i] - r[i] + ridge * height)
            remainder = 1.0 - w[i] * share[i] if free else 1.0
            curv[i] = w[i] * (scale * share[i] * remainder + ridge)
        value[q] = team_sum(total)


@kernel
def kl_hessian(queries, indptr, _s, r, w, free, ridge, _constant, share, v, out):
    """Multiply the Hessian of (2) and (3) by v."""
    for q in queries:
        a, b = indptr[q], indptr[q + 1]
        mean = level = 0.0
        scale = _scale(a, b, r, w, free)
        if free:
            level = weighted_mean(a, b, v, w)
            for i in shared_range(a, b):
                mean += w[i] * share[i] * v[i]
            mean = team_sum(mean)
        for i in shared_range(a, b):
            out[i] = w[i] * (scale * share[i] * (v[i] - mean) + ridge * (v[i] - level))


@kernel
def _scale(a, b, r, w, free):
    """Return R of (2), or 1 if the level is not free."""
    if not free:
        return 1.0
    total = 0.0
    for i in shared_range(a, b):
        total += w[i] * r[i]
    return team_sum(total)


DIVERGENCES = {"square": (square, square_hessian), "kl": (kl, kl_hessian)}


def target_terms(
    data: RankingData,
    r: F64,
    *,
    free: bool = True,
    ridge: float = 0.0,
    constant: F64 | None = None,
) -> tuple[Any, ...]:
    """Return the terms of the kernels for targets ``r`` of the documents of ``data``."""
    constant = np.zeros(data.n_queries) if constant is None else constant
    return r, document_weight(data), bool(free), float(ridge), constant, np.empty(len(r))


class _Parts(NamedTuple):
    """The attributes of a loss that `BoundKernel` uses."""

    run: Callable[..., None]
    hessian: Callable[..., None]
    terms: Callable[[RankingData], tuple[Any, ...]]
    query_weight: Callable[[RankingData], F64]


class FixedTargets(BoundKernel):
    """The divergence of the scores from targets r, one per document, on a data set.

    Parameters
    ----------
    r
        Targets: scores for square, masses of 0 or more for kl.
    free
        Minimise over the level of each query's scores.
    ridge
        Factor of (3).
    constant
        Added to the loss of each query.
    query_factor
        Multiplies the loss of each query, in addition to its weight.
    """

    def __init__(
        self,
        data: RankingData,
        r: F64,
        divergence: str,
        *,
        free: bool = True,
        ridge: float = 0.0,
        constant: F64 | None = None,
        query_factor: F64 | None = None,
        n_jobs: int | None = None,
    ) -> None:
        r = r[document_weight(data) > 0.0]

        def terms(present: RankingData) -> tuple[Any, ...]:
            return target_terms(present, r, free=free, ridge=ridge, constant=constant)

        def query_weight(data: RankingData) -> F64:
            return order_weight(data) * (1.0 if query_factor is None else query_factor)

        parts = _Parts(*DIVERGENCES[divergence], terms, query_weight)
        super().__init__(parts, data, n_jobs=n_jobs)
