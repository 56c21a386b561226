"""A loss on scores and a matrix of features, as one problem in the weights.

    J(v) = sum_q weight_q loss_q(X_q D^-1 v) / W + l2/2 |v|^2,    W = sum_q weight_q           (1)

D holds each feature's standard deviation, or ones; v = D w are the scaled weights that the solver
sees. With g and H the gradient and Hessian of the loss in the scores, the gradient is
D^-1 X' g / W + l2 v, and a Hessian product costs two products with X:

    D^-1 X' H X D^-1 u / W + l2 u                                                             (2)

Solvers that go query by query see (1) as the mean over the Q queries that have an order of

    f_q(v) = Q/W weight_q loss_q(X_q D^-1 v) + l2/2 |v|^2                                     (3)

whose gradient turns, the penalty left out, no faster than

    2 Q/W  times the largest eigenvalue of  sum_i c_i (x_i - x)(x_i - x)'                     (4)

over the documents of the query, each x_i times D^-1. c is the loss's curvature: the Hessian of a
sum over pairs or of a log-sum is a weighted graph Laplacian with c on its diagonal, at most
2 diag(c), and blind to a shift, so x is the mean of the x_i with weights c (0 where a shift changes
the loss). Where the loss has no curvature, |g_q| stands for c, by which a step of the inverse
length moves the scores of its query by less than 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from rankwright.core.checks import ArraySpec, check_arrays
from rankwright.core.products import (
    times_vector,
    transposed_squares_times_vector,
    transposed_times_vector,
)
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix, Traits
from rankwright.errors import DataError
from rankwright.losses.base import set_iteration

_KNOWN = (
    ArraySpec("known_parts", "int64", ("known",), below="queries"),
    ArraySpec("known_tops", "float64", ("known",)),
    ArraySpec("known_curvatures", "float64", ("curvatures",)),
)


class SummedProblem:
    """(1) from sums over the data, wherever they are computed: all but the steps query by query.

    Parameters
    ----------
    sums
        See `rankwright.models.linear_problem`.
    total_weight
        W, the weight of all queries that have an order.
    l2, deviation
        Penalty, and D.
    difference
        Whether the loss is a difference of convex functions.
    """

    def __init__(
        self,
        sums: Sums,
        total_weight: float,
        *,
        l2: float,
        deviation: F64,
        difference: bool = False,
    ) -> None:
        self.size, self.strength = sums.n_features, l2
        self._sums, self._total = sums, total_weight
        self._l2, self._deviation, self._difference = l2, deviation, difference

    def scores(self, v: F64) -> Any:
        """Return X w for the scaled weights v."""
        return self._sums.scores(v / self._deviation)

    def value(self, v: F64) -> float:
        """Return J."""
        return self._penalised(self._sums.value(v / self._deviation), v)

    def grad(self, v: F64, out: F64) -> float:
        """Write the gradient in v to ``out`` and return J."""
        value, pulled = self._sums.grad(v / self._deviation)
        out[:] = self._scaled(pulled) + self._l2 * v
        return self._penalised(value, v)

    def hess_vec(self, u: F64, out: F64) -> None:
        """Write the Hessian at the last ``grad`` times ``u`` to ``out``."""
        out[:] = self._scaled(self._sums.hess_vec(u / self._deviation)) + self._l2 * u  # (2)

    def precondition(self) -> F64:
        """Return a diagonal in proportion to the Hessian's, roughly: each feature's mean square."""
        squares = self._sums.squares()
        squares /= self._deviation**2
        return 0.01 + squares / (squares.mean() or 1.0)

    # --- planes ------------------------------------------------------------------------------

    def cut(self, v: F64) -> tuple[F64, float, float]:
        """Return a, b and the convex part M(v) of the loss: a'v + b touches M from below."""
        total, pulled = self._sums.convex_part(v / self._deviation)
        value, a = total / self._total, self._scaled(pulled)
        return a, value - float(a @ v), value

    def concave_part(self, v: F64) -> tuple[F64, float] | None:
        """Return the plane that touches N from below, where the loss is M - N."""
        if not self._difference:
            return None
        total, pulled = self._sums.concave_part(v / self._deviation)
        a = self._scaled(pulled)
        return a, total / self._total - float(a @ v)

    # --- targets -----------------------------------------------------------------------------

    def targets(self, v: F64, near: Any = None, rate: float = 1.0) -> Any:
        """Return the targets that the loss chooses for the scores of v.

        With a ``rate`` below 1, for a mean of those scores and the targets ``near``.
        """
        return self._sums.targets(v / self._deviation, near, rate)

    def with_targets(self, r: Any) -> SummedProblem:
        """Return the problem of coming near to fixed targets ``r``."""
        return SummedProblem(
            self._sums.with_targets(r), self._total, l2=self._l2, deviation=self._deviation
        )

    def _scaled(self, pulled: F64) -> F64:
        return pulled / (self._deviation * self._total)

    def _penalised(self, value: float, v: F64) -> float:
        return value / self._total + 0.5 * self._l2 * float(v @ v)  # (1)


