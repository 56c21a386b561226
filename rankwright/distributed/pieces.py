"""What a worker does for a linear problem: the sums over one part of the data.

Each question is a pure function of the part and of what it carries (weights, and the point at which
a Hessian is meant), so Dask may ask any worker, and ask again when one is lost. The bound loss and
its buffers stay on the worker between questions, as a `Piece`; a worker that has none makes it.

(A loss that starts its inner problems from their last solution, as interval does, may end in other
last digits on a worker that has just made its piece.)
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankwright.core.products import (
    one_blas_thread,
    transposed_squares_times_vector,
    transposed_times_vector,
)
from rankwright.core.types import F64, I64, Loss
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import bound_loss, document_weight, order_weight, set_iteration
from rankwright.models.linear import filled
from rankwright.models.linear_problem import LinearProblem, LinearSums

_MOST_PROBLEMS = 8  # whose pieces a worker keeps; they are dropped when a fit ends

_pieces: dict[tuple[str, int], Piece] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class Recipe:
    """All that a piece is made from, beside the part.

    Parameters
    ----------
    key
        Of the problem, unlike any other.
    loss
    fill
        What stands for missing values.
    largest
        What the loss has to know of all the data, where it asks for it.
    seeded
        Whether queries are visited in an order fixed by their content.
    """

    key: str
    loss: Loss
    fill: F64 | None
    largest: float | None
    seeded: bool


@dataclass(frozen=True)
class Share:
    """What (3) of `rankwright.models.linear_problem` is to a part.

    Parameters
    ----------
    deviation, l2
        D and the penalty.
    per_query
        W / Q: the mean weight of a query, of all data.
    """

    deviation: F64
    l2: float
    per_query: float


@dataclass(frozen=True)
class Moments:
    """Sums over a part that come before any problem."""

    weight: float
    sums: F64
    squares: F64
    ordered_weight: float
    ordered: int
    largest: float | None


class Piece:
    """The bound loss of one part; ``first`` is the number of its first query in all the data."""

    def __init__(self, part: RankingData, recipe: Recipe, first: int) -> None:
        self.lock = threading.Lock()
        if recipe.seeded:
            part = in_content_order(part, n_jobs=1)[1]
        self._data = part = replace(part, X=filled(part.X, recipe.fill, "linear"))
        self._traits = recipe.loss.traits
        options = {} if recipe.largest is None else {"largest": recipe.largest}
        loss = bound_loss(recipe.loss, part, n_jobs=1, **options)
        if self._traits.stochastic:
            loss.number_from(first)
        self._loss = loss
        self._visited = np.flatnonzero(order_weight(part))
        self._sums = LinearSums(
            part.X,
            loss,
            document_weight=part.sample_weight,
            difference=self._traits.difference,
            n_jobs=1,
        )
        self._at: F64 | None = None
        self._held: tuple[int, LinearSums] | None = None
        self._problem: tuple[float, LinearProblem] | None = None

    def set_iteration(self, t: int) -> None:
        """Take the noise of round ``t``, where the loss has any."""
        set_iteration(self._loss, t)

    # --- sums --------------------------------------------------------------------------------

    def value(self, w: F64) -> float:
        """Return the loss."""
        return self._sums.value(w)

    def grad(self, w: F64) -> tuple[float, F64]:
        """Return the loss and X' g."""
        self._at = w
        return self._sums.grad(w)

    def hess_vec(self, at: F64, u: F64) -> F64:
        """Return X' H X u at the weights ``at``."""
        self._come_to(at)
        return self._sums.hess_vec(u)

    def hess_block(self, at: F64, columns: I64) -> F64:
        """Return the rows and columns ``columns`` of X' H X at the weights ``at``."""
        self._come_to(at)
        block = np.empty((len(columns), len(columns)))
        unit = np.zeros(self._sums.n_features)
        for k, column in enumerate(columns.tolist()):
            unit[column] = 1.0
            block[k] = self._sums.hess_vec(unit)[columns]
            unit[column] = 0.0
        return block

    def squares(self) -> F64:
        """Return the weighted sum of squares of each feature."""
        return self._sums.squares()

    def convex_part(self, w: F64) -> tuple[float, F64]:
        """Return M and X' times its slope."""
        self._at = None
        return self._sums.convex_part(w)

    def concave_part(self, w: F64) -> tuple[float, F64]:
        """Return N and X' times its slope."""
        self._at = None
        return self._sums.concave_part(w)

    def targets(self, w: F64) -> F64:
        """Return the targets of the loss for the scores of w."""
        return self._sums.targets(w, None, 1.0)

    def with_targets(self, r: F64, turn: int, question: str, *args: Any) -> Any:
        """Return the answer of the loss that is held to the targets ``r`` of one turn."""
        if self._held is None or self._held[0] != turn:
            self._held = turn, self._sums.with_targets(r)
        return getattr(self._held[1], question)(*args)

    def _come_to(self, at: F64) -> None:
        if self._at is None or not np.array_equal(self._at, at):
            self.grad(at)

    # --- query by query ----------------------------------------------------------------------

    def part_grad(self, parts: I64, v: F64, share: Share) -> tuple[float, F64]:
        """Return the mean of (3) over some queries, and its gradient, without the penalty."""
        self._at = None
        if self._problem is None or self._problem[0] != share.per_query:
            self._problem = share.per_query, self._query_by_query(replace(share, l2=0.0))
        problem = self._problem[1]
        out = np.empty(problem.size)
        return problem.part_grad(parts, v, out), out

    def walk(self, solver: Any, state: Any, parts: I64, share: Share) -> Any:
        """Let an online solver take a step for each of ``parts``, in this order."""
        self._at = None
        # One that knows bounds from earlier passes would answer otherwise than one that does not.
        return solver.walk(self._query_by_query(share), state, parts)

    def _query_by_query(self, share: Share) -> LinearProblem:
        """Return the problem of this part's queries, with the penalty and weights of all data."""
        return LinearProblem(
            self._data.X,
            self._data.indptr,
            self._loss,
            share.per_query * max(1, len(self._visited)),
            l2=share.l2,
            deviation=share.deviation,
            visited=self._visited,
            traits=self._traits,
            n_jobs=1,
        )


