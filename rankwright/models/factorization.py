"""Matrix factorisation: a score is the inner product of a user vector and an item vector.

    s = level_user + bias_item + <vector of the user, vector of the item>

with any loss; the list of each user is a query. `rankwright.models.factor_problem` has the
objective. The features of a document select its item: a single 1 in the column of the item, as in
`rankwright.data.ratings`. Other features are possible. Each column has a bias and a vector, and a
document has their sums over its columns, weighted by its features: further columns can hold
features of the items, and dense features make a linear ranker with a vector for each query.

There are three methods. ``method="als"`` alternates between closed-form steps of the users and of
the items (`rankwright.models.als`). It is the fastest, for ratings and losses with a curvature.
``method="joint"`` minimises over all variables by L-BFGS, for any features and any smooth loss.
``method="alternating"`` solves for the users with the items fixed, and then for the items with the
users fixed. Both problems are convex if the loss is, so that the bundle solver can minimise losses
with kinks, such as DORM's. "auto" is the first of the three that supports the loss and the data.

A user who is not in the training data is scored by the biases, until `fold_in` finds a vector with
the items fixed.

The penalty has the same effect as a penalty of the trace norm: all vectors are 0 from some l2 on,
which grows with the scale of the grades and the length of the lists. ``l2="auto"`` tries shares of
it and keeps the best on the validation set, or takes half of it without validation data.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse

from rankwright.core.checks import ArraySpec
from rankwright.core.parameters import (
    Auto,
    Count,
    NonNegative,
    Positive,
    part_name,
    resolve_part,
)
from rankwright.core.products import one_blas_thread, times_vector
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix, Loss, Round, SolveResult
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.models.als import AlternatingSquares
from rankwright.models.factor_problem import BlockProblem, FactorProblem, factor_scores
from rankwright.models.missing import without_gaps
from rankwright.models.schema import ModelPart, Schema
from rankwright.solvers.choice import choose_solver, lacking, missing_needs, solver_needs

# --- fitted model ----------------------------------------------------------------------------

_ARRAYS = ("user_factors", "user_level", "item_factors", "item_bias", "rated_begin", "rated")
_NUMBERS = ("l2", "shift", "top")
_SCHEMA = Schema(
    (
        ArraySpec("user_factors", "float64", ("users", "factors")),
        ArraySpec("user_level", "float64", ("users",)),
        ArraySpec("item_factors", "float64", ("features", "factors")),
        ArraySpec("item_bias", "float64", ("features",)),
        ArraySpec("rated_begin", "int64", ("users+1",), offsets="ratings"),
        ArraySpec("rated", "int64", ("ratings",), below="features"),
        ArraySpec("numbers", "float64", (len(_NUMBERS),), finite=False),
    ),
    {"users": ()},
)


@dataclass(frozen=True)
class FittedFactorization:
    """Vectors and biases of users and items, and the columns of each user's documents.

    Users are identified by name and items by column; the columns of X are called items here.
    ``l2`` is the penalty of the fit and ``solution`` the outcome of the solver after a fit.
    ``shift`` was subtracted from the ratings and ``top`` is the highest grade, if the ranker knows
    them.
    """

    unbounded: ClassVar[frozenset[str]] = frozenset({"numbers"})

    users: AnyArray
    user_factors: F64
    user_level: F64
    item_factors: F64
    item_bias: F64
    rated_begin: I64
    rated: I64
    n_features: int
    l2: float
    shift: float = np.nan
    top: float = np.nan
    solution: Any = field(default=None, compare=False)

    @property
    def n_factors(self) -> int:
        """Length of the vectors."""
        return int(self.item_factors.shape[1])

    @property
    def parts(self) -> tuple[F64, F64, F64, F64]:
        """U, levels, V and b of the score."""
        return self.user_factors, self.user_level, self.item_factors, self.item_bias

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row for an unknown user."""
        return times_vector(without_gaps(X, "factorization"), self.item_bias, n_jobs=n_jobs)

    def scores_of(self, data: RankingData, *, n_jobs: int | None = None) -> F64:
        """Return the score of each document for its user, given by ``qid``."""
        X = sparse.csr_array(without_gaps(data.X, "factorization"))
        rows = self.numbers_of(data.qid)
        return factor_scores(X, data.indptr, rows, self.parts, n_jobs=n_jobs)

    def numbers_of(self, users: AnyArray) -> I64:
        """Return the row of each user's vector, or -1.

        Raises
        ------
        DataError
            If a user has another type than all known users, such as "7" if users are numbers.
        """
        rows = rows_of(users, self.users)
        types = {_type_of_id(user) for user in self.users.tolist()}
        for user in users[rows < 0].tolist():
            if user is not None and types and _type_of_id(user) not in types:
                raise DataError(
                    f"user {user!r} has the type {type(user).__name__}, unlike the users in fit, "
                    f"for example {self.users.tolist()[0]!r}; pass user ids as in fit."
                )
        return rows

    def with_users(self, data: RankingData, U: F64, level: F64) -> FittedFactorization:
        """Return the model with further users, who replace known users of the same name."""
        is_kept = ~np.isin(self.users, data.qid)
        sizes = np.diff(self.rated_begin)
        offsets = np.concatenate(([0], np.cumsum(sizes[is_kept])))
        begin, rated = items_of(data)
        return replace(
            self,
            users=np.concatenate([self.users[is_kept], data.qid]),
            user_factors=np.concatenate([self.user_factors[is_kept], U]),
            user_level=np.concatenate([self.user_level[is_kept], level]),
            rated_begin=np.concatenate([offsets[:-1], offsets[-1] + begin]),
            rated=np.concatenate([self.rated[np.repeat(is_kept, sizes)], rated]),
        )

    def with_side(self, side: F64) -> FittedFactorization:
        """Return a model of the items only, for a model of items and their features ``side``.

        The bias and the vector of each item (a row of ``side``) include the ones of its features.
        """
        n = len(side)
        is_item = self.rated < n
        return replace(
            self,
            item_factors=self.item_factors[:n] + side @ self.item_factors[n:],
            item_bias=self.item_bias[:n] + side @ self.item_bias[n:],
            rated_begin=np.concatenate(([0], np.cumsum(is_item)))[self.rated_begin],
            rated=self.rated[is_item],
            n_features=n,
        )

    def contributions(self, X: FloatMatrix) -> F64:
        """Return the contribution of each column to the score for an unknown user."""
        dense = X.toarray() if sparse.issparse(X) else X
        return np.column_stack([dense * self.item_bias, np.zeros(X.shape[0])])

    def arrays(self) -> dict[str, AnyArray]:
        """Return vectors, biases, and the items of each user."""
        numbers = np.array([getattr(self, name) for name in _NUMBERS])
        return {"numbers": numbers, **{name: getattr(self, name) for name in _ARRAYS}}

    def texts(self) -> dict[str, str]:
        """Return the names of the users."""
        try:
            return {"users": json.dumps(self.users.tolist())}
        except TypeError:
            raise UsageError(
                "users must be named by numbers or texts for the model to be saved; they are "
                f"{type(self.users.tolist()[0]).__name__}."
            ) from None

    @classmethod
    def restore(
        cls, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> FittedFactorization:
        """Build the fitted model from its arrays and texts after checking them."""
        lengths = _SCHEMA.check(arrays, texts, features=n_features)
        values: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
        values |= zip(_NUMBERS, arrays["numbers"].tolist(), strict=True)
        return cls(users=_users(texts["users"], lengths["users"]), n_features=n_features, **values)


def _type_of_id(name: Any) -> type:
    """Return the type of a user's id; all numbers have one type, as 7 and 7.0 are one user."""
    return Real if isinstance(name, Real) else type(name)


def _users(text: str, count: int) -> AnyArray:
    """Return the names of the users, which must be different."""
    names = json.loads(text)
    plain = isinstance(names, list) and all(isinstance(name, str | int | float) for name in names)
    if not plain or len(set(names)) != len(names) or len(names) != count:
        raise DataError(f"its users are not a list of {count} different names.")
    return np.array(names)


def rows_of(users: AnyArray, fitted_users: AnyArray) -> I64:
    """Return the place of each user among the users of a fit, or -1."""
    row = {user: number for number, user in enumerate(fitted_users.tolist())}
    return np.array([row.get(user, -1) for user in users.tolist()], np.int64)


def items_of(data: RankingData) -> tuple[I64, I64]:
    """Return the offsets and the columns of the items of each user's documents."""
    X = sparse.csr_array(data.X)
    return X.indptr[data.indptr].astype(np.int64), X.indices.astype(np.int64)


# --- model -----------------------------------------------------------------------------------

SHARES = (0.9, 0.8, 0.65, 0.5, 0.4, 0.3, 0.2, 0.1)
LIMITS = {"lbfgs": (1e-6, 100), "bundle": (1e-3, 40), "als": (2e-5, 30)}  # tol and max_iter
_FIXED_TOL, _FIXED_ROUNDS = 1e-8, 100  # at most and at least, of als with the items fixed
_SQUARES = frozenset({"smooth", "integrable", "grad_curv"})
_SUPPORTED_NEEDS = {
    "joint": frozenset({"smooth", "integrable"}),
    "alternating": frozenset({"smooth", "integrable", "convex_parts"}),
}
_SOLVERS = {"joint": "lbfgs", "alternating": "lbfgs or bundle"}


@dataclass(frozen=True, slots=True, repr=False)
class Factorization(ModelPart):
    """A vector for each user and each item, learned from ratings.

    Parameters
    ----------
    n_factors : int
        Length of the vectors.
    l2 : float or "auto"
        Penalty of the vectors. "auto" tries shares of the smallest penalty that sets all vectors
        to 0 and keeps the best on the validation set, or takes half of it without validation data.
    l2_bias : float
        Penalty of the biases, and of the users' levels if the loss depends on them.
    biases : bool
        Whether items have a bias, which is the score for users without ratings.
    method : "auto", "als", "joint" or "alternating"
        Alternating closed-form steps of users and items, one run of the solver over both, or
        alternating runs of the solver. "auto" is the first that supports the fit: "als" needs
        documents with one column, such as ratings, and a smooth convex loss with a curvature;
        "joint" needs a smooth loss.
    tol : float or "auto"
        Tolerance of the solver: "auto" is 1e-6 for lbfgs and 1e-3 for bundle. With "als", the fit
        ends when a round lowers the objective by a smaller share; "auto" is 2e-5.
    max_iter : int or "auto"
        Maximum number of steps in each run of the solver: "auto" is 100 for lbfgs and 40 for
        bundle. With "als", the maximum number of rounds; "auto" is 30.
    n_rounds : int
        Number of turns of users and items with method "alternating".

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.CofiRank(model=rw.models.Factorization(n_factors=5))
    CofiRank(model=Factorization(n_factors=5))
    """

    takes_solver: ClassVar[bool] = True
    fitted_class: ClassVar[Any] = FittedFactorization

    n_factors: Count = 10
    l2: Positive | Auto = "auto"
    l2_bias: Positive = 1e-3
    biases: bool = True
    method: Literal["auto", "als", "joint", "alternating"] = "auto"
    tol: NonNegative | Auto = "auto"
    max_iter: Count | Auto = "auto"
    n_rounds: Count = 10

    def rounds(
        self,
        loss: Loss,
        data: RankingData,
        valid: RankingData | None = None,
        *,
        solver: Any = None,
        start: FittedFactorization | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> Iterator[Round]:
        """Yield a round for each turn of users and items, from the factors of ``start``.

        There is one round for ``method="joint"``, and one for each penalty for ``l2="auto"``.
        ``solver`` is lbfgs or bundle, an object or a name, or None to choose by the loss.
        """
        method, solver = self._method(loss, solver, data)
        data = in_content_order(data, n_jobs=n_jobs)[1]
        problem = self._problem(loss, data, n_jobs)
        first, items = self._first(problem, data, start, random_state), items_of(data)
        penalties = self._penalties(problem, method, solver, with_valid=valid is not None)
        number = 0
        for l2 in penalties:
            problem = problem.with_l2(l2)
            turns = self._turns(problem, problem.scaled(first), method, solver)
            if len(penalties) > 1:
                turns = iter(deque(turns, maxlen=1))
            for solution in turns:
                number += 1
                U, level, V, b = problem.parts(solution.w)
                fitted = FittedFactorization(
                    data.qid, U, level, V, b, *items, data.n_features, l2, solution=solution
                )
                scores = None if valid is None else fitted.scores_of(valid, n_jobs=n_jobs)
                yield Round(number, solution.value, scores, partial(_finished, fitted, problem))

    def fold_in(
        self,
        loss: Loss,
        data: RankingData,
        fitted: FittedFactorization,
        *,
        solver: Any = None,
        n_jobs: int | None = None,
    ) -> FittedFactorization:
        """Return ``fitted`` with vectors for the users of ``data``; the items are fixed."""
        method, solver = self._method(loss, solver, data)
        problem = self._problem(loss, data, n_jobs).with_l2(fitted.l2)
        U, level = np.zeros((data.n_queries, fitted.n_factors)), np.zeros(data.n_queries)
        theta = problem.scaled([U, level, fitted.item_factors, fitted.item_bias])
        theta = self._solve_side(problem, theta, method, solver, users=True)
        return fitted.with_users(data, *problem.parts(theta)[:2])

    # --- stages of a fit ---------------------------------------------------------------------

    def _problem(self, loss: Loss, data: RankingData, n_jobs: int | None) -> FactorProblem:
        return FactorProblem(
            data,
            loss,
            n_factors=int(self.n_factors),
            l2=1.0,
            l2_bias=float(self.l2_bias),
            biases=self.biases,
            n_jobs=n_jobs,
        )

    def _first(
        self,
        problem: FactorProblem,
        data: RankingData,
        start: FittedFactorization | None,
        seed: int,
    ) -> list[F64]:
        """Return the first U, levels, V and b, from ``start`` or with small random items."""
        U, level, V, b = parts = problem.views(np.zeros(problem.size))
        if start is None:
            V[:] = stream(seed, "factorization", "items").normal(size=V.shape)
            V /= np.sqrt(self.n_factors)
            V[np.diff(problem.by_column[0]) == 0] = 0.0  # items without ratings
            return parts
        if (start.n_features, start.n_factors) != (data.n_features, self.n_factors):
            raise UsageError(
                f"the start has {start.n_features} items and {start.n_factors} factors, not "
                f"{data.n_features} and {self.n_factors}."
            )
        rows = start.numbers_of(data.qid)
        is_known = rows >= 0
        U[is_known] = start.user_factors[rows[is_known]]
        level[is_known] = start.user_level[rows[is_known]]
        V[:], b[:] = start.item_factors, start.item_bias
        return parts

    def _penalties(
        self, problem: FactorProblem, method: str, solver: Any, *, with_valid: bool
    ) -> list[float]:
        if self.l2 != "auto":
            return [float(self.l2)]
        zeros = np.zeros(problem.size)
        biases = self._solve_side(problem, zeros, method, solver, users=False)
        largest = problem.largest_l2(biases) or 1.0
        return [share * largest for share in SHARES] if with_valid else [0.5 * largest]

    def _turns(
        self, problem: FactorProblem, theta: F64, method: str, solver: Any
    ) -> Iterator[SolveResult]:
        """Yield the solution after each turn of users and items."""
        if method == "als":
            tol, n_rounds = self._limits("als")
            yield from AlternatingSquares(problem).rounds(theta, n_rounds=n_rounds, tol=tol)
        elif method == "joint":
            yield _solve(solver, BlockProblem(problem, theta, users=True, items=True))
        else:
            curve: list[float] = []
            for turn in range(1, int(self.n_rounds) + 1):
                for users in (True, False):
                    theta = self._solve_side(problem, theta, method, solver, users=users)
                curve.append(problem.value(theta))
                yield SolveResult(
                    theta, curve[-1], np.nan, turn, "the rounds are over", curve.copy()
                )

    def _solve_side(
        self, problem: FactorProblem, theta: F64, method: str, solver: Any, *, users: bool
    ) -> F64:
        """Return ``theta`` with the best users for its items, or the best items for its users."""
        if method != "als":
            block = BlockProblem(problem, theta, users=users, items=not users)
            return block.at(_solve(solver, block).w)
        tol, n_rounds = self._limits("als")
        if users:  # users of `fold_in` are final, and the biases of `_penalties` a rough guess
            tol, n_rounds = min(tol, _FIXED_TOL), max(n_rounds, _FIXED_ROUNDS)
        steps = AlternatingSquares(problem, users=users, items=not users)
        (solution,) = deque(steps.rounds(theta, n_rounds=n_rounds, tol=tol), maxlen=1)
        return solution.w

    # --- parameters --------------------------------------------------------------------------

    def _limits(self, name: str) -> tuple[Any, Any]:
        """Return tol and max_iter with "auto" resolved for a method or solver."""
        limits = zip((self.tol, self.max_iter), LIMITS[name], strict=True)
        tol, max_iter = (default if value == "auto" else value for value, default in limits)
        return tol, max_iter

    def _method(self, loss: Loss, solver: Any, data: RankingData) -> tuple[str, Any]:
        """Return the method and its solver, which is None for als."""
        if self._takes_squares(loss, solver, data):
            return "als", None
        has_kinks = not loss.traits.smooth
        if self.method == "joint" and has_kinks:
            raise IncompatibleError(
                "method='joint' is solved by lbfgs, which needs a smooth loss; loss "
                f"'{part_name('losses', loss)}' has kinks. Leave method out, or use "
                "method='alternating'."
            )
        solver = ("bundle" if has_kinks else "lbfgs") if solver is None else solver
        resolved = resolve_part("solvers", solver)
        name, needs = part_name("solvers", resolved), solver_needs(resolved)
        by_planes = "convex_parts" in needs
        method = self.method
        if method == "auto":
            method = "alternating" if by_planes else "joint"
        if not needs <= _SUPPORTED_NEEDS[method]:
            hint = f"; {name} works with method='alternating'" if by_planes else ""
            raise UsageError(
                f"method='{method}' is solved by {_SOLVERS[method]}, not {name}{hint}."
            )
        has_limits = isinstance(solver, str) and name in LIMITS
        tol, max_iter = self._limits(name) if has_limits else (self.tol, self.max_iter)
        return method, choose_solver(solver, loss, tol=tol, max_iter=max_iter)

    def _takes_squares(self, loss: Loss, solver: Any, data: RankingData) -> bool:
        """Return whether the method is als; raise if ``method="als"`` does not support the fit."""
        if self.method not in ("auto", "als"):
            return False
        traits = loss.traits
        missing = missing_needs(_SQUARES, loss)
        X = sparse.csr_array(without_gaps(data.X, "factorization"))
        n_columns = int(np.diff(X.indptr).max(initial=0))
        is_sampled_or_wide = traits.stochastic or n_columns > 1
        if self.method == "auto":
            return not missing and not is_sampled_or_wide and traits.convex and solver is None
        if solver is not None:
            raise UsageError("method='als' takes no solver; leave solver out, or method.")
        advice = "Leave method out, or use method='joint'."
        if missing:
            raise IncompatibleError(lacking("method='als'", missing, loss, advice))
        if is_sampled_or_wide:
            reason = "the loss samples anew" if traits.stochastic else f"one has {n_columns}"
            raise IncompatibleError(
                "method='als' needs documents of one column each, as ratings are, and a loss that "
                f"samples nothing; {reason}. {advice}"
            )
        return True


@one_blas_thread()
def _solve(solver: Any, block: BlockProblem) -> SolveResult:
    solution: SolveResult = solver.solve(block, block.start)
    return solution


def _finished(fitted: FittedFactorization, problem: FactorProblem) -> FittedFactorization:
    """Return the fitted model with the optimality of its solution, which takes a gradient."""
    solution = fitted.solution
    gradient = np.empty(problem.size)
    BlockProblem(problem, solution.w, users=True, items=True).grad(solution.w, gradient)
    optimality = float(np.abs(gradient).max(initial=0.0))
    return replace(fitted, solution=replace(solution, optimality=optimality))
