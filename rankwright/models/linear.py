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

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from rankwright.core.checks import ArraySpec
from rankwright.core.parameters import Auto, Count, Missing, NonNegative, part_name
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
from rankwright.losses.base import bound_loss, document_weight, loss_state, order_weight
from rankwright.models.linear_objective import LinearObjective, ScaledVariables
from rankwright.models.missing import column_of, fill_values, filled, product_with_gaps
from rankwright.models.schema import FILL, ModelPart, Schema
from rankwright.solvers.choice import (
    choose_solver,
    default_solver,
    lacking,
    methods_needed,
    solver_needs,
    steps_by_column,
    warn_of_unused_iterations,
)
from rankwright.solvers.online import OnlineState

# --- the fitted model ------------------------------------------------------------------------


_WEIGHTS = (
    ArraySpec("coef", "float64", ("features",)),
    FILL,
    ArraySpec("intercept", "float64", (1,), optional=True),
    ArraySpec("path", "float64", ("problems", 3), optional=True),
)
_STATE = (
    ArraySpec("online_w", "float64", ("variables",)),
    ArraySpec("online_mean", "float64", ("variables",)),
    ArraySpec("online_so_far", "float64", (3,)),
    ArraySpec("online_deviation", "float64", ("features",)),
    ArraySpec("online_center", "float64", ("features",), optional=True),
)


