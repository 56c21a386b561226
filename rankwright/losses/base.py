"""Base class of losses, so that the file of a loss needs only a kernel and its terms.

For every loss,

- the value is the sum over queries of weight times value;
- a query whose documents all have one grade has no order and contributes nothing;
- documents of weight 0 are removed; a document of weight w counts as w equal documents in sums
  over documents and over pairs (losses that use ranks describe in their files what they do);
- ranges of queries run in threads, with the same bytes for any number of threads;
- products with the Hessian are differences of gradients, unless the loss has a kernel for them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from rankwright.core.checks import extremes, without_prefix
from rankwright.core.jit import kernel as kernel  # public in rankwright.losses, as Part and Traits
from rankwright.core.parallel import map_ranges, ordered_sum, query_ranges
from rankwright.core.parameters import Part as Part
from rankwright.core.parameters import check_parameters, part_name
from rankwright.core.team import shared_range, team_max, team_sum
from rankwright.core.types import F64, I64, AnyArray, BoundLoss, Loss
from rankwright.core.types import Traits as Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, IncompatibleError, MissingExtraError, UsageError
from rankwright.metrics.base import check_exp2_gains

if TYPE_CHECKING:
    from rankwright.losses.device import DeviceLoss

# --- kernels that losses share -----------------------------------------------------------------


@kernel
def exponentials(lo, hi, s, w, out):
    """Write w exp(s - maximum) to out[lo:hi]; return the maximum of s[lo:hi] and the sum."""
    top = -np.inf
    for i in shared_range(lo, hi):
        top = max(top, s[i])
    top, total = team_max(top), 0.0
    for i in shared_range(lo, hi):
        out[i] = w[i] * math.exp(s[i] - top)
        total += out[i]
    return top, team_sum(total)


@kernel
def weighted_mean(lo, hi, s, w):
    """Return the weighted mean of s[lo:hi], as a difference from s[lo] to keep its digits."""
    total = mass = 0.0
    for i in shared_range(lo, hi):
        total += w[i] * (s[i] - s[lo])
        mass += w[i]
    return s[lo] + team_sum(total) / team_sum(mass)


# --- losses ------------------------------------------------------------------------------------


class KernelLoss(Part):
    """A loss computed by a kernel: the base class of losses, which are frozen dataclasses.

    A subclass has its parameters as fields, and

    - ``traits``: its `Traits`;
    - ``run``: ``kernel(queries, indptr, s, *terms, value, grad, curv)``. For each number q of the
      array ``queries`` it writes ``value[q]`` and, for the documents ``indptr[q]`` to
      ``indptr[q + 1]``, the gradient and the curvature: the diagonal of the Hessian or an upper
      bound. These are zeros before. The kernel sees neither weights of queries, nor queries without
      order, nor documents of weight 0;
    - ``terms(data)``: the arguments of the kernel that depend on the data, without documents of
      weight 0: arrays, numbers and named tuples of these, work arrays included;

    and only if needed,

    - ``check()``: raise for combinations of parameters that the fields' own checks allow;
    - ``hessian``: ``kernel(queries, indptr, s, *terms, v, out)`` writes the Hessian times ``v``.
      It runs after ``run`` with the same scores, and may use work arrays that ``run`` filled;
    - ``bound_class``: a subclass of `BoundKernel` with further methods.

    A kernel that allocates no memory also runs on a GPU. It can divide a query among threads there:
    see `rankwright.core.team`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import rankwright as rw
    >>> from rankwright.losses import KernelLoss, Traits, kernel
    >>> @kernel
    ... def squares(queries, indptr, s, y, value, grad, curv):
    ...     for q in queries:
    ...         for i in range(indptr[q], indptr[q + 1]):
    ...             value[q] += 0.5 * (s[i] - y[i]) ** 2
    ...             grad[i] = s[i] - y[i]
    ...             curv[i] = 1.0
    >>> @dataclass(frozen=True, repr=False)
    ... class Squares(KernelLoss):
    ...     traits = Traits(convex=True, shift_invariant=False)
    ...     run = staticmethod(squares)
    ...
    ...     def terms(self, data):
    ...         return (data.y,)
    >>> Squares()([2.0, 0.0], [0, 1])
    2.5
    """

    __slots__ = ()

    @property
    def traits(self) -> Traits:
        """Properties of the loss with these parameters."""
        raise NotImplementedError

    @property
    def run(self) -> Callable[..., None]:
        """Kernel of value, gradient and curvature."""
        raise NotImplementedError

    @property
    def hessian(self) -> Callable[..., None] | None:
        """Kernel of products with the Hessian, or None."""
        return None

    @property
    def bound_class(self) -> type[BoundKernel]:
        """Class of the loss on a data set."""
        return BoundKernel

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the arguments of the kernel that depend on the data."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise for combinations of parameters that are not allowed."""

    def query_weight(self, data: RankingData) -> F64:
        """Return the weight of each query; the kernel does not see queries of weight 0."""
        return order_weight(data)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundKernel:
        """Prepare the loss for one data set."""
        check_parameters(self)
        self.check()
        return self.bound_class(self, data, n_jobs=n_jobs)

    def __call__(self, scores: Any, labels: Any, **columns: Any) -> float:
        """Return the mean of the loss over queries with an order.

        Parameters
        ----------
        scores, labels : array of shape (n,)
        **columns
            ``qid``, or ``group`` with the sizes of the queries; without both, all documents belong
            to one query. Further columns, such as ``sample_weight`` and ``query_weight``, are those
            of `RankingData.from_arrays`.

        Examples
        --------
        >>> import rankwright as rw
        >>> rw.losses.Squared()([1.0, 2.0, 0.0], [1, 0, 1], qid=[1, 1, 1])
        2.5
        """
        return evaluate_loss(self, scores, labels, **columns)[0]

    def gradient(self, scores: Any, labels: Any, **columns: Any) -> F64:
        """Return the gradient of `__call__` in the scores, with the same arguments."""
        return evaluate_loss(self, scores, labels, **columns)[1]


