"""Scores made of user and item factors, and any loss on them, as one problem in the factors.

Document i of user q has features x_i, in ratings a single 1 in the column of its item. Its score is

    s_i = level_q + x_i'(b + V u_q)                                                            (1)

with a vector u_q for each user, a vector v_k (row of V) and a bias b_k for each item. Each user's
list is a query, and the factors minimise (`le2007dorm`, section 5.2; `weimer2008cofirank`)

    J = 1/W sum_q [ weight_q loss_q(s_q) + l2/2 |u_q|^2 + l2_bias/2 level_q^2 ]
        + l2/2 sum_k |v_k|^2 + l2_bias/2 |b|^2                                                 (2)

W is the weight of all users, so that l2 means the same for ten users and for a million. Solvers see
scaled variables, such as u_q / sqrt(W) and b sqrt(l2_bias / l2), in which the penalty is l2/2 times
the sum of squares and no part is steeper than another by the number of users.

(2) is not convex in all variables, but convex in those of the users with the items held, where it
falls apart into a problem for each user, and in those of the items with the users held, wherever
the loss is convex.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.jit import kernel, quick_kernel
from rankwright.core.parallel import map_ranges, query_ranges
from rankwright.core.types import F64, I64, AnyArray

# --- kernels ---------------------------------------------------------------------------------


@quick_kernel
def _scores(lo, hi, indptr, at, column, x, user, U, V, b, level, s):  # type: ignore[no-untyped-def]
    n_factors = U.shape[1]
    for q in range(lo, hi):
        known = user[q] >= 0
        for i in range(indptr[q], indptr[q + 1]):
            total = level[user[q]] if known else 0.0
            for j in range(at[i], at[i + 1]):
                k = column[j]
                part = b[k]
                if known:
                    for f in range(n_factors):
                        part += U[user[q], f] * V[k, f]
                total += x[j] * part  # (1)
            s[i] = total


@kernel
def _pull_to_users(lo, hi, indptr, at, column, x, V, gradient, U, level):  # type: ignore[no-untyped-def]
    for q in range(lo, hi):
        U[q] = 0.0
        level[q] = 0.0
        for i in range(indptr[q], indptr[q + 1]):
            level[q] += gradient[i]
            for j in range(at[i], at[i + 1]):
                step = gradient[i] * x[j]
                for f in range(U.shape[1]):
                    U[q, f] += step * V[column[j], f]


@kernel
def _pull_to_items(lo, hi, begin, row, x, user, U, gradient, V, b):  # type: ignore[no-untyped-def]
    for k in range(lo, hi):
        V[k] = 0.0
        b[k] = 0.0
        for j in range(begin[k], begin[k + 1]):
            step = gradient[row[j]] * x[j]
            b[k] += step
            for f in range(V.shape[1]):
                V[k, f] += step * U[user[j], f]


# --- API -------------------------------------------------------------------------------------


class Lists:
    """Documents by user and by item: the rows of X, and its columns.

    Parameters
    ----------
    X, indptr
        Features as CSR, and where each user's list begins.
    """

    def __init__(self, X: Any, indptr: I64, *, n_jobs: int | None = None) -> None:
        rows = sparse.csr_array(X)
        columns = rows.tocsc()
        self.indptr, self.n_users, self.n_items = indptr, len(indptr) - 1, int(rows.shape[1])
        self.by_row = (rows.indptr, rows.indices, rows.data)
        self.by_column = (columns.indptr, columns.indices, columns.data)
        short = np.int32 if self.n_users < 2**31 else np.int64
        self.user_of_row: AnyArray = np.repeat(
            np.arange(self.n_users, dtype=short), np.diff(indptr)
        )
        self.user_of_entry = self.user_of_row[columns.indices]  # in the order of the columns
        self._user_ranges = query_ranges(indptr)
        self._item_ranges = query_ranges(columns.indptr.astype(np.int64))
        self._n_jobs = n_jobs

    @property
    def most_columns(self) -> int:
        """Number of columns that a document has at most."""
        return int(np.diff(self.by_row[0]).max(initial=0))

    def one_column(self) -> tuple[AnyArray, AnyArray]:
        """Return the column of each document and its value there, which is 0 where it has none.

        For documents of one column each, as ratings are.
        """
        begin, column, x = self.by_row
        if len(column) == len(begin) - 1:
            return column, x
        full = np.diff(begin) > 0
        columns, values = np.zeros(len(full), column.dtype), np.zeros(len(full), x.dtype)
        columns[full], values[full] = column, x
        return columns, values

    def scores(self, user: I64, U: F64, V: F64, b: F64, level: F64) -> F64:
        """Return (1); ``user`` is each list's row of ``U``, below 0 where there is none."""
        s = np.empty(int(self.indptr[-1]))
        self.over_users(_scores, self.indptr, *self.by_row, user, U, V, b, level, s)
        return s

    def pull_to_users(self, gradient: F64, V: F64, U: F64, level: F64) -> None:
        """Write the gradient in users' vectors and levels, for one in the scores."""
        self.over_users(_pull_to_users, self.indptr, *self.by_row, V, gradient, U, level)

    def pull_to_items(self, gradient: F64, U: F64, V: F64, b: F64) -> None:
        """Write the gradient in items' vectors and biases, for one in the scores."""
        self.over_items(_pull_to_items, *self.by_column, self.user_of_entry, U, gradient, V, b)

    def over_users(self, one: Any, *args: Any) -> None:
        """Call the kernel ``one`` for ranges of users."""
        map_ranges(one, self._user_ranges, *args, n_jobs=self._n_jobs)

    def over_items(self, one: Any, *args: Any) -> None:
        """Call the kernel ``one`` for ranges of items."""
        map_ranges(one, self._item_ranges, *args, n_jobs=self._n_jobs)


