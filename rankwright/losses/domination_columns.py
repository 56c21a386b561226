"""Coordinate steps for the domination loss: one feature at a time, at the cost of its entries.

In the notation of `rankwright.losses.domination`, with p_i = Z / (Z + exp(t_i)), the derivatives of
the loss along a feature x are sums over the grades g of all queries:

    derivative = sum_g c_g [S_1 mu - sum_{i in g} w_i p_i x_i]                                (1)
    curvature = sum_g c_g [S_1 nu - S_2 mu^2
                           + sum_{i in g} w_i p_i (1 - p_i) x_i (x_i - 2 mu)]                 (2)

    mu, nu = means of x and x^2 over the documents below g, by w_j exp(t_j)
    S_k = sum over i in g of w_i p_i^k                                                         (3)

with c_g the weight of the query over the weight of its dominating documents
(`stevens2010domination`, (1.2), and its multi-valued form). All but S_k are sums over the stored
entries of x. A step changes Z and with it every term of (3), so S_1, ..., S_5 are stored at a fixed
Z_0 and expanded,

    S_1(Z) Z_0 / Z     = S_1 - d S_2 + d^2 S_3 - ...,            d = (Z - Z_0) / Z_0
    S_2(Z) (Z_0 / Z)^2 = S_2 - 2 d S_3 + 3 d^2 S_4 - ...                                       (4)

with an error of 1e-10 at |d| <= 1/100. At larger d, S_k are summed again. Documents 700 or more
below the best document of their query count as 700 below it.

With R the range of x within a query, |f'''| <= R f'', so along x the loss is at most

    f(u) <= f + derivative u + curvature (exp(R|u|) - 1 - R|u|) / R^2                           (5)

and so is loss + l2/2 w^2 with l2 added to the curvature. ``step="log1p"`` minimises (5) plus
l1 |w + u|. It never increases the objective, and near the optimum it is a Newton step. Without
penalty it is u = -sign(derivative) log1p(R |derivative| / curvature) / R. ``step="bound"`` is the
paper's: R = 0 and curvature = B, the largest x^2 (Lemmas 1 and 2 with beta = B).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import document_weight

POWERS = 5
_CHANGE = 0.01  # of Z; beyond it, S_k are summed again
_LOST = 1e-4  # share of its largest value below which Z is summed again
T, MASS, BLOCK, WEIGHT = range(4)
_LOWEST, _HIGHEST = -700.0, 50.0  # of t less the shift of its query


class State(NamedTuple):
    """Numbers that steps read and write, by row, by block (a tier of a query) and by query.

    ``row`` has the numbers of a row next to each other, because each entry of a column reads them
    from memory: t plus the logarithm of the document's weight; its mass w exp(t - shift); its
    block, or -1 if the row does not count; and its weight w.
    """

    rows: I64
    start: I64
    of_query: I64
    query: I64  # of each block
    row: F64
    scale: F64  # c_g of each block, 0 if it dominates nothing
    shift: F64
    z: F64
    z0: F64
    top: F64  # the largest z since it was summed
    power: F64  # S_k at z0, a row for each k
    sums: F64  # over the entries of one query, by block


@kernel
def _sum_powers(b, st):
    """Compute (3) of one block at its present Z."""
    z = st.z[b]
    st.z0[b] = z
    s1 = s2 = s3 = s4 = s5 = 0.0
    for k in range(st.start[b], st.start[b + 1]):
        w = st.row[st.rows[k], WEIGHT]
        p = z / (z + st.row[st.rows[k], MASS] / w)
        s1 += w * p
        s2 += w * p * p
        s3 += w * p * p * p
        s4 += w * p * p * p * p
        s5 += w * p * p * p * p * p
    st.power[0, b], st.power[1, b], st.power[2, b] = s1, s2, s3
    st.power[3, b], st.power[4, b] = s4, s5


@kernel
def refresh(lo, hi, st):
    """Compute masses, Z and S_k of the queries lo:hi from t."""
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
                st.row[i, MASS] = math.exp(max(st.row[i, T] - highest, _LOWEST))
                z += st.row[i, MASS]
            if st.scale[b] > 0.0:
                _sum_powers(b, st)


@kernel
def derivatives(lo, hi, indices, values, factor, st):
    """Return (1), (2) and the positive terms of (2) for the column lo:hi."""
    derivative = curvature = positive = 0.0
    mass, moment, pull, direct, cross = st.sums
    at = lo
    while at < hi:
        b = int(st.row[indices[at], BLOCK])
        if b < 0:
            at += 1
            continue
        first, last = st.of_query[st.query[b]], st.of_query[st.query[b] + 1]
        for b in range(last - first):
            mass[b] = moment[b] = pull[b] = direct[b] = cross[b] = 0.0
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
                    direct[b - first] += wx * x * p * (1.0 - p)
                    cross[b - first] += wx * p * (1.0 - p)
        for b in range(last - 2, first - 1, -1):
            c, n = st.scale[b], b - first
            if c > 0.0:
                s1, s2 = _expand(b, st)
                mean = mu / st.z0[b]
                convex = s1 * nu / st.z0[b] + direct[n]
                derivative += c * (s1 * mean - pull[n])  # (1)
                curvature += c * (convex - s2 * mean * mean - 2.0 * mu / st.z[b] * cross[n])  # (2)
                positive += c * convex
            mu += mass[n]
            nu += moment[n]
    return derivative, curvature, positive


@kernel
def _expand(b, st):
    """Return S_1 Z_0 / Z and S_2 (Z_0 / Z)^2 of one block by (4)."""
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
        change, lost = st.sums[0], False
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
    """Exchange one term of (3)."""
    z0 = st.z0[b]
    old, new = z0 / (z0 + before / w), z0 / (z0 + after / w)
    a, c = w, w
    for k in range(POWERS):
        a *= old
        c *= new
        st.power[k, b] += c - a


def new_state(blocks: Any, w: F64, scale: F64) -> State:
    """Return the state of steps for the blocks of `Domination.blocks`, before `refresh`.

    ``w`` has the weight of each document, and ``scale`` c of each query.
    """
    n_blocks, sizes = len(blocks.start) - 1, np.diff(blocks.start)
    query = np.repeat(np.arange(len(scale)), np.diff(blocks.of_query))
    by_block = scale[query]
    by_block[blocks.of_query[1:][np.diff(blocks.of_query) > 0] - 1] = 0.0  # the lowest
    row = np.zeros((len(w), 4))
    row[:, BLOCK], row[:, WEIGHT] = -1.0, w
    block = np.where(scale[query] > 0.0, np.arange(n_blocks), -1)
    row[blocks.rows, BLOCK] = np.repeat(block, sizes)
    return State(
        rows=blocks.rows,
        start=blocks.start,
        of_query=blocks.of_query,
        query=query,
        row=row,
        scale=by_block,
        shift=np.zeros(len(scale)),
        z=np.zeros(n_blocks),
        z0=np.zeros(n_blocks),
        top=np.zeros(n_blocks),
        power=np.zeros((POWERS, n_blocks)),
        sums=np.empty((5, int(np.diff(blocks.of_query).max(initial=1)))),
    )


# --- steps along columns ----------------------------------------------------------------------

_FAINT = 1e-7  # smallest share of its positive terms for the curvature, which is not exact
_LONGEST = 10.0  # R |u|
_ENTRIES_PER_RANGE = 1 << 18
_NO_BOUND = np.empty(0)


@kernel
def step_length(derivative, curvature, reach, w, l1):
    """Return the u that minimises (5) + l1 |w + u|; ``reach`` is R, and 0 makes (5) a parabola."""
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
    """Return the distance at which the derivative of (5), -force at 0, is 0."""
    if force <= 0.0:
        return 0.0
    if reach == 0.0:
        return force / curvature
    return min(math.log1p(reach * force / curvature), _LONGEST) / reach


@kernel
def sweep(columns, indptr, indices, values, factor, reach, bound, l1, l2, w, violation, st):
    """Take a step along each column in turn; use ``bound`` (B) instead of R unless it is empty.

    Writes the violation of the optimality condition of each column before its step.
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
    """Write R and the largest x^2 of the columns lo:hi, with zeros that are not stored.

    Rows of query -1 do not count.
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


class DominationColumns:
    """Domination loss of linear scores plus l1 and l2 penalties, with steps along columns.

    J(w) = loss(X w / deviation) / total_weight + l2/2 |w|^2 + l1 |w|_1

    Parameters
    ----------
    bound : BoundDomination
        The loss on the data.
    data
        Queries, grades and weights of the rows of ``X``.
    X : CSC matrix
    total_weight
        Divisor of the loss.
    l1, l2
        Penalties; they may be changed between runs.
    deviation : (d,) float64
        Divides the columns; ones by default.
    """

    def __init__(
        self,
        bound: Any,
        data: RankingData,
        X: Any,
        *,
        total_weight: float,
        l1: float = 0.0,
        l2: float = 0.0,
        deviation: F64 | None = None,
        n_jobs: int | None = None,
    ) -> None:
        w, blocks = document_weight(data), bound.loss.blocks(data)
        self.size, self.l1, self.l2 = int(X.shape[1]), l1, l2
        self._loss, self._total, self._n_jobs = bound, total_weight, n_jobs
        reach, largest = column_ranges(X, data.indptr, w, n_jobs=n_jobs)
        self._arrays = X.indptr, X.indices, X.data
        self._factor = np.ones(self.size) if deviation is None else 1.0 / deviation
        self._reach = reach * self._factor
        self._bound = largest * self._factor**2 * float(bound.weight.sum()) / total_weight
        with np.errstate(divide="ignore"):
            self._offset = np.log(w) - bound.loss.margins(data)
        self._state = new_state(blocks, w, bound.weight * blocks.share / total_weight)
        self._gradient = np.empty(len(w))
        self._work = 0  # entries visited since the last refresh

    def scores(self, w: F64) -> F64:
        """Return the scores of the weights ``w``."""
        s = np.zeros(len(self._gradient))
        _add_columns(np.flatnonzero(w), *self._arrays, w * self._factor, s)
        return s

    def value(self, w: F64) -> float:
        """Return J."""
        return self._penalised(self._loss.value(self.scores(w)), w)

    def grad(self, w: F64, out: F64) -> float:
        """Write the gradient without the l1 term to ``out`` and return J; steps start from w."""
        s = self.scores(w)
        value = self._loss.grad(s, self._gradient)
        map_ranges(
            _column_products, column_bounds(self._arrays[0]), *self._arrays, self._gradient, out,
            n_jobs=self._n_jobs,
        )  # fmt: skip
        out *= self._factor / self._total
        out += self.l2 * w
        self._state.row[:, T] = s + self._offset
        self._refresh()
        return self._penalised(value, w)

    def sweep(self, w: F64, columns: I64, *, step: str = "log1p") -> F64:
        """Take a step along each of ``columns``, changing ``w``, the weights of the last call.

        Returns the violation of the optimality condition of each column before its step.
        """
        if step not in ("log1p", "bound"):
            raise UsageError(f"step must be log1p or bound, not '{step}'.")
        self._work += int((self._arrays[0][columns + 1] - self._arrays[0][columns]).sum())
        if self._work > 10 * len(self._gradient):  # removes rounding errors
            self._refresh()
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


def column_ranges(X: Any, indptr: I64, w: F64, *, n_jobs: int | None = None) -> tuple[F64, F64]:
    """Return R and the largest x^2 of each column of a CSC matrix, without rows of weight 0."""
    if X.format != "csc" or not X.has_sorted_indices:
        raise UsageError("columns need a CSC matrix with sorted rows: X.tocsc().sorted_indices().")
    query = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
    size = np.bincount(query[w > 0.0], minlength=len(indptr) - 1)
    query[w == 0.0] = -1
    reach, largest = np.zeros((2, X.shape[1]))
    arrays = X.indptr, X.indices, X.data, query, size, reach, largest
    map_ranges(_ranges, column_bounds(X.indptr), *arrays, n_jobs=n_jobs)
    return reach, largest


def column_bounds(indptr: AnyArray) -> I64:
    """Return ranges of columns of about equal numbers of entries."""
    pieces = max(1, int(indptr[-1]) // _ENTRIES_PER_RANGE)
    goals = int(indptr[-1]) * np.arange(1, pieces) // pieces
    cuts = np.searchsorted(indptr, goals)
    return np.unique(np.concatenate(([0], cuts, [len(indptr) - 1]))).astype(np.int64)
