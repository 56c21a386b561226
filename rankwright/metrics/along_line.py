"""A metric along a line: how the mean over queries changes as one weight moves, found exactly.

When the weight of a feature changes by t, every score moves along a line,

    s_i(t) = s_i + t x_i                                                                         (1)

and the ranking of a query changes only where two of its lines cross. A metric is thus a step
function of t, and the mean over queries is one too. `MetricLine.pieces` finds it for metrics that
are sums over ranks of weight by rank times gain by document: ndcg, dcg, p, recall and others. It
follows the first ranks of each query from one end of the range to the other. The next crossing is
that of two neighbours among the ranks that count, or of the last of them with a document below;
the metric then changes by (w_r - w_{r+1}) times the difference of the gains. With k ranks that
count a crossing costs O(log k), and O(n) if the last of these ranks gets another document;
crossings further down are not looked at. The changes of all queries, sorted by t, are the steps of
the mean.

Documents on one line are tied for every t. Each of them earns the mean gain of the line, which is
the mean of the metric over their orders.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.kernels import copy_values, take
from rankwright.core.order import NO_KEY, sort_query
from rankwright.core.parallel import map_ranges, ordered_sum, query_ranges
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError
from rankwright.metrics.base import Metric
from rankwright.metrics.ranked import Judged, Ranked
from rankwright.metrics.swap import LINEAR_SWAP, SwapForm

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _first_ranks(a, x, t, at):
    """Fill ``at`` with the first documents at (just after) t: by score and slope."""
    kept = 0
    for i in range(len(a)):
        score = a[i] + t * x[i]
        r = kept
        while r > 0:
            j = at[r - 1]
            other = a[j] + t * x[j]
            if score < other:
                break
            if score == other and x[i] <= x[j]:
                break
            r -= 1
        if r < len(at):
            if kept < len(at):
                kept += 1
            for below in range(kept - 1, r, -1):
                at[below] = at[below - 1]
            at[r] = i


@kernel
def _mean_gains(a, x, gain, mean):
    """Write for each document the mean gain of the documents on its line."""
    n = len(a)
    order, spare = np.empty(n, np.int64), np.empty(n, np.int64)
    sort_query(0, n, a, NO_KEY, order, spare)
    for place in range(1, n):
        if a[order[place]] == a[order[place - 1]]:
            sort_query(0, n, a, x, order, spare)
            break
    start = 0
    for end in range(1, n + 1):
        i = order[start]
        if end < n and a[order[end]] == a[i] and x[order[end]] == x[i]:
            continue
        total = 0.0
        for place in range(start, end):
            total += gain[order[place]]
        for place in range(start, end):
            mean[order[place]] = total / (end - start)
        start = end


@kernel
def _meeting(a, x, above, below):
    """Return the t at which the document below comes to stand above; infinite if it never does."""
    if x[below] <= x[above]:
        return np.inf
    return (a[above] - a[below]) / (x[below] - x[above])


@kernel
def _challenger(a, x, last, out_a, out_x):
    """Return which of the documents below is the first to overtake ``last``, and when."""
    place, lead, speed = -1, 1.0, 0.0  # lead / speed is the time; comparing takes no division
    for i in range(len(out_a)):
        faster = out_x[i] - x[last]
        if faster > 0.0 and (a[last] - out_a[i]) * speed < lead * faster:
            place, lead, speed = i, a[last] - out_a[i], faster
    return place, (lead / speed if place >= 0 else np.inf)


@kernel
def _replay(tree, node, when):
    """Find the soonest rank anew from ``node`` of the winner tree to its root."""
    while node >= 1:
        tree[node] = _soonest(tree, node, when)
        node >>= 1


@kernel
def _soonest(tree, node, when):
    left, right = tree[2 * node], tree[2 * node + 1]
    return left if when[left] <= when[right] else right


@kernel
def _sweep_query(a, x, gain, weight, cut, low, high, times, changes):
    """Follow the first ranks from ``low`` to ``high``; return the value at ``low`` and the changes.

    The changes are written to the arrays while there is room; returned is how many there are.
    """
    n = len(a)
    k = min(cut, n)
    at, earned, b = np.empty(k, np.int64), np.empty(n), np.empty(k + 1)
    _mean_gains(a, x, gain, earned)
    _first_ranks(a, x, low, at)
    inside = np.zeros(n, np.bool_)
    inside[at] = True
    out = np.flatnonzero(~inside)
    out_a, out_x = a[out], x[out]
    take(earned, at, b)
    size = 1
    while size < k:
        size *= 2
    when, tree = np.full(size, np.inf), np.empty(2 * size, np.int64)
    for r in range(k - 1):
        when[r] = _meeting(a, x, at[r], at[r + 1])
    place, when[k - 1] = _challenger(a, x, at[k - 1], out_a, out_x)
    for r in range(size):
        tree[size + r] = r
    for node in range(size - 1, 0, -1):
        tree[node] = _soonest(tree, node, when)
    base, t, found = 0.0, low, 0
    for r in range(k):
        base += weight[r] * b[r]
    while True:
        r = tree[1]
        if when[r] >= high:
            return base, found
        t = max(t, when[r])
        above = at[r]
        below = at[r + 1] if r < k - 1 else out[place]
        b[r + 1] = earned[below]
        if b[r] != b[r + 1]:
            if found < len(times):
                after = weight[r + 1] if r + 1 < cut else 0.0
                times[found], changes[found] = t, (b[r + 1] - b[r]) * (weight[r] - after)
            found += 1
            b[r], b[r + 1] = b[r + 1], b[r]
        at[r] = below
        if r < k - 1:
            at[r + 1] = above
        else:
            out[place], out_a[place], out_x[place] = above, a[above], x[above]
        for moved in range(max(r - 1, 0), min(r + 2, k)):
            if moved < k - 1:
                when[moved] = _meeting(a, x, at[moved], at[moved + 1])
            else:
                place, when[moved] = _challenger(a, x, at[moved], out_a, out_x)
            _replay(tree, (size + moved) >> 1, when)


@kernel
def _sweep(lo, hi, indptr, a, x, form, low, high, room):
    """Return the sum of the metric at ``low``, and when and by how much it changes after that."""
    _, gain, weight, cut, scale = form
    times, changes = np.empty(room), np.empty(room)
    base, count = 0.0, 0
    for q in range(lo, hi):
        first, end = indptr[q], indptr[q + 1]
        if scale[q] == 0.0 or cut[q] < 1:
            continue
        args = (a[first:end], x[first:end], gain[first:end], weight, cut[q], low, high)
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


class MetricLine:
    """The weighted mean of a metric over queries, at given scores and along lines of scores.

    A higher value is better: metrics that fall as rankings improve have their sign turned. Ties
    count as the mean over their orders.
    """

    def __init__(self, metric: Metric, data: RankingData, *, n_jobs: int | None = None) -> None:
        self.metric = metric.for_selection()
        self._data, self._n_jobs = data, n_jobs
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
            self._weighted_form = form._replace(scale=form.scale * share)
        self._room = 16 * data.n_queries

    @cached_property
    def _form(self) -> SwapForm | None:
        """The metric as a sum over ranks; None if it is not one, or does not average its ties."""
        if not hasattr(self.metric, "swap_form") or not self.metric.averages_ties:
            return None
        try:
            form: SwapForm = self.metric.swap_form(self._data)
        except IncompatibleError:
            return None
        return form if form.kind == LINEAR_SWAP else None

    @cached_property
    def _judged(self) -> Judged:
        return self.metric.judge(self._data, n_jobs=self._n_jobs)

    @property
    def exact(self) -> bool:
        """Whether the metric is a sum over ranks, which `pieces` needs."""
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
        values = self._per_query(s)  # which queries are left out may depend on the scores
        counted = np.where(np.isnan(values), 0.0, self._weight)
        total = ordered_sum(np.nan_to_num(values) * counted)
        return self._sign * total / (ordered_sum(counted) or 1.0)

    def pieces(self, s: F64, x: F64, low: float, high: float) -> Pieces:
        """Return the mean as a step function of t from ``low`` to ``high``, of scores (1)."""
        indptr = self._data.indptr
        bounds = query_ranges(indptr)
        parts: dict[int, tuple[float, F64, F64]] = {}

        def sweep(lo: int, hi: int) -> None:
            parts[lo] = _sweep(lo, hi, indptr, s, x, self._weighted_form, low, high, self._room)

        map_ranges(sweep, bounds, n_jobs=self._n_jobs)
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