class Layout(NamedTuple):
    """Boundaries of queries, for all documents and for those of positive weight."""

    begin: I64  # first document of each query
    indptr: I64  # first present document of each query
    rows: I64 | None  # of the present documents; None if all are present


class BoundKernel:
    """A `KernelLoss` on one data set.

    Attributes
    ----------
    loss : KernelLoss
    layout : Layout
    terms : tuple
        Arguments of the kernel, from ``loss.terms``.
    weight : array of shape (n_queries,)
        Weight of each query; 0 if it has no order.
    per_query : array of shape (n_queries,)
        Weighted loss of each query at the last scores.

    Examples
    --------
    >>> import numpy as np
    >>> import rankwright as rw
    >>> data = rw.RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7])
    >>> bound, gradient = rw.losses.Squared().bind(data), np.empty(2)
    >>> bound.grad(np.zeros(2), gradient), gradient
    (0.5, array([ 0., -1.]))
    """

    score_limit: float | None = None
    """Largest absolute score; at larger ones, or NaN, all results are NaN."""

    def __init__(self, loss: Any, data: RankingData, *, n_jobs: int | None = None) -> None:
        present = present_documents(data)
        rows = None if present is data else np.flatnonzero(document_weight(data) > 0.0)
        self.loss, self._n_jobs = loss, n_jobs
        self.layout = Layout(data.indptr, present.indptr, rows)
        self.terms: tuple[Any, ...] = loss.terms(present)
        self.weight = loss.query_weight(data)
        self.per_query = np.zeros(data.n_queries)
        self._n_documents = data.n_documents
        self._ordered = np.flatnonzero(self.weight)
        self._first_ordered = np.searchsorted(self._ordered, np.arange(data.n_queries + 1))
        self._ranges = query_ranges(np.append(0, np.cumsum(present.sizes[self._ordered])))
        is_one = bool((self.weight[self._ordered] == 1.0).all())
        self._row_weight = None if is_one else np.repeat(self.weight, present.sizes)
        self._run = loss.run
        self._at: F64 | None = None  # scores of the last gradient
        self._is_at = False  # whether the work arrays belong to the scores self._at

    @cached_property
    def _work(self) -> F64:
        """Rows for scores, gradient and curvature that the caller does not provide."""
        return np.zeros((3, int(self.layout.indptr[-1])))

    def value(self, s: F64) -> float:
        """Return the weighted sum over queries."""
        check_lengths(self._n_documents, s)
        self._is_at = False
        return self._compute(s, None, None)

    def grad(self, s: F64, out: F64) -> float:
        """Write the gradient to ``out`` and return the value."""
        check_lengths(self._n_documents, s, out)
        self._at, self._is_at = s.copy(), True
        return self._compute(s, out, None)

    def grad_curv(self, s: F64, out: F64, curv: F64) -> float:
        """Write the gradient and the curvature, and return the value."""
        check_lengths(self._n_documents, s, out, curv)
        self._at, self._is_at = s.copy(), True
        return self._compute(s, out, curv)

    def grad_queries(self, lo: int, hi: int, s: F64, out: F64) -> float:
        """Return the value of the queries lo:hi and write their rows of the gradient."""
        check_lengths(self._n_documents, s, out)
        check_queries(lo, hi, len(self.weight))
        self._is_at = False
        return self._compute(s, out, None, lo, hi)

    def hess_vec(self, v: F64, out: F64) -> None:
        """Write the Hessian at the scores of the last ``grad`` times ``v`` to ``out``."""
        if self._at is None:
            raise IncompatibleError("products with the Hessian need a gradient before.")
        check_lengths(self._n_documents, v, out)
        at = self._at
        if self.loss.hessian is None:
            out[:] = 0.0
            size = np.abs(v).max(initial=0.0)
            if size > 0.0:
                step = 1e-6 * max(1.0, np.abs(at).max(initial=0.0)) / size
                lower, per_query = np.empty(len(v)), self.per_query.copy()
                self._compute(at + step * v, out, None)
                self._compute(at - step * v, lower, None)
                self.per_query[:] = per_query
                out -= lower
                out /= 2.0 * step
            return
        if not self._is_at:
            self._compute(at, np.empty(len(v)), None)
            self._is_at = True
        product = out if self.layout.rows is None else self._work[1]
        args = (self._gather(at, 0), *self.terms, self._gather(v, 2), product)
        self._clear(0, len(self.weight), product)
        self._call(self.loss.hessian, 0, len(self.weight), *args)
        self._finish(0, len(self.weight), product, out)

    def on_device(self, torch: Any) -> DeviceLoss:
        """Return the loss on a GPU, in torch's memory; raise if its kernel cannot run there."""
        from rankwright.losses.device import DeviceLoss  # imports Numba's CUDA target

        return DeviceLoss(self, torch)

    def state(self) -> dict[str, AnyArray]:
        """Return the arrays, besides the scores, on which results depend, for checkpoints."""
        return {}

    def load_state(self, arrays: Mapping[str, AnyArray]) -> None:
        """Restore the arrays that `state` returned."""
        for name, array in self.state().items():
            saved = arrays.get(name)
            if saved is None or (saved.shape, saved.dtype) != (array.shape, array.dtype):
                raise DataError(f"the state is not that of this loss on this data: see '{name}'.")
            array[...] = saved

    def _compute(
        self, s: F64, out: F64 | None, curv: F64 | None, lo: int = 0, hi: int | None = None
    ) -> float:
        """Run the kernel for the queries lo:hi; write gradient and curvature if asked for."""
        hi = len(self.weight) if hi is None else hi
        rows = slice(self.layout.begin[lo], self.layout.begin[hi])
        if self.score_limit is not None and rows.start < rows.stop:
            low, high = extremes(s[rows])
            if not -self.score_limit <= low <= high <= self.score_limit:
                for array in (out, curv):
                    if array is not None:
                        array[rows] = np.nan
                self.per_query[lo:hi] = np.nan
                return np.nan
        absent = self.layout.rows is not None
        grad = self._work[1] if out is None or absent else out
        bend = self._work[2] if curv is None or absent else curv
        self._clear(lo, hi, grad, bend)
        self.per_query[lo:hi] = 0.0
        seen = self._gather(s, 0, lo, hi)
        self._call(self._run, lo, hi, seen, *self.terms, self.per_query, grad, bend)
        self.per_query[lo:hi] *= self.weight[lo:hi]
        for part, array in ((grad, out), (bend, curv)):
            if array is not None:
                self._finish(lo, hi, part, array)
        return ordered_sum(self.per_query[lo:hi])

    def _gather(self, s: F64, row: int, lo: int = 0, hi: int | None = None) -> F64:
        """Return the scores of the present documents."""
        if self.layout.rows is None:
            return s
        hi = len(self.weight) if hi is None else hi
        present = slice(self.layout.indptr[lo], self.layout.indptr[hi])
        seen: F64 = self._work[row]
        seen[present] = s[self.layout.rows[present]]
        return seen

    def _clear(self, lo: int, hi: int, *arrays: F64) -> None:
        """Write zeros to the present documents of the queries lo:hi."""
        for array in arrays:
            array[self.layout.indptr[lo] : self.layout.indptr[hi]] = 0.0

    def _call(self, kernel: Callable[..., None], lo: int, hi: int, *args: Any) -> None:
        """Call a kernel for those of the queries lo:hi that have an order."""
        first, last = self._first_ordered[lo], self._first_ordered[hi]
        queries, indptr = self._ordered[first:last], self.layout.indptr
        if lo > 0 or hi < len(self.weight):  # the caller may run in a thread of the pool itself
            if len(queries):
                kernel(queries, indptr, *args)
            return

        def run(begin: int, end: int) -> None:
            kernel(queries[begin:end], indptr, *args)

        map_ranges(run, self._ranges, n_jobs=self._n_jobs)

    def _finish(self, lo: int, hi: int, part: F64, out: F64) -> None:
        """Apply the weights of queries, and spread present documents over the rows of the data."""
        present = slice(self.layout.indptr[lo], self.layout.indptr[hi])
        if self._row_weight is not None:
            part[present] *= self._row_weight[present]
        if self.layout.rows is not None:
            out[self.layout.begin[lo] : self.layout.begin[hi]] = 0.0
            out[self.layout.rows[present]] = part[present]