class FactorProblem:
    """(2) in scaled variables: users' vectors, levels, items' vectors, biases, one after the other.

    Parameters
    ----------
    lists
        The documents.
    loss, total_weight
        The bound loss, and W.
    n_factors, l2, l2_bias
        As in (2).
    biases, levels
        Whether items have a bias, and users a level.
    difference
        Whether the loss is a difference of convex functions.
    """

    def __init__(
        self,
        lists: Lists,
        loss: Any,
        total_weight: float,
        *,
        n_factors: int,
        l2: float,
        l2_bias: float,
        biases: bool = True,
        levels: bool = False,
        difference: bool = False,
    ) -> None:
        self.lists, self.loss, self.total, self.l2 = lists, loss, total_weight, l2
        self.difference = difference
        self._shapes = [
            (lists.n_users, n_factors),
            (lists.n_users,),
            (lists.n_items, n_factors),
            (lists.n_items,),
        ]
        self._ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes])
        self.size = int(self._ends[-1])
        self.everyone = np.arange(lists.n_users)
        self.penalties = l2, levels * l2_bias, biases * l2_bias  # of vectors, levels and biases
        of_users, of_biases = float(np.sqrt(total_weight)), float(np.sqrt(l2 / l2_bias))
        self._scale = (of_users, levels * of_users * of_biases, 1.0, biases * of_biases)
        self._gradient = np.empty(int(lists.indptr[-1]))

    def parts(self, theta: F64) -> list[F64]:
        """Return U, levels, V and b of scaled variables, in the scale of (1)."""
        return [part * scale for part, scale in zip(self.views(theta), self._scale, strict=True)]

    def views(self, theta: F64) -> list[F64]:
        """Return the four parts of ``theta`` in their shapes; writing to them writes to it."""
        pieces = np.split(theta, self._ends[:-1])
        return [piece.reshape(shape) for piece, shape in zip(pieces, self._shapes, strict=True)]

    def scaled(self, parts: list[F64]) -> F64:
        """Return the scaled variables of U, levels, V and b."""
        pairs = zip(parts, self._scale, strict=True)
        return np.concatenate([(part / (scale or 1.0)).ravel() for part, scale in pairs])

    def scores(self, theta: F64) -> F64:
        """Return the scores (1) of all documents."""
        U, level, V, b = self.parts(theta)
        return self.lists.scores(self.everyone, U, V, b, level)

    def value(self, theta: F64) -> float:
        """Return J."""
        return self.penalised(self.loss.value(self.scores(theta)), theta)

    def grad(self, theta: F64, out: F64) -> float:
        """Write the gradient to ``out`` and return J."""
        U, level, V, b = self.parts(theta)
        value = self.loss.grad(self.lists.scores(self.everyone, U, V, b, level), self._gradient)
        self.pull(self._gradient, U, V, out)
        out += self.l2 * theta
        return self.penalised(value, theta)

    def pull(
        self, gradient: F64, U: F64, V: F64, out: F64, *, users: bool = True, items: bool = True
    ) -> None:
        """Write the gradient of the loss over W to ``out``, for its gradient in the scores.

        Only the variables of ``users`` or ``items`` where the others are not asked for.
        """
        views = self.views(out)
        if users:
            self.lists.pull_to_users(gradient, V, views[0], views[1])
        if items:
            self.lists.pull_to_items(gradient, U, views[2], views[3])
        for view, scale in zip(views, self._scale, strict=True):
            view *= scale / self.total

    def penalised(self, value: float, theta: F64) -> float:
        """Return J for the sum of the losses."""
        return value / self.total + 0.5 * self.l2 * float(theta @ theta)  # (2)

    def penalty_of(self, parts: list[F64]) -> float:
        """Return the penalty in (2) of U, levels, V and b."""
        l2, l2_level, l2_bias = self.penalties
        U, level, V, b = (float(part.ravel() @ part.ravel()) for part in parts)
        return 0.5 * ((l2 * U + l2_level * level) / self.total + l2 * V + l2_bias * b)

    def part_of(self, *, users: bool) -> slice:
        """Return where the variables of the users stand, or those of the items."""
        first = int(self._ends[1])
        return slice(0, first) if users else slice(first, None)


