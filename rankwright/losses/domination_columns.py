"""Coordinate steps for the domination loss: one feature at a time, at the cost of its non-zeros.

The derivative and the curvature (second derivative) along a feature are (2) and (3) below.
With R the range of x within a query, |f'''| <= R f'', so along x the loss stays below

    f(u) <= f + derivative u + curvature (exp(R|u|) - 1 - R|u|) / R^2                           (1)

and so does loss + l2/2 w^2 with l2 added to curvature. ``step="log1p"`` goes to the minimum of (1)
plus l1 |w + u|, which never increases the objective and ends as Newton's method does; without
penalty it is u = -sign(derivative) log1p(R |derivative| / curvature) / R. ``step="bound"`` is the
paper's: R = 0 and curvature = B, B the largest x^2 (Lemmas 1 and 2 with beta = B).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges
from rankwright.core.types import F64, I64, AnyArray, BoundLoss
from rankwright.errors import UsageError
from rankwright.losses.pair_sums import GradeBlocks

# --- derivatives along a feature -------------------------------------------------------------
#
# What a step along one feature needs of the domination loss, at the cost of its non-zeros.
#
# In the notation of `rankwright.losses.domination`, p_i = Z / (Z + exp(t_i)), the derivatives of
# the loss along a feature x are sums over the grades g of all queries,
#
#     derivative = sum_g c_g [S_1 mu - sum_{i in g} w_i p_i x_i]                                (2)
#     curvature = sum_g c_g [S_1 nu - S_2 mu^2
#                            + sum_{i in g} w_i p_i (1 - p_i) x_i (x_i - 2 mu)]                 (3)
#
#     mu, nu = means of x and x^2 over the documents below g, by w_j exp(t_j)
#     S_k = sum over i in g of w_i p_i^k                                                         (4)
#
# with c_g the weight of the query over that of its dominating documents (`stevens2010domination`,
# (1.2), and its multi-valued form). All but S_k are sums over the non-zeros of x. A step changes Z
# and with it every term of (4), so S_1, …, S_5 are kept at a fixed Z_0 and expanded,
#
#     S_1(Z) Z_0 / Z     = S_1 - d S_2 + d^2 S_3 - …,            d = (Z - Z_0) / Z_0
#     S_2(Z) (Z_0 / Z)^2 = S_2 - 2 d S_3 + 3 d^2 S_4 - …                                         (5)
#
# which at |d| <= 1/100 is exact to 1e-10. Beyond that S_k are summed anew.
#
# Documents 700 or more below the best of their query count as 700 below it.


POWERS = 5
_CHANGE = 0.01  # of Z, at which S_k are summed anew
_LOST = 1e-4  # share of its largest value below which Z is summed anew
T, MASS, BLOCK, WEIGHT = range(4)
_LOWEST, _HIGHEST = -700.0, 50.0  # of t less the shift of its query


class State(NamedTuple):
    """What steps read and write, by row, by block (a grade of a query) and by query.

    What belongs to a row stands together in ``row``, since each entry of a column costs a look into
    memory there: t, which has the logarithm of the document's weight in it; its mass, w exp(t) =
    exp(t - shift); its block, -1 where the row does not count; and its weight w.
    """

    rows: I64
    start: I64
    of_query: I64
    query: I64  # of each block
    row: F64
    scale: F64  # c_g of each block, 0 where nothing is dominated
    shift: F64
    z: F64
    z0: F64
    top: F64  # the largest z since it was summed
    power: F64  # S_k at z0, a row for each k
    room: F64  # sums over the non-zeros of one query, by block


@kernel
def _sum_powers(b, st):
    """Sum (4) of one block at its present Z."""
    z = st.z[b]
    st.z0[b] = z
    s1 = s2 = s3 = s4 = s5 = 0.0
    for k in range(st.start[b], st.start[b + 1]):
        i = st.rows[k]
        w = st.row[i, WEIGHT]
        if w > 0.0:
            p = z / (z + st.row[i, MASS] / w)
            s1 += w * p
            s2 += w * p * p
            s3 += w * p * p * p
            s4 += w * p * p * p * p
            s5 += w * p * p * p * p * p
    st.power[0, b], st.power[1, b], st.power[2, b] = s1, s2, s3
    st.power[3, b], st.power[4, b] = s4, s5


@kernel
def refresh(lo, hi, st):
    """Work out masses, Z and S_k of the queries lo:hi from t."""
    for q in range(lo, hi):
        first, last = st.of_query[q], st.of_query[q + 1]
        if first == last or st.scale[first] == 0.0:
            continue
        highest = -np.inf
        for k in range(st.start[first], st.start[last]):
            highest = max(highest, st.row[st.rows[k], T])
        st.shift[q] = highest
        z = 0.0
        for b in range(last - 1, first - 1, -1):
            st.z[b] = st.top[b] = z
            for k in range(st.start[b], st.start[b + 1]):
                i = st.rows[k]
                if st.row[i, WEIGHT] > 0.0:
                    st.row[i, MASS] = math.exp(max(st.row[i, T] - highest, _LOWEST))
                    z += st.row[i, MASS]
            if st.scale[b] > 0.0:
                _sum_powers(b, st)


@kernel
def derivatives(lo, hi, indices, values, factor, st):
    """Return (2), (3) and the positive terms of (3) for the column lo:hi."""
    derivative = curvature = positive = 0.0
    mass, moment, pull, own, cross = st.room
    at = lo
    while at < hi:
        b = int(st.row[indices[at], BLOCK])
        if b < 0:
            at += 1
            continue
        first, last = st.of_query[st.query[b]], st.of_query[st.query[b] + 1]
        for b in range(last - first):
            mass[b] = moment[b] = pull[b] = own[b] = cross[b] = 0.0
        mu = nu = 0.0  # means times Z; most documents are of the lowest grade
        while at < hi:
            i = indices[at]
            b = int(st.row[i, BLOCK])
            if b >= last:
                break
            x = values[at] * factor
            at += 1
            if b == last - 1:
                mu += st.row[i, MASS] * x
                nu += st.row[i, MASS] * x * x
            elif b >= 0:
                mx = st.row[i, MASS] * x
                mass[b - first] += mx
                moment[b - first] += mx * x
                if st.scale[b] > 0.0:
                    w = st.row[i, WEIGHT]
                    p = st.z[b] / (st.z[b] + st.row[i, MASS] / w)
                    wx = w * x
                    pull[b - first] += wx * p
                    own[b - first] += wx * x * p * (1.0 - p)
                    cross[b - first] += wx * p * (1.0 - p)
        for b in range(last - 2, first - 1, -1):
            c, n = st.scale[b], b - first
            if c > 0.0:
                s1, s2 = _expand(b, st)
                mean = mu / st.z0[b]
                convex = s1 * nu / st.z0[b] + own[n]
                derivative += c * (s1 * mean - pull[n])  # (2)
                curvature += c * (convex - s2 * mean * mean - 2.0 * mu / st.z[b] * cross[n])  # (3)
                positive += c * convex
            mu += mass[n]
            nu += moment[n]
    return derivative, curvature, positive


@kernel
def _expand(b, st):
    """Return S_1 Z_0 / Z and S_2 (Z_0 / Z)^2 of one block by (5)."""
    d = (st.z[b] - st.z0[b]) / st.z0[b]
    s2, s3, s4, s5 = st.power[1, b], st.power[2, b], st.power[3, b], st.power[4, b]
    one = st.power[0, b] - d * (s2 - d * (s3 - d * (s4 - d * s5)))
    two = s2 - d * (2.0 * s3 - d * (3.0 * s4 - d * 4.0 * s5))
    return one, two


@kernel
def move(lo, hi, indices, values, factor, u, st):
    """Add u times the column lo:hi to the scores."""
    at = lo
    while at < hi:
        b = int(st.row[indices[at], BLOCK])
        if b < 0:
            at += 1
            continue
        q = st.query[b]
        first, last = st.of_query[q], st.of_query[q + 1]
        change, lost = st.room[0], False
        for b in range(last - first):
            change[b] = 0.0
        while at < hi:
            i = indices[at]
            b = int(st.row[i, BLOCK])
            if b >= last:
                break
            at += 1
            if b < 0:
                continue
            st.row[i, T] += u * (values[at - 1] * factor)
            height = st.row[i, T] - st.shift[q]
            lost = lost or height > _HIGHEST
            mass = math.exp(min(max(height, _LOWEST), -_LOWEST))
            if st.scale[b] > 0.0:
                _replace(b, st.row[i, MASS], mass, st.row[i, WEIGHT], st)
            change[b - first] += mass - st.row[i, MASS]
            st.row[i, MASS] = mass
        gain = 0.0
        for b in range(last - 1, first - 1, -1):
            if st.scale[b] > 0.0:
                st.z[b] += gain
                st.top[b] = max(st.top[b], st.z[b])
                lost = lost or not st.z[b] > _LOST * st.top[b]
                if abs(st.z[b] - st.z0[b]) > _CHANGE * st.z0[b] and not lost:
                    _sum_powers(b, st)
            gain += change[b - first]
        if lost:
            refresh(q, q + 1, st)


@kernel
def _replace(b, before, after, w, st):
    """Exchange one term of (4)."""
    z0 = st.z0[b]
    old, new = z0 / (z0 + before / w), z0 / (z0 + after / w)
    a, c = w, w
    for k in range(POWERS):
        a *= old
        c *= new
        st.power[k, b] += c - a


@kernel
def _block_scales(rows, start, of_query, w, scale, out):
    """Write c of each block: the query's where the block dominates some document, else 0."""
    for q in range(len(of_query) - 1):
        below = 0.0
        for b in range(of_query[q + 1] - 1, of_query[q] - 1, -1):
            out[b] = scale[q] if below > 0.0 else 0.0
            for k in range(start[b], start[b + 1]):
                below += w[rows[k]]


