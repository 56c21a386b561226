"""Linear models over data in partitions: every loss, every solver that goes by weights.

A problem in the weights is made of sums over documents and queries
(`rankwright.models.linear_problem`). Each part gives its own; the driver adds them **in the order
of the parts**, so that results are the same bits for any number of workers, and for the same parts
in one process (`Partitions.local`). A message carries as many numbers as there are features,
whatever the number of documents.

How solvers go over parts:

- lbfgs, tron, bundle, alternating: as over one data set; every pass over the data is one round of
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

import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np

from rankwright.core.products import (
    one_blas_thread,
    transposed_squares_times_vector,
    transposed_times_vector,
)
from rankwright.core.types import F64, I64, AnyArray, Callback, Loss
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.distributed.cluster import LocalBackend
from rankwright.distributed.partitions import Partitions, largest_of
from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.losses.base import bound_loss, document_weight, order_weight, set_iteration
from rankwright.models.linear import FittedLinear, Linear, filled, or_one, spreads_of, sums_around
from rankwright.models.linear import fill_values as fill_values_of
from rankwright.models.linear_problem import LinearProblem, LinearSums, SummedProblem, Sums
from rankwright.solvers.alternating import Alternating
from rankwright.solvers.choice import lacking, steps_by_column
from rankwright.solvers.coordinate import residuals
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
        weight = sum_in_order(one.weight for one in found)
        sums, squares = sum_in_order(m.sums for m in found), sum_in_order(m.squares for m in found)
        for column in np.flatnonzero(~np.isfinite(squares))[:1]:
            raise DataError(
                f"feature column {column} has values whose squares overflow in a linear model; "
                "divide it, or take its logarithm."
            )

        def around(columns: I64, centre: F64) -> tuple[F64, F64]:
            pairs = parts.map(part_sums_around, self.fill, columns, centre)
            return sum_in_order(a for a, _ in pairs), sum_in_order(b for _, b in pairs)

        self.deviation = np.ones(parts.n_features)
        if model.scale:
            self.deviation = or_one(spreads_of(weight, sums, squares, around))
        total = sum_in_order(one.ordered_weight for one in found) or 1.0
        largest = [one.largest for one in found if one.largest is not None]
        spec = ProblemSpec(
            uuid.uuid4().hex, loss, self.fill, max(largest) if largest else None, seeded
        )
        counts = np.array([one.ordered for one in found], np.int64)
        self._sums = PartitionedSums(parts, spec)
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
        self._share = PenaltyShare(deviation, l2, total_weight / max(1, self.n_parts))

    def state(self) -> dict[str, AnyArray]:
        """Return what values depend on beside the weights: the round of the noise."""
        return {"round": np.array([self._over.round], np.int64)}

    def load_state(self, kept: Mapping[str, AnyArray]) -> None:
        """Be as the problem that had this `state`."""
        self._over.round = int(kept["round"][0])

    def begin_pass(self, t: int, v: F64) -> None:  # noqa: ARG002
        """Take the noise of pass ``t`` from here on."""
        self._over.round = t

    def part_grad(self, parts: I64, v: F64, out: F64) -> float:
        """Write the gradient of the mean over some queries to ``out`` and return that mean."""
        chosen, own = self._by_part(parts)
        found = self._over.each("part_grad", PerPart(own), v, self._share, only=chosen)
        shares = [len(one) / len(parts) for one in own]
        out[:] = self._l2 * v
        value = 0.5 * self._l2 * float(v @ v)
        for share, (mean, gradient) in zip(shares, found, strict=True):
            value += share * mean
            out += share * gradient
        return value

    def walk(self, solver: Any, state: OnlineState, order: I64) -> OnlineState:
        """Let each part walk its own queries of ``order`` from ``state``; return the mean end."""
        chosen, own = self._by_part(order)
        self._over.round = state.t
        ends = self._over.each("walk", solver, state, PerPart(own), self._share, only=chosen)
        counts = [len(one) for one in own]
        w = sum_in_order(n * end.w for n, end in zip(counts, ends, strict=True)) / len(order)
        mean = sum_in_order(n * end.mean for n, end in zip(counts, ends, strict=True)) / len(order)
        paid = sum_in_order(end.paid - state.paid for end in ends)
        steps, smoothness = max(e.t for e in ends), max(e.smoothness for e in ends)
        return OnlineState(w, mean, steps, smoothness, state.paid + paid)

    def _by_part(self, queries: I64) -> tuple[list[int], list[I64]]:
        """Return the parts that have some of these queries, and their own numbers of them."""
        of = np.searchsorted(self._ends, queries, side="right")
        chosen = np.unique(of).tolist()
        firsts = self._ends - self._counts
        return chosen, [queries[of == part] - firsts[part] for part in chosen]


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
    if missing != "mean":  # independent of the data
        return fill_values_of(np.empty((0, parts.n_features)), missing)
    sums, counts = sum_pairs_in_order(parts.map(known_values))
    means: F64 = np.divide(sums, counts, out=np.zeros(parts.n_features), where=counts > 0.0)
    return means


# --- by columns ------------------------------------------------------------------------------
# Coordinate descent over partitions: Newton steps on blocks of columns, with the l1 term whole.
#
# A step along a single column would need a message to every part. A sweep over a block of columns
# is one step in their place: with g and H the gradient and Hessian of the smooth part there,
#
#     p = argmin  g'p + 1/2 p'H p + l1 |w + p|_1                                                (1)
#
# is found on the driver, a column at a time, and w goes along p as far as the objective falls
# (`yuan2012glmnet`). The parts give g and H, whose size is that of the block.


_ALONG = 100  # most passes over a block of columns
_HALVINGS = 30


class BlockSums(Sums, Protocol):
    """Sums that give a block of the Hessian too."""

    def hess_block(self, at: F64, columns: I64) -> F64:
        """Return the rows and columns ``columns`` of X' H X at the weights ``at``."""


