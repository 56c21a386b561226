"""Linear scores s = X w under any loss.

    J(w) = sum_q weight_q loss_q(X_q w) / sum_q weight_q + l2/2 |D w|^2                       (1)

with gradient X' dJ/ds + l2 D^2 w. D holds each feature's standard deviation where ``scale`` is
set: the problem is solved for v = D w, whose features all have unit spread, and w = v / D is what
the user sees, in the scale of the data. No intercept: it changes no ranking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from rankwright import registry
from rankwright.core.compat import check_fit
from rankwright.core.products import times_vector, transposed_times_vector
from rankwright.core.types import F64, AnyArray, BoundLoss, FloatMatrix, Loss, Watch
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses.base import document_weight, order_weight
from rankwright.solvers.lbfgs import LBFGS

_ROWS = 1 << 14
PATH = tuple(float(10.0**power) for power in np.arange(1.0, -7.0, -1.0))


@dataclass(frozen=True, slots=True)
class Linear:
    """A weight for each feature; readable, quick, and at home with few or sparse data.

    Parameters
    ----------
    l2 : float or "auto"
        Ridge penalty; "auto" tries 10, 1, …, 1e-6 and keeps the best on valid.
    scale : bool
        Penalise weights as if all features had unit standard deviation.
    nonnegative : bool
        Allow no negative weight.
    missing : None, "mean" or "zero"
        What stands for a missing value; None refuses them.
    tolerance, max_iterations
        When the solver stops.
    """

    l2: float | str = 1e-3
    scale: bool = True
    nonnegative: bool = False
    missing: str | None = None
    tolerance: float = 1e-6
    max_iterations: int = 500

    def fit(
        self,
        loss: Loss,
        data: RankingData,
        *,
        watch: Watch,
        start: FittedLinear | None = None,
        seed: int = 0,  # noqa: ARG002
        n_threads: int | None = None,
    ) -> FittedLinear:
        """Minimise (1), from the weights of ``start`` where given."""
        check_fit("lbfgs", loss, registry.all_of("solvers"))
        fill = _fill_values(data.X, self.missing)
        X = _filled(data.X, fill)
        weight = document_weight(data)
        deviation = _deviations(X, weight) if self.scale else np.ones(data.n_features)
        valid = None if watch.valid is None else _filled(watch.valid.X, fill)
        if self.l2 == "auto" and valid is None:
            raise UsageError("l2='auto' is chosen on valid data: give eval_set, or a number.")
        solver = LBFGS(self.tolerance, self.max_iterations, self.nonnegative)
        bound = loss.bind(data, n_threads=n_threads)
        total = float(order_weight(data).sum()) or 1.0
        v = np.zeros(data.n_features) if start is None else start.coef * deviation
        tried: list[F64] = []
        for t, l2 in enumerate(PATH if self.l2 == "auto" else (float(self.l2),), start=1):
            problem = LinearProblem(X, bound, total, l2, deviation, n_threads)
            found = solver.solve(problem, v)
            v = found.w
            tried.append(v / deviation)
            scores = problem.scores(v) if watch.wants_train else None
            on_valid = None if valid is None else times_vector(valid, tried[-1])
            if watch.seen(t, found.value, scores, on_valid):
                break
        best = tried[min(watch.best(), len(tried)) - 1]
        return FittedLinear(coef=best, fill=fill, n_features=data.n_features)

    @staticmethod
    def restore(
        arrays: Mapping[str, AnyArray],
        texts: Mapping[str, str],  # noqa: ARG004
        n_features: int,
    ) -> FittedLinear:
        """Build the fitted model from its own arrays and texts."""
        return FittedLinear(arrays["coef"], arrays.get("fill"), n_features)


class LinearProblem:
    """(1) in the scaled weights v = D w, as a solver sees it."""

    def __init__(
        self,
        X: FloatMatrix,
        loss: BoundLoss,
        total_weight: float,
        l2: float,
        deviation: F64,
        n_threads: int | None,
    ) -> None:
        self.size = X.shape[1]
        self._X, self._loss, self._total, self._l2 = X, loss, total_weight, l2
        self._deviation, self._n_threads = deviation, n_threads
        self._score_gradient = np.empty(X.shape[0])

    def scores(self, v: F64) -> F64:
        """Return X w for the scaled weights v."""
        return times_vector(self._X, v / self._deviation, n_threads=self._n_threads)

    def value(self, v: F64) -> float:
        """Return J."""
        return self._loss.value(self.scores(v)) / self._total + 0.5 * self._l2 * float(v @ v)

    def grad(self, v: F64, out: F64) -> float:
        """Write the gradient in v to ``out`` and return J."""
        value = self._loss.grad(self.scores(v), self._score_gradient)
        pulled = transposed_times_vector(self._X, self._score_gradient, n_threads=self._n_threads)
        out[:] = pulled / self._deviation / self._total + self._l2 * v
        return value / self._total + 0.5 * self._l2 * float(v @ v)  # (1)


@dataclass(frozen=True)
class FittedLinear:
    """One weight per feature, in the scale of the data, and what stands for a missing value."""

    coef: F64
    fill: F64 | None
    n_features: int

    def scores(self, X: FloatMatrix, *, n_threads: int | None = None) -> F64:
        """Return the score of each row."""
        return times_vector(_filled(X, self.fill), self.coef, n_threads=n_threads)

    def contributions(self, X: FloatMatrix) -> F64:
        """Return what each feature adds to the score of each row, and 0 as the last column."""
        filled = _filled(X, self.fill)
        dense = filled.toarray() if sparse.issparse(filled) else filled
        return np.column_stack([dense * self.coef, np.zeros(X.shape[0])])

    def arrays(self) -> dict[str, AnyArray]:
        """Return the weights and the fill values."""
        return {"coef": self.coef} if self.fill is None else {"coef": self.coef, "fill": self.fill}

    def texts(self) -> dict[str, str]:
        """Return nothing: a linear model is arrays alone."""
        return {}


def _fill_values(X: FloatMatrix, missing: str | None) -> F64 | None:
    if missing is None:
        return None
    if missing == "zero":
        return np.zeros(X.shape[1])
    if missing != "mean":
        raise UsageError(f"missing must be 'mean', 'zero' or None, not {missing!r}.")
    dense = X.toarray() if sparse.issparse(X) else X
    known = ~np.isnan(dense)
    count = np.maximum(known.sum(axis=0), 1)
    return np.asarray(np.where(known, dense, 0.0).sum(axis=0, dtype=np.float64) / count)


def _filled(X: FloatMatrix, fill: F64 | None) -> FloatMatrix:
    values = X.data if sparse.issparse(X) else X
    gaps = np.isnan(values)
    if not gaps.any():
        return X
    if fill is None:
        column = X.indices[np.flatnonzero(gaps)[0]] if sparse.issparse(X) else gaps.any(0).argmax()
        raise DataError(
            f"feature column {column} has missing values (NaN), which a linear model does not "
            "take; pass missing='mean' or missing='zero', or use model='trees'."
        )
    filled = X.copy()
    if sparse.issparse(X):
        np.asarray(filled.data)[gaps] = fill[X.indices[gaps]]
    else:
        filled[gaps] = np.broadcast_to(fill, X.shape)[gaps]
    return filled


def _deviations(X: FloatMatrix, weight: F64) -> F64:
    """Return each feature's standard deviation over weighted documents, 1 where it is constant."""
    total = float(weight.sum())
    mean = transposed_times_vector(X, weight) / total
    square = np.zeros(X.shape[1])
    for lo in range(0, X.shape[0], _ROWS):
        block = X[lo : lo + _ROWS]
        squares = block.power(2) if sparse.issparse(block) else np.square(block, dtype=np.float64)
        square += squares.T @ weight[lo : lo + _ROWS]
    deviation = np.sqrt(np.maximum(square / total - mean**2, 0.0))
    return np.where(deviation > 1e-9 * np.abs(mean), deviation, 1.0)
