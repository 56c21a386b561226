"""Softmax cross entropy of clicks by relevance and position (dual learning).

Document i of a query was shown w_i times at position k_i, and g_i is the fraction of these
impressions that were clicked. By the position-based model, a click of the query falls on document i
with a probability proportional to w_i exp(s_i + b_k), k = k_i, where exp(s) is the relevance and
exp(b) the examination. The loss is the negative log-likelihood at the best position effects b,

    L(s) = min over b of  sum_q sum_i w_i g_i (log sum_j w_j exp(z_j) - z_i) + ridge/2 |b|^2,
                          z_i = s_i + b_k                                                       (1)

with b = 0 for the first position: dual learning (`ai2018dual`) as one convex problem in scores and
positions. By the envelope theorem, its gradient is that of the sum at the best b: C P_i - w_i g_i,
with C = sum_i w_i g_i the clicks of the query and P the softmax of z with weights w. The curvature
C P_i (1 - P_i) is an upper bound. The best b is found by Newton's method,

    dL/db_k      = sum over i at k of (C P_i - w_i g_i) + ridge b_k                             (2)
    d2L/db_k b_l = [k = l] (sum over i at k of C P_i + ridge) - sum_q C P_qk P_ql               (3)

with P_qk the sum of P over the documents of query q at position k. Models and solvers that visit
some queries at a time (networks, sgd) use a fixed b during a pass, and after each pass

    exp(b_k) <- exp(b_k) (sum over i at k of w_i g_i) / (sum over i at k of C P_i)              (4)

which lowers (1) for fixed scores.

Without positions, (1) is the softmax cross entropy of `rankwright.losses.Softmax`. With positions,
queries whose labels are all equal count too: they have information about positions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from rankwright.core.jit import kernel
from rankwright.core.parameters import Positive
from rankwright.core.types import F64, I64, AnyArray, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, IncompatibleError
from rankwright.losses.base import (
    BoundKernel,
    KernelLoss,
    document_weight,
    order_weight,
    present_documents,
)

_MOST_STEPS, _MOST_HALVINGS = 60, 40
_TOLERANCE = 1e-12  # of the gradient in b, relative to the clicks


@kernel
def _dual_softmax(queries, indptr, s, offset, clicks, w, value, grad, curv):
    for q in queries:
        start, end = indptr[q], indptr[q + 1]
        top = -np.inf
        for i in range(start, end):
            top = max(top, s[i] + offset[i])
        z = total = 0.0
        for i in range(start, end):
            grad[i] = w[i] * math.exp(s[i] + offset[i] - top)
            z += grad[i]
            total += clicks[i]
            value[q] += clicks[i] * (top - s[i] - offset[i])
        value[q] += total * math.log(z)  # (1)
        for i in range(start, end):
            p = grad[i] / z
            grad[i] = total * p - clicks[i]
            curv[i] = total * p * (1.0 - p)


class BoundDualSoftmax(BoundKernel):
    """`DualSoftmax` on one data set, with the effects of positions at the last scores.

    Attributes
    ----------
    positions : array of shape (n_positions,)
        The positions of the data, of which the first has no effect; empty without positions.
    """

    def __init__(self, loss: Any, data: RankingData, *, n_jobs: int | None = None) -> None:
        super().__init__(loss, data, n_jobs=n_jobs)
        present = present_documents(data)
        self.positions, self._code = _position_codes(present)
        self._effect, self._ridge = np.zeros(len(self.positions)), float(loss.ridge)
        self._offset, clicks, _ = self.terms
        self._query = present.query_of_row()
        self._clicks = self.weight[self._query] * clicks
        self._expected = np.zeros(len(clicks))  # C P of each document, in the last pass

    @property
    def examination(self) -> F64:
        """Examination exp(b) of each of ``positions``, at the last scores."""
        examination: F64 = np.exp(self._effect)
        return examination

    def state(self) -> dict[str, AnyArray]:
        """Return the effects of positions, and the expected clicks of their next change."""
        return {"effect": self._effect, "expected": self._expected}

    def load_state(self, arrays: Mapping[str, AnyArray]) -> None:
        """Restore the arrays that `state` returned."""
        super().load_state(arrays)
        self._update_offset()

    def set_iteration(self, t: int) -> None:  # noqa: ARG002
        """Change the effects by the clicks that the last pass over queries expected."""
        size = len(self.positions)
        if size < 2 or not self._expected.any():
            return
        clicks = np.bincount(self._code, self._clicks, size) + self._ridge
        expected = np.bincount(self._code, self._expected, size) + self._ridge
        self._effect += np.log(clicks / expected)  # (4)
        self._effect -= self._effect[0]
        self._update_offset()

    def on_device(self, torch: Any) -> Any:
        """Return the loss on a GPU; raise with positions, whose effects the CPU computes."""
        if len(self.positions) > 1:
            raise IncompatibleError("its effects of positions are computed on the CPU.")
        return super().on_device(torch)

    def _compute(
        self, s: F64, out: F64 | None, curv: F64 | None, lo: int = 0, hi: int | None = None
    ) -> float:
        if hi is None:  # all queries: at the best effects
            if len(self.positions) > 1:
                self._find_effect(s)
            return super()._compute(s, out, curv) + self._penalty()
        value = super()._compute(s, out, curv, lo, hi)
        if out is not None:
            present = slice(self.layout.indptr[lo], self.layout.indptr[hi])
            self._expected[present] = self._of_present(out, present) + self._clicks[present]
        return value

    def _of_present(self, x: F64, present: slice = slice(None)) -> F64:
        """Return the numbers of documents of positive weight."""
        return x[present] if self.layout.rows is None else x[self.layout.rows[present]]

    def _penalty(self) -> float:
        return 0.5 * self._ridge * float(self._effect @ self._effect)

    def _update_offset(self) -> None:
        if len(self.positions):
            self._offset[:] = self._effect[self._code]

    def _find_effect(self, s: F64) -> None:
        """Set the effects to the minimiser for these scores, by Newton's method."""
        grad = np.empty(len(s))
        value = self._at_effect(s, grad)
        for _ in range(_MOST_STEPS):
            part = self._of_present(grad)
            slope = np.bincount(self._code, part, len(self._effect)) + self._ridge * self._effect
            slope[0] = 0.0  # (2)
            if not np.abs(slope).max() > _TOLERANCE * self._clicks.sum():
                return  # converged, or the scores are not finite
            step = self._newton_step(part, slope)
            before, value_before, gain = self._effect.copy(), value, float(slope @ step)
            for halving in range(_MOST_HALVINGS):
                self._effect[:] = before - step * 0.5**halving
                value = self._at_effect(s, grad)
                if value <= value_before - 1e-4 * gain * 0.5**halving:
                    break
            else:
                self._effect[:] = before  # the precision of the value allows no better
                self._update_offset()
                return

    def _at_effect(self, s: F64, grad: F64) -> float:
        """Return the value at the current effects, and write the gradient."""
        self._update_offset()
        return super()._compute(s, grad, None) + self._penalty()

    def _newton_step(self, grad: F64, slope: F64) -> F64:
        """Return the inverse of (3) times the gradient (2)."""
        expected = grad + self._clicks  # C P of each document, times the weight of its query
        n, size = len(self.weight), len(self.positions)
        total = np.bincount(self._query, self._clicks, n)
        table = sparse.csr_array((expected, (self._query, self._code)), shape=(n, size))
        share = sparse.diags_array(1.0 / np.where(total > 0.0, total, 1.0))
        hessian = np.diag(np.bincount(self._code, expected, size) + self._ridge)
        hessian -= (table.T @ share @ table).toarray()  # (3)
        step = np.zeros(size)
        step[1:] = np.linalg.solve(hessian[1:, 1:], slope[1:])
        return step


@dataclass(frozen=True, slots=True, repr=False)
class DualSoftmax(KernelLoss):
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

    traits = Traits(convex=True)
    run = staticmethod(_dual_softmax)
    bound_class = BoundDualSoftmax

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the effect of each document's position, its clicks and its weight."""
        w = document_weight(data)
        return np.zeros(data.n_documents), w * data.y, w

    def query_weight(self, data: RankingData) -> F64:
        """Return the weight of each query; with positions, 0 only if it has no clicks."""
        if data.position is None:
            return order_weight(data)
        weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
        clicks = np.bincount(data.query_of_row(), document_weight(data) * data.y, data.n_queries)
        weights: F64 = np.where(clicks > 0.0, weight, 0.0)
        return weights


def _position_codes(data: RankingData) -> tuple[AnyArray, I64]:
    """Return the distinct positions in increasing order, and the number of that of each row."""
    if data.position is None:
        return np.empty(0, np.int64), np.zeros(data.n_documents, np.int64)
    if data.position.dtype.kind not in "iuf" or not np.isfinite(data.position).all():
        raise DataError("dual_softmax needs positions that are numbers, 1 for the first.")
    positions, code = np.unique(data.position, return_inverse=True)
    return positions, code.astype(np.int64)
