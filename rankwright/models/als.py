"""Alternating least squares for any loss with a curvature: closed-form steps of users and items.

At scores s with gradient g and a diagonal c of the Hessian, exact or an upper bound, a loss is
approximated by

    m(s + d) = loss(s) + g'd + kappa/2 sum_i c_i d_i^2                                          (1)

With kappa = 1, (1) is exact for a squared error, and exact for fixed targets if the loss is the
distance to the nearest targets (`rankwright.losses.retarget`). Under (1), the objective of
`rankwright.models.factor_problem` separates into a least squares problem with n_factors + 1
unknowns for each user if the items are fixed, and for each item if the users are fixed:

    (sum_i kappa c_i z_i z_i' + kappa L) d = sum_i g_i z_i + L u                                (2)

with z_i the vector of the other side (times the feature) and 1 for the level of a user or the
feature for the bias of an item, L the diagonal of penalties, u the current vector and level or
bias, and u - d the new ones. A round solves all these problems, users first, with the same g and c:
the gradient of (1) is updated after the users' steps, so that a round evaluates the loss once. If
the loss does not depend on the level of a user's scores, the level is not penalised in (2) and not
stored.

Then the round extrapolates, as in `nesterov1983accelerated`:

    x <- y + beta (y - y_before),    beta = min(0.2 m, 0.8) in the m-th round after a restart   (3)

with y the result of the steps. If J is higher at x than after the round before, x is y and m starts
again. If J is higher at y too, (1) was too low: kappa is doubled, with the Hessian of the penalty,
and the steps are repeated. kappa is halved after every fifth round without a restart, down to 1.
Therefore J never increases, also if the loss is not convex.

Users and items are independent of each other, and the sums for each run in one thread in the order
of its ratings: the result has the same bytes for any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rankwright.core.jit import quick_kernel
from rankwright.core.parallel import map_queries
from rankwright.core.types import F64, SolveResult
from rankwright.models.factor_problem import FactorProblem

_BLOCK = 64  # ratings in a block, whose vectors fit into the first-level cache
_MOMENTUM, _MAX_MOMENTUM = 0.2, 0.8
_CALM = 5  # rounds without a restart after which kappa is halved
_TRIALS = 60  # doublings of kappa, far beyond the steepest loss
_ROUNDING = 1e-13  # share of a diagonal below which the rest of it is rounding error

# --- kernels ---------------------------------------------------------------------------------


@quick_kernel
def _add_products(Z, g, c, count, A, r, scaled):
    """Add Z diag(c) Z' to the lower half of A and Z g to r, for ``count`` columns of Z."""
    for f in range(len(r)):
        row = Z[f]
        total = 0.0
        for i in range(count):
            scaled[i] = c[i] * row[i]
            total += g[i] * row[i]
        r[f] += total
        for h in range(f + 1):
            column = Z[h]
            total = 0.0
            for i in range(count):
                total += scaled[i] * column[i]
            A[f, h] += total


@quick_kernel
def _solve(A, r, size):
    """Solve A d = r by Cholesky; r becomes d, and A its factor.

    An unknown is 0 if its pivot is only rounding error relative to its ``size``: a penalty far
    below the curvatures does not prevent A from being singular.
    """
    n = len(r)
    for j in range(n):
        pivot = A[j, j]
        for k in range(j):
            pivot -= A[j, k] * A[j, k]
        pivot = 1.0 / np.sqrt(pivot) if pivot > _ROUNDING * size[j] else 0.0
        A[j, j] = pivot
        for i in range(j + 1, n):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = total * pivot
    for i in range(n):
        total = r[i]
        for k in range(i):
            total -= A[i, k] * r[k]
        r[i] = total * A[i, i]
    for i in range(n - 1, -1, -1):
        r[i] *= A[i, i]
        for k in range(i):
            r[k] -= A[i, k] * r[i]


@quick_kernel
def _steps(lo, hi, begin, row, x, last, other, vectors, pairs, kappa, penalty, current, out):
    """Write the steps (2) of the users or items lo:hi to ``out``.

    Entry j of a user or item is document row[j] with the vector x[j] vectors[other[j]] and the
    last coordinate last[j]. ``pairs`` has g and kappa c of each document.
    """
    n = vectors.shape[1]
    A, r, size = np.zeros((n + 1, n + 1)), np.zeros(n + 1), np.zeros(n + 1)
    Z, g, c, scaled = np.ones((n + 1, _BLOCK)), np.zeros(_BLOCK), np.zeros(_BLOCK), np.zeros(_BLOCK)
    for k in range(lo, hi):
        A[:] = 0.0
        r[:] = 0.0
        for first in range(begin[k], begin[k + 1], _BLOCK):
            count = min(_BLOCK, begin[k + 1] - first)
            for i in range(count):
                j = first + i
                h, value = other[j], x[j]
                g[i], c[i] = pairs[row[j], 0], pairs[row[j], 1]
                Z[n, i] = last[j]
                for f in range(n):
                    Z[f, i] = value * vectors[h, f]
            _add_products(Z, g, c, count, A, r, scaled)
        for f in range(n + 1):
            A[f, f] += kappa * penalty[f]
            r[f] += penalty[f] * current[k, f]
            size[f] = A[f, f]
        _solve(A, r, size)
        out[k] = r