class BlockProblem:
    """(2) in the variables of the users alone, or of the items alone; the others are held.

    The scores are linear in them, s = held + A w, so that a convex loss makes a convex problem.
    """

    def __init__(self, whole: FactorProblem, theta: F64, *, users: bool) -> None:
        self._whole, self._users = whole, users
        self._block = whole.part_of(users=users)
        self._held = theta.copy()
        self._held[self._block] = 0.0
        self._fixed = 0.5 * whole.l2 * float(self._held @ self._held)
        self._gradient = np.zeros(whole.size)
        self.start = theta[self._block].copy()
        self.size, self.strength = len(self.start), whole.l2

    def at(self, w: F64) -> F64:
        """Return all variables, with ``w`` in the block."""
        theta = self._held.copy()
        theta[self._block] = w
        return theta

    def value(self, w: F64) -> float:
        """Return J, less the penalty of what is held."""
        return self._whole.value(self.at(w)) - self._fixed

    def grad(self, w: F64, out: F64) -> float:
        """Write the gradient in the block to ``out`` and return J, as `value` does."""
        gradient, value = self._plane(w, self._whole.loss.grad)
        out[:] = gradient + self.strength * w
        return value + 0.5 * self.strength * float(w @ w)

    def cut(self, w: F64) -> tuple[F64, float, float]:
        """Return a, b and M(w) of the plane a'w + b that touches the loss from below at ``w``."""
        loss = self._whole.loss
        a, value = self._plane(w, loss.convex_part if self._whole.difference else loss.grad)
        return a, value - float(a @ w), value

    def concave_part(self, w: F64) -> tuple[F64, float] | None:
        """Return the plane that touches what is taken off, where the loss is a difference."""
        if not self._whole.difference:
            return None
        a, value = self._plane(w, self._whole.loss.concave_part)
        return a, value - float(a @ w)

    def _plane(self, w: F64, gradient_of: Any) -> tuple[F64, float]:
        """Return the gradient in the block and the value of a function of the scores, over W."""
        theta, whole = self.at(w), self._whole
        U, _, V, _ = whole.parts(theta)
        gradient = np.empty(int(whole.lists.indptr[-1]))
        value = gradient_of(whole.scores(theta), gradient) / whole.total
        whole.pull(gradient, U, V, self._gradient, users=self._users, items=not self._users)
        return self._gradient[self._block].copy(), float(value)
