"""A measure along a line: how the mean over queries changes as one weight moves, found exactly.

When the weight of a feature changes by t, every score moves along a line,

    s_i(t) = s_i + t x_i                                                                         (1)

and the ranking of a query changes only where two of its lines cross. A measure is thus a step
function of t, and the mean over queries one too. `MeasureLine.pieces` follows the first ranks of
each query from one end of the range to the other: the next crossing is that of two neighbours
among the ranks that count, or of the last of them with a document below; the measure then changes
by what a swap of neighbours is worth (`rankwright.metrics.swap`), in O(1). With k ranks that count
a crossing costs O(log k), and O(n) where the last of these ranks gets another document; all
crossings further down are never looked at. The changes of all queries, sorted by t, are the
steps of the mean.

Documents on one line are tied for every t; they stand in the worst order, lowest gain first, so
that neither the order of rows nor a tie earns anything.
"""

# Over the budget of 300 lines: one sweep, whose parts keep each other's sums up to date.

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rankwright.core.copies import copy_values, take
from rankwright.core.jit import kernel
from rankwright.core.order import sort_query
from rankwright.core.parallel import map_queries, map_ranges, ordered_sum, query_ranges
from rankwright.core.queries import longest
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError
from rankwright.metrics.base import Metric
from rankwright.metrics.ranked import Judged, Ranked
from rankwright.metrics.swap import ERR_SWAP, MAP_SWAP, MRR_SWAP, SwapForm, change, prepare

_FEW = 32  # ranks up to which insertion is quicker than sorting all documents

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _first_ranks(a, x, gain, t, at):  # type: ignore[no-untyped-def]
    """Fill ``at`` with the first documents at (just after) t: by score, slope, and least gain."""
    kept = 0
    for i in range(len(a)):
        score = a[i] + t * x[i]
        r = kept
        while r > 0:
            j = at[r - 1]
            other = a[j] + t * x[j]
            if score < other:
                break
            if score == other and (x[i] < x[j] or (x[i] == x[j] and gain[i] >= gain[j])):
                break
            r -= 1
        if r < len(at):
            if kept < len(at):
                kept += 1
            for below in range(kept - 1, r, -1):
                at[below] = at[below - 1]
            at[r] = i


@kernel
def _value(kind, b, weight):  # type: ignore[no-untyped-def]
    """Return the measure, before scaling, of a list whose first ranks have gains ``b``."""
    total, so_far = 0.0, 1.0 if kind == ERR_SWAP else 0.0
    for r in range(len(b)):
        if kind == MAP_SWAP:
            so_far += b[r]
            total += b[r] * so_far / (r + 1)
        elif kind == MRR_SWAP:
            if b[r] > 0.0:
                return 1.0 / (r + 1)
        elif kind == ERR_SWAP:
            total += so_far * b[r] / (r + 1)
            so_far *= 1.0 - b[r]
        else:
            total += weight[r] * b[r]
    return total


@kernel
def _values(lo, hi, indptr, s, level, gain, kind, weight, cut, scale, out):  # type: ignore[no-untyped-def]
    """Write the measure of each query under scores s; ``level`` is 0 for each document."""
    order, spare = np.empty((2, longest(lo, hi, indptr)), np.int64)
    for q in range(lo, hi):
        here = slice(indptr[q], indptr[q + 1])
        n = indptr[q + 1] - indptr[q]
        ranks = order[: min(cut[q], n)]
        out[q] = 0.0
        if scale[q] != 0.0:
            if len(ranks) > _FEW:
                sort_query(0, n, s[here], gain[here], order, spare)
            else:
                _first_ranks(s[here], level[here], gain[here], 0.0, ranks)
            out[q] = scale[q] * _value(kind, gain[here][ranks], weight)


@kernel
def _meeting(a, x, above, below):  # type: ignore[no-untyped-def]
    """Return the t at which the document below comes to stand above; infinite if it never does."""
    if x[below] <= x[above]:
        return np.inf
    return (a[above] - a[below]) / (x[below] - x[above])