def new_state(blocks: GradeBlocks, w: F64, scale: F64) -> State:
    """Return the state of steps, still to be refreshed."""
    n_blocks, sizes = len(blocks.start) - 1, np.diff(blocks.start)
    query = np.repeat(np.arange(len(scale)), np.diff(blocks.of_query))
    by_block = np.zeros(n_blocks)
    _block_scales(blocks.rows, blocks.start, blocks.of_query, w, scale, by_block)
    row = np.zeros((len(w), 4))
    counts = np.where(scale[query] > 0.0, np.arange(n_blocks), -1)
    row[blocks.rows, BLOCK] = np.repeat(counts, sizes)
    row[w == 0.0, BLOCK] = -1.0
    row[:, WEIGHT] = w
    most = int(np.diff(blocks.of_query).max(initial=1))
    per_block = np.zeros((3, n_blocks))
    return State(
        rows=blocks.rows,
        start=blocks.start,
        of_query=blocks.of_query,
        query=query,
        row=row,
        scale=by_block,
        shift=np.zeros(len(scale)),
        z=per_block[0],
        z0=per_block[1],
        top=per_block[2],
        power=np.zeros((POWERS, n_blocks)),
        room=np.empty((5, most)),
    )


# --- steps along columns ----------------------------------------------------------------------

