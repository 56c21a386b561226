"""A score for each grade of each document, ranked by the grade to be expected.

With x_i the features of document i, each of the K grades g_k of the data has its weights,

    s_ik = b_k + w_k.x_i,    p_ik = exp(s_ik) / sum_l exp(s_il),    score_i = sum_k p_ik g_k    (1)

and the loss is over the lists of grades: to it every document is a query, its "documents" are the K
grades, and the right one alone is relevant. A listwise loss of scores thus serves unchanged:
`rankwright.losses.listnet` with target "gain" is the cross entropy -log p_iy, and (1) multinomial
logistic regression, the first family of learning to rank; pairs of grades under a hinge make a
multiclass SVM. With u_i the weight of a document times that of its query and Q the weight of all
queries,

    J(w, b) = 1/Q sum_i u_i loss(s_i1, ..., s_iK; y_i) + l2/2 sum_kj (deviation_j w_kj)^2        (2)

is minimised; constants go without a penalty. Queries of one grade count like the others. Features
enter less their means, and the constants make up for it: the minimum is the same, and a solver
finds it also for features far from 0, such as times, beside which the constants would not move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax

from rankwright.core.checks import ArraySpec
from rankwright.core.parameters import Part, part_name
from rankwright.core.products import (
    one_blas_thread,
    times_vector,
    transposed_times_vector,
)
from rankwright.core.types import F64, AnyArray, Callback, FloatMatrix, Loss, SolveResult
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses.base import bound_loss, document_weight
from rankwright.models.linear import check_penalty, deviations, fill_values, filled, ridges
from rankwright.models.schema import FILL, Schema
from rankwright.solvers.choice import choose_solver, solver_needs
from rankwright.solvers.oracle_log import OracleLog, logged

_SERVED = frozenset({"smooth", "integrable", "hess_vec"})  # what a solver may need of (2)
_MOST_GRADES = 256


@dataclass(frozen=True, slots=True, repr=False)
class Classifier(Part):
    """Weights for each grade; documents are ranked by the expected grade.

    Parameters
    ----------
    l2 : float or "auto"
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and keeps the best on the validation set.
    scale : bool
        Penalise weights as if all features had unit standard deviation.
    missing : None, "mean" or "zero"
        What stands for a missing value; None refuses them.
    max_iter, tol
        When the solver stops; "auto": at its own default.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Classification(model=rw.models.Classifier(l2=0.1))
    Classification(model=Classifier(l2=0.1))
    """

    takes_solver: ClassVar[bool] = True

    l2: float | str = 1e-3
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
        start: FittedClassifier | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> FittedClassifier:
        """Minimise (2) for each l2 that is to be tried, from ``start`` where given."""
        chosen = self._solver(loss, solver, random_state)
        check_penalty("l2", self.l2, callback.valid)
        fill = fill_values(data.X, self.missing)
        problem = _GradeProblem(
            filled(data.X, fill, "linear"), data, loss, scale=self.scale, n_jobs=n_jobs
        )
        v = np.zeros(problem.size) if start is None else problem.at(start)
        tried: list[FittedClassifier] = []
        log = OracleLog(callback)
        for t, l2 in enumerate(ridges(self.l2), start=1):
            problem.l2 = l2
            with one_blas_thread():
                found = chosen.solve(logged(problem, log), v)
            v = found.w
            now = FittedClassifier(*problem.weights(v), problem.grades, fill, found)
            tried.append(now)
            train = now.scores(data.X, n_jobs=n_jobs) if callback.wants_train else None
            valid = None if callback.valid is None else now.scores(callback.valid.X, n_jobs=n_jobs)
            if callback.on_iteration(t, found.value, train, valid):
                break
        return tried[min(callback.best(), len(tried)) - 1]

    def _solver(self, loss: Loss, solver: Any, random_state: int) -> Any:
        chosen = choose_solver(
            solver, loss, max_iter=self.max_iter, tol=self.tol, random_state=random_state
        )
        if not solver_needs(chosen) <= _SERVED:
            name = part_name("solvers", chosen)
            raise UsageError(f"a classifier is fitted by lbfgs or tron, not by {name}.")
        return chosen

    @staticmethod
    def restore(
        arrays: Mapping[str, AnyArray],
        texts: Mapping[str, str],
        n_features: int,
    ) -> FittedClassifier:
        """Build the fitted model from its own arrays, checked."""
        if not _SCHEMA.check(arrays, texts, features=n_features)["grades"]:
            raise DataError("it has no grades.")
        coef, intercept, grades = (arrays[name] for name in ("grade_coef", "intercept", "grades"))
        return FittedClassifier(coef, intercept, grades, arrays.get("fill"))


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
    """Weights and a constant for each grade, in the scale of the data.

    ``solution`` says how the solver ended, where the model was just fitted.
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
        """Return p of (1): the probability of each grade, a row for each document."""
        whole = filled(X, self.fill, "linear")
        s = [times_vector(whole, w, n_jobs=n_jobs) for w in self.coef]
        p: F64 = softmax(np.stack(s, axis=1) + self.intercept, axis=1)
        return p

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the expected grade of each row."""
        p = self.probabilities(X, n_jobs=n_jobs)
        return np.asarray((p * self.grades).sum(axis=1), np.float64)  # (1)

    def contributions(self, X: FloatMatrix) -> F64:  # noqa: ARG002
        """Refuse: an expected grade is no sum over features."""
        raise UsageError(
            "the expected grade of a classifier is not a sum over features; use permutation "
            "importance."
        )

    def describe(self, names: Sequence[str]) -> list[str]:
        """Return a heading, then the weights of each feature, the most decisive feature first."""
        grades = ", ".join(f"{grade:g}" for grade in self.grades)
        order = np.argsort(-np.ptp(self.coef, axis=0), kind="stable")
        rows = ("".join(f"{w:>14.6g}" for w in self.coef[:, f]) for f in order)
        lines = [f"{row}  {names[f]}" for row, f in zip(rows, order, strict=True)]
        return [f"weights for the grades {grades}, the feature with the widest range first", *lines]

    def arrays(self) -> dict[str, AnyArray]:
        """Return weights, constants, grades, and what stands for missing values."""
        arrays: dict[str, AnyArray] = {
            "grade_coef": self.coef,
            "intercept": self.intercept,
            "grades": self.grades,
        }
        return arrays if self.fill is None else {**arrays, "fill": self.fill}

    def texts(self) -> dict[str, str]:
        """Return nothing: a classifier is arrays alone."""
        return {}


class _GradeProblem:
    """(2) as solvers see it: K rows of scaled weights, each followed by its constant."""

    def __init__(
        self,
        X: FloatMatrix,
        data: RankingData,
        loss: Loss,
        *,
        scale: bool,
        n_jobs: int | None,
    ) -> None:
        by_query = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
        weight = document_weight(data) * np.repeat(by_query, data.sizes)
        counted = weight > 0.0
        self.grades: F64 = np.unique(data.y[counted]) if counted.any() else np.zeros(1)
        if len(self.grades) > _MOST_GRADES:
            raise DataError(
                f"classification has weights for each grade, and y has {len(self.grades):,} "
                f"different ones where {_MOST_GRADES} are the most; round them, or use a ranker "
                "that takes numbers, such as linear_regression or gbdt."
            )
        self._X, self._n_jobs = X, n_jobs
        self._total = float(by_query.sum()) or 1.0
        self._deviation = deviations(X, weight, scale=scale)
        self._mean = transposed_times_vector(X, weight) / (float(weight.sum()) or 1.0)
        self._shape = (len(self.grades), X.shape[1] + 1)
        self.size = int(np.prod(self._shape))
        self.l2 = 0.0
        self._weight = weight
        self._loss: Any = bound_loss(loss, self._lists(data, weight), n_jobs=n_jobs)

    def _lists(self, data: RankingData, weight: F64) -> RankingData:
        """Return a query for each document, whose documents are the grades."""
        n, k = data.n_documents, len(self.grades)
        right = data.y[:, None] == self.grades
        return RankingData.from_arrays(
            np.zeros((n * k, 1)),
            right.astype(np.float64).ravel(),
            group_sizes=np.full(n, k),
            query_weight=np.where(right.any(axis=1), weight, 0.0),
        )

    def at(self, start: FittedClassifier) -> F64:
        """Return the variables of a fitted model."""
        if not np.array_equal(start.grades, self.grades):
            raise UsageError("start must be a classifier fitted to the same grades.")
        at_mean = start.intercept + start.coef @ self._mean
        return np.column_stack([start.coef * self._deviation, at_mean]).ravel()

    def weights(self, v: F64) -> tuple[F64, F64]:
        """Return weights and constants in the scale of the data."""
        V = v.reshape(self._shape)
        coef = V[:, :-1] / self._deviation
        return coef, V[:, -1] - coef @ self._mean

    def value(self, v: F64) -> float:
        """Return J."""
        return self._penalised(self._loss.value(self._scores(v)), v)

    def grad(self, v: F64, out: F64) -> float:
        """Write the gradient to ``out`` and return J."""
        s = self._scores(v)
        g = np.empty(len(s))
        value = self._loss.grad(s, g)
        out[:] = self._pulled(g) + self.l2 * self._penalty(v)
        return self._penalised(value, v)

    def hess_vec(self, u: F64, out: F64) -> None:
        """Write the Hessian at the last ``grad`` times ``u`` to ``out``."""
        along = self._scores(u)
        product = np.empty(len(along))
        self._loss.hess_vec(along, product)
        out[:] = self._pulled(product) + self.l2 * self._penalty(u)

    def precondition(self) -> F64:
        """Return a diagonal in proportion to the Hessian's, roughly: each feature's mean square."""
        total = self._weight.sum()
        squares = total * (deviations(self._X, self._weight) / self._deviation) ** 2
        whole = np.append(squares, total)
        return np.tile(0.01 + whole / (whole.mean() or 1.0), len(self.grades))

    def _scores(self, v: F64) -> F64:
        coef, intercept = self.weights(v)
        s = [times_vector(self._X, w, n_jobs=self._n_jobs) for w in coef]
        return np.ascontiguousarray(np.stack(s, axis=1) + intercept).ravel()

    def _pulled(self, g: F64) -> F64:
        """Return the gradient of the loss over Q in the variables, for ``g`` in the scores."""
        G = np.ascontiguousarray(g.reshape(-1, self._shape[0]).T)
        rows = [transposed_times_vector(self._X, one, n_jobs=self._n_jobs) for one in G]
        sums = G.sum(axis=1)
        scaled = (np.stack(rows) - np.outer(sums, self._mean)) / self._deviation
        return np.column_stack([scaled, sums]).ravel() / self._total

    def _penalty(self, v: F64) -> F64:
        """Return v without the constants, which go without a penalty."""
        V = v.reshape(self._shape).copy()
        V[:, -1] = 0.0
        return V.ravel()

    def _penalised(self, value: float, v: F64) -> float:
        held = self._penalty(v)
        return value / self._total + 0.5 * self.l2 * float(held @ held)  # (2)
