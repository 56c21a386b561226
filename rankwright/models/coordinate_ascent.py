"""Coordinate Ascent: linear scores whose weights are moved one at a time to raise a measure.

From equal weights, features are visited in a drawn order, and each weight moves to where the
measure is highest with the others held (`metzler2007linear`), by `rankwright.models.line_search`.
Passes over the features go on until one gains less than ``tol``; then all begins again in
another order, ``n_restarts`` times in all. Weights are kept at a sum of absolute values of 1, which
changes no ranking. What is climbed is

    mean of the measure - reg |w - w_start|                                                      (1)

Rows and queries are put in an order fixed by their content, so that shuffled rows and renamed
queries change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.memory import blocks
from rankwright.core.parts import Part
from rankwright.core.rng import stream
from rankwright.core.types import F64, AnyArray, Callback, FloatMatrix
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import document_weight
from rankwright.metrics.along_line import MeasureLine
from rankwright.metrics.base import Metric
from rankwright.models.interrupt import until_interrupted
from rankwright.models.line_search import Along, LineSearch
from rankwright.models.linear import FittedLinear, deviations, restored_weights
from rankwright.models.weight_rounds import WeightRounds
from rankwright.solvers.journal import Journal


@dataclass(frozen=True, slots=True, repr=False)
class CoordinateAscent(Part):
    """A weight for each feature, moved one at a time to where the measure is highest.

    Parameters
    ----------
    n_restarts : int
        How often to begin, each time with another order of the features.
    n_passes : int
        The most passes over the features from one beginning.
    tol : float
        A pass that gains less is the last.
    reg : float
        What is lost for the distance from the first weights; 0 is no regularisation.
    steps, n_steps
        See `rankwright.models.line_search.LineSearch`.
    scale : bool
        Begin with weights that are equal for features of unit standard deviation.
    missing : None, "mean" or "zero"
        What stands for a missing value; None refuses them.
    """

    n_restarts: int = 3
    n_passes: int = 25
    tol: float = 0.001
    reg: float = 0.0
    steps: str = "auto"
    n_steps: int = 25
    scale: bool = True
    missing: str | None = None

    def fit(
        self,
        metric: Metric,
        data: RankingData,
        *,
        callback: Callback,
        start: FittedLinear | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> FittedLinear:
        """Climb, from the weights of ``start`` where given; a round is a pass over the features.

        With valid data, any pass from any beginning may be the best there. Without, each round
        shows the best weights so far.
        """
        self._check()
        rounds = WeightRounds(data, callback, self.missing, n_jobs=n_jobs)
        deviation = deviations(rounds.features, document_weight(data), scale=self.scale)
        climb = _Climb(
            self, metric, data, rounds.features, deviation, Journal(callback), random_state, n_jobs
        )
        best, coef = -np.inf, np.zeros(data.n_features)
        with until_interrupted(callback, rounds):
            for value, w in climb.passes(None if start is None else start.coef * deviation):
                if callback.valid is not None or value > best:
                    best, coef = value, w / deviation
                if rounds.see(coef, -best):
                    break
        return rounds.fitted()

    def _check(self) -> None:
        for name in ("n_restarts", "n_passes", "n_steps"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be 1 or more, not {getattr(self, name)}.")
        for name in ("tol", "reg"):
            if not getattr(self, name) >= 0.0:
                raise UsageError(f"{name} must be 0 or more, not {getattr(self, name)}.")
        self.line_search().check()

    def line_search(self) -> LineSearch:
        """Return the search along one feature."""
        return LineSearch(steps=self.steps, n_steps=self.n_steps, reg=self.reg)

    restore = staticmethod(restored_weights)


class _Climb:
    """One data set under way; weights are for features of unit deviation."""

    def __init__(
        self,
        model: CoordinateAscent,
        metric: Metric,
        data: RankingData,
        X: FloatMatrix,
        deviation: F64,
        journal: Journal,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        self._model, self._seed, self._deviation = model, seed, deviation
        self._journal = journal
        rows, ordered = in_content_order(data, features=False, n_jobs=n_jobs)
        self._line = MeasureLine(metric, ordered, n_jobs=n_jobs)
        self._search = model.line_search()
        self._columns = _by_column(X, rows)

    def passes(self, start: F64 | None) -> Iterator[tuple[float, F64]]:
        """Yield the value and the weights after each pass from each beginning."""
        d = len(self._deviation)
        equal = np.full(d, 1.0 / max(d, 1))
        for restart in range(self._model.n_restarts):
            w = equal.copy() if start is None or not start.any() else start / np.abs(start).sum()
            home, value = w.copy(), self._line.value(self._scores(w))
            for number in range(self._model.n_passes):
                order = stream(self._seed, "coordinate_ascent", restart, number).permutation(d)
                before, (value, w) = value, self._go_over(order, w, value, home)
                yield value, w
                if value - before < self._model.tol or value == before:
                    break

    def _go_over(self, order: AnyArray, w: F64, value: float, home: F64) -> tuple[float, F64]:
        """Visit each feature once; return the value and the weights after that."""
        w, s = w.copy(), self._scores(w)
        for feature in order.tolist():
            x = self._column(feature)
            t, value = self._step(s, x, Along(w, feature, value, home))
            if t != 0.0:
                w[feature] += t
                s += t * x
                size = np.abs(w).sum()
                w /= size
                s /= size
        return value, w

    def _step(self, s: F64, x: F64, along: Along) -> tuple[float, float]:
        t, value = self._journal.recall(
            lambda: self._search.step(self._line, s, x, along), along.w, np.array([along.value])
        )
        return float(t[0]), float(value[0])

    def _scores(self, w: F64) -> F64:
        s = np.zeros(self._columns.shape[0 if sparse.issparse(self._columns) else 1])
        for feature in np.flatnonzero(w).tolist():
            s += w[feature] * self._column(feature)
        return s

    def _column(self, feature: int) -> F64:
        column: F64
        if sparse.issparse(self._columns):
            column = self._columns[:, [feature]].toarray().ravel().astype(np.float64)
        else:
            column = self._columns[feature].astype(np.float64)
        column /= self._deviation[feature]
        return column


def _by_column(X: FloatMatrix, rows: AnyArray) -> AnyArray | sparse.csc_array[Any]:
    """Return ``X[rows]`` with the values of each feature beside each other, copied once."""
    if not isinstance(X, np.ndarray):
        return sparse.csc_array(X[rows])
    columns = np.empty((X.shape[1], len(rows)), X.dtype)
    for block in blocks(X):
        columns[:, block] = X[rows[block]].T
    return columns