def _has_state(loss: Any) -> bool:
    """Whether a loss has a state to save; one of another package may have none."""
    return hasattr(loss, "state")


class LinearProblem(SummedProblem):
    """(1) over one data set; what it can be asked for depends on what the loss can do.

    Parameters
    ----------
    X, indptr
        Features, and where queries begin.
    loss
        The bound loss.
    total_weight, l2, deviation
        See `SummedProblem`.
    visited
        Numbers of the queries that (3) goes over: those with an order; all by default.
    document_weight
        Of each row, 1 by default; `precondition` takes means with it.
    traits
        Those of the loss.
    """

    def __init__(
        self,
        X: FloatMatrix,
        indptr: I64,
        loss: Any,
        total_weight: float,
        *,
        l2: float,
        deviation: F64,
        visited: I64 | None = None,
        document_weight: F64 | None = None,
        traits: Traits | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._traits = traits or Traits("")
        difference = self._traits.difference
        sums = LinearSums(
            X, loss, document_weight=document_weight, difference=difference, n_jobs=n_jobs
        )
        super().__init__(sums, total_weight, l2=l2, deviation=deviation, difference=difference)
        self._X, self._indptr, self._loss, self._gradient = X, indptr, loss, sums.gradient
        self._visited = np.arange(len(indptr) - 1) if visited is None else visited
        self.n_parts = len(self._visited)
        self._begun, self._curvature = np.zeros(self.size), np.empty(0)
        self._known: dict[int, tuple[F64, float]] = {}  # by part: c, and the eigenvalue of (4)

    def state(self) -> dict[str, AnyArray]:
        """Return what answers depend on beside the weights: the loss's memory, and known (4)."""
        loss = self._loss
        own: dict[str, AnyArray] = dict(loss.state()) if _has_state(loss) else {}
        if self._known:
            own["known_parts"] = np.array(list(self._known), np.int64)
            own["known_tops"] = np.array([top for _, top in self._known.values()])
            own["known_curvatures"] = np.concatenate([c for c, _ in self._known.values()])
        return own

    def load_state(self, kept: Mapping[str, AnyArray]) -> None:
        """Be as the problem that had this `state`."""
        if _has_state(self._loss):
            self._loss.load_state(kept)
        if "known_parts" not in kept:
            return
        known = {spec.name: kept[spec.name] for spec in _KNOWN}
        check_arrays(_KNOWN, known, "the checkpoint", queries=self.n_parts)
        parts = kept["known_parts"].tolist()
        sizes = [int(np.diff(self._indptr)[self._visited[part]]) for part in parts]
        if sum(sizes) != len(kept["known_curvatures"]):
            raise DataError("the checkpoint is damaged: its curvatures are those of other queries.")
        curvatures = np.split(kept["known_curvatures"], np.cumsum(sizes)[:-1])
        tops = kept["known_tops"].tolist()
        self._known = dict(zip(parts, zip(curvatures, tops, strict=True), strict=True))

    # --- a query at a time -------------------------------------------------------------------

    @cached_property
    def _score(self) -> F64:
        return np.empty(self._X.shape[0])

    def begin_pass(self, t: int, v: F64) -> None:
        """Sample the noise of pass ``t``, where the loss has any; it starts at ``v``."""
        set_iteration(self._loss, t)
        self._begun, self._curvature = v.copy(), np.empty(0)

    def part_grad(self, parts: I64, v: F64, out: F64) -> float:
        """Write the gradient of the mean of (3) over ``parts`` to ``out`` and return that mean."""
        queries = self._visited[parts].tolist()
        rows = self._rows_of(queries)
        X = self._X[rows]
        self._score[rows] = times_vector(X, v / self._deviation, n_jobs=1)
        value = 0.0
        for q in queries:
            value += self._loss.grad_queries(q, q + 1, self._score, self._gradient)
        share = self.n_parts / (self._total * len(queries))
        pulled = transposed_times_vector(X, self._gradient[rows], n_jobs=1)
        out[:] = share * pulled / self._deviation + self._l2 * v
        return share * value + 0.5 * self._l2 * float(v @ v)

    def part_smoothness(self, part: int, floor: float) -> float:
        """Return (4) of ``part`` where the pass began, or ``floor`` where that is larger."""
        if not len(self._curvature):
            self._curvature = self._curvatures(self._begun)
        rows = self._rows_of([int(self._visited[part])])
        X, c = self._X[rows], self._curvature[rows]
        share = 2.0 * self.n_parts / self._total
        if part in self._known:
            before, top = self._known[part]
            risen = float(np.max(c / np.maximum(before, 1e-200), initial=0.0))
            if share * top * risen <= floor:  # (4) grows no faster than the largest c_i does
                return floor
        trace = transposed_squares_times_vector(X, c, n_jobs=1) @ self._deviation**-2.0
        if share * trace <= floor:  # no eigenvalue exceeds the trace
            return floor
        top = self._largest_eigenvalue(X, c)
        self._known[part] = c.copy(), top
        return max(floor, share * top)

    def _curvatures(self, v: F64) -> F64:
        """Return c of (4) for all documents."""
        c = np.empty(self._X.shape[0])
        if self._traits.curvature:
            self._loss.grad_curv(self.scores(v), self._gradient, c)
            return c
        self._loss.grad(self.scores(v), self._gradient)
        query = np.repeat(np.arange(len(self._indptr) - 1), np.diff(self._indptr))
        return np.sqrt(np.bincount(query, self._gradient**2))[query]

    def _largest_eigenvalue(self, X: FloatMatrix, c: F64) -> float:
        """Return the largest eigenvalue in (4), by power iteration to a per cent."""
        u = stream(0, "linear_problem", "power").normal(size=self.size)
        last = found = 0.0
        for _ in range(50):
            u /= np.linalg.norm(u)
            z = times_vector(X, u / self._deviation, n_jobs=1)
            if self._traits.shift_invariant:
                z -= (c @ z) / (c.sum() or 1.0)
            u = transposed_times_vector(X, c * z, n_jobs=1) / self._deviation
            last, found = found, float(np.linalg.norm(u))
            if found - last <= 0.01 * found:
                break
        return found

    def _rows_of(self, queries: list[int]) -> slice | I64:
        """Return the rows of one query as a slice, those of several one by one."""
        spans = [(int(self._indptr[q]), int(self._indptr[q + 1])) for q in queries]
        if len(spans) == 1:
            return slice(*spans[0])
        return np.concatenate([np.arange(*span) for span in spans])


# --- sums over documents and queries ---------------------------------------------------------
# The value of the loss, X' g, X' H X u and sum_i c_i x_i^2 of one data set. Over data in partitions
# they are added up (`rankwright.distributed.linear`).


class Sums(Protocol):
    """What a linear problem asks of the data, wherever they are; w are weights of raw features."""

    n_features: int

    def scores(self, w: F64) -> Any:
        """Return X w."""

    def value(self, w: F64) -> float:
        """Return the loss."""

    def grad(self, w: F64) -> tuple[float, F64]:
        """Return the loss and X' g."""

    def hess_vec(self, u: F64) -> F64:
        """Return X' H X u at the w of the last ``grad``."""

    def squares(self) -> F64:
        """Return the weighted sum of squares of each feature."""

    def convex_part(self, w: F64) -> tuple[float, F64]:
        """Return M and X' times its gradient, where the loss is M - N; else as ``grad``."""

    def concave_part(self, w: F64) -> tuple[float, F64]:
        """Return N and X' times its gradient."""

    def targets(self, w: F64, near: Any, rate: float) -> Any:
        """Return the targets that the loss chooses for a mean of X w and the targets ``near``."""

    def with_targets(self, r: Any) -> Sums:
        """Return the sums of coming near to fixed targets ``r``."""


class LinearSums:
    """The sums of one data set in this process.

    Parameters
    ----------
    X, loss
        Features, and the bound loss.
    document_weight
        Of each row, 1 by default; `squares` counts with it.
    difference
        Whether the loss is a difference of convex functions.
    """

    def __init__(
        self,
        X: FloatMatrix,
        loss: Any,
        *,
        document_weight: F64 | None = None,
        difference: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.X, self.loss, self.n_features = X, loss, int(X.shape[1])
        self.gradient = np.empty(X.shape[0])
        self._document_weight, self._difference = document_weight, difference
        self._n_jobs = n_jobs

    def scores(self, w: F64) -> F64:
        """Return X w."""
        return times_vector(self.X, w, n_jobs=self._n_jobs)

    def value(self, w: F64) -> float:
        """Return the loss."""
        found: float = self.loss.value(self.scores(w))
        return found

    def grad(self, w: F64) -> tuple[float, F64]:
        """Return the loss and X' g."""
        return self.loss.grad(self.scores(w), self.gradient), self._pulled()

    def hess_vec(self, u: F64) -> F64:
        """Return X' H X u at the w of the last ``grad``."""
        self.loss.hess_vec(self.scores(u), self.gradient)
        return self._pulled()

    def squares(self) -> F64:
        """Return the weighted sum of squares of each feature."""
        weight = self._document_weight
        if weight is None:
            weight = np.ones(self.X.shape[0])
        return transposed_squares_times_vector(self.X, weight, n_jobs=self._n_jobs)

    def convex_part(self, w: F64) -> tuple[float, F64]:
        """Return M and X' times its gradient, where the loss is M - N; else as ``grad``."""
        if not self._difference:
            return self.grad(w)
        return self.loss.convex_part(self.scores(w), self.gradient), self._pulled()

    def concave_part(self, w: F64) -> tuple[float, F64]:
        """Return N and X' times its gradient."""
        return self.loss.concave_part(self.scores(w), self.gradient), self._pulled()

    def targets(self, w: F64, near: F64 | None, rate: float) -> F64:
        """Return the targets that the loss chooses for a mean of X w and the targets ``near``."""
        s, out = self.scores(w), np.empty(self.X.shape[0])
        if near is not None:
            s = rate * s + (1.0 - rate) * near
        self.loss.targets(s, out)
        return out

    def with_targets(self, r: F64) -> LinearSums:
        """Return the sums of coming near to fixed targets ``r``."""
        return LinearSums(self.X, self.loss.with_targets(r), n_jobs=self._n_jobs)

    def _pulled(self) -> F64:
        return transposed_times_vector(self.X, self.gradient, n_jobs=self._n_jobs)
