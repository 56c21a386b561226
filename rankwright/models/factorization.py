"""Taste as vectors: a score is what a user's vector and an item's vector have in common.

    s = level_user + bias_item + <vector of the user, vector of the item>

under any loss, each user's list a query; `rankwright.models.factor_problem` says what is minimised.
A document's features say which item it is, a single 1 in the item's column as
`rankwright.data.ratings` makes them. Any other features will do too: each column then has a bias
and a vector, and a document those of its columns, weighted and added up. So further columns are
side features of items, and dense features make a linear ranker with a vector for each query.

Three ways to the minimum. ``method="als"`` takes closed-form steps of users and items in turns, by
`rankwright.models.als`: the quickest, for ratings and losses with a curvature. ``method="joint"``
moves everything at once by L-BFGS, for any features and any smooth loss. ``method="alternating"``
holds the items and solves for the users, then holds the users and solves for the items; both are
convex where the loss is, so that losses with kinks, DORM's among them, can be minimised by the
bundle solver. "auto" takes the first of them that the loss and the data allow. A user who was not
there is scored by the biases alone until `fold_in`, which solves for new users with the items held.

**The penalty** is that of the trace norm: from some l2 on all vectors are 0, namely from

    l2_max = |G| / sqrt(W),    G_qk = sum of x_ik dloss/ds_i over list q                       (1)

with |G| the largest singular value, at the best biases without vectors. It grows with the scale of
the grades and the length of the lists, and so does the l2 that serves best; ``l2="auto"`` tries
shares of l2_max and keeps the best on the validation set, or takes half of it where there is no
validation data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from rankwright import registry
from rankwright.core.checks import ArraySpec
from rankwright.core.parameters import (
    Part,
    check_whole,
    check_zero_or_more,
    part_name,
    resolve_part,
)
from rankwright.core.products import one_blas_thread, times_vector
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray, Callback, FloatMatrix, Loss, SolveResult
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.losses.base import bound_loss, order_weight
from rankwright.models.als import AlternatingSquares
from rankwright.models.best_items import best_items
from rankwright.models.factor_problem import BlockProblem, FactorProblem, Lists
from rankwright.models.missing import without_gaps
from rankwright.models.schema import Schema
from rankwright.solvers.choice import choose_solver, lacking, missing_traits, solver_needs
from rankwright.solvers.oracle_log import OracleLog, logged

# --- the fitted model ------------------------------------------------------------------------
# What a factorisation has learnt: vectors of users and items, and who rated what.
#
# A user is known by name, an item by its column. An unknown user or item is scored without: by the
# biases of the items.


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
    """Vectors of users and items, biases, and which columns each user's documents had.

    Columns of X are called items here. ``l2`` is the penalty it was fitted with; ``solution`` says
    how the solver ended, where the model was just fitted. ``shift`` is
    what was taken off the ratings and ``top`` the highest grade, where the ranker knows them.
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
    solution: SolveResult | None = field(default=None, compare=False)

    @property
    def n_factors(self) -> int:
        """Length of the vectors."""
        return int(self.item_factors.shape[1])

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row for a user of whom nothing is known."""
        return times_vector(without_gaps(X, "factorization"), self.item_bias, n_jobs=n_jobs)

    def scores_of(self, data: RankingData, *, n_jobs: int | None = None) -> F64:
        """Return the score of each document for its user, known by ``qid``."""
        X = without_gaps(data.X, "factorization")
        lists = Lists(X, data.indptr, n_jobs=n_jobs)
        U, V = self.user_factors, self.item_factors
        return lists.scores(self.numbers_of(data.qid), U, V, self.item_bias, self.user_level)

    def numbers_of(self, users: AnyArray) -> I64:
        """Return the row of each user's vector, -1 where there is none.

        A user of a type that no known user has is an error, such as "7" where users are numbers.
        """
        number = {user: row for row, user in enumerate(self.users.tolist())}
        rows = np.array([number.get(user, -1) for user in users.tolist()], np.int64)
        kinds = {_kind_of_id(user) for user in number}
        for user in users[rows < 0].tolist():
            if user is not None and kinds and _kind_of_id(user) not in kinds:
                raise DataError(
                    f"user {user!r} has the type {type(user).__name__}, unlike the users in fit, "
                    f"for example {next(iter(number))!r}; pass user ids as in fit."
                )
        return rows

    def best_items(
        self,
        user: I64,
        n: int,
        *,
        rated: bool = False,
        columns: I64 | None = None,
        n_jobs: int | None = None,
    ) -> tuple[I64, F64]:
        """Return the columns of the best items of the users in rows ``user``, and their scores.

        Items that a user has rated are left out unless ``rated`` is true; ``columns`` are the items
        to choose from, ascending. See `rankwright.models.best_items`.
        """
        vectors = self.user_factors, self.user_level, self.item_factors, self.item_bias
        leave_out = None if rated else (self.rated_begin, self.rated)
        return best_items(user, n, vectors, columns=columns, rated=leave_out, n_jobs=n_jobs)

    def with_users(self, data: RankingData, U: F64, level: F64) -> FittedFactorization:
        """Return the model with further users; one that was there is known by the new data."""
        stay = ~np.isin(self.users, data.qid)
        sizes = np.diff(self.rated_begin)
        begins = np.concatenate(([0], np.cumsum(sizes[stay])))
        begin, rated = items_of(data)
        return replace(
            self,
            users=np.concatenate([self.users[stay], data.qid]),
            user_factors=np.concatenate([self.user_factors[stay], U]),
            user_level=np.concatenate([self.user_level[stay], level]),
            rated_begin=np.concatenate([begins[:-1], begins[-1] + begin]),
            rated=np.concatenate([self.rated[np.repeat(stay, sizes)], rated]),
        )

    def with_side(self, side: F64) -> FittedFactorization:
        """Return the model of items alone, for one fitted to items and their ``side`` features.

        What the features add to bias and vector is added to those of each item (a row of ``side``).
        """
        n = len(side)
        inside = self.rated < n
        counts = np.add.reduceat(np.append(inside, False), self.rated_begin[:-1])
        counts[np.diff(self.rated_begin) == 0] = 0
        return replace(
            self,
            item_factors=self.item_factors[:n] + side @ self.item_factors[n:],
            item_bias=self.item_bias[:n] + side @ self.item_bias[n:],
            rated_begin=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            rated=self.rated[inside],
            n_features=n,
        )

    def contributions(self, X: FloatMatrix) -> F64:
        """Return what each column adds to a score for a user of whom nothing is known."""
        dense = X.toarray() if sparse.issparse(X) else X
        return np.column_stack([dense * self.item_bias, np.zeros(X.shape[0])])

    def arrays(self) -> dict[str, AnyArray]:
        """Return vectors, biases, and which items each user rated."""
        return {
            "numbers": np.array([getattr(self, name) for name in _NUMBERS]),
            **{name: getattr(self, name) for name in _ARRAYS},
        }

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
        """Build the fitted model from its own arrays and texts, checked."""
        lengths = _SCHEMA.check(arrays, texts, features=n_features)
        own: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
        own |= zip(_NUMBERS, arrays["numbers"].tolist(), strict=True)
        return cls(users=_users(texts["users"], lengths["users"]), n_features=n_features, **own)


def _kind_of_id(name: Any) -> type:
    """Return the type of a user's id; numbers are of one type, as 7 and 7.0 are one user."""
    return Real if isinstance(name, Real) else type(name)


