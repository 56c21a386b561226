"""Sums over the pairs of documents that violate a margin, in O(n log n) per query.

Documents are grouped by grade (`GradeBlocks`), best first. A document i and a document j of a lower
grade are **wrong** if the better one does not lead by the margin, v_i < v_j + margin; each is then
a partner of the other. For any vector x and each document p,

    lower[p] = sum of x over the partners of p of lower grades,   higher[p] = of higher grades  (1)

Every pairwise hinge loss, and its Hessian times a vector, is a function of such sums.

Each grade is sorted by v. Then neighbouring grades are merged, then pairs of them, and so on, in
log2(number of grades) levels. On each level a run of higher grades precedes a run of lower grades,
and v falls in both. The partners of a document of the first run are therefore a prefix of the
second, and the partners of a document of the second run are a suffix of the first.
`find_wrong_pairs` stores the order and the ends of prefixes and suffixes of each level, and
`add_partners` needs only running sums and these ends. Real-valued grades also take O(n log n).

A pair of grades a > b has the weight

    min(1, a - b)                                                                               (2)

which is 1 for whole grades. For relevance estimated from clicks it is the difference, because .31
against .30 is hardly a preference. If not all weights are 1, or a pair of grades has the weight

    (gain_a - gain_b) (worth_a - worth_b)                                                       (3)

`add_weighted` visits each pair of grades instead, in O(n x grades) and without cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankwright.core.jit import inline_kernel, kernel
from rankwright.core.order import NO_KEY, first_of_runs, sort_query
from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData

# --- kernels ---------------------------------------------------------------------------------


@inline_kernel
def preference(better, worse):
    """Return the weight (2) of a pair of documents of these grades; 0 if they are equal."""
    return min(abs(better - worse), 1.0)


@kernel
def _pair_weights(of_query, grade, weight, out):
    """Write the sum of products of weights times (2) over the pairs of blocks of each query."""
    for q in range(len(of_query) - 1):
        out[q] = 0.0
        for a in range(of_query[q], of_query[q + 1]):
            for b in range(a + 1, of_query[q + 1]):
                out[q] += weight[a] * weight[b] * preference(grade[a], grade[b])


@kernel
def find_wrong_pairs(first, last, start, v, margin, pairs):
    """Find the wrong pairs of the query whose blocks are first:last, for `add_partners`.

    ``pairs`` comes from `GradeBlocks.new_pairs`. Places, not rows, index everything.
    """
    order, ends, _, _ = pairs
    sort_grades(first, last, start, v, pairs)
    width, level = 1, 0
    while width < last - first:
        here = order[level]
        for b in range(first, last, 2 * width):
            lo, mid = start[b], start[min(b + width, last)]
            hi = start[min(b + 2 * width, last)]
            _find_ends(lo, mid, hi, v, margin, here, ends[level])
            if 2 * width < last - first:
                _merge(lo, mid, hi, v, here, order[level + 1])
        width *= 2
        level += 1


@kernel
def sort_grades(first, last, start, v, pairs):
    """Put each grade of a query in order, v falling."""
    order, _, spare, _ = pairs
    for b in range(first, last):
        sort_query(start[b], start[b + 1], v, NO_KEY, order[0], spare)


@kernel
def _find_ends(lo, mid, hi, v, margin, order, ends):
    """Walk both runs at once; a document of the second comes first where the pair is wrong."""
    i, j = lo, mid
    while i < mid and j < hi:
        if v[order[i]] < v[order[j]] + margin:
            ends[j] = i  # its partners are i:mid
            j += 1
        else:
            ends[i] = j  # its partners are mid:j
            i += 1
    for k in range(i, mid):
        ends[k] = hi
    for k in range(j, hi):
        ends[k] = mid


@kernel
def _merge(lo, mid, hi, v, order, merged):
    """Merge two runs, v falling; the first one goes first where equal."""
    i, j = lo, mid
    for k in range(lo, hi):
        if j == hi or (i < mid and v[order[i]] >= v[order[j]]):
            merged[k] = order[i]
            i += 1
        else:
            merged[k] = order[j]
            j += 1


@kernel
def add_partners(first, last, start, pairs, x, lower, higher):
    """Write (1) for one query, whose pairs were found before; one array for both gets their sum."""
    order, ends, _, running = pairs
    for p in range(start[first], start[last]):
        lower[p] = higher[p] = 0.0
    width, level = 1, 0
    while width < last - first:
        here, end = order[level], ends[level]
        for b in range(first, last - width, 2 * width):
            lo, mid, hi = start[b], start[b + width], start[min(b + 2 * width, last)]
            running[mid + first] = 0.0
            for k in range(mid, hi):  # heads of the second run
                running[k + first + 1] = running[k + first] + x[here[k]]
            for k in range(lo, mid):
                lower[here[k]] += running[end[k] + first]
            for k in range(mid - 1, lo - 1, -1):  # tails of the first
                running[k + first] = running[k + first + 1] + x[here[k]]
            for k in range(mid, hi):
                higher[here[k]] += running[end[k] + first]
        width *= 2
        level += 1


@kernel
def score_range(lo, hi, s, rows):
    """Return the lowest and the highest score of the places lo:hi."""
    low = high = s[rows[lo]]
    for p in range(lo, hi):
        low, high = min(low, s[rows[p]]), max(high, s[rows[p]])
    return low, high


@kernel
def add_weighted(first, last, start, v, margin, pairs, gain_and_worth, x, lower, higher):
    """As `add_partners`, each partner times a weight of the two grades, which are sorted.

    That is (3), or (2) of the grades in ``gain`` where ``worth`` is empty.
    """
    gain, worth = gain_and_worth
    order = pairs[0][0]
    for p in range(start[first], start[last]):
        lower[p] = higher[p] = 0.0
    for a in range(first, last):
        for b in range(a + 1, last):
            weight = preference(gain[a], gain[b])  # (2)
            if len(worth):
                weight = (gain[a] - gain[b]) * (worth[a] - worth[b])  # (3)
            total, j = 0.0, start[b]
            for k in range(start[a], start[a + 1]):
                while j < start[b + 1] and v[order[k]] < v[order[j]] + margin:
                    total += x[order[j]]
                    j += 1
                lower[order[k]] += weight * total
            total, i = 0.0, start[a + 1] - 1
            for k in range(start[b + 1] - 1, start[b] - 1, -1):
                while i >= start[a] and v[order[i]] < v[order[k]] + margin:
                    total += x[order[i]]
                    i -= 1
                higher[order[k]] += weight * total


# --- API -------------------------------------------------------------------------------------


class BlockLayout(NamedTuple):
    """The arrays of `GradeBlocks`, which describes them."""

    rows: I64
    start: I64
    of_query: I64


@dataclass(frozen=True, slots=True, eq=False)
class GradeBlocks:
    """The documents of each query grade by grade, best first; build it with `of`.

    Attributes
    ----------
    rows : (n,) int64
        Row of the document at each place; places go query after query, as rows do.
    start : (B + 1,) int64
        Block b, one grade of one query, holds the places ``start[b]:start[b + 1]``.
    of_query : (Q + 1,) int64
        Query q has the blocks ``of_query[q]:of_query[q + 1]``.
    grade : (B,) float64
        The grade of each block.
    """

    rows: I64
    start: I64
    of_query: I64
    grade: F64

    @classmethod
    def of(cls, data: RankingData) -> GradeBlocks:
        """Return the blocks of ``data``."""
        rows = np.lexsort((-data.y, data.query_of_row()))
        start = np.append(np.flatnonzero(first_of_runs(data.y[rows], data.indptr)), len(rows))
        of_query = np.searchsorted(start, data.indptr)
        return cls(rows, start, of_query, data.y[rows[start[:-1]]])

    @property
    def fractional(self) -> bool:
        """Whether grades of a query are less than 1 apart, so that (2) is not always 1."""
        near = np.diff(self.grade) > -1.0
        return bool((near & (np.diff(self.query()) == 0)).any())

    def place_grade(self) -> F64:
        """Return the grade at each place."""
        return np.repeat(self.grade, np.diff(self.start))

    @property
    def layout(self) -> BlockLayout:
        """Rows, start and of_query, as kernels take them."""
        return BlockLayout(self.rows, self.start, self.of_query)

    def query(self) -> I64:
        """Return the query of each block."""
        return np.repeat(np.arange(len(self.of_query) - 1), np.diff(self.of_query))

    def weight(self, w: F64) -> F64:
        """Return the weight of each block, from that of each place."""
        return np.add.reduceat(w, self.start[:-1]) if len(w) else np.zeros(0)

    def better_weight(self, w: F64) -> F64:
        """Return the weight of the better grades of the same query, for each block."""
        before = np.append(0.0, np.cumsum(self.weight(w)))
        better: F64 = before[:-1] - before[self.of_query[self.query()]]
        return better

    def pair_weight(self, w: F64) -> F64:
        """Return the sum of w_i w_j times (2) over the pairs of grades of each query."""
        if self.fractional:
            total = np.empty(len(self.of_query) - 1)
            _pair_weights(self.of_query, self.grade, self.weight(w), total)
            return total
        pairs = self.weight(w) * self.better_weight(w)
        return np.bincount(self.query(), pairs, len(self.of_query) - 1).astype(np.float64)

    def pair_share(self, w: F64) -> F64:
        """Return 1 over `pair_weight`, which makes a mean of a sum over pairs; 1 without pairs."""
        pairs = self.pair_weight(w)
        return np.divide(1.0, pairs, out=np.ones(len(pairs)), where=pairs > 0.0)

    def new_pairs(self) -> tuple[I64, I64, I64, F64]:
        """Return room for the wrong pairs of every query.

        They are, a row per level, the order, and where in it the partners of each document begin
        or end; then scratch for sorting and for running sums, which need a place more per query.
        """
        n, blocks = len(self.rows), len(self.start) - 1
        most = int(np.diff(self.of_query).max(initial=0))
        shape = (max(1, (most - 1).bit_length()), n)
        order, ends = np.empty(shape, np.int64), np.empty(shape, np.int64)
        return order, ends, np.empty(n, np.int64), np.empty(n + blocks)