@kernel
def _challenger(a, x, last, out_a, out_x, out_gain):  # type: ignore[no-untyped-def]
    """Return which of the documents below is the first to overtake ``last``, and when.

    Of several on one line it is that of the least gain.
    """
    place, lead, speed = -1, 1.0, 0.0  # lead / speed is the time; comparing takes no division
    for i in range(len(out_a)):
        faster = out_x[i] - x[last]
        if faster > 0.0:
            this, other = (a[last] - out_a[i]) * speed, lead * faster
            if this < other or (
                this == other and faster == speed and out_gain[i] < out_gain[place]
            ):
                place, lead, speed = i, a[last] - out_a[i], faster
    return place, (lead / speed if place >= 0 else np.inf)


@kernel
def _replay(tree, node, when):  # type: ignore[no-untyped-def]
    """Find the soonest rank anew from ``node`` of the winner tree to its root."""
    while node >= 1:
        tree[node] = _soonest(tree, node, when)
        node >>= 1


@kernel
def _soonest(tree, node, when):  # type: ignore[no-untyped-def]
    left, right = tree[2 * node], tree[2 * node + 1]
    return left if when[left] <= when[right] else right


@kernel
def _after_swap(kind, r, b, u):  # type: ignore[no-untyped-def]
    """Bring the running sums of `swap.prepare` up to date when ranks r and r + 1 were swapped."""
    if kind == MAP_SWAP:
        u[r + 1] = u[r] + b[r]
    elif kind == ERR_SWAP:
        u[r + 1] = u[r] * (1.0 - b[r])
    elif kind == MRR_SWAP:
        if b[r] > 0.0:
            u[0] = min(u[0], r)
        elif u[0] == r:
            u[0] = r + 1


@kernel
def _sweep_query(a, x, gain, kind, weight, cut, low, high, times, changes):  # type: ignore[no-untyped-def]
    """Follow the first ranks from ``low`` to ``high``; return the value at ``low`` and the changes.

    The changes are written to the arrays while there is room; returned is how many there are.
    """
    n = len(a)
    k = min(cut, n)
    at = np.empty(k, np.int64)
    _first_ranks(a, x, gain, low, at)
    inside = np.zeros(n, np.bool_)
    inside[at] = True
    out = np.flatnonzero(~inside)
    out_a, out_x, out_gain = a[out], x[out], gain[out]
    b, u, v = np.zeros(k + 1), np.zeros(k + 2), np.zeros(k + 2)
    take(gain, at, b)
    prepare(kind, b[:k], cut, u, v)
    v[0] = k + 1  # MRR's second relevant rank: with neighbours it is never the first's next
    size = 1
    while size < k:
        size *= 2
    when, tree = np.full(size, np.inf), np.empty(2 * size, np.int64)
    for r in range(k - 1):
        when[r] = _meeting(a, x, at[r], at[r + 1])
    place, when[k - 1] = _challenger(a, x, at[k - 1], out_a, out_x, out_gain)
    for r in range(size):
        tree[size + r] = r
    for node in range(size - 1, 0, -1):
        tree[node] = _soonest(tree, node, when)
    base, t, found = _value(kind, b[:k], weight), low, 0
    while True:
        r = tree[1]
        if when[r] >= high:
            return base, found
        t = max(t, when[r])
        above = at[r]
        below = at[r + 1] if r < k - 1 else out[place]
        b[r + 1] = gain[below]
        if b[r] != b[r + 1]:
            if found < len(times):
                times[found] = t
                changes[found] = change(kind, r, r + 1, b, weight, cut, u, v)
            found += 1
            b[r], b[r + 1] = b[r + 1], b[r]
            _after_swap(kind, r, b, u)
        at[r] = below
        if r < k - 1:
            at[r + 1] = above
        else:
            out[place], out_a[place], out_x[place] = above, a[above], x[above]
            out_gain[place] = gain[above]
        for moved in range(max(r - 1, 0), min(r + 2, k)):
            if moved < k - 1:
                when[moved] = _meeting(a, x, at[moved], at[moved + 1])
            else:
                place, when[moved] = _challenger(a, x, at[moved], out_a, out_x, out_gain)
            _replay(tree, (size + moved) >> 1, when)


