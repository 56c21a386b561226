"""Linear scores s = X w under any loss.

The weights minimise `rankwright.models.linear_problem` (1), in which l2 penalises w as if each
feature had unit standard deviation (``scale``); they are reported in the scale of the data. No
intercept: it changes no ranking.

Solvers that visit queries one after the other (those with a ``random_state``) see a copy of the
data with rows and queries in an order fixed by their content, so that shuffled rows and renamed
queries change nothing. Those that step along columns (coordinate) take an l1 penalty too, and see
the problem that the loss offers by columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from scipy import sparse

from rankwright.core.checks import ArraySpec
from rankwright.core.dtypes import FeatureError, blocks
from rankwright.core.parameters import Part, part_name
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
    Callback,
    FloatMatrix,
    Loss,
    SolveResult,
)
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import SampledLoss, bound_loss, document_weight, order_weight
from rankwright.models.linear_problem import LinearProblem
from rankwright.models.schema import FILL, Schema
from rankwright.solvers.choice import choose_solver, steps_by_column, warn_of_unused_iterations
from rankwright.solvers.oracle_log import OracleLog, logged

if TYPE_CHECKING:
    from rankwright.solvers.online import OnlineState

_ONLINE = ("online_w", "online_mean", "online_so_far")  # a state's parts, by their names in a file


@dataclass(frozen=True, slots=True, repr=False)
class Linear(Part):
    """A weight for each feature; readable, quick, and at home with few or sparse data.

    Parameters
    ----------
    l2 : float or "auto"
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and keeps the best on the validation set.
    l1 : float or "auto"
        Penalty on absolute weights, which makes most of them 0, for solver coordinate; "auto" tries
        twenty, from the least that makes all weights 0 down to a thousandth of it.
    scale : bool
        Penalise weights as if all features had unit standard deviation.
    missing : None, "mean" or "zero"
        What stands for a missing value; None refuses them.
    max_iter : int or "auto"
        The most iterations of the solver; "auto" is its own default. For sgd and online, passes
        over the data.
    tol : float or "auto"
        When the solver stops; "auto" is its own default.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="listnet", model=rw.models.Linear(l1=0.01))
    Ranker(loss='listnet', model=Linear(l1=0.01))
    """

    takes_solver: ClassVar[bool] = True

    l2: float | str = 1e-3
    l1: float | str = 0.0
    scale: bool = True
    missing: str | None = None
    max_iter: int | str = "auto"
    tol: float | str = "auto"

    def fit(
        self,
        loss: Loss,
        data: RankingData,
        *,
        callback: Callback,
        solver: Any = None,
        start: FittedLinear | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> FittedLinear:
        """Minimise the loss, from the weights of ``start`` where given.

        ``solver`` is an object, a name, or None for one that suits the loss.
        """
        chosen = self.solver_for(loss, solver, random_state)
        seeded = hasattr(chosen, "random_state")
        work = OneProcess(self, loss, data, callback, seeded=seeded, n_jobs=n_jobs)
        if work.has_undeclared_iterations:
            warn_of_unused_iterations(chosen, loss)
        return self.fit_over(work, chosen, callback=callback, start=start)

    def fit_over(
        self,
        work: LinearWork,
        solver: Any,
        *,
        callback: Callback,
        start: FittedLinear | None = None,
    ) -> FittedLinear:
        """Minimise over data wherever they are: `fit` is this over `OneProcess`."""
        for name in ("l1", "l2"):
            check_penalty(name, getattr(self, name), callback)
        if self.l1 == self.l2 == "auto":
            raise UsageError("l1 and l2 cannot both be 'auto'; give a number for one of them.")
        deviation = work.deviation
        begin = np.zeros(len(deviation)) if start is None else start.coef * deviation
        v = begin
        tried: list[SolveResult] = []
        path: list[tuple[float, float, int]] = []
        by_column = steps_by_column(solver)
        log = OracleLog(callback) if callback.wants_state else None
        for t, (l1, l2, problem) in enumerate(self._problems(work, by_column), start=1):
            asked = problem
            if log is not None:
                log.memory, asked = problem, logged(problem, log)
            with one_blas_thread():
                tried.append(solver.solve(asked, v))
            v = tried[-1].w
            path.append((l1, l2, int(np.count_nonzero(v))))
            scores = work.train_scores(problem, v) if callback.wants_train else None
            on_valid = None if callback.valid is None else work.valid_scores(v / deviation)
            if callback.on_iteration(t, tried[-1].value, scores, on_valid):
                break
            if tried[-1].stopped == VANISHED:  # nothing of the scale is left to go on from
                v = begin
        best = tried[min(callback.best(), len(tried)) - 1]
        return FittedLinear(
            best.w / deviation,
            work.fill,
            len(deviation),
            best,
            best.state,
            deviation,
            path=np.array(path) if by_column else None,
        )

    def _problems(self, work: LinearWork, by_column: bool) -> Iterator[tuple[float, float, Any]]:
        """Yield l1, l2 and the problem that has them, for all that are to be tried."""
        if not by_column:
            for l2 in ridges(self.l2):
                yield 0.0, l2, work.problem(l2)
            return
        from rankwright.solvers.coordinate import falling_l1

        problem = work.by_column()
        for l2 in ridges(self.l2):
            for l1 in falling_l1(problem) if self.l1 == "auto" else (float(self.l1),):
                problem.l1, problem.l2 = l1, l2
                yield l1, l2, problem

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
        """Go on from ``start`` with a step for each query of ``data``, in their order.

        What stands for a missing value and the deviations that scale the penalty are those of the
        first data seen. Value and optimality of the solution are over ``data`` alone.
        """
        chosen = self.solver_for(loss, solver, random_state)
        if not hasattr(chosen, "walk") or self.l2 == "auto":
            raise UsageError("partial_fit takes solver='online' and a number for l2.")
        fill = fill_values(data.X, self.missing) if start is None else start.fill
        X = filled(data.X, fill, "linear")
        if start is None or start.state is None or start.deviation is None:
            deviation = self.deviations(X, document_weight(data))
            v = np.zeros(data.n_features) if start is None else start.coef * deviation
            from rankwright.solvers.online import OnlineState

            state = OnlineState.at(v)
        else:
            state, deviation = start.state, start.deviation
        visited = np.flatnonzero(order_weight(data))
        problem = LinearProblem(
            X,
            data.indptr,
            bound_loss(loss, data, n_jobs=n_jobs),
            float(len(visited)) or 1.0,  # weights count as they are: their mean is not known
            l2=float(self.l2),
            deviation=deviation,
            visited=visited,
            traits=loss.traits,
            n_jobs=n_jobs,
        )
        with one_blas_thread():
            end = chosen.go_on(problem, state)
        return FittedLinear(end.w / deviation, fill, data.n_features, end, end.state, deviation)

    def solver_for(self, loss: Loss, solver: Any, random_state: int) -> Any:
        """Return the solver; raise if it does not support the model's penalties."""
        chosen = choose_solver(
            solver, loss, max_iter=self.max_iter, tol=self.tol, random_state=random_state
        )
        if self.l1 != 0.0 and not steps_by_column(chosen):
            name = part_name("solvers", chosen)
            raise UsageError(f"{name} does not support l1; use solver='coordinate', or l1=0.")
        return chosen

    def deviations(self, X: FloatMatrix, weight: F64) -> F64:
        """Return D: each feature's deviation, or ones where the penalty is not scaled."""
        return deviations(X, weight, scale=self.scale)

    @staticmethod
    def restore(
        arrays: Mapping[str, AnyArray],
        texts: Mapping[str, str],
        n_features: int,
    ) -> FittedLinear:
        """Build the fitted model from its own arrays and texts, checked."""
        state = None
        schema = _WITH_STATE if "online_w" in arrays else _WEIGHTS
        schema.check(arrays, texts, features=n_features)
        if "online_w" in arrays:
            from rankwright.solvers.online import OnlineState

            state = OnlineState.of(tuple(arrays[name] for name in _ONLINE))
        return FittedLinear(
            arrays["coef"],
            arrays.get("fill"),
            n_features,
            state=state,
            deviation=arrays.get("online_deviation"),
            path=arrays.get("path"),
        )


