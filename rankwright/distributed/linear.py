"""Linear models over data in partitions: every loss, every solver that goes by weights.

A problem in the weights is made of sums over documents and queries
(`rankwright.models.linear_problem`). Each part gives its own; the driver adds them **in the order of
the parts**, so that results are the same bits for any number of workers, and for the same parts in
one process (`Partitions.local`). A message carries as many numbers as there are features, whatever
the number of documents.

How solvers go over parts:

- lbfgs, tron, bundle, alternating: as over one data set; every look at the data is one round of
  messages.
- sgd and column_generation: a round of messages for each step, which is slow.
- online: in each pass every part walks its own queries from the same weights, and the ends are
  averaged with the number of queries as their weight (`mcdonald2010perceptron`), so that one pass
  is one round of messages. It ends near to where one walk over all queries does, not at the same
  weights.
- coordinate: steps along single columns would need a message each. A sweep is a Newton step on its
  block of columns in their place, with the l1 term kept whole (`yuan2012glmnet`): the parts add up
  the block of the Hessian, the driver goes along its columns. It ends at the same optimum.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rankwright.core.types import F64, I64, AnyArray, Callback, Loss
from rankwright.distributed.linear_columns import PartitionedColumns
from rankwright.distributed.linear_sums import (
    PartitionedSums,
    PerPart,
    in_order,
    pairs_in_order,
)
from rankwright.distributed.partitions import Partitions
from rankwright.distributed.pieces import Moments, Recipe, Share, known_values, moments
from rankwright.errors import IncompatibleError, UsageError
from rankwright.models import missing as missing_values
from rankwright.models.linear import FittedLinear, Linear, deviations_of
from rankwright.models.linear_problem import SummedProblem
from rankwright.solvers.alternating import Alternating
from rankwright.solvers.choice import lacking, steps_by_column
from rankwright.solvers.online import Online, OnlineState


def fit_linear(
    model: Linear,
    loss: Loss,
    data: Partitions,
    *,
    callback: Callback,
    solver: Any = None,
    start: FittedLinear | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,  # noqa: ARG001
) -> FittedLinear:
    """Minimise ``loss`` over all parts, from the weights of ``start`` where given.

    Every part is the work of one thread: ``n_jobs`` is that of other fits.
    """
    chosen = model.solver_for(loss, solver, random_state)
    if isinstance(chosen, Online):
        chosen = AveragedOnline(**asdict(chosen))
    if isinstance(chosen, Alternating) and chosen.learning_rate != 1.0:
        raise UsageError(
            "alternating with a learning_rate below 1 runs in one process; leave it at 1."
        )
    if steps_by_column(chosen) and not loss.traits.hess_vec:
        raise IncompatibleError(
            lacking("coordinate over partitions", ["hess_vec"], loss, "Call the ranker's own fit.")
        )
    work = PartitionedWork(model, loss, data, seeded=hasattr(chosen, "random_state"))
    with work.open():
        return model.fit_over(work, chosen, callback=callback, start=start)


class PartitionedWork:
    """Data in partitions, as `rankwright.models.linear.Linear.fit_over` sees them.

    ``fill``, ``deviation`` and the weights of all queries come from sums over the parts. What the
    callback is given in place of scores are weights: its evaluators work where the data are.
    """

    def __init__(self, model: Linear, loss: Loss, parts: Partitions, *, seeded: bool) -> None:
        self.fill = fill_values(parts, model.missing)
        found: list[Moments] = parts.map(moments, self.fill, loss)
        weight = in_order(one.weight for one in found)
        sums, squares = in_order(m.sums for m in found), in_order(m.squares for m in found)
        self.deviation = (
            deviations_of(weight, sums, squares) if model.scale else np.ones(parts.n_features)
        )
        total = in_order(one.ordered_weight for one in found) or 1.0
        largest = [one.largest for one in found if one.largest is not None]
        recipe = Recipe(
            uuid.uuid4().hex, loss, self.fill, max(largest) if largest else None, seeded
        )
        counts = np.array([one.ordered for one in found], np.int64)
        self._sums = PartitionedSums(parts, recipe)
        self._loss, self._total, self._counts = loss, total, counts

    @contextmanager
    def open(self) -> Iterator[None]:
        """Let workers forget what they kept when the fit has ended."""
        try:
            yield
        finally:
            self._sums.close()

    def problem(self, l2: float) -> PartitionedProblem:
        """Return the problem with this penalty."""
        return PartitionedProblem(
            self._sums,
            self._total,
            self._counts,
            l2=l2,
            deviation=self.deviation,
            difference=self._loss.traits.difference,
        )

    def by_column(self) -> PartitionedColumns:
        """Return the problem for coordinate descent, with penalties to be set."""
        return PartitionedColumns(self._sums, self._total, self.deviation)

    def train_scores(self, problem: Any, v: F64) -> tuple[F64, F64 | None]:  # noqa: ARG002
        """Return what makes the scores: weights, and what stands for missing values."""
        return v / self.deviation, self.fill

    def valid_scores(self, w: F64) -> tuple[F64, F64 | None]:
        """Return what makes the scores: weights, and what stands for missing values."""
        return w, self.fill


class PartitionedProblem(SummedProblem):
    """The problem over partitions, query by query too.

    Parameters
    ----------
    counts
        Number of queries with an order of each part.
    """

    def __init__(
        self,
        sums: PartitionedSums,
        total_weight: float,
        counts: I64,
        *,
        l2: float,
        deviation: F64,
        difference: bool,
    ) -> None:
        super().__init__(sums, total_weight, l2=l2, deviation=deviation, difference=difference)
        self._over: PartitionedSums = sums
        self._counts, self._ends = counts, np.cumsum(counts)
        self.n_parts = int(counts.sum())
        self._share = Share(deviation, l2, total_weight / max(1, self.n_parts))

    def state(self) -> dict[str, AnyArray]:
        """Return what answers depend on beside the weights: the round of the noise."""
        return {"round": np.array([self._over.round], np.int64)}

    def load_state(self, kept: Mapping[str, AnyArray]) -> None:
        """Be as the problem that had this `state`."""
        self._over.round = int(kept["round"][0])

    def begin_pass(self, t: int, v: F64) -> None:  # noqa: ARG002
        """Take the noise of pass ``t`` from here on."""
        self._over.round = t

    def part_grad(self, parts: I64, v: F64, out: F64) -> float:
        """Write the gradient of the mean over some queries to ``out`` and return that mean."""
        asked, own = self._by_part(parts)
        answers = self._over.each("part_grad", PerPart(own), v, self._share, only=asked)
        shares = [len(one) / len(parts) for one in own]
        out[:] = self._l2 * v
        value = 0.5 * self._l2 * float(v @ v)
        for share, (mean, slope) in zip(shares, answers, strict=True):
            value += share * mean
            out += share * slope
        return value

    def walk(self, solver: Any, state: OnlineState, order: I64) -> OnlineState:
        """Let each part walk its own queries of ``order`` from ``state``; return the mean end."""
        asked, own = self._by_part(order)
        self._over.round = state.t
        ends = self._over.each("walk", solver, state, PerPart(own), self._share, only=asked)
        counts = [len(one) for one in own]
        w = in_order(n * end.w for n, end in zip(counts, ends, strict=True)) / len(order)
        mean = in_order(n * end.mean for n, end in zip(counts, ends, strict=True)) / len(order)
        paid = in_order(end.paid - state.paid for end in ends)
        steps, smoothness = max(e.t for e in ends), max(e.smoothness for e in ends)
        return OnlineState(w, mean, steps, smoothness, state.paid + paid)

    def _by_part(self, queries: I64) -> tuple[list[int], list[I64]]:
        """Return the parts that have some of these queries, and their own numbers of them."""
        of = np.searchsorted(self._ends, queries, side="right")
        asked = np.unique(of).tolist()
        firsts = self._ends - self._counts
        return asked, [queries[of == part] - firsts[part] for part in asked]


@dataclass(frozen=True)
class AveragedOnline(Online):
    """Online steps in each part from the same weights, averaged after each pass."""

    def walk(self, problem: Any, state: OnlineState, parts: I64) -> OnlineState:
        """Take a step for each of ``parts``, each part of the data on its own."""
        plain = Online(**asdict(self))
        end: OnlineState = problem.walk(plain, state, parts)
        return end


def fill_values(parts: Partitions, missing: str | None) -> F64 | None:
    """Return what stands for a missing value of each feature, over all parts."""
    if missing != "mean":  # no value of the data has a say
        return missing_values.fill_values(np.empty((0, parts.n_features)), missing)
    sums, counts = pairs_in_order(parts.map(known_values))
    means: F64 = np.divide(sums, counts, out=np.zeros(parts.n_features), where=counts > 0.0)
    return means