# --- API -------------------------------------------------------------------------------------


class AlternatingSquares:
    """Rounds of closed-form steps, for documents with one column each.

    Parameters
    ----------
    problem : FactorProblem
        Its loss has `grad_curv`.
    users, items : bool
        Whether they move or are fixed.
    """

    def __init__(self, problem: FactorProblem, *, users: bool = True, items: bool = True) -> None:
        self._problem, self._users, self._items = problem, users, items
        X, n = problem.X, problem.X.shape[0]
        has_column = np.diff(X.indptr) > 0
        self._column, self._x = np.zeros(n, X.indices.dtype), np.zeros(n, X.data.dtype)
        self._column[has_column], self._x[has_column] = X.indices, X.data
        self._rows, self._ones = np.arange(n), np.ones(n)
        self._grad, self._curv, self._pairs = np.empty(n), np.empty(n), np.empty((n, 2))

    def rounds(self, theta: F64, *, n_rounds: int, tol: float) -> Iterator[SolveResult]:
        """Yield the solution after each round, until J falls by a share of at most ``tol``."""
        value, y, kappa, m = self._evaluate(theta), theta, 1.0, 0
        curve: list[float] = []
        for t in range(1, n_rounds + 1):
            before = value
            for candidate, new_y, new_kappa, new_m in self._candidates(theta, y, kappa, m):
                new_value = self._evaluate(candidate)
                if new_value <= before:
                    theta, value, y, kappa, m = candidate, new_value, new_y, new_kappa, new_m
                    break
            curve.append(value)
            is_last = before - value <= tol * abs(before)
            stopped = "J falls by less than tol" if is_last else "the rounds are over"
            yield SolveResult(theta, value, np.nan, t, stopped, curve.copy())
            if is_last:
                return

    def _candidates(
        self, x: F64, y: F64, kappa: float, m: int
    ) -> Iterator[tuple[F64, F64, float, int]]:
        """Yield points to try, each with y, kappa and m if it is accepted."""
        if m > 0 and m % _CALM == 0:
            kappa = max(1.0, kappa / 2.0)
        for _ in range(_TRIALS):
            new_y = self._steps(x, kappa)
            if m > 0:
                beta = min(_MOMENTUM * m, _MAX_MOMENTUM)
                yield new_y + beta * (new_y - y), new_y, kappa, m + 1  # (3)
            yield new_y, new_y, kappa, 1
            kappa *= 2.0
            self._evaluate(x)

    def _evaluate(self, theta: F64) -> float:
        """Return J, and keep the gradient and the curvature in the scores."""
        problem = self._problem
        scores = problem.scores(problem.parts(theta))
        value = problem.loss.grad_curv(scores, self._grad, self._curv)
        return problem.penalised(value, theta)

    def _steps(self, theta: F64, kappa: float) -> F64:
        """Return the variables after a step of every user and then of every item, by (1)."""
        problem = self._problem
        U, level, V, b = problem.parts(theta)
        l2, l2_level, l2_bias = problem.penalties
        n, pairs = U.shape[1], self._pairs
        pairs[:, 0] = self._grad
        np.multiply(self._curv, kappa, out=pairs[:, 1])
        if self._users:
            step = np.empty((len(U), n + 1))
            penalty = np.append(np.full(n, l2), l2_level)
            map_queries(
                _steps, problem.indptr, self._rows, self._x, self._ones, self._column, V, pairs,
                kappa, penalty, np.column_stack([U, level]), step, n_jobs=problem.n_jobs,
            )  # fmt: skip
            change = problem.scores([-step[:, :n], -step[:, n], V, np.zeros(len(b))])
            pairs[:, 0] += pairs[:, 1] * change
            U -= step[:, :n]
            level -= step[:, n] * (l2_level > 0.0)
        if self._items:
            step = np.empty((len(V), n + 1))
            penalty = problem.total * np.append(np.full(n, l2), l2_bias)
            begin, row, x = problem.by_column
            last = x if l2_bias > 0.0 else np.zeros_like(x)
            map_queries(
                _steps, begin, row, x, last, problem.user_of_entry, U, pairs,
                kappa, penalty, np.column_stack([V, b]), step, n_jobs=problem.n_jobs,
            )  # fmt: skip
            V -= step[:, :n]
            b -= step[:, n]
        return problem.scaled([U, level, V, b])
