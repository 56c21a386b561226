"""A loss on scores and a matrix of features, as one problem in the weights.

    J(v) = sum_q weight_q loss_q(X_q D^-1 v) / sum_q weight_q + l2/2 |v|^2                    (1)

D holds each feature's standard deviation, or ones; v = D w are the scaled weights that the solver
sees. With g and H the gradient and Hessian of the loss in the scores, the gradient is
D^-1 X' g / W + l2 v, and a Hessian product costs two products with X:

    D^-1 X' H X D^-1 u / W + l2 u,    W = sum_q weight_q                                      (2)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwright.core.products import (
    times_vector,
    transposed_squares_times_vector,
    transposed_times_vector,
)
from rankwright.core.types import F64, I64, FloatMatrix


class LinearProblem:
    """(1), as a solver sees it; what it can be asked for depends on what the loss can do.

    Parameters
    ----------
    X, indptr
        Features, and where queries begin.
    loss
        The bound loss.
    total_weight
        W, the weight of all queries that have an order.
    l2, deviation
        Penalty, and D.
    """

    def __init__(
        self,
        X: FloatMatrix,
        indptr: I64,
        loss: Any,
        total_weight: float,
        *,
        l2: float,
        deviation: F64,
        n_threads: int | None = None,
    ) -> None:
        self.size, self.n_parts = int(X.shape[1]), len(indptr) - 1
        self._X, self._indptr, self._loss, self._total = X, indptr, loss, total_weight
        self._l2, self._deviation, self._n_threads = l2, deviation, n_threads
        self._slope, self._score = np.empty(X.shape[0]), np.empty(X.shape[0])

    def scores(self, v: F64) -> F64:
        """Return X w for the scaled weights v."""
        return times_vector(self._X, v / self._deviation, n_threads=self._n_threads)

    def value(self, v: F64) -> float:
        """Return J."""
        return self._penalised(self._loss.value(self.scores(v)), v)

    def grad(self, v: F64, out: F64) -> float:
        """Write the gradient in v to ``out`` and return J."""
        value = self._loss.grad(self.scores(v), self._slope)
        out[:] = self._pulled(self._slope) + self._l2 * v
        return self._penalised(value, v)

    def hess_vec(self, u: F64, out: F64) -> None:
        """Write the Hessian at the last ``grad`` times ``u`` to ``out``."""
        self._loss.hess_vec(self.scores(u), self._slope)
        out[:] = self._pulled(self._slope) + self._l2 * u  # (2)

    def precondition(self) -> F64:
        """Return a diagonal in proportion to the Hessian's, roughly: each feature's mean square."""
        squares = transposed_squares_times_vector(
            self._X, np.ones(self._X.shape[0]), n_threads=self._n_threads
        )
        squares /= self._deviation**2
        return 0.01 + squares / (squares.mean() or 1.0)

    # --- a query at a time -------------------------------------------------------------------

    def part_grad(self, lo: int, hi: int, v: F64, out: F64) -> float:
        """Write the gradient of the mean over queries lo:hi to ``out`` and return that mean."""
        a, b = int(self._indptr[lo]), int(self._indptr[hi])
        rows = self._X[a:b]
        self._score[a:b] = times_vector(rows, v / self._deviation, n_threads=1)
        value: float = self._loss.grad_queries(lo, hi, self._score, self._slope)
        share = self.n_parts / (self._total * (hi - lo))
        pulled = transposed_times_vector(rows, self._slope[a:b], n_threads=1)
        out[:] = share * pulled / self._deviation + self._l2 * v
        return share * value + 0.5 * self._l2 * float(v @ v)

    # --- targets -----------------------------------------------------------------------------

    def targets(self, v: F64) -> F64:
        """Return the targets that the loss chooses for the scores of v."""
        out = np.empty(self._X.shape[0])
        self._loss.targets(self.scores(v), out)
        return out

    def toward(self, r: F64) -> LinearProblem:
        """Return the problem of coming near to fixed targets ``r``."""
        return LinearProblem(
            self._X,
            self._indptr,
            self._loss.toward(r),
            self._total,
            l2=self._l2,
            deviation=self._deviation,
            n_threads=self._n_threads,
        )

    def _pulled(self, slope: F64) -> F64:
        pulled = transposed_times_vector(self._X, slope, n_threads=self._n_threads)
        return pulled / (self._deviation * self._total)

    def _penalised(self, value: float, v: F64) -> float:
        return value / self._total + 0.5 * self._l2 * float(v @ v)  # (1)
