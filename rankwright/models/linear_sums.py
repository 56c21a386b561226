"""Sums over documents and queries that a linear problem is made of, for one data set.

With g and H the gradient and Hessian of the loss in the scores s = X w, they are the value of the
loss, X' g, X' H X u and sum_i c_i x_i^2. `rankwright.models.linear_problem` divides them by weights
and deviations and adds the penalty; over data in partitions the sums are added up
(`rankwright.distributed.linear`).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from rankwright.core.products import (
    times_vector,
    transposed_squares_times_vector,
    transposed_times_vector,
)
from rankwright.core.types import F64, FloatMatrix


class Sums(Protocol):
    """What a linear problem asks of the data, wherever they are; w are weights of raw features."""

    n_features: int

    def scores(self, w: F64) -> Any:
        """Return X w."""

    def value(self, w: F64) -> float:
        """Return the loss."""

    def grad(self, w: F64) -> tuple[float, F64]:
        """Return the loss and X' g."""

    def hess_vec(self, u: F64) -> F64:
        """Return X' H X u at the w of the last ``grad``."""

    def squares(self) -> F64:
        """Return the weighted sum of squares of each feature."""

    def convex_part(self, w: F64) -> tuple[float, F64]:
        """Return M and X' times its slope, where the loss is M - N; else as ``grad``."""

    def concave_part(self, w: F64) -> tuple[float, F64]:
        """Return N and X' times its slope."""

    def targets(self, w: F64, near: Any, rate: float) -> Any:
        """Return the targets that the loss chooses for a mean of X w and the targets ``near``."""

    def with_targets(self, r: Any) -> Sums:
        """Return the sums of coming near to fixed targets ``r``."""


class LinearSums:
    """The sums of one data set in this process.

    Parameters
    ----------
    X, loss
        Features, and the bound loss.
    document_weight
        Of each row, 1 by default; `squares` counts with it.
    difference
        Whether the loss is a difference of convex functions.
    """

    def __init__(
        self,
        X: FloatMatrix,
        loss: Any,
        *,
        document_weight: F64 | None = None,
        difference: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.X, self.loss, self.n_features = X, loss, int(X.shape[1])
        self.slope = np.empty(X.shape[0])
        self._document_weight, self._difference = document_weight, difference
        self._n_jobs = n_jobs

    def scores(self, w: F64) -> F64:
        """Return X w."""
        return times_vector(self.X, w, n_jobs=self._n_jobs)

    def value(self, w: F64) -> float:
        """Return the loss."""
        found: float = self.loss.value(self.scores(w))
        return found

    def grad(self, w: F64) -> tuple[float, F64]:
        """Return the loss and X' g."""
        return self.loss.grad(self.scores(w), self.slope), self._pulled()

    def hess_vec(self, u: F64) -> F64:
        """Return X' H X u at the w of the last ``grad``."""
        self.loss.hess_vec(self.scores(u), self.slope)
        return self._pulled()

    def squares(self) -> F64:
        """Return the weighted sum of squares of each feature."""
        weight = self._document_weight
        if weight is None:
            weight = np.ones(self.X.shape[0])
        return transposed_squares_times_vector(self.X, weight, n_jobs=self._n_jobs)

    def convex_part(self, w: F64) -> tuple[float, F64]:
        """Return M and X' times its slope, where the loss is M - N; else as ``grad``."""
        part = self.loss.convex_part if self._difference else self.loss.grad
        return part(self.scores(w), self.slope), self._pulled()

    def concave_part(self, w: F64) -> tuple[float, F64]:
        """Return N and X' times its slope."""
        return self.loss.concave_part(self.scores(w), self.slope), self._pulled()

    def targets(self, w: F64, near: F64 | None, rate: float) -> F64:
        """Return the targets that the loss chooses for a mean of X w and the targets ``near``."""
        s, out = self.scores(w), np.empty(self.X.shape[0])
        if near is not None:
            s = rate * s + (1.0 - rate) * near
        self.loss.targets(s, out)
        return out

    def with_targets(self, r: F64) -> LinearSums:
        """Return the sums of coming near to fixed targets ``r``."""
        return LinearSums(self.X, self.loss.with_targets(r), n_jobs=self._n_jobs)

    def _pulled(self) -> F64:
        return transposed_times_vector(self.X, self.slope, n_jobs=self._n_jobs)