WEIGHTS = (ArraySpec("coef", "float64", ("features",)), FILL)
_WEIGHTS = Schema((*WEIGHTS, ArraySpec("path", "float64", ("problems", 3), optional=True)))
_WITH_STATE = Schema(
    (
        *_WEIGHTS.arrays,
        ArraySpec("online_w", "float64", ("features",)),
        ArraySpec("online_mean", "float64", ("features",)),
        ArraySpec("online_so_far", "float64", (3,)),
        ArraySpec("online_deviation", "float64", ("features",)),
    )
)


@dataclass(frozen=True)
class FittedLinear:
    """One weight per feature, in the scale of the data, and what stands for a missing value.

    ``solution`` says how the solver ended, where the model was just fitted; ``state`` is where the
    online solver goes on, with weights scaled by ``deviation``; ``path`` has l1, l2 and the number
    of weights for each problem that was solved by columns.
    """

    coef: F64
    fill: F64 | None
    n_features: int
    solution: SolveResult | None = field(default=None, compare=False)
    state: OnlineState | None = field(default=None, compare=False)
    deviation: F64 | None = field(default=None, compare=False)
    path: F64 | None = field(default=None, compare=False)

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row."""
        return product_with_gaps(X, self.coef, self.fill, "linear", n_jobs=n_jobs)

    def contributions(self, X: FloatMatrix) -> F64:
        """Return what each feature adds to the score of each row, and 0 as the last column."""
        whole = filled(X, self.fill, "linear")
        dense = whole.toarray() if sparse.issparse(whole) else whole
        return np.column_stack([dense * self.coef, np.zeros(X.shape[0])])

    def arrays(self) -> dict[str, AnyArray]:
        """Return the weights, the fill values, and where the online solver goes on."""
        arrays: dict[str, AnyArray] = {"coef": self.coef}
        if self.fill is not None:
            arrays["fill"] = self.fill
        if self.state is not None and self.deviation is not None:
            arrays |= dict(zip(_ONLINE, self.state.parts(), strict=True))
            arrays["online_deviation"] = self.deviation
        if self.path is not None:
            arrays["path"] = self.path
        return arrays

    def texts(self) -> dict[str, str]:
        """Return nothing: a linear model is arrays alone."""
        return {}


def restored_weights(
    arrays: Mapping[str, AnyArray],
    texts: Mapping[str, str],
    n_features: int,
) -> FittedLinear:
    """Build a fitted model of weights alone from its own arrays, checked."""
    _WEIGHTS.check(arrays, texts, features=n_features)
    return FittedLinear(arrays["coef"], arrays.get("fill"), n_features)


def deviations(X: FloatMatrix, weight: F64, *, scale: bool = True) -> F64:
    """Return each feature's standard deviation over weighted documents, 1 where it is constant.

    Without ``scale`` all are 1: features count as they are.
    """
    return or_one(_spreads(X, weight)) if scale else np.ones(X.shape[1])


def or_one(spread: F64) -> F64:
    """Return standard deviations to divide by: 1 where a feature is constant."""
    return np.where(spread > 0.0, spread, 1.0)


def spreads(X: FloatMatrix, fill: F64 | None = None) -> F64:
    """Return each feature's standard deviation over all documents, 0 where it is constant."""
    return _spreads(filled(X, fill, "linear"), np.ones(X.shape[0]))


