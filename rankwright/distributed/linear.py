"""Linear models over data in partitions, fitted with L-BFGS or TRON.

Objective (1) of `rankwright.models.linear_objective` is a sum over queries. Each worker holds a
`PartObjective` for each of its partitions. The driver adds their values, gradients and Hessian
products **in the order of the partitions**, so that the weights are the same bits for any number of
workers, and for the same partitions in one process (`Partitions.local`). A pass over the data costs
one message to each worker, with as many numbers as there are features.

Every answer depends only on the partition and on the arguments. If a worker is lost, Dask builds
its objectives again on another worker, and the fit ends with the same bits. (A loss that starts its
inner problems from their last solution, such as interval, may differ in the last digits.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from rankwright.core.parameters import part_name
from rankwright.core.products import (
    one_blas_thread,
    transposed_squares_times_vector,
    transposed_times_vector,
)
from rankwright.core.types import F64, I64, Loss, Round
from rankwright.data.ranking_data import RankingData
from rankwright.distributed.partitions import Partitions, largest_of_all
from rankwright.errors import DataError, IncompatibleError
from rankwright.losses.base import bound_loss, document_weight, order_weight
from rankwright.models.linear import (
    FittedLinear,
    Linear,
    check_penalties,
    fitted_at,
    or_one,
    ridges,
    spreads_of,
    sums_around,
)
from rankwright.models.linear_objective import LinearObjective, ScaledVariables, diagonal, penalty
from rankwright.models.missing import fill_values, filled
from rankwright.solvers.choice import solver_needs

_AVAILABLE = frozenset({"smooth", "integrable", "hess_vec"})  # to solvers


@dataclass(frozen=True)
class PartitionedLinear:
    """Fit a `Linear` model over partitions."""

    takes_solver: ClassVar[bool] = True

    model: Linear

    def rounds(
        self,
        loss: Loss,
        data: Partitions,
        valid: Any = None,
        *,
        solver: Any = None,
        start: FittedLinear | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,  # noqa: ARG002
    ) -> Iterator[Round]:
        """Yield a round for each l2, as `Linear.rounds`; a partition is the work of one thread.

        Rounds contain the fitted model instead of scores: it is evaluated on the workers.
        """
        check_penalties(valid, l1=self.model.l1, l2=self.model.l2)
        solver = self._solver(loss, solver, random_state)
        fill = mean_values(data) if self.model.missing == "mean" else None
        if fill is None:  # independent of the data
            fill = fill_values(np.empty((0, data.n_features)), self.model.missing)
        objective = PartitionedObjective.build(data, loss, fill, scale=self.model.scale)
        v = objective.variables_of(start)
        for number, l2 in enumerate(ridges(self.model.l2), 1):
            objective.l2 = l2
            with one_blas_thread():
                solution = solver.solve(objective, v)
            v = solution.w
            fitted = fitted_at(objective, solution, fill)
            yield Round(number, solution.value, fitted, partial(_unchanged, fitted))

    def _solver(self, loss: Loss, given: Any, random_state: int) -> Any:
        """Return the solver; raise unless it needs only sums over the partitions."""
        solver = self.model.solver_for(loss, given, random_state)
        if not solver_needs(solver) <= _AVAILABLE:
            raise IncompatibleError(
                f"solver '{part_name('solvers', solver)}' runs in one process; over partitions, "
                "linear models take lbfgs and tron, which need a smooth loss. Call the ranker's "
                "own fit, or choose another loss."
            )
        return solver


def _unchanged(model: FittedLinear) -> FittedLinear:
    return model


class PartitionedObjective(ScaledVariables):
    """The objective of all partitions.

    Parameters
    ----------
    parts
    objectives : list of PartObjective
        On the workers, without the penalty.
    scale, center
        See `LinearObjective`.
    """

    def __init__(
        self, parts: Partitions, objectives: list[Any], scale: F64, center: F64 | None
    ) -> None:
        super().__init__(scale, center)
        self.l2 = 0.0
        self._parts, self._objectives = parts, objectives
        self._last = np.zeros(self.size)

    @classmethod
    def build(
        cls, parts: Partitions, loss: Loss, fill: F64 | None, *, scale: bool
    ) -> PartitionedObjective:
        """Build the objectives of all partitions on the workers."""
        moments: list[Moments] = parts.map(moments_of, fill)
        weight = sum_in_order(m.weight for m in moments)
        sums, squares = (
            sum_in_order(m.sums for m in moments),
            sum_in_order(m.squares for m in moments),
        )
        for column in np.flatnonzero(~np.isfinite(squares))[:1]:
            raise DataError(
                f"feature column {column} has values whose squares overflow in a linear model; "
                "divide it, or take its logarithm."
            )

        def around(columns: I64, center: F64) -> tuple[F64, F64]:
            return sum_pairs_in_order(parts.map(part_sums_around, fill, columns, center))

        spec = ObjectiveSpec(
            loss,
            fill,
            scale=or_one(spreads_of(weight, sums, squares, around))
            if scale
            else np.ones(len(sums)),
            center=None if loss.traits.shift_invariant else sums / (weight or 1.0),
            total_weight=sum_in_order(m.ordered_weight for m in moments) or 1.0,
            largest=largest_of_all(parts, loss),
        )
        n = len(parts)
        objectives = parts.backend.call(PartObjective, parts.parts, parts.first_queries, [spec] * n)
        return cls(parts, objectives, spec.scale, spec.center)

    def grad(self, v: F64, out: F64) -> float:
        """Write the gradient to ``out`` and return the objective."""
        self._last = v.copy()
        value, out[:] = sum_pairs_in_order(self._map(PartObjective.grad, self._last))
        return float(value) + penalty(self.l2, v[: self.n_features], out)

    def hess_vec(self, u: F64, out: F64) -> None:
        """Write the Hessian at the last `grad` times ``u`` to ``out``."""
        out[:] = sum_in_order(self._map(PartObjective.hess_vec, self._last, u))
        penalty(self.l2, u[: self.n_features], out)

    def precondition(self) -> F64:
        """Return a positive diagonal that is roughly proportional to that of the Hessian."""
        return diagonal(sum_in_order(self._map(PartObjective.squares)))

    def _map(self, method: Any, *args: Any) -> list[Any]:
        rows = [(objective, *args) for objective in self._objectives]
        return self._parts.map_rows(method, rows)


def sum_in_order(values: Iterable[Any]) -> Any:
    """Add numbers or arrays from the first to the last."""
    first, *others = values
    total = first
    for value in others:
        total = total + value
    return total


def sum_pairs_in_order(pairs: Iterable[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Add the first numbers of all pairs, and the second ones."""
    first, second = zip(*pairs, strict=True)
    return sum_in_order(first), sum_in_order(second)


