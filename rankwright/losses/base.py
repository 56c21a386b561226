"""From a kernel over queries to a bound loss: what all losses share.

Decided here, for every loss:

- the value is the sum over queries, each times its weight;
- a query whose documents all have one grade carries no order and contributes nothing;
- a document of weight w counts as w equal documents, in sums over documents and over pairs alike
  (a loss that uses ranks says in its own file what else it does).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from rankwright.core.checks import extremes, without_prefix
from rankwright.core.jit import kernel as kernel  # public in rankwright.losses, as Part and Traits
from rankwright.core.parallel import map_ranges, ordered_sum, query_ranges
from rankwright.core.parameters import Part as Part
from rankwright.core.parameters import part_name
from rankwright.core.types import CAPABILITIES, F64, I64, AnyArray, BoundLoss, Loss
from rankwright.core.types import Traits as Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, IncompatibleError, MissingExtraError, UsageError
from rankwright.metrics.base import check_exp2_gains

if TYPE_CHECKING:
    from rankwright.losses.device import DeviceLoss

NOTHING = np.empty(0)


class KernelLoss:
    """A bound loss computed by ``kernel(lo, hi, indptr, s, *args, weight, value, grad, curv)``.

    The kernel writes ``value[q]`` for its queries and, where the arrays have a length, the
    gradient and the diagonal curvature of their documents, all times ``weight[q]``; a query of
    weight 0 gets zeros. ``weight`` is 0 where the query has one grade or no document.

    A ``hessian(lo, hi, indptr, s, *args, weight, v, out)`` writes the Hessian at ``s`` times ``v``.
    It runs after the kernel has run at ``s``, so it may use what that left in ``args``.

    ``args`` are few, and the same for both: arrays and numbers that belong together are fields of
    a NamedTuple, by what it is for,

    - ``layout`` or ``lists``: which documents stand where, such as grade by grade;
    - ``terms``: the parameters, and what is known of documents and queries beforehand;
    - ``workspace``: what the kernel leaves for the Hessian, and scratch.

    A kernel takes the fields out of them before it goes through the queries: Numba counts the
    references to arrays, and threads that did so for each query would wait for each other.

    Where ``args`` are those of ``present``, the `present_documents` of ``data``, the kernels see
    these documents alone; the others have gradient and curvature 0.

    With ``scratch``, the numbers that the kernel needs for queries of these sizes with so many
    lanes (`rankwright.core.team`), the kernels take a ``scratch`` after ``args`` to get arrays
    from. With ``team`` they share a query among the threads of a GPU; without, each query has one.
    A kernel that allocates memory does not run on a GPU: the loss is computed on the CPU then.

    ``cpu_kernel`` and ``cpu_hessian`` take the place of the two on the CPU, where something else is
    quicker there.

    Where there is a ``score_limit``, the kernel never sees scores beyond it, or NaN, with which its
    search would not end: value, gradient and curvature are NaN then.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwright.data import RankingData
    >>> from rankwright.losses import KernelLoss
    >>> def squares(lo, hi, indptr, s, y, weight, value, grad, curv):
    ...     for q in range(lo, hi):
    ...         rows = slice(indptr[q], indptr[q + 1])
    ...         value[q] = weight[q] * 0.5 * ((s[rows] - y[rows]) ** 2).sum()
    ...         if len(grad):
    ...             grad[rows] = weight[q] * (s[rows] - y[rows])
    >>> data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7])
    >>> bound = KernelLoss(squares, data, data.y)  # compile it with `kernel` where speed counts
    >>> gradient = np.empty(2)
    >>> bound.grad(np.zeros(2), gradient), gradient
    (0.5, array([ 0., -1.]))
    """

    def __init__(
        self,
        kernel: Callable[..., None],
        data: RankingData,
        *args: Any,
        curvature: bool = False,
        hessian: Callable[..., None] | None = None,
        present: RankingData | None = None,
        score_limit: float | None = None,
        scratch: Callable[[I64, int], I64] | None = None,
        team: bool = False,
        cpu_kernel: Callable[..., None] | None = None,
        cpu_hessian: Callable[..., None] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._kernel, self._hessian = cpu_kernel or kernel, cpu_hessian or hessian
        self._device_kernel = kernel
        self._scratch_floats, self._team = scratch, team
        self._score_limit = score_limit
        self._indptr, self._ranges = data.indptr, query_ranges(data.indptr)
        self._present: tuple[I64, I64] | None = None  # rows, and where queries begin in the data
        if present is not None and present is not data:
            self._indptr = present.indptr
            self._present = np.flatnonzero(document_weight(data) > 0.0), data.indptr
        self._args = args if scratch is None else (*args, None)
        self._n_documents = len(data.y)
        self._weight = order_weight(data)
        self._per_query = np.zeros(len(self._weight))
        self._curvature = curvature
        self._n_jobs = n_jobs
        self._at: F64 | None = None  # where the Hessian is asked for: the scores of the last grad
        self._left = False  # whether the kernel has run elsewhere since

    def value(self, s: F64) -> float:
        """Return the weighted sum over queries."""
        check_lengths(self._n_documents, s)
        self._left = True
        return self._run(s, NOTHING, NOTHING)

    def grad(self, s: F64, out: F64) -> float:
        """Write the gradient to ``out`` and return the value."""
        check_lengths(self._n_documents, s, out)
        self._come_to(s)
        return self._run(s, out, NOTHING)

    def grad_curv(self, s: F64, out: F64, curv: F64) -> float:
        """Write the gradient and the diagonal curvature, and return the value."""
        if not self._curvature:
            raise IncompatibleError("this loss has no curvature; use grad.")
        check_lengths(self._n_documents, s, out, curv)
        self._come_to(s)
        return self._run(s, out, curv)

    def grad_queries(self, lo: int, hi: int, s: F64, out: F64) -> float:
        """As ``grad``, for the queries lo:hi alone; other rows are neither read nor written."""
        check_lengths(self._n_documents, s, out)
        check_queries(lo, hi, len(self._per_query))
        self._left = True
        if self._score_limit is not None:
            begin = self._indptr if self._present is None else self._present[1]
            own = slice(begin[lo], begin[hi])
            if self._beyond_limit(s[own], out[own], self._per_query[lo:hi]):
                return np.nan
        seen, part = s, out
        if self._present is not None:
            own = slice(self._indptr[lo], self._indptr[hi])
            rows, begin = self._present[0][own], self._present[1]
            seen, part = np.zeros(self._indptr[-1]), np.zeros(self._indptr[-1])
            seen[own] = s[rows]
        self._kernel(
            lo, hi, self._indptr, seen, *self._args, self._weight, self._per_query, part, NOTHING
        )
        if self._present is not None:
            out[begin[lo] : begin[hi]] = 0.0
            out[rows] = part[own]
        return ordered_sum(self._per_query[lo:hi])

    def hess_vec(self, v: F64, out: F64) -> None:
        """Write the Hessian at the scores of the last ``grad`` times ``v`` to ``out``."""
        if self._hessian is None or self._at is None:
            raise IncompatibleError("this loss has no Hessian products, or no grad came before.")
        check_lengths(self._n_documents, v, out)
        if self._left:
            self._run(self._at, np.empty(len(v)), NOTHING)
            self._left = False
        seen = v if self._present is None else v[self._present[0]]
        self._call(self._hessian, self._at, seen, out)

    def on_device(self, torch: Any) -> DeviceLoss:
        """Return the loss on a GPU, in torch's memory, or say why its kernels cannot run there."""
        from rankwright.losses.device import DeviceLoss  # numba's CUDA part is not loaded before

        return DeviceLoss(
            self,
            self._device_kernel,
            self._args,
            self._indptr,
            self._weight,
            torch=torch,
            present=self._present,
            score_limit=self._score_limit,
            scratch=self._scratch_floats,
            team=self._team,
        )

    @property
    def per_query(self) -> F64:
        """The weighted loss of each query at the last scores."""
        return self._per_query

    def state(self) -> dict[str, AnyArray]:
        """Return what answers depend on beside the scores, such as the round of the noise.

        For checkpoints: `load_state` puts it back in a run that goes on.
        """
        return {}

    def load_state(self, kept: Mapping[str, AnyArray]) -> None:
        """Be as the loss that had this `state`."""
        for name, array in self.state().items():
            found = kept.get(name)
            if found is None or (found.shape, found.dtype) != (array.shape, array.dtype):
                raise DataError(f"the state is not that of this loss on this data: see '{name}'.")
            array[...] = found

    def _come_to(self, s: F64) -> None:
        if self._hessian is not None:
            self._at, self._left = s.copy(), False

    def _beyond_limit(self, s: F64, *out: F64) -> bool:
        """Whether scores are beyond the limit; writes NaN to ``out`` then."""
        if self._score_limit is None:
            return False
        low, high = extremes(s)
        if -self._score_limit <= low <= high <= self._score_limit or not len(s):
            return False
        for array in out:
            array[:] = np.nan
        return True

    def _run(self, s: F64, grad: F64, curv: F64) -> float:
        if self._beyond_limit(s, grad, curv, self._per_query):
            return np.nan
        self._call(self._kernel, s, self._per_query, grad, curv)
        return ordered_sum(self._per_query)

    def _call(self, kernel: Callable[..., None], s: F64, vector: F64, *out: F64) -> None:
        """Call a kernel for all queries; write 0 to the rows of absent documents in ``out``."""
        parts: Sequence[F64] = out
        if self._present is not None:
            rows = self._present[0]
            s, parts = s[rows], [np.empty(len(rows) if len(array) else 0) for array in out]
        map_ranges(
            kernel,
            self._ranges,
            self._indptr,
            s,
            *self._args,
            self._weight,
            vector,
            *parts,
            n_jobs=self._n_jobs,
        )
        if self._present is not None:
            for part, array in zip(parts, out, strict=True):
                if len(array):
                    array[:] = 0.0
                    array[rows] = part