class BoundSample(BoundKernel):
    """A loss that samples noise, orders or rankings; the first of its terms is its random key.

    The random key has the seed, the iteration and the number of the first query
    (`new_random_key`). The sample of a query depends only on these and the number of the query.
    """

    def set_iteration(self, t: int) -> None:
        """Use the samples of iteration ``t``."""
        self.terms[0][1] = t

    def number_from(self, first: int) -> None:
        """Set the number of the first query, if the data is a part of a larger data set."""
        self.terms[0][2] = first

    def state(self) -> dict[str, AnyArray]:
        """Return the random key."""
        return {"clock": self.terms[0]}


def evaluate_loss(
    loss: Loss, scores: Any, labels: Any, *, qid: Any = None, group: Any = None, **columns: Any
) -> tuple[float, F64]:
    """Return the mean of a loss over queries with an order, and its gradient in the scores."""
    s = np.asarray(scores, np.float64)
    if s.ndim != 1:
        raise DataError(f"scores must have one number per document; their shape is {s.shape}.")
    if qid is None and group is None:
        group = [len(s)]
    dummy = np.zeros((len(s), 1))
    data = RankingData.from_arrays(dummy, labels, qid=qid, group_sizes=group, **columns)
    out = np.empty(len(s))
    value = loss.bind(data).grad(s if data.row is None else s[data.row], out)
    total = order_weight(data).sum() or 1.0
    gradient: F64 = data.in_caller_order(out / total)
    return float(value / total), gradient


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


