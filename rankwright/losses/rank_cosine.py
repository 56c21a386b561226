"""Cosine between the scores of a query and the targets of its labels (RankCosine).

With y_i the target of document i, w_i its weight and <a, b> = sum_i w_i a_i b_i, the loss of a
query is (`qin2008rankcosine`)

    L(s) = 1/2 (1 - cos),     cos = <y, s> / (|y| |s|),     |s|^2 = <s, s> + softening^2        (1)

from 0 to 1, so that each query counts the same however many documents it has. The paper has no
``softening``; its loss is undefined at scores of 0, where linear models and trees begin. With
``centred=True``, the weighted means over the query are subtracted from y and s: the cosine is then
a correlation, and the level of the scores is free.

With u = y / |y| and v = s / |s|, the gradient is

    dL/ds = -w / (2 |s|) (u - cos v)                                                            (2)

L is not convex. The curvature w / |s|^2 is above the diagonal of the Hessian, and a step of
gradient over curvature is never longer than |s|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parameters import Positive
from rankwright.core.team import shared_range, team_sum
from rankwright.core.types import F64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import (
    KernelLoss,
    Targets,
    document_weight,
    grade_targets,
    weighted_mean,
)


@kernel
def _rank_cosine(queries, indptr, s, u, w, centred, softening, value, grad, curv):
    for q in queries:
        a, b = indptr[q], indptr[q + 1]
        level = weighted_mean(a, b, s, w) if centred else 0.0
        product = square = 0.0
        for i in shared_range(a, b):
            product += w[i] * u[i] * (s[i] - level)
            square += w[i] * (s[i] - level) * (s[i] - level)
        length = math.sqrt(softening * softening + team_sum(square))
        cosine = team_sum(product) / length
        value[q] = 0.5 * (1.0 - cosine)  # (1)
        for i in shared_range(a, b):
            error = u[i] - cosine * (s[i] - level) / length
            grad[i] = -0.5 * w[i] * error / length  # (2)
            curv[i] = w[i] / (length * length)


@dataclass(frozen=True, slots=True, repr=False)
class RankCosine(KernelLoss):
    """Half of one minus the cosine between the scores and targets of a query.

    Parameters
    ----------
    targets : "linear", "gain" or a tuple
        Target score of a label: the label, 2^label - 1, or a value per label.
    centred : bool
        Leave the level of each query's scores free, so that the cosine is the correlation of scores
        and targets. False is as published.
    softening : float
        Added in quadrature to the length of the scores. The published loss is the limit of 0.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.RankCosine(centred=True), model="linear")
    Ranker(loss=RankCosine(centred=True))
    """

    targets: Targets = "linear"
    centred: bool = False
    softening: Positive = 1.0

    run = staticmethod(_rank_cosine)

    @property
    def traits(self) -> Traits:
        """Properties of the loss with these parameters."""
        return Traits(shift_invariant=self.centred)

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return u of (2), the document weights and the parameters."""
        w = document_weight(data)
        return self._directions(data, w), w, bool(self.centred), float(self.softening)

    def _directions(self, data: RankingData, w: F64) -> F64:
        """Return u = y / |y| of each document."""
        y, query = grade_targets(data, self.targets), data.query_of_row()
        if self.centred:
            total, mass = (np.bincount(query, x, data.n_queries) for x in (w * y, w))
            y = y - total[query] / mass[query]
        length = np.sqrt(np.bincount(query, w * y * y, data.n_queries))
        directions: F64 = y / np.where(length > 0.0, length, 1.0)[query]
        return directions
