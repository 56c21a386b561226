"""Pointwise models: each document has a target by itself, and queries only weigh documents.

u_i is the weight of document i times the weight of its query, and Q the weight of all queries.
Every query counts, also if all its documents have the same grade.

**Least squares.** With targets y_i, the weights and an intercept minimise

    J(w, b) = 1/Q sum_i u_i/2 (w.x_i + b - y_i)^2 + l2/2 sum_j (deviation_j w_j)^2              (1)

The intercept is left out of the scores, because it changes no ranking. With v_j = deviation_j w_j
and x and y centred at their weighted means, one eigendecomposition

    A = 1/Q sum_i u_i x_i x_i' / (deviation deviation') = V diag(e) V'                          (2)

gives the solution v = V (e + l2)^-1 V' g for every l2. Directions in which documents do not differ
get no weight. Blocks of rows are added up, so this takes a fraction of the memory of scikit-learn's
`Ridge`, which copies X in float64. `Ridge` with LSQR serves many sparse features, for which A would
be too large.

**Classifier.** The K grades g_k of the data have separate weights:

    s_ik = b_k + w_k.x_i,    p_ik = exp(s_ik) / sum_l exp(s_il),    score_i = sum_k p_ik g_k    (3)

The loss is computed on lists of grades: each document becomes a query with the K grades as its
documents, and only the grade of the document is relevant. The loss `listnet` with target "gain" is
then the cross entropy -log p_iy, and (3) is multinomial logistic regression. A hinge on pairs of
grades gives a multi-class SVM. Weights and intercepts minimise

    J(w, b) = 1/Q sum_i u_i loss(s_i1, ..., s_iK; y_i) + l2/2 sum_kj (deviation_j w_kj)^2       (4)

Products with X are centred at the means of the features: the minimum does not change, and a solver
finds it also if features are far from 0, such as times. scikit-learn's `LogisticRegression` needs
as long as L-BFGS here to the same value of (4), and a centred copy of X in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import linalg, sparse
from scipy.special import softmax

from rankwright.core.checks import ArraySpec
from rankwright.core.parameters import Auto, Count, Missing, NonNegative, part_name
from rankwright.core.products import (
    one_blas_thread,
    times_vector,
    transposed_times_vector,
)
from rankwright.core.types import F64, AnyArray, FloatMatrix, Loss, Round, SolveResult
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.losses.base import bound_loss, document_weight
from rankwright.models.linear import (
    FittedLinear,
    LinearRounds,
    check_penalties,
    deviations,
    means,
    ridges,
)
from rankwright.models.linear_objective import ScaledVariables, diagonal, penalty
from rankwright.models.missing import fill_values, filled
from rankwright.models.schema import FILL, ModelPart, Schema
from rankwright.solvers.choice import choose_solver, lacking, solver_needs

_ROWS = 1 << 14  # of a block


def _weights(data: RankingData) -> tuple[F64, float]:
    """Return the weight of each document, including the weight of its query, and of all queries."""
    by_query = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
    weight = document_weight(data) * np.repeat(by_query, data.sizes)
    return weight, float(by_query.sum()) or 1.0


# --- least squares ---------------------------------------------------------------------------

_NO_DIFFERENCE = 1e-12  # share of the largest eigenvalue; less is rounding
_MANY = 1000  # sparse features; fewer are decomposed
_TOL = 1e-13  # of LSQR


@dataclass(frozen=True, slots=True, repr=False)
class LeastSquares(ModelPart):
    """A weight for each feature by least squares with a ridge penalty.

    Parameters
    ----------
    l2 : float or "auto"
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and selects the best on the validation set.
    scale : bool
        Penalise weights as if all features had unit standard deviation.
    missing : None, "mean" or "zero"
        Replacement of missing values; None refuses them.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.LinearRegression(model=rw.models.LeastSquares(l2=0.1))
    LinearRegression(model=LeastSquares(l2=0.1))
    """

    fitted_class: ClassVar[Any] = FittedLinear

    l2: NonNegative | Auto = 1e-10
    scale: bool = True
    missing: Missing = None

    def rounds(
        self,
        loss: Loss,
        data: RankingData,
        valid: RankingData | None = None,
        *,
        start: FittedLinear | None = None,
        random_state: int = 0,  # noqa: ARG002
        n_jobs: int | None = None,
    ) -> Iterator[Round]:
        """Yield a round for each penalty."""
        if not hasattr(loss, "fixed_targets"):
            raise IncompatibleError(
                lacking("least_squares", ["fixed_targets"], loss, "Use a linear model.")
            )
        if start is not None:
            raise UsageError("least squares have a single solution: leave init_model out.")
        check_penalties(valid, l2=self.l2)
        run = LinearRounds(data, valid, self.missing, n_jobs)
        X, (weight, total) = run.data.X, _weights(data)
        deviation, mean = deviations(X, weight, scale=self.scale), means(X, weight)
        squares: Any = loss
        y = squares.fixed_targets(data)
        y = y - float(weight @ y) / (float(weight.sum()) or 1.0)
        is_wide = sparse.issparse(X) and data.n_features > _MANY
        solve = _by_lsqr if is_wide else _by_eigenvectors
        path = ridges(self.l2)
        solutions = solve(X, y, weight, total, deviation, path)
        for number, (l2, v) in enumerate(zip(path, solutions, strict=True), start=1):
            coef = v / deviation
            errors = times_vector(X, coef, n_jobs=n_jobs) - float(mean @ coef) - y
            value = 0.5 * (float(weight @ errors**2) / total + l2 * float(v @ v))  # (1)
            yield run.round(number, value, FittedLinear(coef, run.fill))


def _by_eigenvectors(
    X: FloatMatrix, y: F64, weight: F64, total: float, deviation: F64, path: Sequence[float]
) -> Iterator[F64]:
    """Yield the minimum v of (1) for each l2 by (2); the mean of y is 0."""
    mean = means(X, weight)
    g = transposed_times_vector(X, weight * y) - mean * float(weight @ y)
    g /= deviation * total
    A = _second_moments(X, weight, mean) / np.outer(deviation, deviation * total)
    with one_blas_thread():
        e, V = linalg.eigh(A)
    differs = e > _NO_DIFFERENCE * max(e.max(initial=0.0), 0.0)
    V = V[:, differs]
    for l2 in path:
        yield V @ ((V.T @ g) / (e[differs] + l2))


def _second_moments(X: FloatMatrix, weight: F64, mean: F64) -> F64:
    """Return the sum of u (x - mean)(x - mean)' over documents."""
    if not isinstance(X, np.ndarray):
        wide = X.astype(np.float64)
        moments: F64 = (wide.T @ (sparse.diags_array(weight) @ wide)).toarray()
        return moments - float(weight.sum()) * np.outer(mean, mean)
    moments = np.zeros((X.shape[1], X.shape[1]))
    with one_blas_thread():
        for first in range(0, X.shape[0], _ROWS):
            part = X[first : first + _ROWS] - mean
            moments += part.T @ (weight[first : first + _ROWS, None] * part)
    return moments