class PartitionedColumns:
    """The problem with an l1 penalty, for `rankwright.solvers.coordinate`.

    ``sweep`` minimises along its columns the second-order model of the loss plus the penalties and
    goes as far that way as the objective falls.
    """

    def __init__(self, sums: BlockSums, total_weight: float, deviation: F64) -> None:
        self.size, self.l1, self.l2 = sums.n_features, 0.0, 0.0
        self._sums, self._total, self._deviation = sums, total_weight, deviation

    def value(self, w: F64) -> float:
        """Return the objective."""
        return self._problem().value(w) + self.l1 * float(np.abs(w).sum())

    def grad(self, w: F64, out: F64) -> float:
        """Write the gradient of all but the l1 term to ``out`` and return the objective."""
        return self._problem().grad(w, out) + self.l1 * float(np.abs(w).sum())

    def sweep(self, w: F64, columns: I64, *, step: str = "log1p") -> F64:
        """Take a step along ``columns`` together, changing ``w``.

        Returns how far from optimal each column was before.
        """
        if step != "log1p":
            raise UsageError("step='bound' runs in one process; leave step out.")
        gradient = np.empty(self.size)
        before = self.grad(w, gradient)
        missed: F64 = residuals(gradient, w, self.l1)[columns]
        factor = 1.0 / self._deviation[columns]
        block = self._sums.hess_block(w / self._deviation, columns)
        H = block * np.outer(factor, factor) / self._total + self.l2 * np.eye(len(columns))
        p = _along_columns(gradient[columns], H, w[columns], self.l1)
        own = w[columns]
        promised = float(gradient[columns] @ p)
        promised += self.l1 * float(np.abs(own + p).sum() - np.abs(own).sum())
        length = 1.0
        for _ in range(_HALVINGS):
            w[columns] = own + length * p
            if self.value(w) <= before + 1e-4 * length * promised:
                return missed
            length *= 0.5
        w[columns] = own
        return missed

    def _problem(self) -> SummedProblem:
        return SummedProblem(self._sums, self._total, l2=self.l2, deviation=self._deviation)


