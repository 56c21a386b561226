"""Squared hinge on pairs whose margin is the difference of the targets (GBRank).

With y_i the target of document i, w_i its weight, O the pairs (i, j) in which i has the higher
grade and T the pairs of different documents of one grade, in both orders, the loss of a query is

    L(s) = sum over O of w_i w_j (y_i - y_j - s_i + s_j)_+^2                                    (1)
         + lambda1 sum over T of w_i w_j (s_i - s_j)^2                                          (2)
         + calibration/2 sum_i w_i (y_i - s_i)^2                                                (3)

as compared in `moon2010intervalrank`. With v = s - y, a term of (1) is (v_j - v_i)_+^2. So the sums
over wrong pairs of `losses.pair_sums` give value and gradient in O(n log n). (2) is a variance
within each grade. While the wrong pairs stay the same, (1) and (2) are quadratic in v.

The curvature is an upper bound. The Hessian of one pair, 2 w_i w_j [1 -1; -1 1], is at most twice
its diagonal, so 4 w_i (weight of the wrong partners of i) bounds (1) as a matrix, and
4 lambda1 w_i (weight of the grade) bounds (2). With these bounds, steps of gradient / curvature for
all documents at once do not overshoot. With the exact diagonal, half as large for (1), they do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parameters import NonNegative
from rankwright.core.types import Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import KernelLoss, Targets, document_weight, grade_targets
from rankwright.losses.pair_sums import GradeBlocks, add_partners, find_wrong_pairs


@kernel
def _gbrank(queries, indptr, s, layout, pairs, work, y, w, lambda1, calibration, value, grad, curv):
    rows, start, of_query = layout
    v, x, n, partners = work
    for q in queries:
        first, last = of_query[q], of_query[q + 1]
        centre = 0.0  # without it, sums of v would cancel if all scores are large
        for p in range(indptr[q], indptr[q + 1]):
            v[p] = s[rows[p]] - y[p]
            centre += v[p]
        centre /= indptr[q + 1] - indptr[q]
        for p in range(indptr[q], indptr[q + 1]):
            v[p] -= centre
            x[p] = w[p] * v[p]
        find_wrong_pairs(first, last, start, v, 0.0, pairs)
        add_partners(first, last, start, pairs, w, n, n)
        add_partners(first, last, start, pairs, x, partners, partners)
        for b in range(first, last):
            mass = total = 0.0
            for p in range(start[b], start[b + 1]):
                mass += w[p]
                total += x[p]
            mean, tied = total / mass, 4.0 * lambda1 * mass
            for p in range(start[b], start[b + 1]):
                pull = 2.0 * (n[p] * v[p] - partners[p])  # gradient of (1)
                tie = tied * (v[p] - mean)  # gradient of (2)
                error = v[p] + centre
                value[q] += w[p] * 0.5 * (pull * v[p] + tie * (v[p] - mean))  # (1) and (2)
                value[q] += 0.5 * calibration * w[p] * error * error  # (3)
                grad[rows[p]] = w[p] * (pull + tie + calibration * error)
                bound = tied if start[b + 1] - start[b] > 1 else 0.0
                curv[rows[p]] = w[p] * (4.0 * n[p] + bound + calibration)
        value[q] = max(value[q], 0.0)


@dataclass(frozen=True, slots=True, repr=False)
class GBRank(KernelLoss):
    """Squared hinge on pairs with a margin by grade, and a penalty on differences within a grade.

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

    run = staticmethod(_gbrank)

    @property
    def traits(self) -> Traits:
        """Properties of the loss with these parameters."""
        return Traits(convex=True, shift_invariant=self.calibration == 0.0)

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return grades, pairs, work arrays, and y, w, lambda1 and calibration of (1) to (3)."""
        blocks = GradeBlocks.of(data)
        y = grade_targets(data, self.targets)[blocks.rows]
        w = document_weight(data)[blocks.rows]
        work = tuple(np.empty((4, data.n_documents)))
        parameters = float(self.lambda1), float(self.calibration)
        return blocks.layout, blocks.new_pairs(), work, y, w, *parameters