def _by_lsqr(
    X: Any, y: F64, weight: F64, total: float, deviation: F64, path: Sequence[float]
) -> Iterator[F64]:
    """Yield the minimum v of (1) for each l2, without forming (2)."""
    from sklearn.linear_model import Ridge

    scaled = sparse.csr_array(X.astype(np.float64) @ sparse.diags_array(1.0 / deviation))
    for l2 in path:
        with one_blas_thread():
            ridge = Ridge(alpha=l2 * total, solver="lsqr", tol=_TOL)
            ridge.fit(scaled, y, sample_weight=weight)
        yield ridge.coef_


# --- the classifier --------------------------------------------------------------------------

_SUPPORTED = frozenset({"smooth", "integrable", "hess_vec"})  # needs of a solver that (4) meets
_MOST_GRADES = 256


_SCHEMA = Schema(
    (
        ArraySpec("grade_coef", "float64", ("grades", "features")),
        ArraySpec("intercept", "float64", ("grades",)),
        ArraySpec("grades", "float64", ("grades",)),
        FILL,
    )
)


@dataclass(frozen=True)
class FittedClassifier:
    """Weights and an intercept for each grade, in the scale of the data.

    ``solution`` is the result of the solver, for a model that was just fitted.
    """

    coef: F64
    intercept: F64
    grades: F64
    fill: F64 | None
    solution: SolveResult | None = field(default=None, compare=False)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.coef.shape[1])

    def probabilities(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return p of (3): the probability of each grade, a row for each document."""
        whole = filled(X, self.fill, "linear")
        s = [times_vector(whole, w, n_jobs=n_jobs) for w in self.coef]
        p: F64 = softmax(np.stack(s, axis=1) + self.intercept, axis=1)
        return p

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the expected grade of each row."""
        p = self.probabilities(X, n_jobs=n_jobs)
        return np.asarray((p * self.grades).sum(axis=1), np.float64)  # (3)

    def contributions(self, X: FloatMatrix) -> F64:  # noqa: ARG002
        """Refuse: an expected grade is not a sum over features."""
        raise UsageError(
            "the expected grade of a classifier is not a sum over features; use permutation "
            "importance."
        )

    def describe(self, names: Sequence[str]) -> list[str]:
        """Return a heading, then the weights of each feature, the widest range first."""
        grades = ", ".join(f"{grade:g}" for grade in self.grades)
        order = np.argsort(-np.ptp(self.coef, axis=0), kind="stable")
        rows = ("".join(f"{w:>14.6g}" for w in self.coef[:, f]) for f in order)
        lines = [f"{row}  {names[f]}" for row, f in zip(rows, order, strict=True)]
        return [f"weights for the grades {grades}, the feature with the widest range first", *lines]

    def arrays(self) -> dict[str, AnyArray]:
        """Return the weights, the intercepts, the grades and the fill values."""
        arrays: dict[str, AnyArray] = {
            "grade_coef": self.coef,
            "intercept": self.intercept,
            "grades": self.grades,
        }
        return arrays if self.fill is None else {**arrays, "fill": self.fill}

    def texts(self) -> dict[str, str]:
        """Return an empty mapping: a classifier consists of arrays."""
        return {}

    @classmethod
    def restore(
        cls, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> FittedClassifier:
        """Check the arrays and texts of a model and build it."""
        if not _SCHEMA.check(arrays, texts, features=n_features)["grades"]:
            raise DataError("it has no grades.")
        return cls(arrays["grade_coef"], arrays["intercept"], arrays["grades"], arrays.get("fill"))


@dataclass(frozen=True, slots=True, repr=False)
class Classifier(ModelPart):
    """Weights for each grade; documents are ranked by the expected grade.

    Parameters
    ----------
    l2 : float or "auto"
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and selects the best on the validation set.
    scale : bool
        Penalise weights as if all features had unit standard deviation.
    missing : None, "mean" or "zero"
        Replacement of missing values; None refuses them.
    max_iter, tol
        Limit and tolerance of the solver; "auto" is the solver's default.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Classification(model=rw.models.Classifier(l2=0.1))
    Classification(model=Classifier(l2=0.1))
    """

    takes_solver: ClassVar[bool] = True
    fitted_class: ClassVar[Any] = FittedClassifier

    l2: NonNegative | Auto = 1e-3
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
        start: FittedClassifier | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> Iterator[Round]:
        """Yield a round for each penalty; the first starts from ``start``."""
        check_penalties(valid, l2=self.l2)
        solver = choose_solver(
            solver, loss, max_iter=self.max_iter, tol=self.tol, random_state=random_state
        )
        if not solver_needs(solver) <= _SUPPORTED:
            name = part_name("solvers", solver)
            raise UsageError(f"a classifier is fitted by lbfgs or tron, not by {name}.")
        fill = fill_values(data.X, self.missing)
        data = data._replace(X=filled(data.X, fill, "linear"))
        objective = _GradeObjective(data, loss, scale=self.scale, n_jobs=n_jobs)
        v = np.zeros(objective.size) if start is None else objective.variables(start)
        for number, objective.l2 in enumerate(ridges(self.l2), start=1):
            with one_blas_thread():
                solution = solver.solve(objective, v)
            v = solution.w
            coef, intercept = objective.weights(v)
            model = partial(FittedClassifier, coef, intercept, objective.grades, fill, solution)
            scores = None if valid is None else model().scores(valid.X, n_jobs=n_jobs)
            yield Round(number, solution.value, scores, model)


class _GradeObjective:
    """Objective (4). A row of variables for each grade: scaled weights, then the intercept."""

    def __init__(self, data: RankingData, loss: Loss, *, scale: bool, n_jobs: int | None) -> None:
        weight, self._total = _weights(data)
        counts = weight > 0.0
        self.grades: F64 = np.unique(data.y[counts]) if counts.any() else np.zeros(1)
        if len(self.grades) > _MOST_GRADES:
            raise DataError(
                f"classification has weights for each grade, and y has {len(self.grades):,} "
                f"different ones where {_MOST_GRADES} are the most; round them, or use a ranker "
                "that takes numbers, such as linear_regression or gbdt."
            )
        self.l2, self._X, self._n_jobs, self._weight = 0.0, data.X, n_jobs, weight
        scaling = deviations(data.X, weight, scale=scale), means(data.X, weight)
        self._variables = ScaledVariables(*scaling)
        self._shape = (len(self.grades), self._variables.size)
        self.size = int(np.prod(self._shape))
        is_grade = data.y[:, None] == self.grades
        lists = RankingData.from_arrays(
            np.zeros((is_grade.size, 1)),
            is_grade.astype(np.float64).ravel(),
            group_sizes=np.full(*is_grade.shape),
            query_weight=np.where(is_grade.any(axis=1), weight, 0.0),
        )
        self._loss: Any = bound_loss(loss, lists, n_jobs=n_jobs)
        self._gradient = np.empty(is_grade.size)

    def variables(self, fitted: FittedClassifier) -> F64:
        """Return the variables of a fitted model."""
        if not np.array_equal(fitted.grades, self.grades):
            raise UsageError("init_model must be a classifier fitted to the same grades.")
        pairs = zip(fitted.coef, fitted.intercept, strict=True)
        return np.concatenate([self._variables.variables(w, b) for w, b in pairs])

    def weights(self, v: F64) -> tuple[F64, F64]:
        """Return weights and intercepts in the scale of the data."""
        pairs = [self._variables.weights(row) for row in v.reshape(self._shape)]
        coef, intercept = zip(*pairs, strict=True)
        return np.array(coef), np.array(intercept)

    def grad(self, v: F64, out: F64) -> float:
        """Write the gradient to ``out`` and return J."""
        value: float = self._loss.grad(self._scores(v), self._gradient) / self._total
        return value + self._pull(v, out)

    def hess_vec(self, u: F64, out: F64) -> None:
        """Write the Hessian at the last ``grad`` times ``u`` to ``out``."""
        self._loss.hess_vec(self._scores(u), self._gradient)
        self._pull(u, out)

    def precondition(self) -> F64:
        """Return a positive diagonal that is roughly proportional to that of the Hessian."""
        squares = self._variables.squares_of(self._X, self._weight, n_jobs=self._n_jobs)
        return np.tile(diagonal(squares), len(self.grades))

    def _scores(self, v: F64) -> F64:
        """Return the scores of all grades of the first document, then of the second, and so on."""
        rows = v.reshape(self._shape)
        s = [self._variables.scores_of(self._X, row, n_jobs=self._n_jobs) for row in rows]
        return np.stack(s, axis=1).ravel()

    def _pull(self, v: F64, out: F64) -> float:
        """Write the gradient in the variables to ``out``, with the penalty, and return that."""
        total = 0.0
        by_grade = np.ascontiguousarray(self._gradient.reshape(-1, self._shape[0]).T)
        rows = zip(v.reshape(self._shape), by_grade, out.reshape(self._shape), strict=True)
        for row, g, gradient in rows:
            self._variables.pull(self._X, g, gradient, n_jobs=self._n_jobs)
            gradient[:-1] /= self._variables.scale
            gradient /= self._total
            total += penalty(self.l2, row[:-1], gradient)
        return total
