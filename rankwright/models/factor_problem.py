"""The objective of a matrix factorisation, as a function of user and item factors.

Document i of user q has features x_i; for ratings these are a single 1 in the column of the item.
Its score is

    s_i = level_q + x_i'(b + V u_q)                                                            (1)

with a vector u_q for each user, and a vector v_k (row of V) and a bias b_k for each item. The list
of each user is a query, and the factors minimise (`le2007dorm`, section 5.2; `weimer2008cofirank`)

    J = 1/W sum_q [ weight_q loss_q(s_q) + l2/2 |u_q|^2 + l2_bias/2 level_q^2 ]
        + l2/2 sum_k |v_k|^2 + l2_bias/2 |b|^2                                                 (2)

W is the total weight of the users, so that l2 has the same effect for ten users and for a million.
Solvers use scaled variables, for example u_q / sqrt(W) and b sqrt(l2_bias / l2). The penalty is
then l2/2 times their sum of squares, and the curvature does not depend on the number of users.

(2) is not convex in all variables. If the loss is convex, (2) is convex in the variables of the
users with the items fixed, and in the variables of the items with the users fixed.

Without vectors, the gradient of the loss in the product of U and V is

    G_qk = sum of x_ik dloss/ds_i over list q                                                  (3)

and all vectors are 0 at the minimum if l2 is at least |G| / sqrt(W), where |G| is the largest
singular value of G at the best biases.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.jit import kernel, quick_kernel
from rankwright.core.parallel import map_queries
from rankwright.core.products import one_blas_thread
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, Loss, offers
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import bound_loss, order_weight
from rankwright.models.missing import without_gaps

# --- kernels ---------------------------------------------------------------------------------


@quick_kernel
def _scores(lo, hi, indptr, at, column, x, user, U, V, b, level, s):
    n_factors = U.shape[1]
    for q in range(lo, hi):
        is_known = user[q] >= 0
        for i in range(indptr[q], indptr[q + 1]):
            total = level[user[q]] if is_known else 0.0
            for j in range(at[i], at[i + 1]):
                k = column[j]
                part = b[k]
                if is_known:
                    for f in range(n_factors):
                        part += U[user[q], f] * V[k, f]
                total += x[j] * part  # (1)
            s[i] = total


@kernel
def _user_gradient(lo, hi, indptr, at, column, x, V, gradient, U, level):
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
def _item_gradient(lo, hi, begin, row, x, user, U, gradient, V, b):
    for k in range(lo, hi):
        V[k] = 0.0
        b[k] = 0.0
        for j in range(begin[k], begin[k + 1]):
            step = gradient[row[j]] * x[j]
            b[k] += step
            for f in range(V.shape[1]):
                V[k, f] += step * U[user[j], f]


# --- API -------------------------------------------------------------------------------------


def factor_scores(
    X: Any, indptr: I64, user: I64, parts: Sequence[F64], *, n_jobs: int | None = None
) -> F64:
    """Return the scores (1) of the rows of a CSR matrix.

    ``user`` is the row of each query in U, below 0 for unknown users. ``parts`` is U, levels, V and
    b.
    """
    U, level, V, b = parts
    s = np.empty(X.shape[0])
    rows = X.indptr, X.indices, X.data
    map_queries(_scores, indptr, *rows, user, U, V, b, level, s, n_jobs=n_jobs)
    return s


class FactorProblem:
    """Objective (2) in scaled variables: U, levels, V and biases in one array.

    Parameters
    ----------
    data, loss
        The users' lists, and the loss of each.
    n_factors, l2, l2_bias
        As in (2).
    biases : bool
        Whether items have a bias.
    """

    def __init__(
        self,
        data: RankingData,
        loss: Loss,
        *,
        n_factors: int,
        l2: float,
        l2_bias: float,
        biases: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.loss: Any = bound_loss(loss, data, n_jobs=n_jobs)
        self.has_concave_part = not loss.traits.convex and offers(loss, "concave_part")
        self.total = float(order_weight(data).sum()) or 1.0
        self.l2, self._l2_bias = l2, l2_bias
        self._biases, self._levels = biases, not loss.traits.shift_invariant
        self.n_jobs, self.indptr = n_jobs, data.indptr
        self.X = sparse.csr_array(without_gaps(data.X, "factorization"))
        columns = self.X.tocsc()
        self.by_column = columns.indptr.astype(np.int64), columns.indices, columns.data
        self.user_of_entry = data.query_of_row().astype(columns.indices.dtype)[columns.indices]
        self._all_users = np.arange(data.n_queries)
        n_users, n_items = data.n_queries, data.n_features
        self._shapes = (n_users, n_factors), (n_users,), (n_items, n_factors), (n_items,)
        self._ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes])
        self.size = int(self._ends[-1])

    def with_l2(self, l2: float) -> FactorProblem:
        """Return the problem with another penalty of the vectors."""
        problem = copy.copy(self)
        problem.l2 = l2
        return problem

    # --- variables ---------------------------------------------------------------------------

    @property
    def penalties(self) -> tuple[float, float, float]:
        """Penalties of vectors, levels and biases in (2)."""
        return self.l2, self._levels * self._l2_bias, self._biases * self._l2_bias

    @property
    def _scale(self) -> tuple[float, float, float, float]:
        user, bias = float(np.sqrt(self.total)), float(np.sqrt(self.l2 / self._l2_bias))
        return user, self._levels * user * bias, 1.0, self._biases * bias

    def views(self, theta: F64) -> list[F64]:
        """Return the four parts of ``theta`` in their shapes, as views."""
        pieces = np.split(theta, self._ends[:-1])
        return [piece.reshape(shape) for piece, shape in zip(pieces, self._shapes, strict=True)]

    def parts(self, theta: F64) -> list[F64]:
        """Return U, levels, V and b of (1) for scaled variables."""
        return [part * scale for part, scale in zip(self.views(theta), self._scale, strict=True)]

    def scaled(self, parts: Sequence[F64]) -> F64:
        """Return the scaled variables of U, levels, V and b."""
        pairs = zip(parts, self._scale, strict=True)
        return np.concatenate([(part / (scale or 1.0)).ravel() for part, scale in pairs])

    def block(self, *, users: bool, items: bool) -> slice:
        """Return the range of the variables of the users, the items or both."""
        border = int(self._ends[1])
        return slice(0 if users else border, self.size if items else border)

    # --- objective ---------------------------------------------------------------------------

    def scores(self, parts: Sequence[F64]) -> F64:
        """Return the scores (1) of all documents."""
        return factor_scores(self.X, self.indptr, self._all_users, parts, n_jobs=self.n_jobs)

    def value(self, theta: F64) -> float:
        """Return J."""
        return self.penalised(self.loss.value(self.scores(self.parts(theta))), theta)

    @one_blas_thread()  # the sum must not depend on the number of threads
    def penalised(self, value: float, theta: F64) -> float:
        """Return J for the sum of the losses."""
        return float(value) / self.total + 0.5 * self.l2 * float(theta @ theta)  # (2)

    def gradient(self, gradient: F64, parts: Sequence[F64], *, users: bool, items: bool) -> F64:
        """Return the gradient of the loss over W in the scaled variables of users, items or both.

        ``gradient`` is the gradient of the loss in the scores.
        """
        U, _, V, _ = parts
        out = np.zeros(self.size)
        views = self.views(out)
        if users:
            rows = self.indptr, self.X.indptr, self.X.indices, self.X.data
            map_queries(_user_gradient, *rows, V, gradient, *views[:2], n_jobs=self.n_jobs)
        if items:
            entries = *self.by_column, self.user_of_entry
            map_queries(_item_gradient, *entries, U, gradient, *views[2:], n_jobs=self.n_jobs)
        for view, scale in zip(views, self._scale, strict=True):
            view *= scale / self.total
        return out[self.block(users=users, items=items)]

    @one_blas_thread()
    def largest_l2(self, theta: F64) -> float:
        """Return the l2 of (3) to a few per cent, for ``theta`` without vectors."""
        n = self.X.shape[0]
        gradient = np.empty(n)
        self.loss.grad(self.scores(self.parts(theta)), gradient)
        shape = len(self._all_users), n
        by_user: Any = sparse.csr_array((gradient, np.arange(n), self.indptr), shape)
        G = (by_user @ self.X).sorted_indices()
        v = stream(0, "factorization", "power").normal(size=G.shape[1])
        size = 0.0
        for _ in range(50):
            v = G.T @ (G @ v)
            size = float(np.linalg.norm(v))
            v /= size or 1.0
        return float(np.sqrt(size / self.total))


class BlockProblem:
    """Objective (2) as a function of the users, the items or both, without the penalty of the rest.

    The scores are linear in the variables of one side, so that a convex loss is convex in them.
    """

    def __init__(self, whole: FactorProblem, theta: F64, *, users: bool, items: bool) -> None:
        self._whole, self._theta = whole, theta
        self._sides = {"users": users, "items": items}
        self._block = whole.block(**self._sides)
        self.start = theta[self._block].copy()
        self.size, self.l2 = len(self.start), whole.l2

    def at(self, w: F64) -> F64:
        """Return all variables, with ``w`` in the block."""
        theta = self._theta.copy()
        theta[self._block] = w
        return theta

    def value(self, w: F64) -> float:
        """Return the objective at ``w``."""
        return self.grad(w, np.empty(self.size))

    def grad(self, w: F64, out: F64) -> float:
        """Write the gradient at ``w`` to ``out`` and return the objective."""
        gradient, value = self._loss_gradient(w, self._whole.loss.grad)
        out[:] = gradient + self.l2 * w
        return value + 0.5 * self.l2 * float(w @ w)

    def cut(self, w: F64) -> tuple[F64, float, float]:
        """Return a, b and M(w) of the plane a'w + b that touches the loss from below at ``w``."""
        loss = self._whole.loss
        part = loss.convex_part if self._whole.has_concave_part else loss.grad
        a, value = self._loss_gradient(w, part)
        return a, value - float(a @ w), value

    def concave_part(self, w: F64) -> tuple[F64, float] | None:
        """Return a and b of the plane that touches the subtracted part, or None without one."""
        if not self._whole.has_concave_part:
            return None
        a, value = self._loss_gradient(w, self._whole.loss.concave_part)
        return a, value - float(a @ w)

    def _loss_gradient(self, w: F64, gradient_of: Any) -> tuple[F64, float]:
        """Return gradient and value over W of a function of the scores."""
        whole = self._whole
        parts = whole.parts(self.at(w))
        gradient = np.empty(int(whole.indptr[-1]))
        value = float(gradient_of(whole.scores(parts), gradient)) / whole.total
        return whole.gradient(gradient, parts, **self._sides), value