def _users(text: str, count: int) -> AnyArray:
    """Return the names of the users, of which no two may be the same."""
    names = json.loads(text)
    plain = isinstance(names, list) and all(isinstance(name, str | int | float) for name in names)
    if not plain or len(set(names)) != len(names) or len(names) != count:
        raise DataError(f"its users are no list of {count} different names.")
    return np.array(names)


def items_of(data: RankingData) -> tuple[I64, I64]:
    """Return the items of each user's documents, and where each user's begin."""
    X = sparse.csr_array(data.X)
    begin = X.indptr[data.indptr].astype(np.int64)
    return begin, X.indices.astype(np.int64)


# --- the model -------------------------------------------------------------------------------
METHODS = ("auto", "als", "joint", "alternating")
SHARES = (0.9, 0.8, 0.65, 0.5, 0.4, 0.3, 0.2, 0.1)
SETTINGS = {"lbfgs": (1e-6, 100), "bundle": (1e-3, 40), "als": (2e-5, 30)}  # tolerance and steps
_HELD_TOL, _HELD_ROUNDS = 1e-8, 100  # at the most and least, of users who are folded in
_JOINT = frozenset({"smooth", "integrable"})  # what a solver may need of the whole problem
_SQUARES = frozenset({"smooth", "integrable", "curvature"})
_SERVED = {"joint": _JOINT, "alternating": _JOINT | {"convex_parts"}}
_SOLVERS = {"joint": "lbfgs", "alternating": "lbfgs or bundle"}


