"""Softmax of clicks over relevance and position, the effect of positions learned beside (dual).

Document i of a query was shown w_i times at position k_i, and g_i is the share of these that was
clicked. Given the clicks of the query as a whole, the position-based model says that each of them
fell on document i with a probability that is proportional to w_i exp(s_i + b_k), k = k_i, with
exp(s) the relevance and exp(b) the examination. The loss is its negative log-likelihood at the
best effects of positions,

    L(s) = min over b of  sum_q sum_i w_i g_i (log sum_j w_j exp(z_j) - z_i) + ridge/2 |b|^2,
                          z_i = s_i + b_k                                                       (1)

with b = 0 for the first position: dual learning (`ai2018dual`) as one convex problem of scores and
positions. Its gradient is that of the sum at the best b (envelope theorem): C P_i - w_i g_i, with
C = sum_i w_i g_i the clicks of the query and P the softmax of z with weights w; the curvature
C P_i (1 - P_i) is an upper bound. The best b is found by Newton's method,

    dL/db_k      = sum over i at k of (C P_i - w_i g_i) + ridge b_k                             (2)
    d2L/db_k b_l = [k = l] (sum over i at k of C P_i + ridge) - sum_q C P_qk P_ql               (3)

with P_qk the sum of P over the documents of query q at position k. Models and solvers that see some
queries at a time (networks, sgd) take b as it is within a pass, and after each

    exp(b_k) <- exp(b_k) (sum over i at k of w_i g_i) / (sum over i at k of C P_i)              (4)

which lowers (1) for fixed scores.

Data without positions have no b: (1) is then the cross entropy of the softmax against grades as
they are. A query whose grades are all equal says nothing about documents, but something about
positions, and counts where there are any.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from rankwright.core.jit import kernel
from rankwright.core.parameters import Part, Positive, check_parameters
from rankwright.core.types import F64, I64, AnyArray, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError
from rankwright.losses.old_base import NOTHING, KernelLoss, document_weight, present_documents

_MOST_STEPS, _MOST_HALVINGS = 60, 40
_TOLERANCE = 1e-9  # of the gradient in b, relative to the clicks

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(lo, hi, indptr, s, offset, t, w, weight, value, grad, curv):
    for q in range(lo, hi):
        start, end = indptr[q], indptr[q + 1]
        value[q] = 0.0
        if start == end:
            continue
        top = -np.inf
        for i in range(start, end):
            top = max(top, s[i] + offset[i])
        z = clicks = total = 0.0
        for i in range(start, end):
            z += w[i] * math.exp(s[i] + offset[i] - top)
            clicks += t[i]
            total += t[i] * (top - s[i] - offset[i])
        value[q] = weight[q] * (total + clicks * math.log(z))  # (1)
        if len(grad):
            for i in range(start, end):
                p = w[i] * math.exp(s[i] + offset[i] - top) / z
                grad[i] = weight[q] * (clicks * p - t[i])
                if len(curv):
                    curv[i] = weight[q] * clicks * p * (1.0 - p)


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class DualSoftmax(Part):
    """Cross entropy of clicks against the softmax of scores and effects of positions.

    Parameters
    ----------
    ridge : float
        Penalty on the effects, which keeps that of a position without clicks finite.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.DualSoftmax(ridge=0.01), model="linear")
    Ranker(loss=DualSoftmax(ridge=0.01))
    """

    takes_positions: ClassVar[bool] = True

    ridge: Positive = 1e-3

    traits: ClassVar[Traits] = Traits(convex=True)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_parameters(self)
        return BoundDualSoftmax(data, float(self.ridge), n_jobs=n_jobs)


class BoundDualSoftmax(KernelLoss):
    """`DualSoftmax` on one data set, with the effects of positions at the last scores.

    Attributes
    ----------
    positions : (K,) array
        Those that the data has, the first of them without an effect; none where it has no
        positions.
    """

    def __init__(self, data: RankingData, ridge: float, *, n_jobs: int | None) -> None:
        seen, self._rows = present_documents(data), np.flatnonzero(document_weight(data) > 0.0)
        self.positions, self._code = _position_codes(data, self._rows)
        self._effect, self._ridge = np.zeros(len(self.positions)), ridge
        w = document_weight(seen)
        offset, t = np.zeros(seen.n_documents), w * seen.y
        super().__init__(_queries, data, offset, t, w, curvature=True, present=seen, n_jobs=n_jobs)
        query = seen.query_of_row()
        if len(self.positions):
            given = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
            self._weight = np.where(np.bincount(query, t, data.n_queries) > 0.0, given, 0.0)
        self._query, self._offset = query, offset
        self._clicks = self._weight[query] * t
        self._expected = np.zeros(len(t))  # C P of each document, in the last pass over queries

    @property
    def examination(self) -> F64:
        """The examination exp(b) of each of ``positions``, at the scores of the last call."""
        found: F64 = np.exp(self._effect)
        return found

    def state(self) -> dict[str, AnyArray]:
        """Return the effects of positions, and what their next change comes from."""
        return {"effect": self._effect, "expected": self._expected}

    def load_state(self, kept: Mapping[str, AnyArray]) -> None:
        """Be as the loss that had this `state`."""
        super().load_state(kept)
        self._place_effect()

    def grad_queries(self, lo: int, hi: int, s: F64, out: F64) -> float:
        """As ``grad``, for the queries lo:hi alone, with the effects of the last pass."""
        value = super().grad_queries(lo, hi, s, out)
        own = slice(self._indptr[lo], self._indptr[hi])
        self._expected[own] = out[self._rows[own]] + self._clicks[own]
        return value

    def set_iteration(self, t: int) -> None:  # noqa: ARG002
        """Change the effects by what a pass over queries expected at each position."""
        size = len(self.positions)
        if size < 2 or not self._expected.any():
            return
        clicks = np.bincount(self._code, self._clicks, size) + self._ridge
        expected = np.bincount(self._code, self._expected, size) + self._ridge
        self._effect += np.log(clicks / expected)  # (4)
        self._effect -= self._effect[0]
        self._place_effect()

    def _place_effect(self) -> None:
        if len(self.positions):
            self._offset[:] = self._effect[self._code]

    def _run(self, s: F64, grad: F64, curv: F64) -> float:
        if len(self.positions) > 1:
            self._find_effect(s)
        return super()._run(s, grad, curv) + 0.5 * self._ridge * float(self._effect @ self._effect)

    def _find_effect(self, s: F64) -> None:
        """Set the effects to the minimiser for these scores, by Newton's method."""
        grad = np.empty(len(s))
        value = self._at_effect(s, grad)
        for _ in range(_MOST_STEPS):
            slope = self._ridge * self._effect  # (2)
            slope += np.bincount(self._code, grad[self._rows], len(slope))
            slope[0] = 0.0
            if not np.abs(slope).max() > _TOLERANCE * self._clicks.sum():
                return  # converged, or the scores are not finite
            step = self._newton_step(grad[self._rows], slope)
            before, value_before, gain = self._effect.copy(), value, float(slope @ step)
            for halving in range(_MOST_HALVINGS):
                self._effect[:] = before - step * 0.5**halving
                value = self._at_effect(s, grad)
                if value <= value_before - 1e-4 * gain * 0.5**halving:
                    break
            else:
                self._effect[:] = before  # as good as the precision of the value allows
                return

    def _at_effect(self, s: F64, grad: F64) -> float:
        """Return the value at the current effects, and write the gradient."""
        self._place_effect()
        return super()._run(s, grad, NOTHING) + 0.5 * self._ridge * float(
            self._effect @ self._effect
        )

    def _newton_step(self, grad: F64, slope: F64) -> F64:
        """Return the inverse of (3) times the gradient (2)."""
        expected = grad + self._clicks  # C P of each document, times the weight of its query
        n, size = len(self._weight), len(self.positions)
        total = np.bincount(self._query, self._clicks, n)
        at = sparse.csr_array((expected, (self._query, self._code)), shape=(n, size))
        share = sparse.diags_array(1.0 / np.where(total > 0.0, total, 1.0))
        turn = np.diag(np.bincount(self._code, expected, size) + self._ridge)
        turn -= (at.T @ share @ at).toarray()  # (3)
        step = np.zeros(size)
        step[1:] = np.linalg.solve(turn[1:, 1:], slope[1:])
        return step


def _position_codes(data: RankingData, rows: I64) -> tuple[AnyArray, I64]:
    """Return the positions of these rows in order, and the number of each row among them."""
    if data.position is None:
        return np.empty(0, np.int64), np.zeros(len(rows), np.int64)
    if data.position.dtype.kind not in "iuf" or not np.isfinite(data.position).all():
        raise DataError("dual_softmax needs positions that are numbers, 1 for the first.")
    found, code = np.unique(data.position[rows], return_inverse=True)
    return found, code.astype(np.int64)
