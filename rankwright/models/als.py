"""Alternating least squares for any loss with a curvature: a closed-form step a user and an item.

At scores s with gradient g and a diagonal of the Hessian c, exact or above it, a loss is near

    m(s + d) = loss(s) + g'd + kappa/2 sum_i c_i d_i^2                                          (1)

which is where the name comes from: with kappa = 1 a squared error is its own model, and so are its
targets under a loss that is the distance to the nearest of them (`rankwright.losses.retarget`). In
(1) `rankwright.models.factor_problem`'s objective falls apart into a least squares problem of
n_factors + 1 unknowns for each user, with the items held, and then for each item, with the users
held. A round solves all of them, users first, on the same g and c: the gradient of (1) follows the
users' steps, so that the loss is asked once a round. Where it does not depend on the level of a
user's scores, the best level of (1) is taken along.

Then the round goes on along its own way, as `nesterov1983accelerated` has it:

    x <- y + beta (y - y_before),    beta = min(0.2 m, 0.8) in the m-th round after a restart   (2)

y being what the steps led to. Where J is higher at x than a round before, x is y and m starts anew;
where it is higher at y too, (1) was too low: kappa is doubled and the steps are made again, the
Hessian of the penalty times kappa as well. It is halved after every fifth round without a restart,
down to 1. So J never rises, for a convex loss and for any other.

Users and items are independent of each other, and each is summed up on one thread in the order of
its ratings: the same bytes for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rankwright.core.jit import quick_kernel
from rankwright.core.types import F64, SolveResult
from rankwright.models.factor_problem import FactorProblem
from rankwright.solvers.oracle_log import Answer, OracleLog

_BLOCK = 64  # ratings that are gathered at a time; their vectors fit the first cache
_MOMENTUM, _MOST = 0.2, 0.8
_CALM = 5  # rounds without a restart after which kappa is halved
_TRIALS = 60  # doublings of kappa, far beyond the steepest loss
_ROUNDING = 1e-13  # share of a diagonal below which what is left of it is no number

# --- kernels ---------------------------------------------------------------------------------


@quick_kernel
def _add_products(Z, g, c, count, A, r, scaled):  # type: ignore[no-untyped-def]
    """Add Z diag(c) Z' to the lower half of A and Z g to r, for ``count`` columns of Z."""
    for f in range(len(r)):
        own = Z[f]
        total = 0.0
        for i in range(count):
            scaled[i] = c[i] * own[i]
            total += g[i] * own[i]
        r[f] += total
        for h in range(f + 1):
            other = Z[h]
            total = 0.0
            for i in range(count):
                total += scaled[i] * other[i]
            A[f, h] += total


@quick_kernel
def _solve(A, r, n, size):  # type: ignore[no-untyped-def]
    """Solve A d = r for the first ``n`` unknowns by Cholesky; d is left in r, the factor in A.

    An unknown of which the others leave nothing but rounding of its ``size`` stays 0: a penalty
    far below the curvatures does not keep A from being singular.
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
    """Take the step of the users lo:hi, and leave the gradient and curvature of (1) behind it.

    ``l2_level`` is 0 where the loss does not depend on levels: they are free in (1) then.
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
    """Take the step of the items lo:hi; ``l2_bias`` is 0 where they have no bias."""
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


class _State(NamedTuple):
    """Where a run stands: variables and J, what the last steps led to, kappa and m."""

    x: F64
    value: float
    y: F64
    kappa: float
    m: float