@dataclass(frozen=True, slots=True, repr=False)
class Factorization(Part):
    """A vector for each user and each item; learns taste from ratings alone.

    Parameters
    ----------
    n_factors : int
        Length of the vectors.
    l2 : float or "auto"
        Penalty of the vectors; "auto" tries shares of the least one that would leave none, and
        keeps the best on the validation set, or takes half of it without validation data.
    l2_bias : float
        Penalty of the biases, and of users' levels where the loss depends on them.
    biases : bool
        Whether items have a bias, which users without ratings are given.
    method : "auto", "als", "joint" or "alternating"
        Closed-form steps of users and items in turns, moves of both at once by the solver, or
        turns of the solver. "auto": the first that serves; "als" needs documents of one column, as
        ratings are, and a smooth convex loss with a curvature, "joint" a smooth loss.
    tol : float or "auto"
        Of the solver; see there. "auto" is 1e-6 for lbfgs, 1e-3 for bundle; als ends when a round
        lowers the objective by a smaller share than this, "auto" being 2e-5.
    max_iter : int or "auto"
        Steps of the solver, in turns those of each turn; "auto" is 100 for lbfgs, 40 for bundle.
        Rounds of als, "auto" being 30.
    n_rounds : int
        Turns of users and items with method "alternating".

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.CofiRank(model=rw.models.Factorization(n_factors=5))
    CofiRank(model=Factorization(n_factors=5))
    """

    takes_solver: ClassVar[bool] = True

    n_factors: int = 10
    l2: float | str = "auto"
    l2_bias: float = 1e-3
    biases: bool = True
    method: str = "auto"
    tol: float | str = "auto"
    max_iter: int | str = "auto"
    n_rounds: int = 10

    def fit(
        self,
        loss: Loss,
        data: RankingData,
        *,
        callback: Callback,
        solver: Any = None,
        start: FittedFactorization | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> FittedFactorization:
        """Minimise the loss, from the factors of ``start`` where given.

        ``solver`` is lbfgs, or bundle for losses with kinks, in turns; None: as the loss needs.
        """
        self._way(loss, solver)  # refuses what cannot be before any work
        rows, ordered = in_content_order(data, n_jobs=n_jobs)
        task = _Task(self, loss, ordered, n_jobs)
        way = self._way(loss, solver, task.lists)
        best = _Best(callback, ordered, rows, n_jobs)
        solved: list[SolveResult] = []
        log = OracleLog(callback, task.loss)
        with one_blas_thread():
            penalties = self._penalties(task, way, callback)
            for number, l2 in enumerate(penalties, start=1):
                problem = task.problem(l2)
                theta = self._first(problem, ordered, start, random_state)
                each = partial(best.see, problem) if len(penalties) == 1 else None
                solved.append(way.solve(problem, theta, each, log))
                shown = each is not None and bool(solved[-1].curve)  # step by step, if any was made
                if not shown and best.see(problem, number, solved[-1].w, solved[-1].value):
                    break
        solution = solved[min(callback.best(), len(solved)) - 1]
        return replace(best.fitted(), solution=solution)

    def fold_in(
        self,
        loss: Loss,
        data: RankingData,
        fitted: FittedFactorization,
        *,
        solver: Any = None,
        n_jobs: int | None = None,
    ) -> FittedFactorization:
        """Return ``fitted`` with vectors for the users of ``data``, the items held as they are."""
        task = _Task(self, loss, data, n_jobs)
        problem = task.problem(fitted.l2)
        no_users = [np.zeros((data.n_queries, fitted.n_factors)), np.zeros(data.n_queries)]
        held = problem.scaled([*no_users, fitted.item_factors, fitted.item_bias])
        with one_blas_thread():
            theta = self._way(loss, solver, task.lists).solve_block(problem, held, users=True)
        U, level, _, _ = problem.parts(theta)
        return fitted.with_users(data, U, level)

    def _penalties(self, task: _Task, way: _Way, callback: Callback) -> list[float]:
        if self.l2 != "auto":
            return [float(self.l2)]
        most = task.l2_max(way) or 1.0
        return [0.5 * most] if callback.valid is None else [share * most for share in SHARES]

    def _first(
        self,
        problem: FactorProblem,
        data: RankingData,
        start: FittedFactorization | None,
        seed: int,
    ) -> F64:
        """Return where to begin: small random items, and users for whom nothing is known."""
        if start is not None:
            if (start.n_features, start.n_factors) != (data.n_features, self.n_factors):
                raise UsageError(
                    f"the start has {start.n_features} items and {start.n_factors} factors, not "
                    f"{data.n_features} and {self.n_factors}."
                )
            user = start.numbers_of(data.qid)
            known = user >= 0
            U = np.where(known[:, None], start.user_factors[user], 0.0)
            level = np.where(known, start.user_level[user], 0.0)
            return problem.scaled([U, level, start.item_factors, start.item_bias])
        theta = np.zeros(problem.size)
        V = problem.views(theta)[2]
        V[:] = stream(seed, "factorization", "items").normal(size=V.shape) / np.sqrt(self.n_factors)
        V[np.diff(problem.lists.by_column[0]) == 0] = 0.0  # an item without ratings
        return theta

    def _way(self, loss: Loss, given: Any, lists: Lists | None = None) -> _Way:
        """Check the parameters; return how the loss is minimised on these documents."""
        self._check()
        if self._by_squares(loss, given, lists):
            usual_tol, usual_rounds = SETTINGS["als"]
            tol: Any = usual_tol if self.tol == "auto" else self.tol
            max_iter: Any = usual_rounds if self.max_iter == "auto" else self.max_iter
            check_zero_or_more("tol", tol)
            check_whole("max_iter", max_iter, 1)
            return _Way("als", None, int(max_iter), float(tol))
        kinks = not loss.traits.smooth
        if self.method == "joint" and kinks:
            raise IncompatibleError(
                "method='joint' is solved by lbfgs, which needs a smooth loss; loss "
                f"'{part_name('losses', loss)}' has kinks. Leave method out, or use "
                "method='alternating'."
            )
        solver = ("bundle" if kinks else "lbfgs") if given is None else given
        asked = resolve_part("solvers", solver)
        name, needs = part_name("solvers", asked), solver_needs(asked)
        planes = "convex_parts" in needs
        method = self.method
        if method == "auto":
            method = "alternating" if planes else "joint"
        if not needs <= _SERVED[method]:
            hint = f"; {name} works with method='alternating'" if planes else ""
            raise UsageError(
                f"method='{method}' is solved by {_SOLVERS[method]}, not {name}{hint}."
            )
        limits: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter}
        if isinstance(solver, str) and name in SETTINGS:
            usual = dict(zip(limits, SETTINGS[name], strict=True))
            limits = {key: usual[key] if v == "auto" else v for key, v in limits.items()}
        return _Way(method, choose_solver(solver, loss, **limits), self.n_rounds, np.nan)

    def _by_squares(self, loss: Loss, given: Any, lists: Lists | None) -> bool:
        """Whether users and items take closed-form steps; raise where they are to and cannot."""
        if self.method not in ("auto", "als"):
            return False
        traits, most = loss.traits, 1 if lists is None else lists.most_columns
        missing = missing_traits(_SQUARES, traits)
        fit = not missing and not traits.stochastic and most <= 1 and given is None
        if self.method == "auto":
            return fit and traits.convex
        if given is not None:
            raise UsageError("method='als' takes no solver; leave solver out, or method.")
        advice = "Leave method out, or use method='joint'."
        if missing:
            raise IncompatibleError(lacking("method='als'", missing, loss, advice))
        if not fit:
            what = "the loss samples anew" if traits.stochastic else f"one has {most}"
            raise IncompatibleError(
                "method='als' needs documents of one column each, as ratings are, and a loss that "
                f"samples nothing; {what}. {advice}"
            )
        return True

    def _check(self) -> None:
        if self.method not in METHODS:
            raise UsageError(registry.unknown("factorization method", self.method, METHODS))
        if self.n_factors < 1:
            raise UsageError(f"n_factors must be 1 or more, not {self.n_factors}.")
        for name in ("l2", "l2_bias"):
            value = getattr(self, name)
            if not (value == "auto" and name == "l2") and not (_is_number(value) and value > 0.0):
                raise UsageError(f"{name} must be a number above 0, not {value!r}.")

    restore = staticmethod(FittedFactorization.restore)