def new_random_key(seed: int) -> AnyArray:
    """Return the random key of a `BoundSample` for its first iteration."""
    return np.array([int(seed) % 2**64, 0, 0], np.uint64)


def bound_loss(loss: Loss, data: RankingData, *, needs: Sequence[str] = (), **options: Any) -> Any:
    """Return ``loss`` bound to ``data``; raise unless it has a value, a gradient and ``needs``.

    Parameters
    ----------
    needs : sequence of str
        Names of further methods that the caller uses.
    **options
        Passed to ``loss.bind``: ``n_jobs``, and ``largest`` of a `SurveyedLoss`.
    """
    bound = loss.bind(data, **options)
    for method in ("value", "grad", *needs):
        if not hasattr(bound, method):
            raise IncompatibleError(
                f"{type(bound).__name__}, what bind of loss '{part_name('losses', loss)}' returns, "
                f"has no {method}(), which this fit needs; see rankwright.core.types."
            )
    return bound


def device_loss(loss: Loss, bound: Any, torch: Any) -> DeviceLoss | None:
    """Return a bound loss on the GPU, or warn that it is computed on the CPU and return None."""
    reason = "it is not computed by kernels"
    try:
        if hasattr(bound, "on_device"):
            on_device: DeviceLoss = bound.on_device(torch)
            return on_device
    except (IncompatibleError, MissingExtraError) as error:
        reason = str(error).rstrip(".")
    warnings.warn(
        f"the loss '{part_name('losses', loss)}' is computed on the CPU, and the scores of each "
        f"batch are copied there: {reason}.",
        stacklevel=2,
    )
    return None