# --- asked by the driver -----------------------------------------------------------------------


def ask(
    part: RankingData,
    number: int,
    first: int,
    recipe: Recipe,
    t: int,
    question: str,
    *args: Any,
) -> Any:
    """Return the answer of part ``number`` to a question: a method of `Piece` and its arguments.

    Where the loss has noise, it is that of round ``t``.
    """
    piece = _piece(part, number, first, recipe)
    with piece.lock, one_blas_thread():
        piece.set_iteration(t)
        return getattr(piece, question)(*args)


def ask_with_targets(
    part: RankingData, r: F64, number: int, first: int, recipe: Recipe, turn: int, *asked: Any
) -> Any:
    """As `ask`, of the loss that is held to targets ``r``."""
    piece = _piece(part, number, first, recipe)
    with piece.lock, one_blas_thread():
        return piece.with_targets(r, turn, *asked)


def forget(key: str) -> None:
    """Drop the pieces of a problem."""
    with _lock:
        for known in [known for known in _pieces if known[0] == key]:
            del _pieces[known]


def _piece(part: RankingData, number: int, first: int, recipe: Recipe) -> Piece:
    with _lock:
        known = _pieces.get((recipe.key, number))
    if known is not None:
        return known
    made = Piece(part, recipe, first)
    with _lock:
        keys = dict.fromkeys(key for key, _ in _pieces)
        keys.pop(recipe.key, None)
        for old in list(keys)[: max(0, len(keys) + 1 - _MOST_PROBLEMS)]:
            for known_key in [one for one in _pieces if one[0] == old]:
                del _pieces[known_key]
        return _pieces.setdefault((recipe.key, number), made)


def known_values(part: RankingData) -> tuple[F64, F64]:
    """Return the sum of each feature's values that are not missing, and how many there are."""
    X: Any = part.X
    if isinstance(X, np.ndarray):
        gaps = np.isnan(X)
        missing = gaps.sum(axis=0)
        whole = np.where(gaps, 0.0, X).astype(X.dtype) if gaps.any() else X
    else:
        gaps = np.isnan(X.data)
        missing = np.bincount(X.indices[gaps], minlength=part.n_features)
        whole = X.copy()
        whole.data[gaps] = 0.0
    sums = transposed_times_vector(whole, np.ones(part.n_documents), n_jobs=1)
    return sums, (part.n_documents - missing).astype(np.float64)


def moments(part: RankingData, fill: F64 | None, loss: Loss) -> Moments:
    """Return the sums that deviations and weights are made of."""
    X = filled(part.X, fill, "linear")
    weight, ordered = document_weight(part), order_weight(part)
    return Moments(
        float(weight.sum()),
        transposed_times_vector(X, weight, n_jobs=1),
        transposed_squares_times_vector(X, weight, n_jobs=1),
        float(ordered.sum()),
        int(np.count_nonzero(ordered)),
        largest_of(part, loss),
    )


def largest_of(part: RankingData, loss: Loss) -> float | None:
    """Return what the loss has to know of all the data, for one part; None where it asks nothing.

    The largest over the parts is that of all the data.
    """
    surveyed: Any = loss
    return float(surveyed.largest(part)) if loss.traits.largest else None
