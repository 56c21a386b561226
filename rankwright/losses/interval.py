"""IntervalRank: the smallest change of the scores that separates the grades and narrows each.

With y_g the target of grade g, w_i the weight of document i and s - z the change of its score, the
loss of a query is the value of the paper's problem (6), both slack terms included:

    L(s) = min over z, eps, xi of  sum_i w_i rho(s_i - z_i) + lambda1/2 |eps|^2 + lambda2/2 |xi|^2
           z_i - z_j >= y_{g+1} - y_g - eps_g    for i in grade g+1, j in grade g
           |z_i - z_j| <= xi_g                   for i, j in grade g                          (1)
           + calibration/2 sum_i w_i (s_i - y_i)^2                                            (2)

[moon2010intervalrank]. Grades are those of the query's documents, and g+1 is the next of them. A
document of weight 0 counts as absent. `losses.interval_qp` solves (1) for each query.

The penalty rho is d^2/2, or another even convex function:

    squared        d^2/2
    huber          d^2/2 up to the knee, and knee (|d| - knee/2) beyond: far documents pull less
    pseudo_huber   knee^2 (sqrt(1 + (d/knee)^2) - 1), which is smooth

(1) is the minimum of a function that is convex in s, z, eps and xi together, so L is convex. By the
envelope theorem its gradient is w_i rho'(s_i - z_i), which is s - z for d^2/2 (Lemma 2). Because
rho'' is at most 1, w_i (1 + calibration) bounds the curvature, as in the paper's Algorithm 1.

Data terms grow with the list and slack terms do not, so fixed lambdas lose their meaning on long
lists; ``scale_by_size`` multiplies both by the weight of the query's documents. Infinite lambdas
are limits: eps = 0 if lambda1 = inf, and xi = 0 if lambda2 = inf.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.order import NO_KEY, first_of_runs, sort_query
from rankwright.core.parameters import NonNegative, Positive
from rankwright.core.team import owns
from rankwright.core.types import F64, I64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import (
    BoundKernel,
    KernelLoss,
    Targets,
    check_lengths,
    document_weight,
    grade_targets,
)
from rankwright.losses.interval_qp import (
    DOCUMENT_ROWS,
    END_ROWS,
    HUBER,
    PSEUDO_HUBER,
    SQUARED,
    Terms,
    V,
    W,
    X,
    penalty,
    solve,
)


class Layout(NamedTuple):
    """Documents by query, grade and weight; and sorted by score within each grade."""

    rows: I64
    start: I64  # the documents of grade g are start[g]:start[g + 1]
    of_query: I64  # the first grade of each query
    y: F64  # target of the grade
    w: F64
    v: F64  # score less target
    order: I64
    spare: I64
    sorted_rows: I64
    docs: F64
    ends: F64
    change: F64  # s - z of each row


class Parameters(NamedTuple):
    """The parameters of the loss."""

    lambda1: float
    lambda2: float
    scale_by_size: bool
    mu: float
    penalty: int
    knee: float
    calibration: float


_PENALTIES = {"squared": SQUARED, "huber": HUBER, "pseudo_huber": PSEUDO_HUBER}

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _interval(queries, indptr, s, parameters, layout, value, grad, curv):
    lambda1, lambda2, scale_by_size, mu, kind, knee, calibration = parameters
    rows, start, of_query, y, w, v, order, spare, sorted_rows, docs, ends, changes = layout
    for q in queries:
        a, b = indptr[q], indptr[q + 1]
        first, last = of_query[q], of_query[q + 1]
        low, high, mass = np.inf, -np.inf, 0.0
        for i in range(a, b):
            v[i] = s[rows[i]] - y[i]
            low, high = min(low, v[i]), max(high, v[i])
            mass += w[i]
        middle = 0.5 * (low + high)
        for g in range(first, last):
            sort_query(start[g], start[g + 1], v, NO_KEY, order, spare)
        if not owns(0):
            continue
        for g in range(first, last):
            for i in range(start[g], start[g + 1]):
                place = order[start[g] + start[g + 1] - 1 - i]
                sorted_rows[i] = rows[place]
                docs[V, i], docs[W, i] = v[place] - middle, w[place]
        scale = mass if scale_by_size else 1.0
        terms = Terms(lambda1 * scale, lambda2 * scale, mu, kind, knee)
        value[q] = solve(2 * first, 2 * last, start, docs, order, ends, terms)
        for g in range(first, last):
            for i in range(start[g], start[g + 1]):
                row, weight = sorted_rows[i], docs[W, i]
                change = docs[V, i] - min(max(docs[V, i], ends[X, 2 * g]), ends[X, 2 * g + 1])
                error = docs[V, i] + middle
                rho, factor, _ = penalty(abs(change), kind, knee)
                value[q] += weight * (rho + 0.5 * calibration * error * error)  # (1), (2)
                grad[row] = weight * (factor * change + calibration * error)
                curv[row] = weight * (1.0 + calibration)
                changes[row] = change


# --- API -------------------------------------------------------------------------------------


def _check_strength(name: str, value: Any) -> None:
    """Raise unless ``value`` is 0 or more; ``inf`` makes a constraint of a penalty."""
    if not (isinstance(value, Real) and float(value) >= 0.0):
        raise UsageError(f"{name} must be 0 or more, not {value}.")


@dataclass(frozen=True, repr=False)
class Interval(KernelLoss):
    """The smallest change of the scores that puts the grades into separate, narrow intervals.

    Parameters
    ----------
    lambda1 : float
        Price of margins between grades that are missed; ``inf`` allows none.
    lambda2 : float
        Price of the width of each grade; 0 leaves it free, ``inf`` gives a grade one score.
    targets : "gain", "linear" or a tuple
        Target score of a grade, whose differences are the margins: 2^grade - 1, the grade, or a
        value per grade.
    calibration : float
        Weight of the squared error to the target (the paper's lambda3), which fixes the level of
        the scores.
    scale_by_size : bool
        Multiply ``lambda1`` and ``lambda2`` by the number of the query's documents.
    qp_solver : "newton", "barrier" or "hard"
        The exact solver; the paper's log-barrier method, which keeps grades further apart and needs
        ``lambda2`` > 0; or the limit of hard margins and free widths, the paper's (5), whatever
        the lambdas.
    penalty : "squared", "huber" or "pseudo_huber"
        Penalty on the change of a score.
    knee : float
        The change from which the two Huber penalties grow only linearly.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.Interval(lambda1=0.5), model="trees")
    Ranker(loss=Interval(lambda1=0.5), model='trees')
    """

    lambda1: Annotated[float, _check_strength] = 1.0
    lambda2: Annotated[float, _check_strength] = 1.0
    targets: Targets = "gain"
    calibration: NonNegative = 0.0
    scale_by_size: bool = False
    qp_solver: Literal["newton", "barrier", "hard"] = "newton"
    penalty: Literal["squared", "huber", "pseudo_huber"] = "squared"
    knee: Positive = 1.0

    run = staticmethod(_interval)

    @property
    def traits(self) -> Traits:
        """Properties of the loss; calibration fixes the level of the scores."""
        return Traits(convex=True, shift_invariant=self.calibration == 0.0)

    @property
    def bound_class(self) -> type[BoundKernel]:
        """Class of the loss on a data set."""
        return BoundInterval

    def check(self) -> None:
        """Raise for lambdas that the barrier method does not support."""
        finite = self.lambda1 < np.inf and 0.0 < self.lambda2 < np.inf
        if self.qp_solver == "barrier" and not finite:
            raise UsageError(
                "interval's barrier solver needs finite lambdas and lambda2 above 0; "
                "qp_solver='newton' takes any."
            )

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the parameters, the documents by grade, and work arrays."""
        w, n = document_weight(data), data.n_documents
        rows = np.lexsort((w, data.y, data.query_of_row()))  # no sum depends on the order of rows
        start = np.append(np.flatnonzero(first_of_runs(data.y[rows], data.indptr)), n)
        hard = self.qp_solver == "hard"
        parameters = Parameters(
            lambda1=np.inf if hard else float(self.lambda1),
            lambda2=0.0 if hard else float(self.lambda2),
            scale_by_size=self.scale_by_size,
            mu=1.0 if self.qp_solver == "barrier" else np.inf,
            penalty=_PENALTIES[self.penalty],
            knee=float(self.knee),
            calibration=float(self.calibration),
        )
        layout = Layout(
            rows=rows,
            start=start,
            of_query=np.searchsorted(start, data.indptr),
            y=grade_targets(data, self.targets)[rows],
            w=w[rows],
            v=np.zeros(n),
            order=np.zeros(n, np.int64),
            spare=np.zeros(n, np.int64),
            sorted_rows=np.zeros(n, np.int64),
            docs=np.zeros((DOCUMENT_ROWS, n)),
            ends=np.zeros((END_ROWS, 2 * len(start) - 2)),
            change=np.zeros(n),
        )
        return parameters, layout


class BoundInterval(BoundKernel):
    """The loss on one data set."""

    def corrected_scores(self, s: F64, out: F64) -> None:
        """Write the corrected scores z; a query without order keeps its scores."""
        check_lengths(self._n_documents, out)
        self.value(s)
        rows = slice(None) if self.layout.rows is None else self.layout.rows
        out[:] = s
        out[rows] -= self.terms[1].change
