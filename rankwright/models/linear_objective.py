"""The training objective of a linear model, as solvers minimise it.

    J(v, b) = sum_q weight_q loss_q(s_q) / W + l2/2 |v|^2,
    s = (X - 1 m') D^-1 v + b,    W = sum_q weight_q                                          (1)

D contains the standard deviation of each feature, or ones; v = D w are the scaled weights. The
intercept b is not penalised. It exists only if the loss is not shift-invariant; otherwise b = 0 and
m = 0. The means m change neither the minimum nor the scores: they only separate b from v, which
keeps L-BFGS and TRON well conditioned, and they are subtracted from the products, so that sparse X
stays sparse. With g and H the gradient and Hessian of the loss in the scores, the gradient in v is
D^-1 (X - 1 m')' g / W + l2 v, in b it is 1'g / W, and a Hessian product costs two products with X:

    D^-1 (X - 1 m')' H (X - 1 m') D^-1 u / W + l2 u                                           (2)

Solvers that visit single queries see (1) as the mean over the Q queries that have an order of

    f_q(v) = Q/W weight_q loss_q(s_q) + l2/2 |v|^2                                            (3)

Without the penalty, the gradient of f_q is Lipschitz with a constant of at most

    2 Q/W  times the largest eigenvalue of  sum_i c_i (x_i - x)(x_i - x)'                     (4)

over the documents of the query, with x_i scaled as in (1). c is the curvature of the loss: the
Hessian of a sum over pairs or of a log-sum is a weighted graph Laplacian with c on its diagonal. It
is at most 2 diag(c) and unchanged by shifts, so x is the mean of the x_i with weights c. For losses
that are not shift-invariant x is 0 and x_i has a 1 for the intercept. If the loss has no curvature,
|g_q| replaces c: a step of the inverse length then moves the scores of the query by less than 1.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.products import (
    times_vector,
    transposed_squares_times_vector,
    transposed_times_vector,
)
from rankwright.core.types import F64, I64, FloatMatrix, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import document_weight, order_weight, set_iteration


class ScaledVariables:
    """The variables of (1): scaled weights and, if there is a ``center``, the intercept.

    Parameters
    ----------
    scale : array of float64
        D, with a number for each feature.
    center : array of float64, optional
        m, the feature means. Without it the model has no intercept.

    Attributes
    ----------
    n_features, size : int
        Number of features, and of variables; the intercept is the last.
    """

    def __init__(self, scale: F64, center: F64 | None) -> None:
        self.scale, self.center, self.n_features = scale, center, len(scale)
        self.size = self.n_features + (center is not None)

    def weights(self, v: F64) -> tuple[F64, float]:
        """Return the weights and the intercept in the scale of the data."""
        if self.center is None:
            return v / self.scale, 0.0
        w = v[:-1] / self.scale
        return w, float(v[-1] - self.center @ w)

    def variables(self, w: F64, intercept: float = 0.0) -> F64:
        """Return the variables that have these `weights`."""
        if self.center is None:
            return w * self.scale
        return np.append(w * self.scale, intercept + float(self.center @ w))

    def variables_of(self, fitted: Any) -> F64:
        """Return the variables of a fitted model, or 0 for None."""
        if fitted is None:
            return np.zeros(self.size)
        return self.variables(fitted.coef, fitted.intercept)

    def scores_of(self, X: FloatMatrix, v: F64, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row of ``X``."""
        w, intercept = self.weights(v)
        s = times_vector(X, w, n_jobs=n_jobs)
        if self.center is not None:
            s += intercept
        return s

    def pull(self, X: FloatMatrix, g: F64, out: F64, *, n_jobs: int | None = None) -> None:
        """Write (X - 1 m')'g and, with an intercept, 1'g to ``out``."""
        out[: self.n_features] = transposed_times_vector(X, g, n_jobs=n_jobs)
        if self.center is not None:
            out[-1] = g.sum()
            out[:-1] -= out[-1] * self.center

    def squares_of(self, X: FloatMatrix, weight: F64, *, n_jobs: int | None = None) -> F64:
        """Return the weighted sum of squares of each column of (1), the intercept included."""
        squares = transposed_squares_times_vector(X, weight, n_jobs=n_jobs)
        if self.center is None:
            return squares / self.scale**2
        total = float(weight.sum())
        sums = transposed_times_vector(X, weight, n_jobs=n_jobs)
        squares += self.center * (self.center * total - 2.0 * sums)
        return np.append(np.maximum(squares, 0.0) / self.scale**2, total)


