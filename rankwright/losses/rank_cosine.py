"""The angle between the scores of a query and the targets of its grades (RankCosine).

With y_i the target of document i, w_i its weight and <a, b> = sum_i w_i a_i b_i, the loss of a
query is (`qin2008rankcosine`)

    L(s) = 1/2 (1 - cos),     cos = <y, s> / (|y| |s|),     |s|^2 = <s, s> + softening^2        (1)

from 0 to 1: no query outweighs another, however many documents it has. The paper's (1) is without
``softening``, and has no value at scores of 0, where linear models and trees begin; a small value
comes as near to it as is asked for. ``centred=True`` takes y and s less their means over the query,
so that the cosine is a correlation and the level of the scores is free.

With u = y / |y| and v = s / |s|, the gradient and the Hessian times x are

    -w / (2 |s|) (u - cos v)                                                                    (2)
    w / (2 |s|^2) (u <v, x> + v <u, x> + cos x - 3 cos v <v, x>)                                (3)

L is not convex. The curvature w / |s|^2 is above the diagonal of (3), and a step of gradient over
curvature is never longer than |s|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.kernels import clear, clear_query
from rankwright.core.parameters import Part, Positive, check_parameters
from rankwright.core.types import F64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.ndcg_glm import mean_of
from rankwright.losses.old_base import KernelLoss, Targets, document_weight, grade_targets


class _Terms(NamedTuple):
    u: F64  # direction of the targets
    w: F64
    centred: bool
    softening: float


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _cosine(a, b, level, s, u, w, softening):
    """Return the cosine of (1) and |s|."""
    both, square = 0.0, softening * softening
    for i in range(a, b):
        both += w[i] * u[i] * (s[i] - level)
        square += w[i] * (s[i] - level) * (s[i] - level)
    length = math.sqrt(square)
    return both / length, length


@kernel
def _queries(lo, hi, indptr, s, terms, weight, value, grad, curv):
    u, w, centred, softening = terms
    for q in range(lo, hi):
        a, b = indptr[q], indptr[q + 1]
        if weight[q] == 0.0:
            clear_query(q, indptr, value, grad, curv)
            continue
        level = mean_of(a, b, s, w) if centred else 0.0
        cosine, length = _cosine(a, b, level, s, u, w, softening)
        value[q] = 0.5 * weight[q] * (1.0 - cosine)  # (1)
        if len(grad):
            for i in range(a, b):
                away = u[i] - cosine * (s[i] - level) / length
                grad[i] = -0.5 * weight[q] * w[i] * away / length  # (2)
        if len(curv):
            for i in range(a, b):
                curv[i] = weight[q] * w[i] / (length * length)


@kernel
def _hessian(lo, hi, indptr, s, terms, weight, x, out):
    u, w, centred, softening = terms
    for q in range(lo, hi):
        a, b = indptr[q], indptr[q + 1]
        if weight[q] == 0.0:
            clear(a, b, out)
            continue
        level = mean_of(a, b, s, w) if centred else 0.0
        turn = mean_of(a, b, x, w) if centred else 0.0
        cosine, length = _cosine(a, b, level, s, u, w, softening)
        along_u = along_v = 0.0
        for i in range(a, b):
            along_u += w[i] * u[i] * (x[i] - turn)
            along_v += w[i] * (s[i] - level) / length * (x[i] - turn)
        scale = 0.5 * weight[q] / (length * length)
        for i in range(a, b):
            v = (s[i] - level) / length
            own = u[i] * along_v + v * along_u + cosine * (x[i] - turn - 3.0 * v * along_v)
            out[i] = scale * w[i] * own  # (3)


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class RankCosine(Part):
    """Half of one minus the cosine between scores and targets, query by query.

    Parameters
    ----------
    targets : "linear", "gain" or a tuple
        Target score of a grade: the grade, 2^grade - 1, or a value per grade.
    centred : bool
        Leave the level of each query's scores free: the cosine is then their correlation with the
        targets. False is as published.
    softening : float
        Added to the length of the scores, as the other side of a right angle; the paper's loss is
        the limit of 0.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.RankCosine(centred=True), model="linear")
    Ranker(loss=RankCosine(centred=True))
    """

    targets: Targets = "linear"
    centred: bool = False
    softening: Positive = 1.0

    @property
    def traits(self) -> Traits:
        """What this loss can do with these parameters."""
        return Traits(shift_invariant=self.centred)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_parameters(self)
        w = document_weight(data)
        u = self._directions(data, w)
        terms = _Terms(u, w, bool(self.centred), float(self.softening))
        return KernelLoss(_queries, data, terms, curvature=True, hessian=_hessian, n_jobs=n_jobs)

    def _directions(self, data: RankingData, w: F64) -> F64:
        """Return u = y / |y| of each document."""
        y, query = grade_targets(data, self.targets), data.query_of_row()
        if self.centred:
            total = np.bincount(query, w, data.n_queries)
            mean = np.bincount(query, w * y, data.n_queries) / np.where(total > 0.0, total, 1.0)
            y = y - mean[query]
        length = np.sqrt(np.bincount(query, w * y * y, data.n_queries))
        directions: F64 = y / np.where(length > 0.0, length, 1.0)[query]
        return directions