def _spreads(X: FloatMatrix, weight: F64) -> F64:
    sums = transposed_times_vector(X, weight), transposed_squares_times_vector(X, weight)
    return spreads_of(float(weight.sum()), *sums, lambda *far: sums_around(X, weight, *far))


def spreads_of(
    total: float, sums: F64, squares: F64, around: Callable[[I64, F64], tuple[F64, F64]]
) -> F64:
    """Return each feature's deviation from the weight of all documents and sums of x and x^2.

    Of features that are far from 0 for what they vary by, the sums have lost it: ``around`` returns
    those of x - c and its square, given the columns and c.
    """
    mean = sums / total
    spread = np.sqrt(np.maximum(squares / total - mean**2, 0.0))
    far = np.flatnonzero(spread < _CANCELS * np.abs(mean))
    if len(far):
        apart, square = around(far, mean[far])
        exact = np.sqrt(np.maximum(square / total - (apart / total) ** 2, 0.0))
        spread[far] = np.where(exact > np.finfo(np.float64).eps * np.abs(mean[far]), exact, 0.0)
    return spread


def sums_around(X: FloatMatrix, weight: F64, columns: I64, centre: F64) -> tuple[F64, F64]:
    """Return the weighted sums of x - c and of its square, for some columns."""
    sums, squares = np.empty(len(columns)), np.empty(len(columns))
    for k, (column, c) in enumerate(zip(columns.tolist(), centre, strict=True)):
        values = X[:, [column]].toarray().ravel() if sparse.issparse(X) else X[:, column]
        apart = values - c
        sums[k], squares[k] = weight @ apart, weight @ apart**2
    return sums, squares


_CANCELS = 1e-4  # of the mean: below, sums of squares have lost half their digits

# --- the data of a fit, in this process or in many -------------------------------------------


class LinearWork(Protocol):
    """The data of a fit, wherever they are, as `Linear.fit_over` sees them."""

    fill: F64 | None
    deviation: F64

    def problem(self, l2: float) -> Any:
        """Return the problem with this penalty."""

    def by_column(self) -> Any:
        """Return the problem that steps along columns, with penalties to be set."""

    def train_scores(self, problem: Any, v: F64) -> Any:
        """Return for the callback the scores on train, given the problem and its solution."""

    def valid_scores(self, w: F64) -> Any:
        """Return for the callback the validation scores, given weights in the scale of the data."""


