"""PRank: a perceptron whose score is cut into grades by thresholds, a document at a time.

Weights w and thresholds b_1 <= b_2 <= ..., one between each two grades of the data, start at 0. For
a document x of grade y, with y_r = 1 where y lies above threshold r and -1 below,

    tau_r = y_r  if  y_r (w.x - b_r) <= 0,  else 0                                              (1)
    w += (sum_r tau_r) x,      b_r -= c tau_r                                                   (2)

(`crammer2002prank`, Figure 2, with c = 1). Steps of one size keep the thresholds in order. A weight
of a document or of its query multiplies its step, and then a threshold may pass the next; the
nearest thresholds in order take their place (`losses.pav`), which brings them no further from
any that are in order, so that the bound on mistakes holds. The answer is the mean of w over all
steps, which ranks better than the last w.

A threshold is the weight of a feature that is the same for all documents, and c is that feature
squared. With c = 1 and documents far longer than 1 a step moves scores by |x|^2 and thresholds
hardly at all, so that w has to learn where grades lie as well as their order. By default c is the
mean of |x|^2, and thresholds keep up with the scores. A feature whose mean is `_FAR` deviations or
more from 0, such as a time, would still hide the others; its mean is taken off, which changes no
ranking.

Each pass draws the order of the queries anew, and of the documents within each, from an order fixed
by their content: shuffled rows and renamed queries change nothing. The thresholds are common to all
queries; because they keep up, a query visited in one go is cut by thresholds that have come to suit
it, and w learns the order within queries rather than which queries have more relevant documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.jit import kernel
from rankwright.core.parameters import Part, check_above_zero
from rankwright.core.products import transposed_times_vector
from rankwright.core.rng import stream
from rankwright.core.types import F64, Callback, FloatMatrix, Loss
from rankwright.data.content import content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import bound_loss, document_weight, order_weight
from rankwright.losses.pav import pav
from rankwright.models.callbacks import until_interrupted
from rankwright.models.linear import FittedLinear, WeightRounds, deviations, restored_weights
from rankwright.solvers.oracle_log import Answer, OracleLog

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _mean_square(visits, indptr, indices, values, scale):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in visits:
        for k in range(indptr[i], indptr[i + 1]):
            total += (values[k] * scale[indices[k]]) ** 2
    return total / max(len(visits), 1)


@kernel
def _walk(visits, indptr, indices, values, scale, grade, weight, c, t, w, late, b):  # type: ignore[no-untyped-def]
    """Visit documents; ``late`` sums the steps of w times when they came. Return the time."""
    n = len(b)
    ones, mass, first = np.ones(n), np.empty(n), np.empty(n, np.int64)
    for i in visits:
        score = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            score += w[indices[k]] * values[k] * scale[indices[k]]
        total = 0.0
        for r in range(len(b)):
            side = 1.0 if grade[i] > r else -1.0
            if side * (score - b[r]) <= 0.0:  # (1)
                total += side
                b[r] -= c * weight[i] * side  # (2)
        for r in range(1, n):
            if b[r] < b[r - 1]:
                pav(0, n, b, ones, b, mass, first)
                break
        if total != 0.0:
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                step = weight[i] * total * values[k] * scale[j]
                w[j] += step
                late[j] += t * step
        t += 1.0
    return t


_FAR = 30.0

# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class PRankLinear(Part):
    """A weight for each feature and a threshold between grades, corrected at each mistake.

    Parameters
    ----------
    n_passes : int
        Passes over the data; the best on the validation set is kept.
    averaging : bool
        Answer with the mean of the weights over all steps; False: with the last.
    threshold_step : float or "auto"
        c of (2); "auto": the mean squared length of a document. 1 is as published.
    by_query : bool
        Visit documents query after query; False: all in one order.
    scale : bool
        Take steps as if all features had unit standard deviation.
    missing : None, "mean" or "zero"
        What stands for a missing value; None refuses them.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.PRank(model=rw.models.PRankLinear(n_passes=20))
    PRank(model=PRankLinear(n_passes=20))
    """

    n_passes: int = 10
    averaging: bool = True
    threshold_step: float | str = "auto"
    by_query: bool = True
    scale: bool = True
    missing: str | None = None

    def fit(
        self,
        loss: Loss,
        data: RankingData,
        *,
        callback: Callback,
        start: FittedLinear | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> FittedLinear:
        """Go over the documents, from the weights of ``start`` where given."""
        if self.n_passes < 1:
            raise UsageError(f"n_passes must be 1 or more, not {self.n_passes}.")
        if self.threshold_step != "auto":
            check_above_zero("threshold_step", self.threshold_step)
        rounds = WeightRounds(data, callback, self.missing, n_jobs=n_jobs)
        bound = bound_loss(loss, data, n_jobs=n_jobs)
        total = float(order_weight(data).sum()) or 1.0
        deviation = deviations(rounds.features, document_weight(data), scale=self.scale)
        near = _near_zero(rounds.features, document_weight(data))
        perceptron = _Perceptron(near, data, deviation, self.threshold_step, n_jobs)
        if start is not None:
            perceptron.w[:] = start.coef * deviation
        log = OracleLog(callback)
        with until_interrupted(callback, rounds):
            for t in range(1, self.n_passes + 1):
                rng = stream(random_state, "prank", t)
                go_over = partial(perceptron.go_over, rng, by_query=self.by_query)
                perceptron.come_to(log.recall(go_over, perceptron.w, sizes=perceptron.sizes))
                coef = (perceptron.mean() if self.averaging else perceptron.w) / deviation
                scores = rounds.scores(coef)
                if rounds.see(coef, bound.value(scores) / total, scores):
                    break
        return rounds.fitted()

    restore = staticmethod(restored_weights)


def _near_zero(X: FloatMatrix, weight: F64) -> FloatMatrix:
    """Return X, dense features far from 0 less their means; sparse ones have zeros and are not."""
    if sparse.issparse(X):
        return X
    mean = transposed_times_vector(X, weight) / (float(weight.sum()) or 1.0)
    far = np.abs(mean) >= _FAR * deviations(X, weight)
    return X - np.where(far, mean, 0.0) if far.any() else X


class _Perceptron:
    """Weights and thresholds under way; w is for features of unit deviation."""

    def __init__(
        self,
        X: FloatMatrix,
        data: RankingData,
        deviation: F64,
        threshold_step: float | str,
        n_jobs: int | None,
    ) -> None:
        rows = sparse.csr_array(X)
        self._rows = (rows.indptr, rows.indices, rows.data)
        self._scale = 1.0 / deviation
        by_query = np.repeat(order_weight(data), data.sizes)
        self._weight = document_weight(data) * by_query
        order, queries = content_order(data, n_jobs=n_jobs)
        visited = self._weight[order] > 0.0
        self._order = order[visited]
        self._query = np.repeat(np.arange(data.n_queries), data.sizes[queries])[visited]
        self._step: Any = threshold_step
        if threshold_step == "auto":
            self._step = _mean_square(self._order, *self._rows, self._scale) or 1.0
        grades, self._grade = np.unique(data.y, return_inverse=True)
        self.w, self._late = np.zeros(data.n_features), np.zeros(data.n_features)
        self._b, self._t = np.zeros(max(len(grades) - 1, 0)), 0.0

    def go_over(self, rng: np.random.Generator, *, by_query: bool) -> tuple[F64, F64, F64, float]:
        """Visit every document once, in an order sampled from ``rng``; return where that leads."""
        turn = rng.random(len(self._order))
        if by_query:
            turn += rng.permutation(self._query.max(initial=-1) + 1)[self._query]
        visits = self._order[np.argsort(turn, kind="stable")]
        own = (self._scale, self._grade, self._weight, self._step, self._t)
        self._t = _walk(visits, *self._rows, *own, self.w, self._late, self._b)
        return self.w, self._late, self._b, self._t

    @property
    def sizes(self) -> list[int]:
        """Lengths of what `go_over` returns."""
        return [len(self.w), len(self._late), len(self._b), 1]

    def come_to(self, there: Answer) -> None:
        """Be where `go_over` led."""
        self.w, self._late, self._b = there[:3]
        self._t = float(there[3][0])

    def mean(self) -> F64:
        """Return the mean of w over all visits."""
        mean: F64 = self.w - self._late / max(self._t, 1.0)
        return mean