def _along_columns(g: F64, H: F64, w: F64, l1: float) -> F64:
    """Return the p of (1), a column at a time."""
    p, Hp = np.zeros(len(g)), np.zeros(len(g))
    for _ in range(_ALONG):
        largest = 0.0
        for j in range(len(g)):
            bend = max(H[j, j], 1e-12)
            at = w[j] + p[j]
            aim = at - (g[j] + Hp[j]) / bend
            reached = np.sign(aim) * max(abs(aim) - l1 / bend, 0.0)
            if reached != at:
                Hp += (reached - at) * H[:, j]
                p[j] += reached - at
                largest = max(largest, bend * abs(reached - at))
        if largest <= 1e-9 * (np.abs(g).max(initial=0.0) + l1):
            break
    return p


# --- sums over the parts ---------------------------------------------------------------------
# Sums of a linear problem over parts of the data, added up in the order of the parts.
#
# They are those of `rankwright.models.linear_problem`: each part is summed where it is
# (`PartProblem`), and the driver adds these sums from the first to the last.


class PartitionedSums:
    """Sums over parts, added up in their order; see `rankwright.models.linear_problem.Sums`."""

    def __init__(self, parts: Partitions, spec: ProblemSpec) -> None:
        self.n_features = parts.n_features
        self._parts, self._spec = parts, spec
        self._numbers = list(range(len(parts)))
        self._firsts = parts.first_queries
        self._at = np.zeros(self.n_features)
        self._turn = 0
        self.round = 0  # of the noise, where the loss has any

    def scores(self, w: F64) -> Any:  # noqa: ARG002
        """Refuse: scores stay where the data are."""
        raise UsageError("scores of partitions stay on their workers; use distributed.predict.")

    def value(self, w: F64) -> float:
        """Return the loss."""
        return float(sum_in_order(self.each("value", w)))

    def grad(self, w: F64) -> tuple[float, F64]:
        """Return the loss and X' g."""
        self._at = w.copy()
        return sum_pairs_in_order(self.each("grad", w))

    def hess_vec(self, u: F64) -> F64:
        """Return X' H X u at the w of the last ``grad``."""
        total: F64 = sum_in_order(self.each("hess_vec", self._at, u))
        return total

    def hess_block(self, at: F64, columns: I64) -> F64:
        """Return a block of X' H X at the weights ``at``."""
        total: F64 = sum_in_order(self.each("hess_block", at, columns))
        return total

    def squares(self) -> F64:
        """Return the weighted sum of squares of each feature."""
        total: F64 = sum_in_order(self.each("squares"))
        return total

    def convex_part(self, w: F64) -> tuple[float, F64]:
        """Return M and X' times its gradient, where the loss is M - N; else as ``grad``."""
        return sum_pairs_in_order(self.each("convex_part", w))

    def concave_part(self, w: F64) -> tuple[float, F64]:
        """Return N and X' times its gradient."""
        return sum_pairs_in_order(self.each("concave_part", w))

    def targets(self, w: F64, near: Any, rate: float) -> list[Any]:
        """Return the targets of each part, which stay where they are."""
        assert near is None or rate == 1.0, "fit_linear has refused other rates"
        columns = zip(*self._rows("targets", w), strict=True)
        return self._parts.backend.call(call_part, *map(list, columns))

    def with_targets(self, r: list[Any]) -> FixedTargetSums:
        """Return the sums of coming near to fixed targets."""
        self._turn += 1
        return FixedTargetSums(self, r, self._turn)

    def each(self, method: str, *args: Any, only: list[int] | None = None) -> list[Any]:
        """Return the results of a method of all parts, or of those in ``only``.

        An argument that is a `PerPart` has its own value for each of these parts.
        """
        return self._parts.map_rows(call_part, self._rows(method, *args, only=only), only)

    def _rows(
        self, method: str, *args: Any, only: list[int] | None = None
    ) -> list[tuple[Any, ...]]:
        """Return the arguments of `call_part` for each part."""
        chosen = self._numbers if only is None else only
        columns = [arg.values if isinstance(arg, PerPart) else [arg] * len(chosen) for arg in args]
        call = self._spec, self.round, method
        return [
            (self._parts.parts[k], k, self._firsts[k], *call, *own)
            for k, *own in zip(chosen, *columns, strict=True)
        ]

    def each_with_targets(self, r: list[Any], turn: int, *call: Any) -> list[Any]:
        """Return the results of a method of the losses that are held to ``r``."""
        of_parts = zip(self._parts.parts, r, self._numbers, self._firsts, strict=True)
        rows = [(*own, self._spec, turn, *call) for own in of_parts]
        return self._parts.map_rows(call_part_with_targets, rows)

    def close(self) -> None:
        """Drop what workers keep for the problem."""
        if isinstance(self._parts.backend, LocalBackend):
            drop_problems(self._spec.key)
        else:
            self._parts.client.run(drop_problems, self._spec.key, on_error="ignore")