class OneProcess:
    """Data in this process."""

    def __init__(
        self,
        model: Linear,
        loss: Loss,
        data: RankingData,
        callback: Callback,
        *,
        seeded: bool,
        n_jobs: int | None,
    ) -> None:
        self._rows: I64 | slice = slice(None)
        if seeded:
            self._rows, data = in_content_order(data, n_jobs=n_jobs)
        self.fill = fill_values(data.X, model.missing)
        X = filled(data.X, self.fill, "linear")
        self.deviation = model.deviations(X, document_weight(data))
        self._valid = (
            None if callback.valid is None else filled(callback.valid.X, self.fill, "linear")
        )
        self._data, self._loss, self._n_jobs = data._replace(X=X), loss, n_jobs
        self._weight = order_weight(data)
        self._total = float(self._weight.sum()) or 1.0

    @cached_property
    def _bound(self) -> Any:
        return bound_loss(self._loss, self._data, n_jobs=self._n_jobs)

    @property
    def has_undeclared_iterations(self) -> bool:
        """Whether the loss has ``set_iteration`` though no trait says what for."""
        traits = self._loss.traits
        sampled = traits.stochastic or isinstance(self._bound, SampledLoss)
        declared = sampled or traits.stateful
        return hasattr(self._bound, "set_iteration") and not declared

    def problem(self, l2: float) -> LinearProblem:
        """Return the problem with this penalty."""
        return LinearProblem(
            self._data.X,
            self._data.indptr,
            self._bound,
            self._total,
            l2=l2,
            deviation=self.deviation,
            visited=np.flatnonzero(self._weight),
            document_weight=self._data.sample_weight,
            traits=self._loss.traits,
            n_jobs=self._n_jobs,
        )

    def by_column(self) -> Any:
        """Return the problem that steps along columns, with penalties to be set."""
        return self._bound.by_column(
            sparse.csc_array(self._data.X),
            total_weight=self._total,
            deviation=self.deviation,
            n_jobs=self._n_jobs,
        )

    def train_scores(self, problem: Any, v: F64) -> F64:
        """Return the scores on train, in the order of its rows."""
        scores = np.empty(self._data.n_documents)
        scores[self._rows] = problem.scores(v)
        return scores

    def valid_scores(self, w: F64) -> F64:
        """Return the scores on the validation set."""
        assert self._valid is not None, "asked for where there is validation data"
        return times_vector(self._valid, w, n_jobs=self._n_jobs)


# --- penalties: a number, or "auto", which is chosen on validation data ----------------------


PATH = tuple(float(10.0**power) for power in np.arange(3.0, -7.0, -1.0))


def check_penalty(name: str, value: float | str, callback: Callback) -> None:
    """Refuse a penalty that is neither a number from 0 nor one that validation data can choose."""
    if value == "auto" and callback.valid is None:
        raise UsageError(f"{name}='auto' is chosen on validation data: give eval_set, or a number.")
    if value != "auto" and (isinstance(value, str) or not float(value) >= 0.0):
        raise UsageError(f"{name} must be 0 or more, or 'auto', not {value}.")


def ridges(l2: float | str) -> tuple[float, ...]:
    """Return the l2 penalties to try: the one given, or for "auto" 1000, 100, …, 1e-6."""
    return PATH if l2 == "auto" else (float(l2),)


# --- missing values --------------------------------------------------------------------------
#
# Missing feature values (NaN) for models that need a number in every place.


_ROWS_WITH_GAPS = 1 << 14  # that are copied and filled together


def fill_values(X: FloatMatrix, missing: str | None) -> F64 | None:
    """Return what stands for a missing value of each feature: its mean, zero, or None at all."""
    if missing is None:
        return None
    if missing == "zero":
        return np.zeros(X.shape[1])
    if missing != "mean":
        raise UsageError(f"missing must be 'mean', 'zero' or None, not {missing!r}.")
    means: F64 = transposed_times_vector(X, np.ones(X.shape[0])) / max(1, X.shape[0])
    for column in _columns_with_gaps(X):
        values = X[:, [column]].toarray().ravel() if sparse.issparse(X) else X[:, column]
        known = values[~np.isnan(values)]
        means[column] = known.mean(dtype=np.float64) if len(known) else 0.0
    return means