def set_iteration(loss: BoundLoss, t: int) -> None:
    """Use the samples of iteration ``t``, if the loss samples."""
    step = getattr(loss, "set_iteration", None)
    if step is not None:
        step(t)


def order_weight(data: RankingData) -> F64:
    """Return the weight of each query; it is 0 if all its documents have the same grade.

    Documents of weight 0 are ignored.

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
    """Return the weight of each document; without weights in the data, they are 1.

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
    """Return the documents of positive weight, without features.

    Without documents of weight 0, this is ``data`` itself.
    """
    row = np.flatnonzero(document_weight(data) > 0.0)
    if len(row) == len(data.y):
        return data
    begin = np.searchsorted(data.query_of_row()[row], np.arange(data.n_queries + 1))
    return without_features(data, begin.astype(np.int64), row)


def without_features(data: RankingData, begin: I64, row: I64) -> RankingData:
    """Return the documents in ``row`` without features; queries begin at ``begin``."""
    return RankingData(
        np.zeros((len(row), 1)),
        data.y[row],
        begin,
        data.qid,
        query_weight=data.query_weight,
        sample_weight=None if data.sample_weight is None else data.sample_weight[row],
        group=None if data.group is None else data.group[row],
        position=None if data.position is None else data.position[row],
    )


def rows_by_grade(data: RankingData, *, best_first: bool = False) -> tuple[I64, I64]:
    """Return the rows of positive weight sorted by query and grade, and where queries begin.

    Grades ascend, or descend with ``best_first``. Rows of the same grade keep their order.
    """
    row = np.flatnonzero(document_weight(data) > 0.0)
    query = data.query_of_row()[row]
    grade = data.y[row]
    row = row[np.lexsort((-grade if best_first else grade, query))]
    begin = np.searchsorted(query, np.arange(data.n_queries + 1))
    return begin.astype(np.int64), row.astype(np.int64)


def exp2_of_grades(data: RankingData) -> F64:
    """Return 2^g of each document; raise if a grade is too high."""
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
