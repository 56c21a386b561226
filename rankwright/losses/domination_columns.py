"""Coordinate steps for the domination loss: one feature at a time, at the cost of its non-zeros.

The derivative and the bend along a feature are (1) and (2) of `rankwright.losses.domination_sums`.
With R the range of x within a query, |f'''| <= R f'', so along x the loss stays below

    f(u) <= f + derivative u + bend (exp(R|u|) - 1 - R|u|) / R^2                                (1)

and so does loss + l2/2 w^2 with l2 added to bend. ``step="log1p"`` goes to the minimum of (1) plus
l1 |w + u|, which never increases the objective and ends as Newton's method does; without penalty
it is u = -sign(derivative) log1p(R |derivative| / bend) / R. ``step="bound"`` is the paper's: R = 0
and bend = B, B the largest x^2 (Lemmas 1 and 2 with beta = B).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges
from rankwright.core.types import F64, I64, AnyArray, BoundLoss
from rankwright.errors import UsageError
from rankwright.losses.domination_sums import T, derivatives, move, new_state, refresh
from rankwright.losses.pair_sums import GradeBlocks

STEPS = ("log1p", "bound")
_FAINT = 1e-7  # share of its positive terms that the bend is taken to be at least: it is not exact
_LONGEST = 10.0  # R |u|
_ENTRIES_PER_RANGE = 1 << 18
_NO_BOUND = np.empty(0)

# --- kernels ---------------------------------------------------------------------------------


@kernel
def step_length(derivative, bend, reach, w, l1):  # type: ignore[no-untyped-def]
    """Return the u that minimises (1) + l1 |w + u|; ``reach`` is R, and 0 makes (1) a parabola."""
    side = 1.0 if w > 0.0 else (-1.0 if w < 0.0 else 0.0)
    if side == 0.0:
        way = -1.0 if derivative > 0.0 else 1.0
        return way * _travel(abs(derivative) - l1, bend, reach)
    uphill = derivative + side * l1
    if uphill * side <= 0.0:  # away from 0
        return side * _travel(abs(uphill), bend, reach)
    length = _travel(abs(uphill), bend, reach)
    if length < abs(w):
        return -side * length
    beyond = _travel(abs(uphill) - 2.0 * l1, bend, reach)  # past 0 the penalty pulls back
    return -side * max(beyond, abs(w))


@kernel
def _travel(force, bend, reach):  # type: ignore[no-untyped-def]
    """Return how far a derivative of -force carries until (1) is level."""
    if force <= 0.0:
        return 0.0
    if reach == 0.0:
        return force / bend
    return min(math.log1p(reach * force / bend), _LONGEST) / reach


@kernel
def sweep(  # type: ignore[no-untyped-def]
    columns, indptr, indices, values, factor, reach, bound, l1, l2, w, violation, st
):
    """Take a step along each column in turn; ``bound`` (B) takes the place of R where it is given.

    ``violation`` gets how far each column was from optimal when its turn came.
    """
    for n in range(len(columns)):
        j = columns[n]
        lo, hi = indptr[j], indptr[j + 1]
        derivative = bend = positive = 0.0
        if reach[j] > 0.0:  # else x is constant in every query and changes nothing
            derivative, bend, positive = derivatives(lo, hi, indices, values, factor[j], st)
        derivative += l2 * w[j]
        if w[j] == 0.0:
            violation[n] = max(abs(derivative) - l1, 0.0)
        else:
            violation[n] = abs(derivative + (l1 if w[j] > 0.0 else -l1))
        if violation[n] == 0.0:
            continue
        if reach[j] == 0.0:
            u = -w[j]
        elif len(bound):
            u = step_length(derivative, bound[j] + l2, 0.0, w[j], l1)
        else:
            u = step_length(derivative, max(bend, _FAINT * positive) + l2, reach[j], w[j], l1)
        if u != 0.0 and math.isfinite(u):
            w[j] += u
            move(lo, hi, indices, values, factor[j], u, st)


@kernel
def _ranges(lo, hi, indptr, indices, values, query, size, reach, largest):  # type: ignore[no-untyped-def]
    """Write R and the largest x^2 of the columns lo:hi; zeros that are not stored count.

    Rows of query -1 do not.
    """
    zero = np.float64(0.0)
    for j in range(lo, hi):
        at, end = indptr[j], indptr[j + 1]
        while at < end:
            q = query[indices[at]]
            if q < 0:
                at += 1
                continue
            low = high = np.float64(values[at])
            count = 0
            while at < end and (query[indices[at]] == q or query[indices[at]] < 0):
                if query[indices[at]] == q:
                    low, high = min(low, values[at]), max(high, values[at])
                    count += 1
                at += 1
            if count < size[q]:
                low, high = min(low, zero), max(high, zero)
            reach[j] = max(reach[j], high - low)
            largest[j] = max(largest[j], low * low, high * high)


@kernel
def _column_products(lo, hi, indptr, indices, values, g, out):  # type: ignore[no-untyped-def]
    for j in range(lo, hi):
        total = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            total += values[k] * g[indices[k]]
        out[j] = total


@kernel
def _add_columns(columns, indptr, indices, values, w, s):  # type: ignore[no-untyped-def]
    for j in columns:
        for k in range(indptr[j], indptr[j + 1]):
            s[indices[k]] += w[j] * values[k]


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Columns:
    """A CSC matrix and what steps need to know of its columns; shared by any number of problems.

    ``reach`` and ``largest`` are R and the largest x^2 of each column.
    """

    X: Any
    reach: F64
    largest: F64

    @classmethod
    def of(cls, X: Any, indptr: I64, *, w: F64 | None = None, n_jobs: int | None = None) -> Columns:
        """Look through ``X``, whose rows are grouped into queries by ``indptr``.

        Rows whose weight ``w`` is 0 are as good as absent.
        """
        if X.format != "csc" or not X.has_sorted_indices:
            raise UsageError(
                "columns need a CSC matrix with sorted rows: X.tocsc().sorted_indices()."
            )
        size = np.diff(indptr)
        query = np.repeat(np.arange(len(size), dtype=np.int32), size)
        if w is not None and not w.all():
            size = np.bincount(query[w > 0.0], minlength=len(size))
            query[w == 0.0] = -1
        reach, largest = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        arrays = X.indptr, X.indices, X.data
        map_ranges(
            _ranges, column_bounds(X.indptr), *arrays, query, size, reach, largest,
            n_jobs=n_jobs,
        )  # fmt: skip
        return cls(X, reach, largest)


class DominationColumns:
    """Domination loss of linear scores plus l1 and l2 penalties, open to steps along columns.

    J(w) = loss(X w / deviation) / total_weight + l2/2 |w|^2 + l1 |w|_1

    Parameters
    ----------
    loss
        The bound loss, by rows.
    columns : Columns, or a CSC matrix
    blocks, w, scale, margins
        Grades in blocks; weight of each document; c of each query; a of each document.
    indptr
        Where queries begin.
    ordered_weight, total_weight
        Weight of the queries that have an order, and what the loss is divided by.
    l1, l2
        Penalties; they may be changed between runs.
    deviation : (d,) float64
        Divides the columns; ones by default.
    """

    def __init__(
        self,
        loss: BoundLoss,
        columns: Any,
        blocks: GradeBlocks,
        w: F64,
        scale: F64,
        margins: F64,
        *,
        indptr: I64,
        ordered_weight: float,
        total_weight: float,
        l1: float = 0.0,
        l2: float = 0.0,
        deviation: F64 | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._columns = (
            columns if isinstance(columns, Columns) else Columns.of(columns, indptr, w=w)
        )
        X = self._columns.X
        self.size, self.l1, self.l2 = int(X.shape[1]), l1, l2
        self._loss, self._total, self._n_jobs = loss, total_weight, n_jobs
        self._arrays = X.indptr, X.indices, X.data
        self._bounds = column_bounds(X.indptr)
        self._factor = np.ones(self.size) if deviation is None else 1.0 / deviation
        self._reach = self._columns.reach * self._factor
        self._bound = self._columns.largest * self._factor**2 * ordered_weight / total_weight
        with np.errstate(divide="ignore"):
            self._offset = np.log(w) - margins
        self._state = new_state(blocks, w, scale)
        self._gradient = np.empty(len(w))
        self._work = 0

    def scores(self, w: F64) -> F64:
        """Return the scores that the weights ``w`` give."""
        s = np.zeros(len(self._gradient))
        _add_columns(np.flatnonzero(w), *self._arrays, w * self._factor, s)
        return s

    def value(self, w: F64) -> float:
        """Return J."""
        return self._penalised(self._loss.value(self.scores(w)), w)

    def grad(self, w: F64, out: F64) -> float:
        """Write the gradient of all but the l1 term to ``out`` and return J; steps go on from w."""
        s = self.scores(w)
        value = self._loss.grad(s, self._gradient)
        map_ranges(
            _column_products, self._bounds, *self._arrays, self._gradient, out,
            n_jobs=self._n_jobs,
        )  # fmt: skip
        out *= self._factor / self._total
        out += self.l2 * w
        self._state.row[:, T] = s + self._offset
        self._refresh()
        return self._penalised(value, w)

    def sweep(self, w: F64, columns: I64, *, step: str = "log1p") -> F64:
        """Take a step along each of ``columns``, changing ``w``, the weights of the last call.

        Returns how far from optimal each column was when its turn came.
        """
        self._work += int((self._arrays[0][columns + 1] - self._arrays[0][columns]).sum())
        if self._work > 10 * len(self._gradient):  # rounding errors end here
            self._refresh()
        if step not in STEPS:
            raise UsageError(f"step must be log1p or bound, not '{step}'.")
        bound = self._bound if step == "bound" else _NO_BOUND
        violation = np.empty(len(columns))
        penalties = float(self.l1), float(self.l2)
        sweep(
            columns, *self._arrays, self._factor, self._reach, bound, *penalties, w,
            violation, self._state,
        )  # fmt: skip
        return violation

    def _refresh(self) -> None:
        refresh(0, len(self._state.of_query) - 1, self._state)
        self._work = 0

    def _penalised(self, value: float, w: F64) -> float:
        ridge = 0.5 * self.l2 * float(w @ w)
        return value / self._total + ridge + self.l1 * float(np.abs(w).sum())


def column_bounds(indptr: AnyArray) -> I64:
    """Return ranges of columns of about equal numbers of entries."""
    pieces = max(1, int(indptr[-1]) // _ENTRIES_PER_RANGE)
    goals = int(indptr[-1]) * np.arange(1, pieces) // pieces
    cuts = np.searchsorted(indptr, goals)
    return np.unique(np.concatenate(([0], cuts, [len(indptr) - 1]))).astype(np.int64)
