"""Coordinate Ascent: a linear model whose weights are changed one at a time to improve a metric.

From equal weights, the features are visited in a random order. The weight of each feature moves to
the value with the highest metric, while the other weights are fixed (`metzler2007linear`). Passes
over the features continue until one of them gains less than ``tol``; then the search restarts with
another order, ``n_restarts`` times in all. Weights are normalised to a sum of absolute values of 1,
which changes no ranking. The objective is

    mean of the metric - reg |w - w_start|                                                      (1)

with both weight vectors normalised. As a function of one weight, a metric is a step function. For
metrics that are sums over ranks (ndcg, dcg, precision and others; see
`rankwright.metrics.along_line`) the exact search compares all steps within reach and moves to the
middle of the best one, or to the nearest of several equal ones. RankLib's search tries steps that
double in size: up, then down, then to a weight of 0. It works with any metric.

Rows and queries are sorted by their content, so that the model does not depend on the order of the
rows or on the names of the queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse

from rankwright.core.checks import ArraySpec, check_arrays
from rankwright.core.dtypes import blocks
from rankwright.core.parameters import Count, Missing, NonNegative
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix, Round
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import document_weight
from rankwright.metrics.along_line import MetricLine
from rankwright.metrics.base import Metric
from rankwright.models.linear import FittedLinear, LinearRounds, deviations
from rankwright.models.schema import ModelPart

REACH = 1000.0  # largest absolute weight, relative to the sum of all absolute weights
_NARROW = 1e-9  # steps of the metric narrower than this cannot be separated by rounded scores
_SAME = 1e-12  # values that differ by less are equal except for rounding
_DEEP = 32.0  # mean number of ranks that count, above which "auto" uses RankLib's steps
_FIRST_STEP, _STEP_BASE, _STEP_SCALE = 0.001, 0.05, 2.0  # RankLib's

Penalty = Callable[[Any], Any]
"""From changes of a weight, a number or an array, to the penalty of (1) after each."""


@dataclass(frozen=True, slots=True, repr=False)
class CoordinateAscent(ModelPart):
    """Linear weights changed one at a time, each to the value with the highest metric.

    Parameters
    ----------
    n_restarts : int
        Number of searches, each with another order of the features.
    n_passes : int
        Maximum number of passes over the features in one search.
    tol : float
        End a search after a pass that gains less than this.
    reg : float
        Penalty on the distance from the first weights; 0 for no regularisation.
    steps : "auto", "exact" or "ranklib"
        Compare every change of the ranking, or use RankLib's doubling steps. "auto" is exact for
        metrics of the first 32 ranks or fewer, on average over documents: lists of hundreds of
        documents have too many changes. A metric that is not a sum over ranks, such as map, mrr
        or err, always uses RankLib's steps.
    n_steps : int
        Number of steps in each direction of RankLib's search.
    scale : bool
        Start with equal weights for features of unit standard deviation.
    missing : None, "mean" or "zero"
        Replacement for missing values; None refuses them.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.CoordinateAscent(model=rw.models.CoordinateAscent(n_restarts=1))
    CoordinateAscent(model=CoordinateAscent(n_restarts=1))
    """

    fitted_class: ClassVar[Any] = FittedLinear
    optimises_metric: ClassVar[bool] = True
    resumable: ClassVar[bool] = True

    n_restarts: Count = 3
    n_passes: Count = 25
    tol: NonNegative = 0.001
    reg: NonNegative = 0.0
    steps: Literal["auto", "exact", "ranklib"] = "auto"
    n_steps: Count = 25
    scale: bool = True
    missing: Missing = None

    def rounds(
        self,
        metric: Metric,
        data: RankingData,
        valid: RankingData | None = None,
        *,
        start: FittedLinear | None = None,
        resume: Mapping[str, AnyArray] | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> Iterator[Round]:
        """Yield a round after each pass over the features, from the weights of ``start``.

        With validation data, a round has the weights after its pass: the weights of any pass of any
        search may be the best on that data. Without it, a round has the best weights so far.
        """
        run = LinearRounds(data, valid, self.missing, n_jobs)
        deviation = deviations(run.data.X, document_weight(data), scale=self.scale)
        home = np.full(data.n_features, 1.0 / max(data.n_features, 1))
        if start is not None and start.coef.any():
            home = start.coef * deviation
            home /= np.abs(home).sum()
        search = _Search(self, metric, run.data, deviation, home, n_jobs)
        resumed: list[tuple[float, F64]] = []
        if resume is not None:
            check_arrays(_PASSES, resume, "the checkpoint", features=data.n_features)
            resumed = list(zip(resume["values"].tolist(), resume["w"], strict=True))
        passes: list[tuple[float, F64]] = []
        best = 0  # index of the pass whose weights the round has
        for restart in range(self.n_restarts):
            w, value = home, search.value(home)
            for number in range(self.n_passes):
                before, replays = value, len(passes) < len(resumed)
                if replays:
                    value, w = resumed[len(passes)]
                else:
                    rng = stream(random_state, "coordinate_ascent", restart, number)
                    value, w = search.visit(rng.permutation(data.n_features), w, value)
                passes.append((value, w))
                if valid is not None or value > passes[best][0]:
                    best = len(passes) - 1
                model = FittedLinear(passes[best][1] / deviation, run.fill)
                if replays:
                    yield run.replayed_round(len(passes), model)
                else:
                    state = partial(_state, passes[:])
                    yield run.round(len(passes), -passes[best][0], model, state)
                if value - before < self.tol or value == before:
                    break


_PASSES = (
    ArraySpec("values", "float64", ("passes",)),
    ArraySpec("w", "float64", ("passes", "features")),
)


def _state(passes: list[tuple[float, F64]]) -> dict[str, AnyArray]:
    """Return the value and the weights after each pass as arrays."""
    values, w = zip(*passes, strict=True)
    return {"values": np.array(values), "w": np.array(w)}


class _Search:
    """The search on one data set. Weights are for features of unit deviation."""

    def __init__(
        self,
        model: CoordinateAscent,
        metric: Metric,
        data: RankingData,
        deviation: F64,
        home: F64,
        n_jobs: int | None,
    ) -> None:
        self._deviation, self._home, self._reg = deviation, home, model.reg
        rows, ordered = in_content_order(data, features=False, n_jobs=n_jobs)
        self._columns = _by_column(data.X, rows)
        self._line = line = MetricLine(metric, ordered, n_jobs=n_jobs)
        deep = model.steps == "auto" and line.depth > _DEEP
        is_exact = model.steps != "ranklib" and line.exact and not deep
        self._step = exact_step if is_exact else partial(ranklib_step, n_steps=model.n_steps)

    def value(self, w: F64) -> float:
        """Return the mean metric of weights ``w``."""
        return self._line.value(self._scores(w))

    def visit(self, order: I64, w: F64, value: float) -> tuple[float, F64]:
        """Move the weight of each feature once; return the objective and the weights."""
        w, s = w.copy(), self._scores(w)
        for feature in order.tolist():
            penalty = partial(self._penalty, w, feature)
            x = self._column(feature)
            t, value = self._step(self._line, s, x, float(w[feature]), value, penalty)
            if t != 0.0:
                w[feature] += t
                s += t * x
                size = np.abs(w).sum()
                w /= size
                s /= size
        return value, w

    def _penalty(self, w: F64, feature: int, t: Any) -> Any:
        """Return the penalty of (1) after each change ``t`` of a weight."""
        # The distance takes a pass over all weights.
        return self._reg * distance(w, feature, t, self._home) if self._reg else 0.0

    def _scores(self, w: F64) -> F64:
        s = np.zeros(self._columns.shape[1])
        for feature in np.flatnonzero(w).tolist():
            s += w[feature] * self._column(feature)
        return s

    def _column(self, feature: int) -> F64:
        values = self._columns[[feature]]
        dense = values.toarray() if sparse.issparse(values) else values
        column: F64 = dense.ravel().astype(np.float64) / self._deviation[feature]
        return column


def _by_column(X: FloatMatrix, rows: I64) -> AnyArray | sparse.csr_array[Any]:
    """Return the transpose of ``X[rows]``, with the values of a feature next to each other."""
    if not isinstance(X, np.ndarray):
        return sparse.csr_array(X[rows].T)
    columns = np.empty((X.shape[1], len(rows)), X.dtype)
    for block in blocks(X):
        columns[:, block] = X[rows[block]].T
    return columns


# --- line search -----------------------------------------------------------------------------


def exact_step(
    line: MetricLine, s: F64, x: F64, weight: float, value: float, penalty: Penalty
) -> tuple[float, float]:
    """Return the best change of a weight over all steps of the metric, and the objective there.

    ``s`` are the scores, ``x`` is the feature, and ``value`` the objective to be exceeded: if no
    change does, the result is 0 and ``value``.
    """
    pieces = line.pieces(s, x, -REACH - weight, REACH - weight)
    wide = np.diff(pieces.edges) > _NARROW
    left, right = pieces.edges[:-1][wide], pieces.edges[1:][wide]
    if not len(left):
        return 0.0, value
    t = _inner_points(left, right)
    values = pieces.values[wide] - penalty(t)
    best = values >= values.max() - _SAME
    size = np.where((left <= 0.0) & (right >= 0.0), 0.0, np.minimum(abs(left), abs(right)))
    nearest = int(np.flatnonzero(best)[np.argmin(size[best])])
    if values[nearest] <= value + _SAME:
        return 0.0, value
    change = float(t[nearest])
    reached = line.value(s + change * x) - float(penalty(change))
    return (change, reached) if reached > value else (0.0, value)


def ranklib_step(
    line: MetricLine,
    s: F64,
    x: F64,
    weight: float,
    value: float,
    penalty: Penalty,
    *,
    n_steps: int,
) -> tuple[float, float]:
    """Return the best change of a weight over RankLib's steps, as `exact_step`."""
    first = _FIRST_STEP
    if weight != 0.0 and first > 0.5 * abs(weight):
        first = _STEP_BASE * abs(weight)
    up = np.cumsum(first * _STEP_SCALE ** np.arange(n_steps))
    best, best_value = 0.0, value
    for changes in (up, -up, np.array([-weight])):
        for t in changes.tolist():
            reached = line.value(s + t * x) - float(penalty(t))
            if reached > best_value:
                best, best_value = t, reached
        if best_value > value:
            break
    return best, best_value


def distance(w: F64, feature: int, t: Any, home: F64) -> F64:
    """Return the distance to ``home`` after each change ``t`` of a weight, all normalised."""
    weight = w[feature] + np.asarray(t)
    others = np.delete(w, feature)
    size = np.maximum(np.abs(others).sum() + np.abs(weight), 1e-300)
    squares = (others @ others + weight**2) / size**2
    product = (others @ np.delete(home, feature) + weight * home[feature]) / size
    gap: F64 = np.sqrt(np.maximum(squares - 2.0 * product + home @ home, 0.0))
    return gap


def _inner_points(left: F64, right: F64) -> F64:
    """Return the middle of each interval; of the outermost two, a point near their inner edge."""
    t = 0.5 * (left + right)
    t[0] = max(t[0], right[0] - 0.1 * max(1.0, abs(right[0])))
    t[-1] = min(t[-1], left[-1] + 0.1 * max(1.0, abs(left[-1])))
    return t
