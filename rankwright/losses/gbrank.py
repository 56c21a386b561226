"""Squared hinge on pairs, with the margin that the grades ask for (GBRank).

With y_i the target of document i, w_i its weight, O the pairs (i, j) where i has the higher grade
and T the pairs of different documents of one grade, in both orders, the loss of a query is

    L(s) = sum over O of w_i w_j (y_i - y_j - s_i + s_j)_+^2                                    (1)
         + lambda1 sum over T of w_i w_j (s_i - s_j)^2                                          (2)
         + calibration/2 sum_i w_i (y_i - s_i)^2                                                (3)

as compared in `moon2010intervalrank`. With v = s - y a term of (1) is (v_j - v_i)_+^2, so the sums
over wrong pairs of `losses.pair_sums` give value and gradient in O(n log n). (2) is a
variance within each grade. Within a set of wrong pairs all is quadratic, which gives the Hessian.

The curvature is an upper bound: the Hessian of one pair, 2 w_i w_j [1 -1; -1 1], is at most twice
its diagonal, so curv_i = 4 w_i (weight of the wrong partners of i) bounds (1) as a matrix, and
4 lambda1 w_i (weight of the grade) bounds (2). Steps of gradient / curv then never overshoot all
together; those of the exact diagonal, half as large for (1), do, and so does curvature 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parameters import NonNegative, Part, check_parameters
from rankwright.core.types import F64, I64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.old_base import (
    KernelLoss,
    Targets,
    document_weight,
    grade_targets,
    present_documents,
)
from rankwright.losses.pair_sums import GradeBlocks, add_partners, find_wrong_pairs


class _Terms(NamedTuple):
    y: F64  # target of each place
    w: F64
    lambda1: float
    calibration: float


class _Workspace(NamedTuple):
    """What the kernel leaves for the Hessian, by place, and scratch."""

    pairs: tuple[I64, I64, I64, F64]  # of `GradeBlocks.new_pairs`
    v: F64  # score less target; any vector in the Hessian
    x: F64
    n: F64  # weight of the partners
    partners: F64  # sum of x over them


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(lo, hi, indptr, s, layout, terms, workspace, weight, value, grad, curv):
    rows, start, of_query = layout
    y, w, lambda1, calibration = terms
    pairs, v, x, n, partners_v = workspace
    for q in range(lo, hi):
        centre = 0.0  # sums of v would cancel where all scores are large
        for p in range(indptr[q], indptr[q + 1]):
            v[p] = s[rows[p]] - y[p]
            centre += v[p]
        centre /= max(1, indptr[q + 1] - indptr[q])
        for p in range(indptr[q], indptr[q + 1]):
            v[p] -= centre
            x[p] = w[p] * v[p]
        first, last = of_query[q], of_query[q + 1]
        find_wrong_pairs(first, last, start, v, 0.0, pairs)
        add_partners(first, last, start, pairs, w, n, n)
        add_partners(first, last, start, pairs, x, partners_v, partners_v)
        total = 0.0
        for b in range(first, last):
            grade_n, mean = _grade_mean(start[b], start[b + 1], v, w)
            for p in range(start[b], start[b + 1]):
                pull = 2.0 * (n[p] * v[p] - partners_v[p])  # gradient of (1)
                tie = 4.0 * lambda1 * grade_n * (v[p] - mean)  # and of (2)
                error = v[p] + centre
                # (1) and (2) are quadratic in v wherever the wrong pairs stay the same
                total += w[p] * (0.5 * pull * v[p] + 0.5 * tie * (v[p] - mean))
                total += 0.5 * calibration * w[p] * error * error  # (3)
                if len(grad):
                    grad[rows[p]] = weight[q] * w[p] * (pull + tie + calibration * error)
                if len(curv):
                    tied = 4.0 * lambda1 * grade_n if start[b + 1] - start[b] > 1 else 0.0
                    curv[rows[p]] = weight[q] * w[p] * (4.0 * n[p] + tied + calibration)
        value[q] = weight[q] * max(total, 0.0)


@kernel
def _hessian(lo, hi, indptr, _s, layout, terms, workspace, weight, direction, out):
    """Write the Hessian times ``direction``, from the wrong pairs found at s."""
    rows, start, of_query = layout
    _, w, lambda1, calibration = terms
    pairs, u, x, n, partners_u = workspace
    for q in range(lo, hi):
        for p in range(indptr[q], indptr[q + 1]):
            u[p] = direction[rows[p]]
            x[p] = w[p] * u[p]
        first, last = of_query[q], of_query[q + 1]
        add_partners(first, last, start, pairs, x, partners_u, partners_u)
        for b in range(first, last):
            grade_n, mean = _grade_mean(start[b], start[b + 1], u, w)
            for p in range(start[b], start[b + 1]):
                pull = 2.0 * (n[p] * u[p] - partners_u[p])
                tie = 4.0 * lambda1 * grade_n * (u[p] - mean)
                out[rows[p]] = weight[q] * w[p] * (pull + tie + calibration * u[p])


@kernel
def _grade_mean(lo, hi, v, w):
    """Return the weight of the places lo:hi and the weighted mean of v over them."""
    n = total = 0.0
    for p in range(lo, hi):
        n += w[p]
        total += w[p] * v[p]
    return n, total / n if n > 0.0 else 0.0


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class GBRank(Part):
    """Squared hinge on pairs with the margin between their grades, and a pull between equals.

    Parameters
    ----------
    lambda1 : float
        Weight of the squared differences between documents of one grade.
    calibration : float
        Weight of the squared error to the target, which fixes the level of the scores.
    targets : "linear", "gain" or a tuple
        Target score of a grade: the grade, 2^grade - 1, or a value per grade.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.GBRank(lambda1=0.1), model="trees")
    Ranker(loss=GBRank(lambda1=0.1), model='trees')
    """

    lambda1: NonNegative = 0.0
    calibration: NonNegative = 0.0
    targets: Targets = "linear"

    @property
    def traits(self) -> Traits:
        """What this loss can do with these parameters."""
        return Traits(convex=True, shift_invariant=self.calibration == 0.0)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_parameters(self)
        seen = present_documents(data)
        blocks = GradeBlocks.of(seen)
        y = grade_targets(seen, self.targets)[blocks.rows]
        w = document_weight(seen)[blocks.rows]
        return KernelLoss(
            _queries,
            data,
            blocks.layout,
            _Terms(y, w, float(self.lambda1), float(self.calibration)),
            _Workspace(blocks.new_pairs(), *np.empty((4, seen.n_documents))),
            curvature=True,
            hessian=_hessian,
            present=seen,
            n_jobs=n_jobs,
        )
