"""Linear scores s = X w under any loss.

The weights minimise `rankwright.models.linear_problem` (1), in which l2 penalises w as if each
feature had unit standard deviation (``scale``); they are reported in the scale of the data. No
intercept: it changes no ranking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np
from scipy import sparse

from rankwright import registry
from rankwright.core.compat import check_fit
from rankwright.core.products import (
    times_vector,
    transposed_squares_times_vector,
    transposed_times_vector,
)
from rankwright.core.types import F64, AnyArray, FloatMatrix, Loss, Solver, SolveResult, Watch
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import document_weight, order_weight
from rankwright.models.linear_problem import LinearProblem
from rankwright.models.missing import fill_values, filled

PATH = tuple(float(10.0**power) for power in np.arange(1.0, -7.0, -1.0))


@dataclass(frozen=True, slots=True)
class Linear:
    """A weight for each feature; readable, quick, and at home with few or sparse data.

    Parameters
    ----------
    l2 : float or "auto"
        Ridge penalty; "auto" tries 10, 1, …, 1e-6 and keeps the best on valid.
    scale : bool
        Penalise weights as if all features had unit standard deviation.
    nonnegative : bool
        Allow no negative weight.
    missing : None, "mean" or "zero"
        What stands for a missing value; None refuses them.
    solver : str
        Who minimises: ``rankwright list solvers`` shows them.
    tolerance, max_iterations
        When the solver stops.
    """

    l2: float | str = 1e-3
    scale: bool = True
    nonnegative: bool = False
    missing: str | None = None
    solver: str = "lbfgs"
    tolerance: float = 1e-6
    max_iterations: int = 500

    def fit(
        self,
        loss: Loss,
        data: RankingData,
        *,
        watch: Watch,
        start: FittedLinear | None = None,
        seed: int = 0,  # noqa: ARG002
        n_threads: int | None = None,
    ) -> FittedLinear:
        """Minimise the loss, from the weights of ``start`` where given."""
        solver = self._solver(loss)
        fill = fill_values(data.X, self.missing)
        X = filled(data.X, fill, "linear")
        deviation = _deviations(X, document_weight(data)) if self.scale else np.ones(X.shape[1])
        valid = None if watch.valid is None else filled(watch.valid.X, fill, "linear")
        if self.l2 == "auto" and valid is None:
            raise UsageError("l2='auto' is chosen on valid data: give eval_set, or a number.")
        bound = loss.bind(data, n_threads=n_threads)
        total = float(order_weight(data).sum()) or 1.0
        v = np.zeros(data.n_features) if start is None else start.coef * deviation
        tried: list[SolveResult] = []
        for t, l2 in enumerate(PATH if self.l2 == "auto" else (float(self.l2),), start=1):
            problem = LinearProblem(
                X, data.indptr, bound, total, l2=l2, deviation=deviation, n_threads=n_threads
            )
            tried.append(solver.solve(problem, v))
            v = tried[-1].w
            scores = problem.scores(v) if watch.wants_train else None
            on_valid = None if valid is None else times_vector(valid, v / deviation)
            if watch.seen(t, tried[-1].value, scores, on_valid):
                break
        best = tried[min(watch.best(), len(tried)) - 1]
        return FittedLinear(best.w / deviation, fill, data.n_features, solution=best)

    def _solver(self, loss: Loss) -> Solver:
        """Return the chosen solver with those of our parameters that it has."""
        kind = registry.resolve("solvers", self.solver)
        check_fit(self.solver, loss, registry.all_of("solvers"))
        if not hasattr(kind, "solve"):
            raise UsageError(f"{self.solver} does not solve for the weights of a linear model.")
        own = {one.name for one in fields(kind)} & {one.name for one in fields(self)}
        if self.nonnegative and "nonnegative" not in own:
            raise UsageError(f"{self.solver} knows no bounds; for nonnegative=True use lbfgs.")
        made: Solver = kind(**{name: getattr(self, name) for name in own})
        return made

    @staticmethod
    def restore(
        arrays: Mapping[str, AnyArray],
        texts: Mapping[str, str],  # noqa: ARG004
        n_features: int,
    ) -> FittedLinear:
        """Build the fitted model from its own arrays and texts."""
        return FittedLinear(arrays["coef"], arrays.get("fill"), n_features)


@dataclass(frozen=True)
class FittedLinear:
    """One weight per feature, in the scale of the data, and what stands for a missing value.

    ``solution`` tells how the solver ended, where the model was just fitted.
    """

    coef: F64
    fill: F64 | None
    n_features: int
    solution: SolveResult | None = field(default=None, compare=False)

    def scores(self, X: FloatMatrix, *, n_threads: int | None = None) -> F64:
        """Return the score of each row."""
        return times_vector(filled(X, self.fill, "linear"), self.coef, n_threads=n_threads)

    def contributions(self, X: FloatMatrix) -> F64:
        """Return what each feature adds to the score of each row, and 0 as the last column."""
        whole = filled(X, self.fill, "linear")
        dense = whole.toarray() if sparse.issparse(whole) else whole
        return np.column_stack([dense * self.coef, np.zeros(X.shape[0])])

    def arrays(self) -> dict[str, AnyArray]:
        """Return the weights and the fill values."""
        return {"coef": self.coef} if self.fill is None else {"coef": self.coef, "fill": self.fill}

    def texts(self) -> dict[str, str]:
        """Return nothing: a linear model is arrays alone."""
        return {}


def _deviations(X: FloatMatrix, weight: F64) -> F64:
    """Return each feature's standard deviation over weighted documents, 1 where it is constant."""
    total = float(weight.sum())
    mean = transposed_times_vector(X, weight) / total
    square = transposed_squares_times_vector(X, weight) / total
    deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
    return np.where(deviation > 1e-9 * np.abs(mean), deviation, 1.0)