def filled(X: FloatMatrix, fill: F64 | None, model: str) -> FloatMatrix:
    """Return X with ``fill`` in its gaps: X itself where there are none.

    Raises
    ------
    DataError
        If values are missing and there is nothing to fill in.
    """
    columns = _columns_with_gaps(X)
    if not len(columns):
        return X
    if fill is None:
        raise _gaps(
            columns,
            model,
            "pass missing='mean' or missing='zero', or use model='trees' "
            "(--set missing=mean, --model trees)",
        )
    if sparse.issparse(X):
        copy = X.copy()
        gaps = np.flatnonzero(np.isnan(copy.data))
        copy.data[gaps] = fill[copy.indices[gaps]]
        return copy
    out = np.empty(X.shape, X.dtype)
    for block in blocks(X):
        out[block] = X[block]
        rows, column = np.nonzero(np.isnan(out[block]))
        out[block][rows, column] = fill[column]
    return out


def product_with_gaps(
    X: FloatMatrix, w: F64, fill: F64 | None, model: str, *, n_jobs: int | None = None
) -> F64:
    """Return ``X @ w`` with ``fill`` in the gaps of X, which is read once where it has none.

    A missing value makes the sum of its row NaN, whatever its weight, so that the sums tell which
    rows are to be filled.

    Raises
    ------
    DataError
        If values are missing and there is nothing to fill in.
    """
    out = times_vector(X, w, n_jobs=n_jobs)
    with_gaps = np.flatnonzero(np.isnan(out))
    if len(with_gaps) and fill is None:
        filled(X, fill, model)  # which says where; without gaps, infinite values made the NaN
        return out
    for lo in range(0, len(with_gaps), _ROWS_WITH_GAPS):
        rows = with_gaps[lo : lo + _ROWS_WITH_GAPS]
        out[rows] = times_vector(filled(X[rows], fill, model), w, n_jobs=n_jobs)
    return out


def without_gaps(X: FloatMatrix, model: str) -> FloatMatrix:
    """Return X, which a model takes without missing values alone."""
    columns = _columns_with_gaps(X)
    if len(columns):
        raise _gaps(columns, model, "leave those rows out, or put numbers there")
    return X


def _gaps(columns: I64, model: str, advice: str) -> FeatureError:
    return FeatureError(
        f"feature column {columns[0]} has missing values (NaN), which a {model} model does not "
        f"take; {advice}.",
        int(columns[0]),
    )


def _columns_with_gaps(X: FloatMatrix) -> I64:
    """Return the columns that hold NaN: their sum is NaN too, which needs no copy of X."""
    return np.flatnonzero(np.isnan(transposed_times_vector(X, np.ones(X.shape[0]))))


# --- weights after each round ----------------------------------------------------------------
#
# Weights after each round of a fit: shown to the callback, and those of the best round kept.
#
# For models that find one weight per feature in ways of their own, such as coordinate ascent.


class WeightRounds:
    """The rounds of one fit; its length is their number.

    Parameters
    ----------
    data, callback
        What is fitted to, and who looks on.
    missing
        What stands for a missing value: "mean", "zero", or None, which refuses them.

    Attributes
    ----------
    fill
        What stands for a missing value of each feature.
    """

    def __init__(
        self, data: RankingData, callback: Callback, missing: str | None, *, n_jobs: int | None
    ) -> None:
        self._data, self._callback, self._n_jobs = data, callback, n_jobs
        self.fill = fill_values(data.X, missing)
        self._valid = (
            None if callback.valid is None else filled(callback.valid.X, self.fill, "linear")
        )
        self._tried: list[F64] = []

    @cached_property
    def features(self) -> FloatMatrix:
        """The features with `fill` in their gaps; made where a model asks for them."""
        return filled(self._data.X, self.fill, "linear")

    def __len__(self) -> int:
        return len(self._tried)

    def scores(self, coef: F64) -> F64:
        """Return the scores of the documents under weights ``coef``."""
        return times_vector(self.features, coef, n_jobs=self._n_jobs)

    def see(self, coef: F64, value: float, train: F64 | None = None) -> bool:
        """Take in the weights and the loss after a round; True ends the run.

        ``train`` are the scores on the training data, where they are known already.
        """
        self._tried.append(coef)
        if train is None and self._callback.wants_train:
            train = self.scores(coef)
        valid = None
        if self._valid is not None:
            valid = times_vector(self._valid, coef, n_jobs=self._n_jobs)
        shown = train if self._callback.wants_train else None
        return self._callback.on_iteration(len(self._tried), value, shown, valid)

    def best(self) -> int:
        """Return the number of the round to keep, counted from 1."""
        return min(self._callback.best(), len(self._tried))

    def fitted(self) -> FittedLinear:
        """Return the model of that round."""
        return FittedLinear(self._tried[self.best() - 1], self.fill, self._data.n_features)
