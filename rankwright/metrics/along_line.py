"""Exact change of the mean of a metric over queries as one feature weight changes.

When the weight of a feature changes by t, every score moves along a line,

    s_i(t) = s_i + t x_i                                                                         (1)

and the ranking of a query changes only when two of its lines cross. A metric is therefore a step
function of t, and so is the mean over queries. `MetricLine.pieces` computes it for metrics that are
sums over ranks of a weight by rank times a gain by document: ndcg, dcg, p, recall and so on. It
follows the first ranks of each query from one end of the range to the other. The next crossing is
between two neighbours of the k ranks that count, or between the last one and a document below.
The metric then changes by (w_r - w_{r+1}) times the difference of the gains. A crossing costs O(k),
and O(n) if the last of the k ranks gets another document; crossings further down are ignored. The
changes of all queries, sorted by t, are the steps of the mean.

Documents on the same line are tied for every t. Each has the mean gain of these documents,
which gives the mean of the metric over their orders.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.kernels import take
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
    """Fill ``at`` with the first documents just after t, by score and slope."""
    filled = 0
    for i in range(len(a)):
        score = a[i] + t * x[i]
        r = filled
        while r > 0:
            j = at[r - 1]
            other = a[j] + t * x[j]
            if score < other:
                break
            if score == other and x[i] <= x[j]:
                break
            r -= 1
        if r < len(at):
            if filled < len(at):
                filled += 1
            for below in range(filled - 1, r, -1):
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
    """Return the t at which the document below overtakes the one above; infinite if never."""
    if x[below] <= x[above]:
        return np.inf
    return (a[above] - a[below]) / (x[below] - x[above])


@kernel
def _challenger(a, x, last, out_a, out_x):
    """Return the first document below that overtakes ``last``, and the time."""
    place, lead, speed = -1, 1.0, 0.0  # the time is lead / speed; products avoid the division
    for i in range(len(out_a)):
        faster = out_x[i] - x[last]
        if faster > 0.0 and (a[last] - out_a[i]) * speed < lead * faster:
            place, lead, speed = i, a[last] - out_a[i], faster
    return place, (lead / speed if place >= 0 else np.inf)


@kernel
def _sweep_query(a, x, gain, form, low, high, times, changes):
    """Append the changes of a query from ``low`` to ``high``; return its value at ``low``."""
    weight, cut, scale = form
    n = len(a)
    k = min(cut, n)
    at, mean, b = np.empty(k, np.int64), np.empty(n), np.empty(k + 1)
    _mean_gains(a, x, gain, mean)
    _first_ranks(a, x, low, at)
    is_first = np.zeros(n, np.bool_)
    is_first[at] = True
    out = np.flatnonzero(~is_first)
    out_a, out_x = a[out], x[out]
    take(mean, at, b)
    when = np.empty(k)  # time at which each rank is overtaken by the next one
    for r in range(k - 1):
        when[r] = _meeting(a, x, at[r], at[r + 1])
    place, when[k - 1] = _challenger(a, x, at[k - 1], out_a, out_x)
    base, t = 0.0, low
    for r in range(k):
        base += weight[r] * b[r]
    while True:
        r = int(np.argmin(when))
        if when[r] >= high:
            return scale * base
        t = max(t, when[r])
        above = at[r]
        below = at[r + 1] if r < k - 1 else out[place]
        b[r + 1] = mean[below]
        if b[r] != b[r + 1]:
            after = weight[r + 1] if r + 1 < cut else 0.0
            times.append(t)
            changes.append((b[r + 1] - b[r]) * (weight[r] - after) * scale)
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


@kernel
def _sweep(lo, hi, indptr, a, x, form, low, high):
    """Return the sum of the metric at ``low``, and the times and sizes of its later changes."""
    _, gain, weight, cut, scale = form
    times, changes = [low], [0.0]  # typed by their first values
    base = 0.0
    for q in range(lo, hi):
        if scale[q] != 0.0 and cut[q] >= 1:
            rows = slice(indptr[q], indptr[q + 1])
            of_query = weight, cut[q], scale[q]
            base += _sweep_query(a[rows], x[rows], gain[rows], of_query, low, high, times, changes)
    return base, np.array(times[1:]), np.array(changes[1:])


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pieces:
    """A step function: ``values[i]`` holds from ``edges[i]`` to ``edges[i + 1]``."""

    edges: F64
    values: F64


class MetricLine:
    """The weighted mean of a metric over queries, for scores and along lines of scores.

    A higher value is better: metrics that are better if lower change their sign. Ties count
    as the mean over their orders.
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
            weight = np.where(np.isnan(level), 0.0, weight)  # omitted queries are so in any order
            share = weight / (ordered_sum(weight) or 1.0)
            fixed = (form.scale == 0.0) & (share > 0.0)
            self._constant = ordered_sum(np.where(fixed, level, 0.0) * share)
            self._weighted_form = form._replace(scale=form.scale * share)

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
        """Mean over documents of the number of ranks that count in their query."""
        if self._form is None:
            return np.inf
        sizes = self._data.sizes
        return float(sizes @ np.minimum(self._form.cut, sizes) / max(sizes.sum(), 1))

    def value(self, s: F64) -> float:
        """Return the mean over queries under scores ``s``."""
        values = self._per_query(s)  # scores can determine which queries are omitted
        weight = np.where(np.isnan(values), 0.0, self._weight)
        total = ordered_sum(np.nan_to_num(values) * weight)
        return self._sign * total / (ordered_sum(weight) or 1.0)

    def pieces(self, s: F64, x: F64, low: float, high: float) -> Pieces:
        """Return the mean as a step function of t from ``low`` to ``high``, of scores (1)."""
        indptr = self._data.indptr
        bounds = query_ranges(indptr)
        parts: dict[int, tuple[float, F64, F64]] = {}

        def sweep(lo: int, hi: int) -> None:
            parts[lo] = _sweep(lo, hi, indptr, s, x, self._weighted_form, low, high)

        map_ranges(sweep, bounds, n_jobs=self._n_jobs)
        bases, times_of_parts, changes_of_parts = zip(
            *(parts[lo] for lo in sorted(parts)), strict=True
        )
        times = np.concatenate(times_of_parts)
        order = np.argsort(times)
        changes = np.concatenate(changes_of_parts)[order]
        start = self._constant + sum(bases)
        values = start + np.concatenate(([0.0], np.cumsum(changes)))
        return Pieces(np.concatenate(([low], times[order], [high])), values)

    def _per_query(self, s: F64) -> F64:
        return self.metric.values(Ranked(self._judged, s, self.metric.setting("ties")))