@kernel
def _sweep(lo, hi, indptr, a, x, gain, kind, weight, cut, scale, low, high, room):  # type: ignore[no-untyped-def]
    """Return the sum of the measure at ``low``, and when and by how much it changes after that."""
    times, changes = np.empty(room), np.empty(room)
    base, count = 0.0, 0
    for q in range(lo, hi):
        first, end = indptr[q], indptr[q + 1]
        if scale[q] == 0.0 or cut[q] < 1:
            continue
        args = (a[first:end], x[first:end], gain[first:end], kind, weight, cut[q], low, high)
        value, found = _sweep_query(*args, times[count:], changes[count:])
        if count + found > len(times):
            more = 2 * (count + found)
            wider = np.empty(more), np.empty(more)
            copy_values(times[:count], wider[0])
            copy_values(changes[:count], wider[1])
            times, changes = wider
            value, found = _sweep_query(*args, times[count:], changes[count:])
        base += scale[q] * value
        for each in range(count, count + found):
            changes[each] *= scale[q]
        count += found
    return base, times[:count], changes[:count]


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pieces:
    """A step function: ``values[i]`` holds from ``edges[i]`` to ``edges[i + 1]``."""

    edges: F64
    values: F64


class MeasureLine:
    """The weighted mean of a measure over queries, at given scores and along lines of scores.

    A higher value is better: measures that fall as rankings improve have their sign turned. Ties
    count in their worst order.
    """

    def __init__(self, metric: Metric, data: RankingData, *, n_threads: int | None = None) -> None:
        self.metric = replace(metric, ties="worst")
        self._data, self._n_threads = data, n_threads
        self._sign = 1.0 if metric.maximise else -1.0
        weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
        self._weight = weight
        form = self._form
        if form is not None:
            level = self._per_query(np.zeros(data.n_documents))
            counted = np.where(np.isnan(level), 0.0, weight)  # left out is so in any order
            share = counted / (ordered_sum(counted) or 1.0)
            fixed = (form.scale == 0.0) & (share > 0.0)
            self._constant = ordered_sum(np.where(fixed, level, 0.0) * share)
            self._args = (form.gain, form.kind, form.weight, form.cut, form.scale * share)
        self._room = 16 * data.n_queries

    @cached_property
    def _form(self) -> SwapForm | None:
        """How the measure changes by swaps; None where it has no such form."""
        if not hasattr(self.metric, "swap_form"):
            return None
        try:
            form: SwapForm = self.metric.swap_form(self._data)
        except IncompatibleError:
            return None
        return form

    @cached_property
    def _judged(self) -> Judged:
        return self.metric.judge(self._data, n_threads=self._n_threads)

    @property
    def exact(self) -> bool:
        """Whether `pieces` knows the measure."""
        return self._form is not None

    @cached_property
    def depth(self) -> float:
        """For how many ranks a document competes, on average: what `pieces` costs."""
        if self._form is None:
            return np.inf
        sizes = self._data.sizes
        return float(sizes @ np.minimum(self._form.cut, sizes) / max(sizes.sum(), 1))

    def value(self, s: F64) -> float:
        """Return the mean over queries under scores ``s``."""
        if self._form is None:
            values = self._per_query(s)  # which queries are left out may depend on the scores
            counted = np.where(np.isnan(values), 0.0, self._weight)
            total = ordered_sum(np.nan_to_num(values) * counted)
            return self._sign * total / (ordered_sum(counted) or 1.0)
        out, level = np.empty(self._data.n_queries), np.zeros(len(s))
        indptr = self._data.indptr
        map_queries(_values, indptr, s, level, *self._args, out, n_threads=self._n_threads)
        return self._constant + ordered_sum(out)

    def pieces(self, s: F64, x: F64, low: float, high: float) -> Pieces:
        """Return the mean as a step function of t from ``low`` to ``high``, of scores (1)."""
        indptr = self._data.indptr
        bounds = query_ranges(indptr)
        parts: dict[int, tuple[float, F64, F64]] = {}

        def sweep(lo: int, hi: int) -> None:
            parts[lo] = _sweep(lo, hi, indptr, s, x, *self._args, low, high, self._room)

        map_ranges(sweep, bounds, n_threads=self._n_threads)
        found = [parts[lo] for lo in sorted(parts)]
        times = np.concatenate([part[1] for part in found])
        self._room = max(self._room, len(times))
        order = np.argsort(times)
        changes = np.concatenate([part[2] for part in found])[order]
        start = self._constant + sum(part[0] for part in found)
        values = start + np.concatenate(([0.0], np.cumsum(changes)))
        return Pieces(np.concatenate(([low], times[order], [high])), values)

    def _per_query(self, s: F64) -> F64:
        return self.metric.values(Ranked(self._judged, s, self.metric.setting("ties")))