def check_lengths(n_documents: int, *arrays: F64) -> None:
    """Raise unless each array has one number per document: kernels check no bounds."""
    for array in arrays:
        if getattr(array, "shape", None) != (n_documents,):
            raise DataError(
                f"an array of the shape {np.shape(array)} was given to a loss that is bound to "
                f"{n_documents} documents; scores, gradient and curvature have one number for each."
            )


def check_queries(lo: int, hi: int, n_queries: int) -> None:
    """Raise unless lo:hi is a range of the queries."""
    if not 0 <= lo <= hi <= n_queries:
        raise DataError(f"queries {lo}:{hi} are not a range of the {n_queries} queries.")


class SampledLoss(KernelLoss):
    """A kernel's bound loss with something sampled: noise, orders or rankings.

    The kernel's ``random_key`` has the seed, the round and the number of the first query; what is
    sampled for query q comes from these and q alone. A bound loss begins with round 0.
    """

    def __init__(self, random_key: AnyArray, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._random_key = random_key

    def set_iteration(self, t: int) -> None:
        """Take what is sampled in round ``t`` from here on."""
        self._random_key[1] = t

    def number_from(self, first: int) -> None:
        """Sample as if the first query had this number: where the data are a part of others."""
        self._random_key[2] = first

    def state(self) -> dict[str, AnyArray]:
        """Return the random key."""
        return {"clock": self._random_key}


def new_random_key(seed: int) -> AnyArray:
    """Return the random key of a `SampledLoss` at its beginning."""
    return np.array([int(seed) % 2**64, 0, 0], np.uint64)


def bound_loss(loss: Loss, data: RankingData, *, n_jobs: int | None = None, **options: Any) -> Any:
    """Return ``loss`` bound to ``data``; raise unless that has all that the traits promise.

    ``options`` are those of a `SurveyedLoss`.
    """
    made = loss.bind(data, n_jobs=n_jobs, **options)
    promised: dict[str, str | None] = {"value": None, "grad": None}
    for trait, methods in CAPABILITIES.items():
        if getattr(loss.traits, trait):
            promised |= dict.fromkeys(methods, trait)
    for method, said in promised.items():
        if not hasattr(made, method):
            says = "" if said is None else f" and the traits of the loss say {said}=True"
            raise IncompatibleError(
                f"{type(made).__name__}, what bind of loss '{part_name('losses', loss)}' returns, "
                f"has no {method}(){says}; see rankwright.core.types."
            )
    return made


def device_loss(loss: Loss, bound: Any, torch: Any) -> DeviceLoss | None:
    """Return a bound loss on the GPU; or None, and warn that it is computed on the CPU."""
    why = "it is not computed by kernels"
    try:
        if hasattr(bound, "on_device"):
            made: DeviceLoss = bound.on_device(torch)
            return made
    except (IncompatibleError, MissingExtraError) as error:
        why = str(error).rstrip(".")
    warnings.warn(
        f"the loss '{part_name('losses', loss)}' is computed on the CPU, where the scores of each "
        f"batch are sent: {why}.",
        stacklevel=2,
    )
    return None


def set_iteration(loss: BoundLoss, t: int) -> None:
    """Let a loss sample what belongs to iteration ``t``, where it samples anything."""
    step = getattr(loss, "set_iteration", None)
    if step is not None:
        step(t)


def order_weight(data: RankingData) -> F64:
    """Return each query's weight, 0 where its documents do not differ in grade.

    Documents of weight 0 are as good as absent.

    Examples
    --------
    >>> from rankwright.data import RankingData
    >>> from rankwright.losses import order_weight
    >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["a", "a", "b"])
    >>> order_weight(data)
    array([1., 0.])
    """
    n_queries = len(data.indptr) - 1
    weight = np.ones(n_queries) if data.query_weight is None else data.query_weight.copy()
    present = document_weight(data) > 0.0
    filled = np.diff(data.indptr) > 0
    starts = data.indptr[:-1][filled]
    differs = np.zeros(n_queries, bool)
    if len(starts):
        low = np.minimum.reduceat(np.where(present, data.y, np.inf), starts)
        high = np.maximum.reduceat(np.where(present, data.y, -np.inf), starts)
        differs[filled] = low < high
    weight[~differs] = 0.0
    return weight


def document_weight(data: RankingData) -> F64:
    """Return each document's weight, 1 where none was given.

    Examples
    --------
    >>> from rankwright.data import RankingData
    >>> from rankwright.losses import document_weight
    >>> data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7])
    >>> document_weight(data)
    array([1., 1.])
    """
    return np.ones(len(data.y)) if data.sample_weight is None else data.sample_weight


def present_documents(data: RankingData) -> RankingData:
    """Return the documents of positive weight, without features; ``data`` itself if all have one.

    For losses by rank, to which a document of weight 0 would still hold a place.
    """
    row = np.flatnonzero(document_weight(data) > 0.0)
    if len(row) == len(data.y):
        return data
    begin = np.searchsorted(data.query_of_row()[row], np.arange(data.n_queries + 1))
    return without_features(data, begin.astype(np.int64), row)


def without_features(data: RankingData, begin: I64, row: I64) -> RankingData:
    """Return the documents ``row``, whose queries begin at ``begin``, without their features."""
    return RankingData(
        np.zeros((len(row), 1)),
        data.y[row],
        begin,
        data.qid,
        query_weight=data.query_weight,
        sample_weight=None if data.sample_weight is None else data.sample_weight[row],
        group=None if data.group is None else data.group[row],
    )


def rows_by_grade(data: RankingData, *, best_first: bool = False) -> tuple[I64, I64]:
    """Return where queries begin among the rows of positive weight, and these, grades rising.

    Or falling, with ``best_first``; rows of one grade stay in order.
    """
    row = np.flatnonzero(document_weight(data) > 0.0)
    query = data.query_of_row()[row]
    grade = data.y[row]
    row = row[np.lexsort((-grade if best_first else grade, query))]
    begin = np.searchsorted(query, np.arange(data.n_queries + 1))
    return begin.astype(np.int64), row.astype(np.int64)


def exp2_of_grades(data: RankingData) -> F64:
    """Return 2^g of each document, or say that a grade is too high for that."""
    check_exp2_gains(data.y.max(initial=0.0))
    powers: F64 = np.exp2(data.y)
    return powers


def check_targets(name: str, targets: Any) -> None:
    """Raise unless ``targets`` is "linear", "gain" or an increasing number for each grade."""
    if isinstance(targets, str) and targets in ("linear", "gain"):
        return
    try:
        table = np.asarray(targets, np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if not table.size:
        raise UsageError(
            f"{name} must be linear, gain or a number for each grade, not {targets!r}."
        )
    if table.ndim != 1 or not np.isfinite(table).all() or not (np.diff(table) > 0).all():
        raise UsageError(f"{name} must rise from grade to grade; got {targets!r}.")


Targets = Annotated[str | Sequence[float], check_targets]


def grade_targets(data: RankingData, targets: str | Sequence[float]) -> F64:
    """Return the target score of each document's grade.

    ``"gain"`` is 2^g - 1, ``"linear"`` is g, and a list gives the target of grade 0, 1, 2, …
    """
    check_targets("targets", targets)
    if isinstance(targets, str):
        return data.y.copy() if targets == "linear" else exp2_of_grades(data) - 1.0
    table, grade = np.asarray(targets, np.float64), data.y.astype(np.int64)
    if (grade != data.y).any() or grade.max(initial=0) >= len(table):
        raise DataError(
            f"targets has a value for grades 0 to {len(table) - 1}; the data has grade "
            f"{data.y[(grade != data.y) | (grade >= len(table))][0]:g}."
        )
    return table[grade]


# --- checkpoints -------------------------------------------------------------------------------


_STATE = "memory."  # begins the names of the arrays of a loss in a checkpoint


def loss_state(loss: Any) -> dict[str, AnyArray]:
    """Return copies of the arrays of a bound loss for a checkpoint; empty if it has no state."""
    if not hasattr(loss, "state"):
        return {}
    return {f"{_STATE}{name}": array.copy() for name, array in loss.state().items()}


def load_loss_state(loss: Any, arrays: Mapping[str, AnyArray]) -> None:
    """Restore a bound loss from the arrays of `loss_state`, among others."""
    state = without_prefix(_STATE, arrays)
    if state:
        loss.load_state(state)