STEPS = ("log1p", "bound")
_FAINT = 1e-7  # least share of its positive terms that the curvature, not exact, is taken to be
_LONGEST = 10.0  # R |u|
_ENTRIES_PER_RANGE = 1 << 18
_NO_BOUND = np.empty(0)


@kernel
def step_length(derivative, curvature, reach, w, l1):
    """Return the u that minimises (1) + l1 |w + u|; ``reach`` is R, and 0 makes (1) a parabola."""
    side = 1.0 if w > 0.0 else (-1.0 if w < 0.0 else 0.0)
    if side == 0.0:
        way = -1.0 if derivative > 0.0 else 1.0
        return way * _travel(abs(derivative) - l1, curvature, reach)
    uphill = derivative + side * l1
    if uphill * side <= 0.0:  # away from 0
        return side * _travel(abs(uphill), curvature, reach)
    length = _travel(abs(uphill), curvature, reach)
    if length < abs(w):
        return -side * length
    beyond = _travel(abs(uphill) - 2.0 * l1, curvature, reach)  # past 0 the penalty pulls back
    return -side * max(beyond, abs(w))


@kernel
def _travel(force, curvature, reach):
    """Return how far a derivative of -force carries until (1) is level."""
    if force <= 0.0:
        return 0.0
    if reach == 0.0:
        return force / curvature
    return min(math.log1p(reach * force / curvature), _LONGEST) / reach


@kernel
def sweep(columns, indptr, indices, values, factor, reach, bound, l1, l2, w, violation, st):
    """Take a step along each column in turn; ``bound`` (B) takes the place of R where it is given.

    ``violation`` gets how far each column was from optimal when its turn came.
    """
    for n in range(len(columns)):
        j = columns[n]
        lo, hi = indptr[j], indptr[j + 1]
        derivative = curvature = positive = 0.0
        if reach[j] > 0.0:  # else x is constant in every query and changes nothing
            derivative, curvature, positive = derivatives(lo, hi, indices, values, factor[j], st)
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
            u = step_length(derivative, max(curvature, _FAINT * positive) + l2, reach[j], w[j], l1)
        if u != 0.0 and math.isfinite(u):
            w[j] += u
            move(lo, hi, indices, values, factor[j], u, st)


@kernel
def _ranges(lo, hi, indptr, indices, values, query, size, reach, largest):
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
def _column_products(lo, hi, indptr, indices, values, g, out):
    for j in range(lo, hi):
        total = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            total += values[k] * g[indices[k]]
        out[j] = total


@kernel
def _add_columns(columns, indptr, indices, values, w, s):
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