@dataclass(frozen=True, slots=True)
class _Way:
    """How one fit goes to the minimum: the method, the solver, the turns, and their tolerance."""

    method: str
    solver: Any
    n_rounds: int
    tol: float

    def solve(
        self,
        problem: FactorProblem,
        theta: F64,
        each: Callable[[int, F64, float], bool] | None,
        log: OracleLog,
    ) -> SolveResult:
        """Minimise ``problem`` from ``theta``; ``each`` sees every step or turn."""
        if self.method == "als":
            return AlternatingSquares(problem).solve(
                theta, n_rounds=self.n_rounds, tol=self.tol, each=each, log=log
            )
        whole = logged(problem, log)
        if self.method == "joint":
            solution: SolveResult = self.solver.solve(whole, theta)
            if each is not None:
                each(1, solution.w, solution.value)
            return solution
        curve: list[float] = []
        for t in range(1, self.n_rounds + 1):
            for users in (True, False):
                block = BlockProblem(problem, theta, users=users)
                part = logged(block, log)
                theta = block.at(self.solver.solve(part, block.start).w)
            curve.append(whole.value(theta))
            if each is not None and each(t, theta, curve[-1]):
                break
        gradient = np.empty(problem.size)
        value = whole.grad(theta, gradient)
        steepest = float(np.abs(gradient).max(initial=0.0))
        return SolveResult(theta, value, steepest, len(curve), "the rounds are over", curve)

    def solve_block(
        self, problem: FactorProblem, theta: F64, *, users: bool, rough: bool = False
    ) -> F64:
        """Return ``theta`` with the best users, or items, for the others as they are.

        With ``rough`` no better than rounds of both would be.
        """
        if self.method == "als":
            steps = AlternatingSquares(problem, users=users, items=not users)
            tol, n_rounds = self.tol, self.n_rounds
            if not rough:
                tol, n_rounds = min(tol, _HELD_TOL), max(n_rounds, _HELD_ROUNDS)
            return steps.solve(theta, tol=tol, n_rounds=n_rounds).w
        block = BlockProblem(problem, theta, users=users)
        return block.at(self.solver.solve(block, block.start).w)