class LinearObjective(ScaledVariables):
    """Objective (1) of one data set.

    Objectives of parts of the data can be added up. Give each of them ``l2=0`` and the
    ``total_weight``, ``scale`` and ``center`` of all the data: then `value`, `grad`, `hess_vec`
    and `squares` of all the data are the sums over the parts, without the penalty, which `penalty`
    adds once. `precondition` is the `diagonal` of the summed squares.

    Parameters
    ----------
    loss
        The loss, bound to ``data``.
    data : RankingData
        Without missing values.
    traits : Traits
        Those of the loss.
    scale : array of float64
        D, with a number for each feature.
    l2 : float
        Penalty; may be changed between two runs of a solver.
    center : array of float64, optional
        m, the feature means. Without it the model has no intercept.
    total_weight : float, optional
        W; by default that of the queries of ``data`` that have an order.

    Attributes
    ----------
    size : int
        Number of variables: the scaled weights and, if there is one, the intercept, which is last.
    n_parts : int
        Number of queries that have an order.
    """

    def __init__(
        self,
        loss: Any,
        data: RankingData,
        traits: Traits,
        *,
        scale: F64,
        l2: float = 0.0,
        center: F64 | None = None,
        total_weight: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        weight = order_weight(data)
        super().__init__(scale, center)
        self.l2 = l2
        self.total_weight = total_weight or float(weight.sum()) or 1.0
        self._loss, self._data, self._traits, self._n_jobs = loss, data, traits, n_jobs
        self._parts = np.flatnonzero(weight)
        self.n_parts = len(self._parts)
        self._scores, self._gradient = np.empty(data.n_documents), np.empty(data.n_documents)
        self._pass_start, self._curvature = np.zeros(self.size), np.empty(0)

    def scores(self, v: F64) -> F64:
        """Return the score of each document."""
        return self.scores_of(self._data.X, v, n_jobs=self._n_jobs)

    # --- smooth solvers ----------------------------------------------------------------------

    def value(self, v: F64) -> float:
        """Return J."""
        value: float = self._loss.value(self.scores(v)) / self.total_weight
        return value + penalty(self.l2, v[: self.n_features])

    def grad(self, v: F64, out: F64) -> float:
        """Write the gradient in v to ``out`` and return J."""
        value: float = self._loss.grad(self.scores(v), self._gradient) / self.total_weight
        self._pull(out)
        return value + penalty(self.l2, v[: self.n_features], out)

    def hess_vec(self, u: F64, out: F64) -> None:
        """Write the Hessian at the last `grad` times ``u`` to ``out``."""
        self._loss.hess_vec(self.scores(u), self._gradient)
        self._pull(out)
        out[: self.n_features] += self.l2 * u[: self.n_features]  # (2)

    def precondition(self) -> F64:
        """Return a positive diagonal that is roughly proportional to that of the Hessian."""
        return diagonal(self.squares())

    def squares(self) -> F64:
        """Return the sum of squares of each column, weighted by documents."""
        return self.squares_of(self._data.X, document_weight(self._data), n_jobs=self._n_jobs)

    # --- cutting planes ----------------------------------------------------------------------

    def cut(self, v: F64) -> tuple[F64, float, float]:
        """Return a, b and the convex part M(v) of the loss: a'v + b touches M from below."""
        part = self._loss.grad if self._traits.convex else self._loss.convex_part
        value = part(self.scores(v), self._gradient) / self.total_weight
        a = self._pull(np.empty(self.size))
        return a, value - float(a @ v), value

    def concave_part(self, v: F64) -> tuple[F64, float] | None:
        """Return the plane that touches N from below if the loss is M - N, otherwise None."""
        if self._traits.convex:
            return None
        value = self._loss.concave_part(self.scores(v), self._gradient) / self.total_weight
        a = self._pull(np.empty(self.size))
        return a, value - float(a @ v)

    # --- targets -----------------------------------------------------------------------------

    def targets(self, v: F64, near: F64 | None = None, rate: float = 1.0) -> F64:
        """Return the targets that the loss chooses for the scores of v.

        With a ``rate`` below 1, for a mean of these scores and the targets ``near``.
        """
        s, targets = self.scores(v), np.empty(self._data.n_documents)
        if near is not None:
            s = rate * s + (1.0 - rate) * near
        self._loss.targets(s, targets)
        return targets

    def with_targets(self, r: F64) -> LinearObjective:
        """Return the objective of the loss with fixed targets ``r``."""
        fixed = copy(self)
        fixed._loss = self._loss.with_targets(r)
        fixed._gradient = np.empty(self._data.n_documents)
        return fixed

    def by_column(self) -> Any:
        """Return the problem of coordinate descent, whose penalties are to be set."""
        return self._loss.by_column(
            sparse.csc_array(self._data.X),
            total_weight=self.total_weight,
            deviation=self.scale,
            n_jobs=self._n_jobs,
        )

    # --- single queries ----------------------------------------------------------------------

    def begin_pass(self, t: int, v: F64) -> None:
        """Sample the noise of pass ``t``, which starts at ``v``, if the loss has any."""
        set_iteration(self._loss, t)
        self._pass_start, self._curvature = v.copy(), np.empty(0)

    def part_grad(self, parts: I64, v: F64, out: F64) -> float:
        """Write the gradient of the mean of (3) over ``parts`` to ``out`` and return that mean."""
        queries = self._parts[parts].tolist()
        rows = self._rows_of(queries)
        X = self._data.X[rows]
        self._scores[rows] = self.scores_of(X, v, n_jobs=1)
        value = 0.0
        for q in queries:
            value += self._loss.grad_queries(q, q + 1, self._scores, self._gradient)
        share = self.n_parts / (self.total_weight * len(queries))
        self.pull(X, self._gradient[rows], out, n_jobs=1)
        out *= share
        out[: self.n_features] /= self.scale
        return share * value + penalty(self.l2, v[: self.n_features], out)

    def part_smoothness(self, part: int, floor: float) -> float:
        """Return (4) of ``part`` at the start of the pass, or ``floor`` if that is larger."""
        if not len(self._curvature):
            self._curvature = self._curvatures(self._pass_start)
        rows = self._rows_of([int(self._parts[part])])
        X, c = self._data.X[rows], self._curvature[rows]
        share = 2.0 * self.n_parts / self.total_weight
        trace = transposed_squares_times_vector(X, c, n_jobs=1) @ self.scale**-2.0
        if self.center is None and share * trace <= floor:  # no eigenvalue exceeds the trace
            return floor
        return max(floor, share * self._largest_eigenvalue(X, c))

    def _curvatures(self, v: F64) -> F64:
        """Return c of (4) for all documents."""
        c = np.empty(self._data.n_documents)
        if hasattr(self._loss, "grad_curv"):
            self._loss.grad_curv(self.scores(v), self._gradient, c)
            return c
        self._loss.grad(self.scores(v), self._gradient)
        query = self._data.query_of_row()
        return np.sqrt(np.bincount(query, self._gradient**2))[query]

    def _largest_eigenvalue(self, X: FloatMatrix, c: F64) -> float:
        """Return the largest eigenvalue in (4): the squared spectral norm of the query."""
        columns = np.arange(self.n_features) if isinstance(X, np.ndarray) else np.unique(X.indices)
        Z = (X if isinstance(X, np.ndarray) else X[:, columns].toarray()) / self.scale[columns]
        if self._traits.shift_invariant:
            Z = Z - (c @ Z) / (c.sum() or 1.0)
        elif self.center is not None:
            mean = self.center / self.scale
            absent = max(0.0, float(mean @ mean - mean[columns] @ mean[columns]))
            constant = np.full(len(c), np.sqrt(1.0 + absent))  # absent columns are constant too
            Z = np.column_stack([Z - mean[columns], constant])
        return spectral_norm(np.sqrt(c)[:, None] * Z) ** 2

    def _rows_of(self, queries: list[int]) -> slice | I64:
        """Return the rows of a single query as a slice, or the rows of several as numbers."""
        begin = self._data.indptr
        spans = [(int(begin[q]), int(begin[q + 1])) for q in queries]
        if len(spans) == 1:
            return slice(*spans[0])
        return np.concatenate([np.arange(*span) for span in spans])

    # --- gradients in the variables ------------------------------------------------------------

    def _pull(self, out: F64) -> F64:
        """Write the gradient in v to ``out``, without the penalty, and return it."""
        self.pull(self._data.X, self._gradient, out, n_jobs=self._n_jobs)
        out[: self.n_features] /= self.scale * self.total_weight
        out[self.n_features :] /= self.total_weight
        return out


def penalty(l2: float, w: F64, gradient: F64 | None = None) -> float:
    """Return l2/2 |w|^2 and add its gradient to the first numbers of ``gradient``."""
    if gradient is not None:
        gradient[: len(w)] += l2 * w
    return 0.5 * l2 * float(w @ w)


def diagonal(squares: F64) -> F64:
    """Return the diagonal of `LinearObjective.precondition` for these `LinearObjective.squares`."""
    return 0.01 + squares / (squares.mean() or 1.0)


def spectral_norm(A: FloatMatrix) -> float:
    """Return the largest singular value of a matrix, from the Gram matrix of its shorter side."""
    if 0 in A.shape:
        return 0.0
    wide = A if A.shape[0] < A.shape[1] else A.T
    gram = wide @ wide.T
    dense = gram if isinstance(gram, np.ndarray) else gram.toarray()
    return float(np.sqrt(max(0.0, np.linalg.eigvalsh(dense.astype(np.float64))[-1])))
