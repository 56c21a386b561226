"""From a kernel over queries to a bound loss: what all losses share.

Decided here, for every loss:

- the value is the sum over queries, each times its weight;
- a query whose documents all have one grade carries no order and contributes nothing;
- a document of weight w counts as w equal documents, in sums over documents and over pairs alike
  (a loss that uses ranks says in its own file what else it does).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.core.checks import extremes
from rankwright.core.jit import kernel as kernel
from rankwright.core.parallel import map_ranges, ordered_sum, query_ranges
from rankwright.core.parameters import Part as Part
from rankwright.core.types import F64, I64, AnyArray
from rankwright.core.types import Traits as Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, IncompatibleError
from rankwright.losses.base import (
    Targets as Targets,
)
from rankwright.losses.base import (
    check_lengths as check_lengths,
)
from rankwright.losses.base import (
    check_queries as check_queries,
)
from rankwright.losses.base import (
    check_targets as check_targets,
)
from rankwright.losses.base import (
    document_weight as document_weight,
)
from rankwright.losses.base import (
    exp2_of_grades as exp2_of_grades,
)
from rankwright.losses.base import (
    grade_targets as grade_targets,
)
from rankwright.losses.base import (
    new_random_key as new_random_key,
)
from rankwright.losses.base import (
    order_weight as order_weight,
)
from rankwright.losses.base import (
    present_documents as present_documents,
)
from rankwright.losses.base import (
    rows_by_grade as rows_by_grade,
)
from rankwright.losses.base import (
    without_features as without_features,
)

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
        check_lengths(self._n_documents, s, out, curv)
        self._come_to(s)
        if not self._curvature:
            curv[:] = 1.0
            return self._run(s, out, NOTHING)
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
        if self._hessian is None and self._at is not None:
            at, lower = self._at, np.empty(len(v))
            step = 1e-6 * max(1.0, np.abs(at).max()) / max(np.abs(v).max(), 1e-300)
            self._run(at + step * v, out, NOTHING)
            self._run(at - step * v, lower, NOTHING)
            out -= lower
            out /= 2.0 * step
            return
        if self._hessian is None or self._at is None:
            raise IncompatibleError("no grad came before.")
        check_lengths(self._n_documents, v, out)
        if self._left:
            self._run(self._at, np.empty(len(v)), NOTHING)
            self._left = False
        seen = v if self._present is None else v[self._present[0]]
        self._call(self._hessian, self._at, seen, out)

    def on_device(self, torch: Any) -> DeviceLoss:  # noqa: ARG002
        """Raise: kernels of this form run on the CPU only."""
        raise IncompatibleError("its kernel runs on the CPU only.")

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