class _Task:
    """A loss on the documents of one data set, to be made a problem for any l2."""

    def __init__(
        self, model: Factorization, loss: Loss, data: RankingData, n_jobs: int | None
    ) -> None:
        self._model, self._traits = model, loss.traits
        self.lists = Lists(without_gaps(data.X, "factorization"), data.indptr, n_jobs=n_jobs)
        self.loss = bound_loss(loss, data, n_jobs=n_jobs)
        self._total = float(order_weight(data).sum()) or 1.0

    def problem(self, l2: float) -> FactorProblem:
        """Return the problem with this penalty."""
        model = self._model
        return FactorProblem(
            *(self.lists, self.loss, self._total),
            n_factors=model.n_factors,
            l2=l2,
            l2_bias=float(model.l2_bias),
            biases=model.biases,
            levels=not self._traits.shift_invariant,
            difference=self._traits.difference,
        )

    def l2_max(self, way: _Way) -> float:
        """Return (1), to a few per cent."""
        problem, lists = self.problem(1.0), self.lists
        theta = way.solve_block(problem, np.zeros(problem.size), users=False, rough=True)
        gradient = np.empty(len(lists.user_of_row))
        self.loss.grad(problem.scores(theta), gradient)
        ones = np.arange(len(gradient) + 1)
        X = sparse.csr_array(lists.by_row[::-1], shape=(len(gradient), lists.n_items))
        spread = sparse.csr_array(
            (gradient, lists.user_of_row, ones), shape=(len(gradient), lists.n_users)
        )
        G = sparse.csr_array(spread.T @ X)
        v = stream(0, "factorization", "power").normal(size=lists.n_items)
        size = 0.0
        for _ in range(50):
            v = G.T @ (G @ v)
            size = float(np.linalg.norm(v))
            v /= size or 1.0
        return float(np.sqrt(size / self._total))


class _Best:
    """Shows rounds to the callback, and keeps the variables of the best one."""

    def __init__(
        self, callback: Callback, data: RankingData, rows: I64, n_jobs: int | None
    ) -> None:
        self._callback, self._data, self._rows, self._n_jobs = callback, data, rows, n_jobs
        self._items = items_of(data)
        self._kept: FittedFactorization | None = None

    def see(self, problem: FactorProblem, t: int, theta: F64, value: float) -> bool:
        """Take in the variables after round ``t``; True ends the run."""
        U, level, V, b = problem.parts(theta)
        data, callback, valid, train = self._data, self._callback, None, None
        now = FittedFactorization(
            data.qid, U, level, V, b, *self._items, n_features=data.n_features, l2=problem.l2
        )
        if callback.valid is not None:
            valid = now.scores_of(callback.valid, n_jobs=self._n_jobs)
        if callback.wants_train:
            train = np.empty(data.n_documents)
            train[self._rows] = problem.scores(theta)
        over = callback.on_iteration(t, float(value), train, valid)
        if callback.best() == t:
            self._kept = now
        return over

    def fitted(self) -> FittedFactorization:
        """Return the model of the best round."""
        assert self._kept is not None, "the callback names a round that it has seen"
        return self._kept


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
