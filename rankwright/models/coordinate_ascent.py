"""Coordinate Ascent: linear scores whose weights are moved one at a time to raise a metric.

From equal weights, features are visited in a sampled order, and each weight moves to where the
metric is highest with the others held (`metzler2007linear`), by the line search below.
Passes over the features go on until one gains less than ``tol``; then all begins again in
another order, ``n_restarts`` times in all. Weights are kept at a sum of absolute values of 1, which
changes no ranking. What is climbed is

    mean of the metric - reg |w - w_start|                                                      (1)

Rows and queries are put in an order fixed by their content, so that shuffled rows and renamed
queries change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from rankwright.core.dtypes import blocks
from rankwright.core.parameters import Part
from rankwright.core.rng import stream
from rankwright.core.types import F64, AnyArray, Callback, FloatMatrix
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import document_weight
from rankwright.metrics.along_line import MetricLine
from rankwright.metrics.base import Metric
from rankwright.models.callbacks import until_interrupted
from rankwright.models.linear import FittedLinear, WeightRounds, deviations, restored_weights
from rankwright.solvers.oracle_log import OracleLog


@dataclass(frozen=True, slots=True, repr=False)
class CoordinateAscent(Part):
    """A weight for each feature, moved one at a time to where the metric is highest.

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
        See `rankwright.models.coordinate_ascent.LineSearch`.
    scale : bool
        Begin with weights that are equal for features of unit standard deviation.
    missing : None, "mean" or "zero"
        What stands for a missing value; None refuses them.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.CoordinateAscent(model=rw.models.CoordinateAscent(n_restarts=1))
    CoordinateAscent(model=CoordinateAscent(n_restarts=1))
    """

    n_restarts: int = 3
    n_passes: int = 25
    tol: float = 0.001
    reg: float = 0.0
    steps: str = "auto"
    n_steps: int = 25
    scale: bool = True
    missing: str | None = None

    optimises_metric: ClassVar[bool] = True

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

        With validation data, any pass from any beginning may be the best there. Without, each round
        shows the best weights so far.
        """
        self._check()
        rounds = WeightRounds(data, callback, self.missing, n_jobs=n_jobs)
        deviation = deviations(rounds.features, document_weight(data), scale=self.scale)
        climb = _Climb(
            self,
            metric,
            data,
            rounds.features,
            deviation,
            OracleLog(callback),
            random_state,
            n_jobs,
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
        log: OracleLog,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        self._model, self._seed, self._deviation = model, seed, deviation
        self._log = log
        rows, ordered = in_content_order(data, features=False, n_jobs=n_jobs)
        self._line = MetricLine(metric, ordered, n_jobs=n_jobs)
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
        t, value = self._log.recall(
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


# --- line search -----------------------------------------------------------------------------
# The best step along one feature for a metric of rankings: exact, or by RankLib's steps.
#
# With the other weights held, a metric is a step function of one weight. For sums over ranks (ndcg,
# dcg, p and others; see `rankwright.metrics.along_line`) the exact search looks at all of its steps
# within reach and goes to the middle of the best one, the nearest of equals. RankLib's search tries
# steps that double, up, then down, then to zero; it takes any metric. What is climbed is
#
#     mean of the metric - reg |w - w_start|                                                    (1)
#
# with both weights normalised to a sum of absolute values of 1.


REACH = 1000.0  # how far a weight may go, where all weights together come to 1
_NARROW = 1e-9  # changes closer than this are one: no score separates them
_SAME = 1e-12  # values closer than this are equal but for rounding
_DEEP = 32.0  # ranks that count on average, above which "auto" takes steps
_STEPS = ("auto", "exact", "ranklib")
_FIRST_STEP, _STEP_BASE, _STEP_SCALE = 0.001, 0.05, 2.0  # RankLib's


@dataclass(frozen=True, slots=True)
class LineSearch:
    """The best step along one feature for any metric: exact, or by RankLib's steps.

    Parameters
    ----------
    steps : "auto", "exact" or "ranklib"
        Look at every change of ranking; or at steps that double, up, then down, then to zero.
        "auto" is exact for metrics of the first 32 ranks or fewer, on average over documents:
        whole lists of hundreds of documents have too many changes. A metric that is not a sum over
        ranks, such as map, mrr or err, always takes the steps.
    n_steps : int
        How many steps in each direction, for "ranklib".
    reg : float
        What a model loses for its distance from where it started.
    """

    steps: str = "auto"
    n_steps: int = 25
    reg: float = 0.0

    def check(self) -> None:
        """Refuse unknown steps."""
        if self.steps not in _STEPS:
            raise UsageError(f"steps must be 'auto', 'exact' or 'ranklib', not '{self.steps}'.")

    def step(self, line: MetricLine, s: F64, x: F64, along: Along) -> tuple[float, float]:
        """Return the change of the weight that is best, and the value there; 0 if none is better.

        ``s`` are the scores now, ``x`` the feature.
        """
        deep = self.steps == "auto" and line.depth > _DEEP
        if self.steps != "ranklib" and line.exact and not deep:
            return self._exact(line, s, x, along)
        return self._ranklib(line, s, x, along)

    def _exact(self, line: MetricLine, s: F64, x: F64, along: Along) -> tuple[float, float]:
        found = line.pieces(s, x, -REACH - along.weight, REACH - along.weight)
        wide = np.diff(found.edges) > _NARROW
        left, right = found.edges[:-1][wide], found.edges[1:][wide]
        if not len(left):
            return 0.0, along.value
        t = _inner_points(left, right)
        values = found.values[wide] - self._penalty(along, t)
        best = values >= values.max() - _SAME
        away = np.where((left <= 0.0) & (right >= 0.0), 0.0, np.minimum(abs(left), abs(right)))
        chosen = int(np.flatnonzero(best)[np.argmin(away[best])])
        if values[chosen] <= along.value + _SAME:
            return 0.0, along.value
        reached = line.value(s + t[chosen] * x) - float(self._penalty(along, t[chosen]))
        return (float(t[chosen]), reached) if reached > along.value else (0.0, along.value)

    def _ranklib(self, line: MetricLine, s: F64, x: F64, along: Along) -> tuple[float, float]:
        best, best_value = 0.0, along.value
        for direction in (1.0, -1.0, 0.0):
            for t in self._doubling(direction, along.weight):
                value = line.value(s + t * x) - float(self._penalty(along, t))
                if value > best_value:
                    best, best_value = t, value
            if best_value > along.value:
                break
        return best, best_value

    def _penalty(self, along: Along, t: F64 | float) -> F64 | float:
        return self.reg * along.distance(t) if self.reg else 0.0

    def _doubling(self, direction: float, weight: float) -> list[float]:
        if direction == 0.0:
            return [-weight]
        step = _FIRST_STEP
        if weight != 0.0 and step > 0.5 * abs(weight):
            step = _STEP_BASE * abs(weight)
        sizes = step * _STEP_SCALE ** np.arange(self.n_steps)
        return [float(t) for t in direction * np.cumsum(sizes)]


@dataclass(frozen=True, slots=True)
class Along:
    """Where a step along one feature begins.

    Attributes
    ----------
    w : array
        The weights, whose absolute values sum to 1.
    feature : int
        The one that may change.
    value : float
        The value to be exceeded, what is lost for the distance included.
    home : array
        Where the model started, normalised too.
    """

    w: F64
    feature: int
    value: float
    home: F64

    @property
    def weight(self) -> float:
        """The weight that may change."""
        return float(self.w[self.feature])

    def distance(self, t: F64 | float) -> F64:
        """Return how far from home the weights are after a step t, all normalised."""
        own, home = self.weight + np.asarray(t), self.home[self.feature]
        others = np.delete(self.w, self.feature)
        size = np.maximum(np.abs(others).sum() + np.abs(own), 1e-300)
        squares = (others @ others + own**2) / size**2
        product = (others @ np.delete(self.home, self.feature) + own * home) / size
        gap: F64 = np.sqrt(np.maximum(squares - 2.0 * product + self.home @ self.home, 0.0))
        return gap


def _inner_points(left: F64, right: F64) -> F64:
    """Return the middle of each interval; of the outermost two, a point near their inner edge."""
    t = 0.5 * (left + right)
    t[0] = max(t[0], right[0] - 0.1 * max(1.0, abs(right[0])))
    t[-1] = min(t[-1], left[-1] + 0.1 * max(1.0, abs(left[-1])))
    return t