@dataclass(frozen=True)
class FittedLinear:
    """A weight per feature and an intercept, in the scale of the data.

    ``solution`` is the result of the solver, for a model that was just fitted. The online solver
    continues from ``state``, whose weights are scaled by ``deviation`` and ``center``. ``path`` has
    l1, l2 and the number of weights of each problem that was solved by columns.
    """

    coef: F64
    fill: F64 | None = None
    intercept: float = 0.0
    solution: SolveResult | None = field(default=None, compare=False)
    state: OnlineState | None = field(default=None, compare=False)
    deviation: F64 | None = field(default=None, compare=False)
    center: F64 | None = field(default=None, compare=False)
    path: F64 | None = field(default=None, compare=False)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.coef)

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row."""
        return product_with_gaps(X, self.coef, self.fill, "linear", n_jobs=n_jobs) + self.intercept

    def contributions(self, X: FloatMatrix) -> F64:
        """Return the contribution of each feature to each score; the intercept is the last."""
        complete = filled(X, self.fill, "linear")
        dense = complete.toarray() if sparse.issparse(complete) else complete
        return np.column_stack([dense * self.coef, np.full(X.shape[0], self.intercept)])

    def arrays(self) -> dict[str, AnyArray]:
        """Return the weights, the fill values and the state of the online solver."""
        optional = {
            "intercept": np.array([self.intercept]) if self.intercept != 0.0 else None,
            "fill": self.fill,
            "path": self.path,
        }
        if self.state is not None:
            optional |= self.state.arrays()
            optional |= {"online_deviation": self.deviation, "online_center": self.center}
        present = {name: array for name, array in optional.items() if array is not None}
        return {"coef": self.coef, **present}

    def texts(self) -> dict[str, str]:
        """Return an empty mapping: a linear model consists of arrays."""
        return {}

    @classmethod
    def restore(
        cls, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> FittedLinear:
        """Check the arrays and texts of a model and build it."""
        has_state = "online_w" in arrays
        schema = Schema((*_WEIGHTS, *_STATE) if has_state else _WEIGHTS)
        n_variables = n_features + ("online_center" in arrays)
        schema.check(arrays, texts, features=n_features, variables=n_variables)
        return cls(
            arrays["coef"],
            arrays.get("fill"),
            float(arrays.get("intercept", np.zeros(1))[0]),
            state=OnlineState.of(arrays) if has_state else None,
            deviation=arrays.get("online_deviation"),
            center=arrays.get("online_center"),
            path=arrays.get("path"),
        )


def fitted_at(
    variables: ScaledVariables, solution: SolveResult, fill: F64 | None = None
) -> FittedLinear:
    """Return the model at the end of a solver."""
    coef, intercept = variables.weights(solution.w)
    scaling = {"deviation": variables.scale, "center": variables.center}
    return FittedLinear(coef, fill, intercept, solution, solution.state, **scaling)


class LinearRounds:
    """Training and validation data without missing values, and rounds of linear models on them.

    Attributes
    ----------
    data : RankingData
    fill : array of float64 or None
        Replacement of missing values.
    """

    def __init__(
        self,
        data: RankingData,
        valid: RankingData | None,
        missing: str | None,
        n_jobs: int | None,
    ) -> None:
        self.fill = fill_values(data.X, missing)
        self.data = data._replace(X=filled(data.X, self.fill, "linear"))
        self._valid_X = None if valid is None else filled(valid.X, self.fill, "linear")
        self._n_jobs = n_jobs

    def round(
        self,
        number: int,
        loss: float,
        model: FittedLinear,
        state: Callable[[], dict[str, AnyArray]] | None = None,
    ) -> Round:
        """Return the round of a model with its scores on the validation data."""
        scores = None
        if self._valid_X is not None:
            scores = times_vector(self._valid_X, model.coef, n_jobs=self._n_jobs) + model.intercept
        return Round(number, loss, scores, lambda: model, state)

    def replayed_round(self, number: int, model: FittedLinear) -> Round:
        """Return a round of the run that is resumed; its loss and scores are known."""
        return Round(number, math.nan, None, lambda: model)


# --- the model -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Linear(ModelPart):
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
    fitted_class: ClassVar[Any] = FittedLinear

    l2: NonNegative | Auto = 1e-3
    l1: NonNegative | Auto = 0.0
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

        Later ones start from the minimum of the penalty before them. ``solver`` is an object, a
        name, or None for the default of the loss.
        """
        check_penalties(valid, l1=self.l1, l2=self.l2)
        solver = self.solver_for(loss, solver, random_state)
        if hasattr(solver, "random_state"):
            data = in_content_order(data, n_jobs=n_jobs)[1]
        run = LinearRounds(data, valid, self.missing, n_jobs)
        data, traits, by_column = run.data, loss.traits, steps_by_column(solver)
        bound = bound_loss(loss, data, needs=methods_needed(solver), n_jobs=n_jobs)
        is_declared = traits.stochastic or loss_state(bound)
        if hasattr(bound, "set_iteration") and not is_declared:
            warn_of_unused_iterations(solver, loss)
        weight = document_weight(data)
        has_intercept = not (traits.shift_invariant or by_column)
        objective = LinearObjective(
            bound,
            data,
            traits,
            scale=deviations(data.X, weight, scale=self.scale),
            center=means(data.X, weight) if has_intercept else None,
            n_jobs=n_jobs,
        )
        problem: Any = objective.by_column() if by_column else objective
        v = first = objective.variables_of(start)
        path: list[tuple[float, float, int]] = []
        for number, (l1, l2) in enumerate(self._penalties(problem), start=1):
            problem.l1, problem.l2 = l1, l2
            with one_blas_thread():
                solution = solver.solve(problem, v)
            v = (
                first if solution.stopped == VANISHED else solution.w
            )  # VANISHED: the weights are almost 0
            fitted = fitted_at(objective, solution, run.fill)
            round_ = run.round(number, solution.value, fitted)
            if by_column:
                path.append((l1, l2, int(np.count_nonzero(fitted.coef))))
                round_ = replace(round_, model=partial(_with_path, fitted, path))
            yield round_

    def _penalties(self, problem: Any) -> Iterator[tuple[float, float]]:
        """Yield all pairs of l1 and l2."""
        if self.l1 == self.l2 == "auto":
            raise UsageError("l1 and l2 cannot both be 'auto'; pass a number for l1 or l2.")
        if self.l1 == "auto":
            from rankwright.solvers.coordinate import falling_l1

            path = falling_l1(problem)
        else:
            path = [float(self.l1)]
        yield from ((l1, l2) for l2 in ridges(self.l2) for l1 in path)

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
            state = OnlineState.at(objective.variables_of(start))
        with one_blas_thread():
            return fitted_at(objective, solver.resume(objective, state), fill)

    def solver_for(self, loss: Loss, solver: Any, random_state: int) -> Any:
        """Return the solver; raise if it does not support the model's penalties and intercept."""
        solver = choose_solver(
            solver, loss, max_iter=self.max_iter, tol=self.tol, random_state=random_state
        )
        name = part_name("solvers", solver)
        if self.l1 != 0.0 and not steps_by_column(solver):
            raise UsageError(f"{name} does not support l1; use solver='coordinate', or l1=0.")
        if "convex_parts" in solver_needs(solver) and not loss.traits.shift_invariant:
            # Planes are cut for problems with a penalty on every variable, the intercept included.
            advice = f"Use {default_solver(loss.traits)}."
            raise IncompatibleError(lacking(name, ["shift_invariant"], loss, advice))
        return solver


def _with_path(fitted: FittedLinear, path: list[tuple[float, float, int]]) -> FittedLinear:
    """Return the model with the path of penalties, which later rounds make longer."""
    return replace(fitted, path=np.array(path))


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
        shifted = column_of(X, column) - c
        sums[k], squares[k] = weight @ shifted, weight @ shifted**2
    return sums, squares


# --- penalties ---------------------------------------------------------------------------------


PATH = tuple(float(10.0**power) for power in np.arange(3.0, -7.0, -1.0))


def check_penalties(valid: Any, **penalties: float | str) -> None:
    """Raise if a penalty is "auto" but validation data is missing."""
    for name, value in penalties.items():
        if value == "auto" and valid is None:
            raise UsageError(
                f"{name}='auto' is chosen on validation data: give eval_set, or a number."
            )


def ridges(l2: float | str) -> tuple[float, ...]:
    """Return the l2 penalties of a path: the number, or for "auto" 1000, 100, …, 1e-6."""
    return PATH if l2 == "auto" else (float(l2),)
