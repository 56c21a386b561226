"""The least change of scores that separates the grades and narrows each of them (IntervalRank).

With y_g the target of grade g, w_i the weight of document i and s - z the change of its score, the
loss of a query is the value of the paper's problem (6), both slack terms included:

    L(s) = min over z, eps, xi of  sum_i w_i rho(s_i - z_i) + lambda1/2 |eps|^2 + lambda2/2 |xi|^2
           z_i - z_j >= y_{g+1} - y_g - eps_g    for i in grade g+1, j in grade g
           |z_i - z_j| <= xi_g                   for i, j in grade g                          (1)
           + calibration/2 sum_i w_i (s_i - y_i)^2                                            (2)

[moon2010intervalrank]. Grades are those that the query has, and g+1 is the next of them. A
document of weight 0 is no document. `losses.interval_qp` solves (1) exactly per query.

The penalty rho is d^2/2, or any even convex function of which the solver knows two derivatives:

    squared        d^2/2
    huber          d^2/2 up to the knee, and knee (|d| - knee/2) beyond: far documents pull less
    pseudo_huber   knee^2 (sqrt(1 + (d/knee)^2) - 1), smooth throughout

(1) is a minimum of something convex in s, z, eps and xi together, so L is convex, and by the
envelope theorem its gradient is w_i rho'(s_i - z_i): for d^2/2 simply s - z (Lemma 2). As rho'' is
at most 1, w_i (1 + calibration) bounds the curvature, the constant of the paper's Algorithm 1.

Fixed lambdas lose their meaning as lists grow, since data terms grow with the list and slack terms
do not; ``scale_by_size`` multiplies both by the weight of the query's documents. Infinite values
are limits: lambda1 = inf has no eps, lambda2 = inf no xi.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.core.jit import kernel
from rankwright.core.kernels import clear_query
from rankwright.core.order import first_of_runs
from rankwright.core.parameters import NonNegative, Part, Positive, check_parameters
from rankwright.core.types import F64, I64, AnyArray, StatefulLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.interval_qp import (
    HUBER,
    PSEUDO_HUBER,
    ROWS,
    SQUARED,
    Terms,
    X,
    penalty,
    solve_barrier,
    solve_hard,
    solve_newton,
)
from rankwright.losses.old_base import (
    KernelLoss,
    Targets,
    check_lengths,
    document_weight,
    grade_targets,
    rows_by_grade,
)


class Layout(NamedTuple):
    """Documents of weight, grade by grade: those of grade g are ``start[g]:start[g + 1]``."""

    rows: I64
    start: I64
    of_query: I64  # the first grade of each query
    y: F64  # the target of each document's grade
    w: F64


class Prices(NamedTuple):
    """What changes, missed margins and widths cost; the lambdas by query."""

    lambda1: F64
    lambda2: F64
    shape: int
    knee: float
    calibration: float


class NewtonWorkspace(NamedTuple):
    """Buffers of `solve_newton`, and the last intervals."""

    v: F64
    work: F64
    tie: NDArray[np.int8]
    first: I64
    warm: NDArray[np.bool_]


class BarrierWorkspace(NamedTuple):
    """Buffers of `solve_barrier`."""

    v: F64
    work: F64


class HardWorkspace(NamedTuple):
    """Buffers of `solve_hard`."""

    v: F64
    work: F64
    sums: F64
    places: I64


_PENALTIES = {"squared": SQUARED, "huber": HUBER, "pseudo_huber": PSEUDO_HUBER}

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _begin(q, indptr, s, layout, v, weight, out):
    """Write score less target to v, less the middle of all of them; zeros where no `_write` comes.

    Returns the first and the last variable, and that middle; no variable where there is no order.
    ``out`` is value, gradient and curvature.
    """
    rows, start, of_query, y, _ = layout
    value, grad, curv = out
    a, b = 2 * of_query[q], 2 * of_query[q + 1]
    ordered = weight[q] > 0.0 and b - a > 2
    if not ordered or start[b // 2] - start[a // 2] < indptr[q + 1] - indptr[q]:
        clear_query(q, indptr, value, grad, curv)
    if not ordered:
        return a, a, 0.0
    low, high = np.inf, -np.inf
    for p in range(start[a // 2], start[b // 2]):
        v[p] = s[rows[p]] - y[p]
        low, high = min(low, v[p]), max(high, v[p])
    middle = 0.5 * (low + high)
    for p in range(start[a // 2], start[b // 2]):
        v[p] -= middle
    return a, b, middle


@kernel
def _write(q, of, layout, v, ends, terms, calibration, weight, out):
    """Write value, gradient and curvature of query q.

    ``of`` are its first and last variable, what v was centred by, and the terms of the value that
    are not data; ``ends`` the intervals.
    """
    a, b, middle, rest = of
    rows, start, _, _, w = layout
    value, grad, curv = out
    total = rest
    for k in range(a, b, 2):
        for p in range(start[k // 2], start[k // 2 + 1]):
            change = v[p] - min(max(v[p], ends[k]), ends[k + 1])
            error = v[p] + middle
            rho, derivative, _ = penalty(abs(change), terms)
            total += w[p] * (rho + 0.5 * calibration * error * error)
            if len(grad):
                pull = derivative if change > 0.0 else -derivative
                grad[rows[p]] = weight[q] * w[p] * (pull + calibration * error)
            if len(curv):
                curv[rows[p]] = weight[q] * w[p] * (1.0 + calibration)
    value[q] = weight[q] * total


# A kernel for each solver, so that only the one in use is compiled.


@kernel
def _newton(lo, hi, indptr, s, layout, prices, workspace, weight, value, grad, curv):
    start, w, out = layout.start, layout.w, (value, grad, curv)
    lambda1, lambda2, shape, knee, calibration = prices
    v, work, tie, first, warm = workspace
    ends = work[X]
    for q in range(lo, hi):
        a, b, middle = _begin(q, indptr, s, layout, v, weight, out)
        if a < b:
            terms = Terms(lambda1[q], lambda2[q], shape, knee, 1.0)
            rest = solve_newton(a, b, start, v, w, terms, tie, work, first, warm[q])
            warm[q] = shape == SQUARED
            of = (a, b, middle, rest)
            _write(q, of, layout, v, ends, terms, calibration, weight, out)


@kernel
def _barrier(lo, hi, indptr, s, layout, prices, workspace, weight, value, grad, curv):
    start, w, out = layout.start, layout.w, (value, grad, curv)
    lambda1, lambda2, shape, knee, calibration = prices
    v, work = workspace
    ends = work[X]
    for q in range(lo, hi):
        a, b, middle = _begin(q, indptr, s, layout, v, weight, out)
        if a < b:
            terms = Terms(lambda1[q], lambda2[q], shape, knee, 1.0)
            rest = solve_barrier(a, b, start, v, w, terms, work)
            of = (a, b, middle, rest)
            _write(q, of, layout, v, ends, terms, calibration, weight, out)


@kernel
def _hard(lo, hi, indptr, s, layout, prices, workspace, weight, value, grad, curv):
    start, w, out = layout.start, layout.w, (value, grad, curv)
    lambda1, lambda2, shape, knee, calibration = prices
    v, work, sums, places = workspace
    ends = work[X]
    for q in range(lo, hi):
        a, b, middle = _begin(q, indptr, s, layout, v, weight, out)
        if a < b:
            terms = Terms(lambda1[q], lambda2[q], shape, knee, 1.0)
            rest = solve_hard(a, b, start, v, w, work, sums, places)
            of = (a, b, middle, rest)
            _write(q, of, layout, v, ends, terms, calibration, weight, out)


_SOLVERS = {"newton": _newton, "barrier": _barrier, "hard": _hard}

# --- API -------------------------------------------------------------------------------------


def _check_penalty(name: str, value: Any) -> None:
    """Raise unless ``value`` is 0 or more; ``inf`` makes a constraint of a penalty."""
    if not (isinstance(value, Real) and float(value) >= 0.0):
        raise UsageError(f"{name} must be 0 or more, not {value}.")


@dataclass(frozen=True, slots=True, repr=False)
class Interval(Part):
    """The least change of scores that puts the grades into separate, narrow intervals.

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
        What a change of d costs a document.
    knee : float
        The change from which the two Huber penalties grow only linearly.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.Interval(lambda1=0.5), model="trees")
    Ranker(loss=Interval(lambda1=0.5), model='trees')
    """

    lambda1: Annotated[float, _check_penalty] = 1.0
    lambda2: Annotated[float, _check_penalty] = 1.0
    targets: Targets = "gain"
    calibration: NonNegative = 0.0
    scale_by_size: bool = False
    qp_solver: Literal["newton", "barrier", "hard"] = "newton"
    penalty: Literal["squared", "huber", "pseudo_huber"] = "squared"
    knee: Positive = 1.0

    @property
    def traits(self) -> Traits:
        """What this loss can do; calibration fixes the level of the scores."""
        return Traits(convex=True, shift_invariant=self.calibration == 0.0)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> StatefulLoss:
        """Prepare the loss for one data set."""
        self._check()
        return _BoundInterval(self, data, n_jobs=n_jobs)

    def _check(self) -> None:
        check_parameters(self)
        finite = self.lambda1 < np.inf and 0.0 < self.lambda2 < np.inf
        if self.qp_solver == "barrier" and not finite:
            raise UsageError(
                "interval's barrier solver needs finite lambdas and lambda2 above 0; "
                "qp_solver='newton' takes any."
            )


class _BoundInterval(KernelLoss):
    """The loss on one data set, with the last intervals of each query to start from."""

    def __init__(self, loss: Interval, data: RankingData, *, n_jobs: int | None) -> None:
        rows, start, of_query, w = _grade_blocks(data)
        n, n_variables = len(rows), 2 * (len(start) - 1)
        shape, solver = _PENALTIES[loss.penalty], _SOLVERS[loss.qp_solver]
        lambda1, lambda2 = loss.lambda1, loss.lambda2
        if loss.qp_solver == "hard":
            lambda1, lambda2 = np.inf, 0.0
            solver = _hard if shape == SQUARED else _newton
        scale = _sizes(data) if loss.scale_by_size else np.ones(data.n_queries)
        self._rows, self._start, self._of_query = rows, start, of_query
        self._v, self._work = np.empty(n), np.empty((ROWS, n_variables))
        v, work = self._v, self._work
        workspace: NewtonWorkspace | BarrierWorkspace | HardWorkspace
        self._memory: dict[str, AnyArray] = {}
        if solver is _newton:
            tie, first = np.zeros(n_variables, np.int8), np.empty(n_variables, np.int64)
            warm = np.zeros(data.n_queries, np.bool_)
            workspace = NewtonWorkspace(v, work, tie, first, warm)
            work[X] = 0.0
            self._memory = {"tie": tie, "ends": work[X], "warm": warm}
        elif solver is _hard:
            workspace = HardWorkspace(v, work, np.empty((3, n)), np.empty((2, n), np.int64))
        else:
            workspace = BarrierWorkspace(v, work)
        args = (
            Layout(rows, start, of_query, grade_targets(data, loss.targets)[rows], w),
            Prices(
                _times(lambda1, scale),
                _times(lambda2, scale),
                shape,
                float(loss.knee),
                float(loss.calibration),
            ),
            workspace,
        )
        super().__init__(solver, data, *args, curvature=True, n_jobs=n_jobs)

    def state(self) -> dict[str, AnyArray]:
        """Return the last intervals, from which the next ones start."""
        return self._memory

    def targets(self, s: F64, out: F64) -> None:
        """Write the corrected scores z; a query without order keeps its own."""
        check_lengths(self._n_documents, out)
        self.value(s)
        sizes = np.diff(self._start)
        low, high = (np.repeat(self._work[X, side::2], sizes) for side in (0, 1))
        grades = np.diff(self._of_query)
        active = np.repeat((grades > 1) & (self._weight > 0.0), grades)
        active = np.repeat(active, sizes)
        change = self._v - np.clip(self._v, low, high)
        out[:] = s
        out[self._rows[active]] -= change[active]


def _grade_blocks(data: RankingData) -> tuple[I64, I64, I64, F64]:
    """Return rows of weight grade by grade, where grades begin, those of each query, and weights.

    Grades rise within a query; each has at least one document of positive weight.
    """
    begin, rows = rows_by_grade(data)
    start = np.append(np.flatnonzero(first_of_runs(data.y[rows], begin)), len(rows))
    return rows, start, np.searchsorted(start, begin), document_weight(data)[rows]


def _sizes(data: RankingData) -> F64:
    """Return the weight of each query's documents, added in an order that rows do not decide."""
    w, query = document_weight(data), data.query_of_row()
    order = np.lexsort((w, query))
    return np.bincount(query, weights=w[order], minlength=data.n_queries).astype(np.float64)


def _times(strength: float, scale: F64) -> F64:
    """Multiply; an infinite strength times a query without documents is not asked for."""
    return np.where(scale > 0.0, strength, 0.0) * np.where(scale > 0.0, scale, 1.0)
