"""Alternating least squares for any loss with a curvature: closed-form steps of users and items.

At scores s with gradient g and a diagonal c of the Hessian, exact or an upper bound, a loss is
approximated by

    m(s + d) = loss(s) + g'd + kappa/2 sum_i c_i d_i^2                                          (1)

With kappa = 1, (1) is exact for a squared error, and exact for fixed targets if the loss is the
distance to the nearest targets (`rankwright.losses.retarget`). Under (1), the objective of
`rankwright.models.factor_problem` separates into a least squares problem with n_factors + 1
unknowns for each user if the items are fixed, and for each item if the users are fixed. A round
solves all these problems, users first, with the same g and c: the gradient of (1) is updated after
the users' steps, so that a round evaluates the loss once. If the loss does not depend on the level
of a user's scores, the level that is best under (1) is included in the step.

Then the round extrapolates, as in `nesterov1983accelerated`:

    x <- y + beta (y - y_before),    beta = min(0.2 m, 0.8) in the m-th round after a restart   (2)

where y is the result of the steps. If J is higher at x than after the round before, x is y and m
starts again. If J is higher at y too, (1) was too low: kappa is doubled, with the Hessian of the
penalty, and the steps are repeated. kappa is halved after every fifth round without a restart, down
to 1. Therefore J never increases, also if the loss is not convex.

Users and items are independent of each other, and the sums for each run in one thread in the order
of its ratings: the result has the same bytes for any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rankwright.core.jit import quick_kernel
from rankwright.core.types import F64, SolveResult
from rankwright.models.factor_problem import FactorProblem

_BLOCK = 64  # ratings in a block, whose vectors fit into the first-level cache
_MOMENTUM, _MOST = 0.2, 0.8
_CALM = 5  # rounds without a restart after which kappa is halved
_TRIALS = 60  # doublings of kappa, far beyond the steepest loss
_ROUNDING = 1e-13  # share of a diagonal below which the rest of it is rounding error

# --- kernels ---------------------------------------------------------------------------------


@quick_kernel
def _add_products(Z, g, c, count, A, r, scaled):  # type: ignore[no-untyped-def]
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
def _solve(A, r, n, size):  # type: ignore[no-untyped-def]
    """Solve A d = r for the first ``n`` unknowns by Cholesky; r becomes d, and A its factor.

    An unknown is 0 if its pivot is only rounding error relative to its ``size``: a penalty far
    below the curvatures does not prevent A from being singular.
    """
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
def _user_steps(  # type: ignore[no-untyped-def]
    lo, hi, indptr, column, x, V, grad, curv, kappa, l2, l2_level, U, level, pairs
):
    """Take the step of the users lo:hi, and write the gradient and curvature of (1) after it.

    ``l2_level`` is 0 if the loss does not depend on levels, which are then unpenalised in (1).
    """
    n = V.shape[1]
    A, r, weak = np.zeros((n + 1, n + 1)), np.zeros(n + 1), np.zeros(n + 1)
    size = np.zeros(n + 1)
    Z, g, c, scaled = np.ones((n + 1, _BLOCK)), np.zeros(_BLOCK), np.zeros(_BLOCK), np.zeros(_BLOCK)
    for q in range(lo, hi):
        A[:] = 0.0
        r[:] = 0.0
        for begin in range(indptr[q], indptr[q + 1], _BLOCK):
            count = min(_BLOCK, indptr[q + 1] - begin)
            for i in range(count):
                k, value = column[begin + i], x[begin + i]
                g[i], c[i] = grad[begin + i], kappa * curv[begin + i]
                for f in range(n):
                    Z[f, i] = value * V[k, f]
            _add_products(Z, g, c, count, A, r, scaled)
        for f in range(n):
            A[f, f] += kappa * l2
            r[f] += l2 * U[q, f]
        lift, mass = 0.0, A[n, n]
        A[n, n] += kappa * l2_level
        for f in range(n + 1):
            size[f] = A[f, f]
        if l2_level > 0.0:
            r[n] += l2_level * level[q]
            _solve(A, r, n + 1, size)
            lift = r[n]
            level[q] -= lift
        else:
            free = r[n] / mass if mass > 0.0 else 0.0
            for f in range(n):
                weak[f] = A[n, f] / mass if mass > 0.0 else 0.0
            for f in range(n):
                r[f] -= weak[f] * r[n]
                for h in range(f + 1):
                    A[f, h] -= weak[f] * weak[h] * mass
            _solve(A, r, n, size)
            lift = free
            for f in range(n):
                lift -= weak[f] * r[f]
        for f in range(n):
            U[q, f] -= r[f]
        for i in range(indptr[q], indptr[q + 1]):
            step = 0.0
            for f in range(n):
                step += V[column[i], f] * r[f]
            pairs[i, 1] = kappa * curv[i]
            pairs[i, 0] = grad[i] - pairs[i, 1] * (x[i] * step + lift)


@quick_kernel
def _item_steps(lo, hi, begin, row, x, user, U, pairs, kappa, l2, l2_bias, V, b):  # type: ignore[no-untyped-def]
    """Take the step of the items lo:hi; ``l2_bias`` is 0 if they have no bias."""
    n = V.shape[1]
    A, r, size = np.zeros((n + 1, n + 1)), np.zeros(n + 1), np.zeros(n + 1)
    Z, g, c, scaled = np.ones((n + 1, _BLOCK)), np.zeros(_BLOCK), np.zeros(_BLOCK), np.zeros(_BLOCK)
    for k in range(lo, hi):
        A[:] = 0.0
        r[:] = 0.0
        for first in range(begin[k], begin[k + 1], _BLOCK):
            count = min(_BLOCK, begin[k + 1] - first)
            for i in range(count):
                j = first + i
                q, value = user[j], x[j]
                g[i], c[i] = pairs[row[j], 0], pairs[row[j], 1]
                Z[n, i] = value
                for f in range(n):
                    Z[f, i] = value * U[q, f]
            _add_products(Z, g, c, count, A, r, scaled)
        for f in range(n):
            A[f, f] += kappa * l2
            r[f] += l2 * V[k, f]
        A[n, n] += kappa * l2_bias
        r[n] += l2_bias * b[k]
        for f in range(n + 1):
            size[f] = A[f, f]
        _solve(A, r, n + 1 if l2_bias > 0.0 else n, size)
        for f in range(n):
            V[k, f] -= r[f]
        if l2_bias > 0.0:
            b[k] -= r[n]


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
        n = int(problem.indptr[-1])
        begin, column, x = problem.by_row
        is_full = np.diff(begin) > 0  # a document without a column has the value 0 in column 0
        self._column, self._x = np.zeros(n, column.dtype), np.zeros(n, x.dtype)
        self._column[is_full], self._x[is_full] = column, x
        self._grad, self._curv, self._pairs = np.empty(n), np.empty(n), np.empty((n, 2))

    def rounds(self, theta: F64, *, n_rounds: int, tol: float) -> Iterator[SolveResult]:
        """Yield the solution after each round, until J falls by a share of at most ``tol``."""
        value, y, kappa, m = self._evaluate(theta), theta, 1.0, 0
        curve: list[float] = []
        for t in range(1, n_rounds + 1):
            before = value
            theta, value, y, kappa, m = self._round(theta, value, y, kappa, m)
            curve.append(value)
            is_last = before - value <= tol * abs(before)
            stopped = "J falls by less than tol" if is_last else "the rounds are over"
            yield SolveResult(theta, value, np.nan, t, stopped, curve.copy())
            if is_last:
                return

    def _round(
        self, x: F64, value: float, y: F64, kappa: float, m: int
    ) -> tuple[F64, float, F64, float, int]:
        """Return x, J, y, kappa and m after one step of all users and items."""
        if m > 0 and m % _CALM == 0:
            kappa = max(1.0, kappa / 2.0)
        for _ in range(_TRIALS):
            new_y = self._steps(x, kappa)
            if m > 0:
                new_x = new_y + min(_MOMENTUM * m, _MOST) * (new_y - y)  # (2)
                new_value = self._evaluate(new_x)
                if new_value <= value:
                    return new_x, new_value, new_y, kappa, m + 1
            new_value = self._evaluate(new_y)
            if new_value <= value:
                return new_y, new_value, new_y, kappa, 1
            kappa *= 2.0
            self._evaluate(x)
        return x, value, y, kappa, m

    def _evaluate(self, theta: F64) -> float:
        """Return J, and keep the gradient and the curvature in the scores."""
        problem = self._problem
        scores = problem.scores(problem.parts(theta))
        value = problem.loss.grad_curv(scores, self._grad, self._curv)
        return problem.penalised(value, theta)

    def _steps(self, theta: F64, kappa: float) -> F64:
        """Return the variables after a step of every user and then of every item, by (1)."""
        problem = self._problem
        U, level, V, b = parts = problem.parts(theta)
        l2, l2_level, l2_bias = problem.penalties
        if self._users:
            problem.over_users(
                _user_steps, problem.indptr, self._column, self._x, V, self._grad, self._curv,
                kappa, l2, l2_level, U, level, self._pairs,
            )  # fmt: skip
        else:
            self._pairs[:, 0] = self._grad
            np.multiply(self._curv, kappa, out=self._pairs[:, 1])
        if self._items:
            problem.over_items(
                _item_steps, *problem.by_column, problem.user_of_entry, U, self._pairs, kappa,
                problem.total * l2, problem.total * l2_bias, V, b,
            )  # fmt: skip
        return problem.scaled(parts)