@dataclass(frozen=True)
class PerPart:
    """An argument with a value for each part."""

    values: list[Any]


class FixedTargetSums(PartitionedSums):
    """The sums of losses that are held to targets; only what L-BFGS asks for."""

    def __init__(self, sums: PartitionedSums, r: list[Any], turn: int) -> None:
        super().__init__(sums._parts, sums._spec)
        self._sums, self._r, self._turn = sums, r, turn

    def value(self, w: F64) -> float:
        """Return the loss."""
        return float(sum_in_order(self._sums.each_with_targets(self._r, self._turn, "value", w)))

    def grad(self, w: F64) -> tuple[float, F64]:
        """Return the loss and X' g."""
        return sum_pairs_in_order(self._sums.each_with_targets(self._r, self._turn, "grad", w))


def sum_in_order(values: Any) -> Any:
    """Add numbers or arrays from the first to the last."""
    rest = iter(values)
    total = next(rest)
    for value in rest:
        total = total + value
    return total


def sum_pairs_in_order(pairs: Any) -> tuple[Any, Any]:
    """Add the first of all pairs, and the second, from the first pair to the last."""
    pairs = list(pairs)
    return sum_in_order(a for a, _ in pairs), sum_in_order(b for _, b in pairs)


# --- on the workers ----------------------------------------------------------------------------
# What a worker does for a linear problem: the sums over one part of the data.
#
# Each call is a pure function of the part and of its arguments (weights, and the point at which a
# Hessian is meant), so Dask may run it on any worker, and again when one is lost. The bound loss
# and its buffers stay on the worker between calls, as a `PartProblem`; a worker that has none makes
# it.
#
# (A loss that starts its inner problems from their last solution, as interval does, may end in
# other last digits on a worker that has just made its `PartProblem`.)


_MOST_PROBLEMS = 8  # whose parts a worker keeps; they are dropped when a fit ends

_part_problems: dict[tuple[str, int], PartProblem] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class ProblemSpec:
    """All that a `PartProblem` is made from, beside the part.

    Parameters
    ----------
    key
        Of the problem, unlike any other.
    loss
    fill
        What stands for missing values.
    largest
        What the loss has to know of all the data, where it asks for it.
    seeded
        Whether queries are visited in an order fixed by their content.
    """

    key: str
    loss: Loss
    fill: F64 | None
    largest: float | None
    seeded: bool


@dataclass(frozen=True)
class PenaltyShare:
    """What (3) of `rankwright.models.linear_problem` is to a part.

    Parameters
    ----------
    deviation, l2
        D and the penalty.
    per_query
        W / Q: the mean weight of a query, of all data.
    """

    deviation: F64
    l2: float
    per_query: float


