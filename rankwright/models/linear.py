"""Linear scores s = X w + b under any loss.

The weights minimise (1) of `rankwright.models.linear_objective`, in which l2 penalises w as if each
feature had unit standard deviation (``scale``). Fitted weights are in the scale of the data.

The intercept b is 0 for losses that are shift-invariant (``Traits.shift_invariant``), because it
would change neither the loss nor any ranking. Under other losses, such as squared, it is fitted
without a penalty: otherwise the weights would also have to produce the mean grade.

Solvers that visit single queries (solvers with a ``random_state``) get a copy of the data with rows
and queries ordered by their content, so shuffled rows and renamed queries change nothing. Solvers
that step along columns (coordinate) support an l1 penalty and minimise the problem of the loss's
``by_column``, without an intercept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse

from rankwright.core.checks import ArraySpec
from rankwright.core.parameters import Auto, Count, Missing, NonNegative, Part, part_name
from rankwright.core.products import (
    one_blas_thread,
    times_vector,
    transposed_squares_times_vector,
    transposed_times_vector,
)
from rankwright.core.types import (
    F64,
    I64,
    VANISHED,
    AnyArray,
    FloatMatrix,
    Loss,
    Round,
    SolveResult,
)
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses.base import SampledLoss, bound_loss, document_weight, order_weight
from rankwright.models.linear_objective import LinearObjective
from rankwright.models.missing import fill_values, filled, product_with_gaps
from rankwright.models.schema import FILL, Schema
from rankwright.solvers.choice import (
    choose_solver,
    default_solver,
    lacking,
    solver_needs,
    steps_by_column,
    warn_of_unused_iterations,
)

if TYPE_CHECKING:
    from rankwright.solvers.online import OnlineState


# --- the fitted model ------------------------------------------------------------------------


_WEIGHTS = Schema(
    (
        ArraySpec("coef", "float64", ("features",)),
        FILL,
        ArraySpec("intercept", "float64", (1,), optional=True),
        ArraySpec("path", "float64", ("problems", 3), optional=True),
    )
)
_WITH_STATE = Schema(
    (
        *_WEIGHTS.arrays,
        ArraySpec("online_w", "float64", ("variables",)),
        ArraySpec("online_mean", "float64", ("variables",)),
        ArraySpec("online_so_far", "float64", (3,)),
        ArraySpec("online_deviation", "float64", ("features",)),
        ArraySpec("online_center", "float64", ("features",), optional=True),
    )
)


@dataclass(frozen=True)
class FittedLinear:
    """A weight per feature and an intercept, in the scale of the data.

    ``solution`` is the result of the solver, for a model that was just fitted. The online solver
    continues from ``state``, whose weights are scaled by ``deviation`` and ``center``. ``path`` has
    l1, l2 and the number of weights of each problem that was solved by columns.
    """

    coef: F64
    fill: F64 | None
    n_features: int
    solution: SolveResult | None = field(default=None, compare=False)
    state: OnlineState | None = field(default=None, compare=False)
    deviation: F64 | None = field(default=None, compare=False)
    path: F64 | None = field(default=None, compare=False)
    intercept: float = 0.0
    center: F64 | None = field(default=None, compare=False)

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row."""
        return product_with_gaps(X, self.coef, self.fill, "linear", n_jobs=n_jobs) + self.intercept

    def contributions(self, X: FloatMatrix) -> F64:
        """Return the contribution of each feature to each score; the intercept is the last."""
        whole = filled(X, self.fill, "linear")
        dense = whole.toarray() if sparse.issparse(whole) else whole
        return np.column_stack([dense * self.coef, np.full(X.shape[0], self.intercept)])

    def arrays(self) -> dict[str, AnyArray]:
        """Return the weights, the fill values and the state of the online solver."""
        arrays: dict[str, AnyArray] = {"coef": self.coef}
        if self.intercept != 0.0:
            arrays["intercept"] = np.array([self.intercept])
        if self.fill is not None:
            arrays["fill"] = self.fill
        if self.state is not None and self.deviation is not None:
            arrays |= self.state.arrays()
            arrays["online_deviation"] = self.deviation
            if self.center is not None:
                arrays["online_center"] = self.center
        if self.path is not None:
            arrays["path"] = self.path
        return arrays

    def texts(self) -> dict[str, str]:
        """Return an empty mapping: a linear model consists of arrays."""
        return {}

    @classmethod
    def restore(
        cls, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> FittedLinear:
        """Check the arrays and texts of a model and build it."""
        has_state = "online_w" in arrays
        schema = _WITH_STATE if has_state else _WEIGHTS
        center = arrays.get("online_center")
        n_variables = n_features + (center is not None)
        schema.check(arrays, texts, features=n_features, variables=n_variables)
        state = None
        if has_state:
            from rankwright.solvers.online import OnlineState

            state = OnlineState.of(arrays)
        return cls(
            arrays["coef"],
            arrays.get("fill"),
            n_features,
            state=state,
            deviation=arrays.get("online_deviation"),
            path=arrays.get("path"),
            intercept=float(arrays["intercept"][0]) if "intercept" in arrays else 0.0,
            center=center,
        )


# --- the model -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Linear(Part):
    """A weight for each feature: interpretable, fast, and suited to small or sparse data.

    Parameters
    ----------
    l2 : float or "auto"
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and selects the best on the validation set.
    l1 : float or "auto"
        Penalty on absolute weights, which makes most of them 0, for solver coordinate; "auto" tries
        twenty, from the smallest that makes all weights 0 down to a thousandth of it.
    scale : bool
        Penalise weights as if all features had unit standard deviation.
    missing : None, "mean" or "zero"
        Replacement of missing values; None refuses them.
    max_iter : int or "auto"
        Maximum number of iterations of the solver; "auto" is the solver's default. For sgd and
        online, passes over the data.
    tol : float or "auto"
        Tolerance of the solver; "auto" is the solver's default.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="listnet", model=rw.models.Linear(l1=0.01))
    Ranker(loss='listnet', model=Linear(l1=0.01))
    """

    takes_solver: ClassVar[bool] = True

    l2: float | Auto = 1e-3
    l1: float | Auto = 0.0
    scale: bool = True
    missing: Missing = None
    max_iter: Count | Auto = "auto"
    tol: NonNegative | Auto = "auto"

    def rounds(
        self,
        loss: Loss,
        data: RankingData,
        valid: RankingData | None = None,
        *,
        solver: Any = None,
        start: FittedLinear | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> Iterator[Round]:
        """Yield a round for each penalty; the first starts from the weights of ``start``.

        ``solver`` is an object, a name, or None for the default of the loss.
        """
        check_penalty("l1", self.l1, valid)
        check_penalty("l2", self.l2, valid)
        solver = self.solver_for(loss, solver, random_state)
        if hasattr(solver, "random_state"):
            data = in_content_order(data, n_jobs=n_jobs)[1]
        fill = fill_values(data.X, self.missing)
        data = data._replace(X=filled(data.X, fill, "linear"))
        bound = bound_loss(loss, data, n_jobs=n_jobs)
        if _has_undeclared_iterations(loss, bound):
            warn_of_unused_iterations(solver, loss)
        weight = document_weight(data)
        has_intercept = not (loss.traits.shift_invariant or steps_by_column(solver))
        objective = LinearObjective(
            bound,
            data,
            loss.traits,
            scale=deviations(data.X, weight, scale=self.scale),
            center=means(data.X, weight) if has_intercept else None,
            n_jobs=n_jobs,
        )
        valid_X = None if valid is None else filled(valid.X, fill, "linear")
        path: list[tuple[float, float, int]] = []
        for l1, l2, solution in self._solutions(objective, solver, start):
            fitted = _fitted(objective, solution, fill)
            scores = None
            if valid_X is not None:
                scores = times_vector(valid_X, fitted.coef, n_jobs=n_jobs) + fitted.intercept
            path.append((l1, l2, int(np.count_nonzero(fitted.coef))))
            shown = path if steps_by_column(solver) else None
            yield Round(len(path), solution.value, scores, partial(_with_path, fitted, shown))

    def _solutions(
        self, objective: LinearObjective, solver: Any, start: FittedLinear | None
    ) -> Iterator[tuple[float, float, SolveResult]]:
        """Yield l1, l2 and the minimum for each penalty, from the minimum before it."""
        by_column = steps_by_column(solver)
        problem: Any = objective.by_column() if by_column else objective
        first = np.zeros(objective.size)
        if start is not None:
            first = objective.variables(start.coef, start.intercept)
        v = first
        for l1, l2 in self._penalties(problem):
            problem.l2 = l2
            if by_column:
                problem.l1 = l1
            with one_blas_thread():
                solution = solver.solve(problem, v)
            yield l1, l2, solution
            v = first if solution.stopped == VANISHED else solution.w  # vanished: no scale is left

    def _penalties(self, problem: Any) -> Iterator[tuple[float, float]]:
        """Yield all pairs of l1 and l2."""
        if self.l1 == self.l2 == "auto":
            raise UsageError("l1 and l2 cannot both be 'auto'; give a number for one of them.")
        if self.l1 == "auto":
            from rankwright.solvers.coordinate import falling_l1

            path = falling_l1(problem)
        else:
            path = [float(self.l1)]
        yield from ((l1, l2) for l2 in ridges(self.l2) for l1 in path)

    def can_continue(self, fitted: Any) -> bool:
        """Return whether ``start`` supports a fitted model."""
        return isinstance(fitted, FittedLinear)

    def partial_fit(
        self,
        loss: Loss,
        data: RankingData,
        *,
        solver: Any = None,
        start: FittedLinear | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> FittedLinear:
        """Return the model after a step for each query of ``data``, in their order.

        Fill values and scaling are taken from the first batch. Value and optimality of the solution
        refer to ``data`` only.
        """
        solver = self.solver_for(loss, solver, random_state)
        if not hasattr(solver, "resume") or self.l2 == "auto":
            raise UsageError("partial_fit takes solver='online' and a number for l2.")
        fill = fill_values(data.X, self.missing) if start is None else start.fill
        data = data._replace(X=filled(data.X, fill, "linear"))
        state, scale, center = None, None, None
        if start is not None:
            state, scale, center = start.state, start.deviation, start.center
        if state is None or scale is None:
            scale = deviations(data.X, document_weight(data), scale=self.scale)
            center = None if loss.traits.shift_invariant else np.zeros(data.n_features)
        objective = LinearObjective(
            bound_loss(loss, data, n_jobs=n_jobs),
            data,
            loss.traits,
            scale=scale,
            center=center,
            l2=float(self.l2),
            # Weights of queries are not divided by their mean, which later queries would change.
            total_weight=float(np.count_nonzero(order_weight(data))) or 1.0,
            n_jobs=n_jobs,
        )
        if state is None:
            from rankwright.solvers.online import OnlineState

            v = np.zeros(objective.size)
            if start is not None:
                v = objective.variables(start.coef, start.intercept)
            state = OnlineState.at(v)
        with one_blas_thread():
            return _fitted(objective, solver.resume(objective, state), fill)

    def solver_for(self, loss: Loss, solver: Any, random_state: int) -> Any:
        """Return the solver; raise if it does not support the model's penalties and intercept."""
        chosen = choose_solver(
            solver, loss, max_iter=self.max_iter, tol=self.tol, random_state=random_state
        )
        if self.l1 != 0.0 and not steps_by_column(chosen):
            name = part_name("solvers", chosen)
            raise UsageError(f"{name} does not support l1; use solver='coordinate', or l1=0.")
        if "convex_parts" in solver_needs(chosen) and not loss.traits.shift_invariant:
            # Planes are cut for problems with a penalty on every variable, the intercept included.
            missing, name = ["shift_invariant"], part_name("solvers", chosen)
            advice = f"Use {default_solver(loss.traits)}."
            raise IncompatibleError(lacking(name, missing, loss, advice))
        return chosen

    restore = staticmethod(FittedLinear.restore)


def _fitted(objective: LinearObjective, solution: SolveResult, fill: F64 | None) -> FittedLinear:
    """Return the model at the end of a solver."""
    coef, intercept = objective.weights(solution.w)
    return FittedLinear(
        coef,
        fill,
        len(coef),
        solution,
        solution.state,
        objective.scale,
        intercept=intercept,
        center=objective.center,
    )


def _with_path(fitted: FittedLinear, path: list[tuple[float, float, int]] | None) -> FittedLinear:
    """Return the model with its path of penalties, if it has one; later rounds make it longer."""
    return fitted if path is None else replace(fitted, path=np.array(path))


def _has_undeclared_iterations(loss: Loss, bound: Any) -> bool:
    """Return whether the loss has ``set_iteration`` although no trait declares a reason."""
    declared = loss.traits.stochastic or loss.traits.stateful or isinstance(bound, SampledLoss)
    return hasattr(bound, "set_iteration") and not declared


# --- means and deviations of features ----------------------------------------------------------


_CANCELS = 1e-4  # share of the mean below which sums of squares have lost half their digits


def means(X: FloatMatrix, weight: F64) -> F64:
    """Return each feature's mean over weighted documents."""
    return transposed_times_vector(X, weight) / (float(weight.sum()) or 1.0)


def deviations(X: FloatMatrix, weight: F64, *, scale: bool = True) -> F64:
    """Return each feature's standard deviation over weighted documents, 1 if it is constant.

    Without ``scale`` all are 1.
    """
    return or_one(_spreads(X, weight)) if scale else np.ones(X.shape[1])


def or_one(spread: F64) -> F64:
    """Return standard deviations to divide by: 1 for constant features."""
    return np.where(spread > 0.0, spread, 1.0)


def spreads(X: FloatMatrix, fill: F64 | None = None) -> F64:
    """Return each feature's standard deviation over all documents, 0 if it is constant."""
    return _spreads(filled(X, fill, "linear"), np.ones(X.shape[0]))


def _spreads(X: FloatMatrix, weight: F64) -> F64:
    sums = transposed_times_vector(X, weight), transposed_squares_times_vector(X, weight)
    return spreads_of(float(weight.sum()), *sums, lambda *far: sums_around(X, weight, *far))


def spreads_of(
    total: float, sums: F64, squares: F64, around: Callable[[I64, F64], tuple[F64, F64]]
) -> F64:
    """Return each feature's deviation from the weight of all documents and sums of x and x^2.

    The sums are inexact for features whose mean is large compared with their deviation. For these,
    ``around`` returns the sums of x - c and of its square, given the columns and c.
    """
    mean = sums / total
    spread = np.sqrt(np.maximum(squares / total - mean**2, 0.0))
    far = np.flatnonzero(spread < _CANCELS * np.abs(mean))
    if len(far):
        shifted, square = around(far, mean[far])
        exact = np.sqrt(np.maximum(square / total - (shifted / total) ** 2, 0.0))
        spread[far] = np.where(exact > np.finfo(np.float64).eps * np.abs(mean[far]), exact, 0.0)
    return spread


def sums_around(X: FloatMatrix, weight: F64, columns: I64, centre: F64) -> tuple[F64, F64]:
    """Return the weighted sums of x - c and of its square, for some columns."""
    sums, squares = np.empty(len(columns)), np.empty(len(columns))
    for k, (column, c) in enumerate(zip(columns.tolist(), centre, strict=True)):
        values = X[:, [column]].toarray().ravel() if sparse.issparse(X) else X[:, column]
        shifted = values - c
        sums[k], squares[k] = weight @ shifted, weight @ shifted**2
    return sums, squares


# --- penalties: a number, or "auto", which is chosen on validation data ----------------------


PATH = tuple(float(10.0**power) for power in np.arange(3.0, -7.0, -1.0))


def check_penalty(name: str, value: float | str, valid: RankingData | None) -> None:
    """Raise unless a penalty is a number from 0 on, or "auto" with validation data."""
    if value == "auto" and valid is None:
        raise UsageError(f"{name}='auto' is chosen on validation data: give eval_set, or a number.")
    if value != "auto" and (isinstance(value, str) or not float(value) >= 0.0):
        raise UsageError(f"{name} must be 0 or more, or 'auto', not {value}.")


def ridges(l2: float | str) -> tuple[float, ...]:
    """Return the l2 penalties of a path: the number, or for "auto" 1000, 100, …, 1e-6."""
    return PATH if l2 == "auto" else (float(l2),)
