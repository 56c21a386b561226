"""Linear regression on the grades, with an intercept, in closed form.

With document weights u_i (those of their queries included), targets y_i, and both x and y taken
from their weighted means, the weights minimise

    J(w) = 1/Q sum_i u_i/2 (w.x_i - y_i)^2 + l2/2 sum_j (deviation_j w_j)^2                      (1)

where Q is the total weight of the queries. Every query counts, also one whose documents all have
the same grade: the line goes through all documents, as in ordinary regression, while under other
models the squared loss leaves such queries out. One eigendecomposition of the scaled second moments

    A = 1/Q sum_i u_i x_i x_i' / (deviation deviation') = V diag(e) V'                           (2)

gives the answer for every l2; directions in which documents do not differ get no weight. The
intercept is left out of the scores: it changes no ranking.

For many sparse features A is never formed: conjugate gradients from 0, whose steps cost two
products with X and subtract the means afterwards, find the same answer, and never leave the
directions in which documents differ. If they have not reached it after `_STEPS` steps, (2) decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from scipy import linalg, sparse

from rankwright.core.parameters import Part
from rankwright.core.products import one_blas_thread, times_vector, transposed_times_vector
from rankwright.core.types import F64, Callback, FloatMatrix, Loss
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses.base import document_weight
from rankwright.models.linear import (
    FittedLinear,
    WeightRounds,
    check_penalty,
    deviations,
    restored_weights,
    ridges,
)
from rankwright.solvers.choice import lacking

_NO_DIFFERENCE = 1e-12  # of the largest eigenvalue: what is less is rounding
_ROWS = 1 << 14
_MANY = 1000  # features: fewer are decomposed in less time
_STEPS = 2000  # of conjugate gradients
_RESIDUAL = 1e-12  # of the gradient at 0


@dataclass(frozen=True, slots=True, repr=False)
class LeastSquares(Part):
    """A weight for each feature by least squares, in closed form.

    Parameters
    ----------
    l2 : float or "auto"
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and keeps the best on the validation set.
    scale : bool
        Penalise weights as if all features had unit standard deviation.
    missing : None, "mean" or "zero"
        What stands for a missing value; None refuses them.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.LinearRegression(model=rw.models.LeastSquares(l2=0.1))
    LinearRegression(model=LeastSquares(l2=0.1))
    """

    l2: float | str = 1e-10
    scale: bool = True
    missing: str | None = None

    def fit(
        self,
        loss: Loss,
        data: RankingData,
        *,
        callback: Callback,
        start: FittedLinear | None = None,
        random_state: int = 0,  # noqa: ARG002
        n_jobs: int | None = None,
    ) -> FittedLinear:
        """Solve (1) for each l2 that is to be tried."""
        if not loss.traits.fixed_targets:
            raise IncompatibleError(
                lacking("least_squares", ["fixed_targets"], loss, "Use a linear model.")
            )
        if start is not None:
            raise UsageError("least squares have one answer wherever they start: leave start out.")
        check_penalty("l2", self.l2, callback.valid)
        rounds = WeightRounds(data, callback, self.missing, n_jobs=n_jobs)
        squares: Any = loss
        kind: Callable[..., Any] = _Moments
        if sparse.issparse(rounds.features) and data.n_features > _MANY:
            kind = partial(_SparseMoments, n_jobs=n_jobs)
        problem = kind(rounds.features, data, squares.fixed_targets(data), self.scale)
        for l2 in ridges(self.l2):
            if rounds.see(*problem.solve(l2)):
                break
        return rounds.fitted()

    restore = staticmethod(restored_weights)


class _Sums:
    """Weights, means and deviations of (1), and products with the targets."""

    def __init__(self, X: FloatMatrix, data: RankingData, y: F64, scale: bool) -> None:
        by_query = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
        self.weight = weight = document_weight(data) * np.repeat(by_query, data.sizes)
        self.total, size = float(by_query.sum()) or 1.0, float(weight.sum()) or 1.0
        self.deviation = deviations(X, weight, scale=scale)
        self.mean = transposed_times_vector(X, weight) / size
        y = y - float(weight @ y) / size
        product = transposed_times_vector(X, weight * y) - self.mean * float(weight @ y)
        self.product = product / self.deviation / self.total
        self.level = 0.5 * float(weight @ y**2) / self.total


class _Moments:
    """What (1) needs of the data: the eigendecomposition (2), and products with the targets."""

    def __init__(self, X: FloatMatrix, data: RankingData, y: F64, scale: bool) -> None:
        sums = _Sums(X, data, y, scale)
        self._deviation, self._level = sums.deviation, sums.level
        second = _second_moments(X, sums.weight, sums.mean) / sums.total
        second /= np.outer(self._deviation, self._deviation)
        with one_blas_thread():
            e, self._V = linalg.eigh(second)
        self._e = np.where(e > _NO_DIFFERENCE * max(e.max(initial=0.0), 0.0), e, 0.0)
        self._g = self._V.T @ sums.product

    def solve(self, l2: float) -> tuple[F64, float]:
        """Return the weights that minimise (1), and its value."""
        whole = self._e + l2
        v = np.where(self._e > 0.0, self._g / np.where(self._e > 0.0, whole, 1.0), 0.0)
        value = self._level - float(self._g @ v) + 0.5 * float(whole @ v**2)
        return (self._V @ v) / self._deviation, value


class _SparseMoments:
    """The same by conjugate gradients, which keep X sparse."""

    def __init__(
        self, X: FloatMatrix, data: RankingData, y: F64, scale: bool, *, n_jobs: int | None
    ) -> None:
        self._X, self._n_jobs = X, n_jobs
        self._sums = _Sums(X, data, y, scale)
        self._v = np.zeros(X.shape[1])
        self._decomposed = cache(lambda: _Moments(X, data, y, scale))

    def solve(self, l2: float) -> tuple[F64, float]:
        """Return the weights that minimise (1), and its value; start where the last l2 ended."""
        g, v = self._sums.product, self._v.copy()
        r = g - self._times(v, l2)
        p, rr, enough = r.copy(), float(r @ r), (_RESIDUAL * float(np.linalg.norm(g))) ** 2
        for _ in range(_STEPS):
            if rr <= enough:
                break
            turned = self._times(p, l2)
            step = rr / float(p @ turned)
            v += step * p
            r -= step * turned
            before, rr = rr, float(r @ r)
            p = r + rr / before * p
        else:
            return self._decomposed().solve(l2)
        self._v = v
        value = self._sums.level - float(g @ v) + 0.5 * float(v @ self._times(v, l2))
        return v / self._sums.deviation, value

    def _times(self, v: F64, l2: float) -> F64:
        """Return (A + l2) v."""
        sums, w = self._sums, v / self._sums.deviation
        z = times_vector(self._X, w, n_jobs=self._n_jobs) - float(sums.mean @ w)
        z *= sums.weight
        pulled = transposed_times_vector(self._X, z, n_jobs=self._n_jobs) - sums.mean * z.sum()
        turned: F64 = pulled / sums.deviation / sums.total + l2 * v
        return turned


def _second_moments(X: FloatMatrix, weight: F64, mean: F64) -> F64:
    """Return the sum of u (x - mean)(x - mean)' over documents."""
    if sparse.issparse(X):
        wide = X.astype(np.float64)
        moments: F64 = (wide.T @ (sparse.diags_array(weight) @ wide)).toarray()
        return moments - float(weight.sum()) * np.outer(mean, mean)
    moments = np.zeros((X.shape[1], X.shape[1]))
    with one_blas_thread():
        for first in range(0, X.shape[0], _ROWS):
            part = X[first : first + _ROWS] - mean
            moments += part.T @ (weight[first : first + _ROWS, None] * part)
    return moments