@dataclass(frozen=True)
class Moments:
    """Sums over a part that come before any problem."""

    weight: float
    sums: F64
    squares: F64
    ordered_weight: float
    ordered: int
    largest: float | None


class PartProblem:
    """The bound loss of one part; ``first`` is the number of its first query in all the data."""

    def __init__(self, part: RankingData, spec: ProblemSpec, first: int) -> None:
        self.lock = threading.Lock()
        if spec.seeded:
            part = in_content_order(part, n_jobs=1)[1]
        self._data = part = replace(part, X=filled(part.X, spec.fill, "linear"))
        self._traits = spec.loss.traits
        options = {} if spec.largest is None else {"largest": spec.largest}
        loss = bound_loss(spec.loss, part, n_jobs=1, **options)
        if self._traits.stochastic:
            loss.number_from(first)
        self._loss = loss
        self._visited = np.flatnonzero(order_weight(part))
        self._sums = LinearSums(
            part.X,
            loss,
            document_weight=part.sample_weight,
            difference=self._traits.difference,
            n_jobs=1,
        )
        self._at: F64 | None = None
        self._held: tuple[int, LinearSums] | None = None
        self._problem: tuple[float, LinearProblem] | None = None

    def set_iteration(self, t: int) -> None:
        """Take the noise of round ``t``, where the loss has any."""
        set_iteration(self._loss, t)

    # --- sums --------------------------------------------------------------------------------

    def value(self, w: F64) -> float:
        """Return the loss."""
        return self._sums.value(w)

    def grad(self, w: F64) -> tuple[float, F64]:
        """Return the loss and X' g."""
        self._at = w
        return self._sums.grad(w)

    def hess_vec(self, at: F64, u: F64) -> F64:
        """Return X' H X u at the weights ``at``."""
        self._come_to(at)
        return self._sums.hess_vec(u)

    def hess_block(self, at: F64, columns: I64) -> F64:
        """Return the rows and columns ``columns`` of X' H X at the weights ``at``."""
        self._come_to(at)
        block = np.empty((len(columns), len(columns)))
        unit = np.zeros(self._sums.n_features)
        for k, column in enumerate(columns.tolist()):
            unit[column] = 1.0
            block[k] = self._sums.hess_vec(unit)[columns]
            unit[column] = 0.0
        return block

    def squares(self) -> F64:
        """Return the weighted sum of squares of each feature."""
        return self._sums.squares()

    def convex_part(self, w: F64) -> tuple[float, F64]:
        """Return M and X' times its gradient."""
        self._at = None
        return self._sums.convex_part(w)

    def concave_part(self, w: F64) -> tuple[float, F64]:
        """Return N and X' times its gradient."""
        self._at = None
        return self._sums.concave_part(w)

    def targets(self, w: F64) -> F64:
        """Return the targets of the loss for the scores of w."""
        return self._sums.targets(w, None, 1.0)

    def with_targets(self, r: F64, turn: int, method: str, *args: Any) -> Any:
        """Return the result of a method of the loss held to the targets ``r`` of one turn."""
        if self._held is None or self._held[0] != turn:
            self._held = turn, self._sums.with_targets(r)
        return getattr(self._held[1], method)(*args)

    def _come_to(self, at: F64) -> None:
        if self._at is None or not np.array_equal(self._at, at):
            self.grad(at)

    # --- query by query ----------------------------------------------------------------------

    def part_grad(self, parts: I64, v: F64, share: PenaltyShare) -> tuple[float, F64]:
        """Return the mean of (3) over some queries, and its gradient, without the penalty."""
        self._at = None
        if self._problem is None or self._problem[0] != share.per_query:
            self._problem = share.per_query, self._query_by_query(replace(share, l2=0.0))
        problem = self._problem[1]
        out = np.empty(problem.size)
        return problem.part_grad(parts, v, out), out

    def walk(self, solver: Any, state: Any, parts: I64, share: PenaltyShare) -> Any:
        """Let an online solver take a step for each of ``parts``, in this order."""
        self._at = None
        # One that knows bounds from earlier passes would answer otherwise than one that does not.
        return solver.walk(self._query_by_query(share), state, parts)

    def _query_by_query(self, share: PenaltyShare) -> LinearProblem:
        """Return the problem of this part's queries, with the penalty and weights of all data."""
        return LinearProblem(
            self._data.X,
            self._data.indptr,
            self._loss,
            share.per_query * max(1, len(self._visited)),
            l2=share.l2,
            deviation=share.deviation,
            visited=self._visited,
            traits=self._traits,
            n_jobs=1,
        )