# --- on the workers ----------------------------------------------------------------------------


@dataclass(frozen=True)
class ObjectiveSpec:
    """Arguments of a `PartObjective` that are the same for all partitions.

    Parameters
    ----------
    loss
    fill
        Replacement of missing values.
    scale, center, total_weight
        See `LinearObjective`; those of all the data.
    largest
        Maximum over all the data, for losses with the trait.
    """

    loss: Loss
    fill: F64 | None
    scale: F64
    center: F64 | None
    total_weight: float
    largest: float | None


class PartObjective:
    """The `LinearObjective` of one partition, without the penalty.

    Parameters
    ----------
    part
    first_query
        Number of the first query of ``part`` in all the data, which numbers sampled noise.
    spec
    """

    def __init__(self, part: RankingData, first_query: int, spec: ObjectiveSpec) -> None:
        self._arguments = part, first_query, spec
        part = part._replace(X=filled(part.X, spec.fill, "linear"))
        options: dict[str, Any] = {} if spec.largest is None else {"largest": spec.largest}
        loss = bound_loss(spec.loss, part, n_jobs=1, **options)
        if spec.loss.traits.stochastic:
            loss.number_from(first_query)
        self._objective = LinearObjective(
            loss,
            part,
            spec.loss.traits,
            scale=spec.scale,
            center=spec.center,
            total_weight=spec.total_weight,
            n_jobs=1,
        )
        self._last: F64 | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Build it again where Dask moves it: bound losses need not support pickling."""
        return PartObjective, self._arguments

    def grad(self, v: F64) -> tuple[float, F64]:
        """Return the value and the gradient."""
        self._last = v
        gradient = np.empty(self._objective.size)
        with one_blas_thread():
            return self._objective.grad(v, gradient), gradient

    def hess_vec(self, v: F64, u: F64) -> F64:
        """Return the Hessian at ``v`` times ``u``."""
        if self._last is None or not np.array_equal(self._last, v):
            self.grad(v)
        product = np.empty(self._objective.size)
        with one_blas_thread():
            self._objective.hess_vec(u, product)
        return product

    def squares(self) -> F64:
        """Return `LinearObjective.squares`."""
        return self._objective.squares()


@dataclass(frozen=True)
class Moments:
    """Sums over the documents of one partition, and over its queries that have an order."""

    weight: float
    sums: F64
    squares: F64
    ordered_weight: float


def moments_of(part: RankingData, fill: F64 | None) -> Moments:
    """Return the sums for means, deviations and the total weight."""
    X, weight = filled(part.X, fill, "linear"), document_weight(part)
    return Moments(
        float(weight.sum()),
        transposed_times_vector(X, weight, n_jobs=1),
        transposed_squares_times_vector(X, weight, n_jobs=1),
        float(order_weight(part).sum()),
    )


def part_sums_around(
    part: RankingData, fill: F64 | None, columns: I64, center: F64
) -> tuple[F64, F64]:
    """Return the weighted sums of x - c and of its square for some columns."""
    return sums_around(filled(part.X, fill, "linear"), document_weight(part), columns, center)


def mean_values(parts: Partitions) -> F64:
    """Return the mean of each feature over its values that are not missing, or 0."""
    sums, counts = sum_pairs_in_order(parts.map(sums_of_present))
    means: F64 = np.divide(sums, counts, out=np.zeros(parts.n_features), where=counts > 0.0)
    return means


def sums_of_present(part: RankingData) -> tuple[F64, F64]:
    """Return the sum and the number of the values of each feature that are not missing."""
    X: Any = part.X
    if not isinstance(X, np.ndarray):
        missing = np.bincount(X.indices[np.isnan(X.data)], minlength=part.n_features)
    else:
        missing = np.isnan(X).sum(axis=0)
    whole = filled(X, np.zeros(part.n_features), "linear")
    sums = transposed_times_vector(whole, np.ones(part.n_documents), n_jobs=1)
    return sums, (part.n_documents - missing).astype(np.float64)