class AlternatingSquares:
    """Rounds of closed-form steps on a problem whose documents have one column each.

    Parameters
    ----------
    problem : FactorProblem
        With a loss that has `grad_curv`.
    users, items : bool
        Which of them move; the others are held.
    """

    def __init__(self, problem: FactorProblem, *, users: bool = True, items: bool = True) -> None:
        self._problem, self._lists = problem, problem.lists
        self._users, self._items = users, items
        self._columns = problem.lists.one_column()
        n = int(problem.lists.indptr[-1])
        self._grad, self._curv, self._pairs = np.empty(n), np.empty(n), np.empty((n, 2))
        self._evaluated: F64 | None = None  # where gradient and curvature were last asked for

    def solve(
        self,
        theta: F64,
        *,
        n_rounds: int,
        tol: float,
        each: Callable[[int, F64, float], bool] | None = None,
        log: OracleLog | None = None,
    ) -> SolveResult:
        """Minimise from ``theta`` in up to ``n_rounds``, until J falls by a share below ``tol``."""
        problem = self._problem
        x = np.concatenate([part.ravel() for part in problem.parts(theta)])
        state = _State(x, self._evaluate(x), x, 1.0, 0.0)
        curve: list[float] = []
        reason = "the rounds are over"
        for t in range(1, n_rounds + 1):
            before = state
            state = self._round(before) if log is None else self._logged(before, log)
            curve.append(state.value)
            over = each is not None and each(t, problem.scaled(problem.views(state.x)), curve[-1])
            if over or before.value - state.value <= tol * abs(before.value):
                reason = "stopped by the caller" if over else "J falls by less than tol"
                break
        theta = problem.scaled(problem.views(state.x))
        steepest = self._steepest(state.x, theta)
        return SolveResult(theta, state.value, steepest, len(curve), reason, curve)

    def _steepest(self, x: F64, theta: F64) -> float:
        """Return the largest part of the gradient in the scaled variables that move."""
        problem, gradient = self._problem, np.zeros(self._problem.size)
        if self._evaluated is not x:
            self._evaluate(x)
        U, _, V, _ = problem.views(x)
        problem.pull(self._grad, U, V, gradient, users=self._users, items=self._items)
        parts = [problem.part_of(users=users) for users in (True, False) if self._moves(users)]
        sizes = (np.abs(gradient[part] + problem.l2 * theta[part]) for part in parts)
        return max(float(size.max(initial=0.0)) for size in sizes)

    def _moves(self, users: bool) -> bool:
        return self._users if users else self._items

    def _logged(self, state: _State, log: OracleLog) -> _State:
        """Return the state after a round, from the log where it has it."""
        found: list[_State] = []

        def compute() -> Answer:
            found.append(new := self._round(state))
            return new.x, new.y, np.array([new.value, new.kappa, new.m])

        size = len(state.x)
        x, y, (value, kappa, m) = log.recall(compute, state.x, sizes=[size, size, 3])
        return found[0] if found else _State(x, float(value), y, float(kappa), float(m))

    def _round(self, state: _State) -> _State:
        """Return the state after one step of all users and items."""
        kappa = state.kappa
        if state.m > 0.0 and state.m % _CALM == 0.0:
            kappa = max(1.0, kappa / 2.0)
        for _ in range(_TRIALS):
            if self._evaluated is not state.x:
                self._evaluate(state.x)
            y = self._steps(state.x, kappa)
            if state.m > 0.0:
                z = y + min(_MOMENTUM * state.m, _MOST) * (y - state.y)  # (2)
                if (value := self._evaluate(z)) <= state.value:
                    return _State(z, value, y, kappa, state.m + 1.0)
            if (value := self._evaluate(y)) <= state.value:
                return _State(y, value, y, kappa, 1.0)
            kappa *= 2.0
        return state

    def _evaluate(self, x: F64) -> float:
        """Return J, and leave the gradient and curvature in the scores."""
        problem = self._problem
        U, level, V, b = parts = problem.views(x)
        scores = self._lists.scores(problem.everyone, U, V, b, level)
        value = problem.loss.grad_curv(scores, self._grad, self._curv)
        self._evaluated = x
        return float(value) / problem.total + problem.penalty_of(parts)

    def _steps(self, x: F64, kappa: float) -> F64:
        """Return the variables after a step of every user, and then of every item, by (1)."""
        problem, lists = self._problem, self._lists
        y = x.copy()
        U, level, V, b = problem.views(y)
        l2, l2_level, l2_bias = problem.penalties
        if self._users:
            lists.over_users(
                _user_steps, lists.indptr, *self._columns, V, self._grad, self._curv, kappa, l2,
                l2_level, U, level, self._pairs,
            )  # fmt: skip
        else:
            self._pairs[:, 0] = self._grad
            np.multiply(self._curv, kappa, out=self._pairs[:, 1])
        if self._items:
            scale = problem.total
            lists.over_items(
                _item_steps, *lists.by_column, lists.user_of_entry, U, self._pairs, kappa,
                scale * l2, scale * l2_bias, V, b,
            )  # fmt: skip
        return y