# --- called by the driver ----------------------------------------------------------------------


def call_part(
    part: RankingData,
    number: int,
    first: int,
    spec: ProblemSpec,
    t: int,
    method: str,
    *args: Any,
) -> Any:
    """Return what a method of the `PartProblem` of part ``number`` returns.

    Where the loss has noise, it is that of round ``t``.
    """
    problem = _part_problem(part, number, first, spec)
    with problem.lock, one_blas_thread():
        problem.set_iteration(t)
        return getattr(problem, method)(*args)


def call_part_with_targets(
    part: RankingData, r: F64, number: int, first: int, spec: ProblemSpec, turn: int, *call: Any
) -> Any:
    """As `call_part`, of the loss that is held to targets ``r``; ``call``: method and arguments."""
    problem = _part_problem(part, number, first, spec)
    with problem.lock, one_blas_thread():
        return problem.with_targets(r, turn, *call)


def drop_problems(key: str) -> None:
    """Drop what is kept for a problem."""
    with _lock:
        for known in [known for known in _part_problems if known[0] == key]:
            del _part_problems[known]


def _part_problem(part: RankingData, number: int, first: int, spec: ProblemSpec) -> PartProblem:
    with _lock:
        known = _part_problems.get((spec.key, number))
    if known is not None:
        return known
    made = PartProblem(part, spec, first)
    with _lock:
        keys = dict.fromkeys(key for key, _ in _part_problems)
        keys.pop(spec.key, None)
        for old in list(keys)[: max(0, len(keys) + 1 - _MOST_PROBLEMS)]:
            for known_key in [one for one in _part_problems if one[0] == old]:
                del _part_problems[known_key]
        return _part_problems.setdefault((spec.key, number), made)


def known_values(part: RankingData) -> tuple[F64, F64]:
    """Return the sum of each feature's values that are not missing, and how many there are."""
    X: Any = part.X
    if isinstance(X, np.ndarray):
        gaps = np.isnan(X)
        missing = gaps.sum(axis=0)
        whole = np.where(gaps, 0.0, X).astype(X.dtype) if gaps.any() else X
    else:
        gaps = np.isnan(X.data)
        missing = np.bincount(X.indices[gaps], minlength=part.n_features)
        whole = X.copy()
        whole.data[gaps] = 0.0
    sums = transposed_times_vector(whole, np.ones(part.n_documents), n_jobs=1)
    return sums, (part.n_documents - missing).astype(np.float64)


def part_sums_around(
    part: RankingData, fill: F64 | None, columns: I64, centre: F64
) -> tuple[F64, F64]:
    """Return the weighted sums of x - c and of its square, for some columns."""
    return sums_around(filled(part.X, fill, "linear"), document_weight(part), columns, centre)


def moments(part: RankingData, fill: F64 | None, loss: Loss) -> Moments:
    """Return the sums that deviations and weights are made of."""
    X = filled(part.X, fill, "linear")
    weight, ordered = document_weight(part), order_weight(part)
    return Moments(
        float(weight.sum()),
        transposed_times_vector(X, weight, n_jobs=1),
        transposed_squares_times_vector(X, weight, n_jobs=1),
        float(ordered.sum()),
        int(np.count_nonzero(ordered)),
        largest_of(part, loss),
    )
