"""Regression on gains normalised so that the scores are consistent for NDCG (a GLM).

With w_i the weight of document i, the target of a document is its share of the ideal DCG,

    r_i = (2^g_i - 1) / IDCG                                                                  (1)

and the loss of a query is a divergence between targets and m(s + b), b free for each query:

    square   min over b of  sum_i w_i/2 (s_i + b - r_i)^2                                     (2)
    kl       min over b of  sum_i w_i [r_i (log r_i - s_i - b) - r_i + exp(s_i + b)]          (3)
                       =    sum_i w_i r_i (log(r_i / R) - log p_i)

where R = sum w r and p_i = exp(s_i) / sum_j w_j exp(s_j): up to a constant (3) is ListNet's loss
against gains. Both are convex. Gradients are w (s + b - r) and w (R p - r), Hessians
diag(w) - w w' / sum w and R (diag(w p) - (w p)(w p)'). They are losses of [ravikumar2011ndcg] and
baselines of [acharyya2014memr]. A document of weight w fills w ranks of the ideal list.

`FixedTargets` is the same for any targets r, also without the offset b; `losses.retarget` moves
toward its own targets with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.kernels import clear, clear_query
from rankwright.core.parameters import Part, check_parameters
from rankwright.core.types import F64, HessianLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.gain_lists import total_discount
from rankwright.losses.old_base import KernelLoss, document_weight, exp2_of_grades

LARGEST = 300.0  # scores above count as this where exp(s) itself is asked for


class _Terms(NamedTuple):
    """The parameters of `FixedTargets`."""

    r: F64
    w: F64
    free: bool
    ridge: float
    constant: F64  # of each query


# --- kernels ---------------------------------------------------------------------------------


@kernel
def mean_of(lo, hi, s, w):
    """Return the weighted mean, summed from the first so that large scores stay exact."""
    total = mass = 0.0
    for i in range(lo, hi):
        total += w[i] * (s[i] - s[lo])
        mass += w[i]
    return s[lo] + total / mass


@kernel
def _square(lo, hi, indptr, s, terms, _share, weight, value, grad, curv):
    r, w, free, ridge, constant = terms
    for q in range(lo, hi):
        if weight[q] == 0.0:
            clear_query(q, indptr, value, grad, curv)
            continue
        a, b = indptr[q], indptr[q + 1]
        level, offset = 0.0, 0.0
        if free:
            level = mean_of(a, b, s, w)
            offset = level - mean_of(a, b, r, w)
        total = constant[q]
        for i in range(a, b):
            miss, height = s[i] - offset - r[i], s[i] - level
            total += 0.5 * w[i] * (miss * miss + ridge * height * height)  # (2)
            if len(grad):
                grad[i] = weight[q] * w[i] * (miss + ridge * height)
            if len(curv):
                curv[i] = weight[q] * w[i] * (1.0 + ridge)
        value[q] = weight[q] * total


@kernel
def _square_hessian(lo, hi, indptr, _s, terms, _share, weight, v, out):
    _, w, free, ridge, _ = terms
    for q in range(lo, hi):
        a, b = indptr[q], indptr[q + 1]
        mean = mean_of(a, b, v, w) if free and weight[q] > 0.0 else 0.0
        for i in range(a, b):
            out[i] = weight[q] * w[i] * (1.0 + ridge) * (v[i] - mean)


@kernel
def shares(a, b, s, w, free, share):
    """Write p of (3), or exp(s) where there is no offset; returns the log of what divides it."""
    top = -np.inf if free else 0.0
    total = 0.0 if free else 1.0
    if free:
        for i in range(a, b):
            top = max(top, s[i]) if w[i] > 0.0 else top
        for i in range(a, b):
            total += w[i] * math.exp(s[i] - top) if w[i] > 0.0 else 0.0
    for i in range(a, b):
        share[i] = math.exp(min(s[i] - top, LARGEST)) / total if w[i] > 0.0 else 0.0
    return top + math.log(total)


@kernel
def _kl(lo, hi, indptr, s, terms, share, weight, value, grad, curv):
    r, w, free, ridge, constant = terms
    for q in range(lo, hi):
        if weight[q] == 0.0:
            clear_query(q, indptr, value, grad, curv)
            continue
        a, b = indptr[q], indptr[q + 1]
        shift = shares(a, b, s, w, free, share)
        level = mean_of(a, b, s, w) if free and ridge > 0.0 else 0.0
        mass = 0.0
        for i in range(a, b):
            mass += w[i] * r[i]
        scale, total = mass if free else 1.0, constant[q]
        for i in range(a, b):
            height = s[i] - level if ridge > 0.0 else 0.0
            known = min(s[i] - shift, LARGEST)
            entropy = r[i] * (math.log(r[i] / scale) - known) if r[i] > 0.0 else 0.0
            rest = 0.0 if free else share[i] - r[i]
            total += w[i] * (entropy + rest + 0.5 * ridge * height * height)  # (3)
            if len(grad):
                grad[i] = weight[q] * w[i] * (scale * share[i] - r[i] + ridge * height)
            if len(curv):
                rest = 1.0 - w[i] * share[i] if free else 1.0
                curv[i] = weight[q] * w[i] * (scale * share[i] * rest + ridge)
        value[q] = weight[q] * total


@kernel
def _kl_hessian(lo, hi, indptr, _s, terms, share, weight, v, out):
    r, w, free, ridge, _ = terms
    for q in range(lo, hi):
        a, b = indptr[q], indptr[q + 1]
        clear(a, b, out)
        if weight[q] == 0.0:
            continue
        scale, mean, level = 1.0, 0.0, 0.0
        if free:
            scale, level = 0.0, mean_of(a, b, v, w)
            for i in range(a, b):
                scale += w[i] * r[i]
                mean += w[i] * share[i] * v[i]
        for i in range(a, b):
            turned = scale * share[i] * (v[i] - mean) + ridge * (v[i] - level)
            out[i] = weight[q] * w[i] * turned


DIVERGENCES = {"square": (_square, _square_hessian), "kl": (_kl, _kl_hessian)}

# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class NDCGGLM(Part):
    """A divergence between the scores and gains over the ideal DCG.

    Parameters
    ----------
    divergence : "square" or "kl"
        Squared error up to a constant per query, or cross entropy against the shares.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.NDCGGLM(divergence="kl"), model="linear")
    Ranker(loss=NDCGGLM(divergence='kl'))
    """

    divergence: Literal["square", "kl"] = "square"

    traits: ClassVar[Traits] = Traits(convex=True)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> HessianLoss:
        """Prepare the loss for one data set."""
        check_parameters(self)
        return FixedTargets(data, _gain_shares(data), self.divergence, n_jobs=n_jobs)


class FixedTargets(KernelLoss):
    """The divergence of given targets r, one per document, from the scores.

    Parameters
    ----------
    r
        Targets as the divergence has them: as scores for square, as masses (0 or more) for kl.
    free
        Leave the level of each query's scores free, by the offset b.
    ridge
        Adds ridge/2 sum w s^2 to each query, of scores less their mean where the level is free.
    constant
        Added to the loss of each query.
    query_factor
        Multiplies the loss of each query, beside its weight.
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
        run, hessian = DIVERGENCES[divergence]
        constant = np.zeros(data.n_queries) if constant is None else constant
        args = (_Terms(r, document_weight(data), free, float(ridge), constant), np.empty(len(r)))
        super().__init__(run, data, *args, curvature=True, hessian=hessian, n_jobs=n_jobs)
        if query_factor is not None:
            self._weight = self._weight * query_factor


def _gain_shares(data: RankingData) -> F64:
    """Return (1); a document of weight w fills w ranks, the last of them in part."""
    query, w = data.query_of_row(), document_weight(data)
    gain = exp2_of_grades(data) - 1.0
    best_first = np.lexsort((w, -gain, query))
    filled = np.cumsum(w[best_first])
    filled = filled - np.append(0.0, filled)[data.indptr[:-1]][query]
    discount = total_discount(filled) - total_discount(filled - w[best_first])
    ideal = np.bincount(query, gain[best_first] * discount, data.n_queries)[query]
    shares: F64 = gain / np.where(ideal > 0.0, ideal, 1.0)
    return shares
