"""Sums over all pairs of documents that stand in the wrong order, in O(n log n) a query.

Documents are grouped by grade (`GradeBlocks`), best first. A pair of p and a document r of a lower
grade is *wrong* where v_r > v_p. For each document p, with document weights w,

    below_n[p] = sum over lower grades,  v_r > v_p of w_r        below_v[p] = ... of w_r v_r    (1)
    above_n[p] = sum over higher grades, v_r < v_p of w_r        above_v[p] = ... of w_r v_r    (2)

Any pairwise hinge is a function of these. Each grade is sorted by v; then neighbouring grades are
merged, two by two, and while merging each document meets the running sums of the other side:
log2(number of grades) passes, so real-valued grades cost no more than O(n log n) either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.order import sort_query
from rankwright.core.types import I64
from rankwright.data.ranking_data import RankingData

_NO_KEY = np.empty(0)

# --- kernels ---------------------------------------------------------------------------------


@kernel
def wrong_pair_sums(  # type: ignore[no-untyped-def]
    first, last, start, v, w, order, spare, below_n, below_v, above_n, above_v
):
    """Fill (1) and (2) for one query, whose blocks are first:last; places, not rows, index all."""
    for b in range(first, last):
        sort_query(start[b], start[b + 1], v, _NO_KEY, order, spare)
    for p in range(start[first], start[last]):
        below_n[p] = below_v[p] = above_n[p] = above_v[p] = 0.0
    width = 1
    while width < last - first:
        for b in range(first, last - width, 2 * width):
            lo, mid, hi = start[b], start[b + width], start[min(b + 2 * width, last)]
            _merge(lo, mid, hi, v, order, spare)
            _add_lower(lo, mid, hi, v, w, order, below_n, below_v)
            _add_higher(lo, mid, hi, v, w, order, above_n, above_v)
        width *= 2


@kernel
def _merge(lo, mid, hi, v, order, spare):  # type: ignore[no-untyped-def]
    """Merge two sorted runs, v falling; the left one, of higher grades, goes first where equal."""
    spare[lo:mid] = order[lo:mid]
    i, j, k = lo, mid, lo
    while i < mid:
        if j < hi and v[order[j]] > v[spare[i]]:
            order[k] = order[j]
            j += 1
        else:
            order[k] = spare[i]
            i += 1
        k += 1


@kernel
def _add_lower(lo, mid, hi, v, w, order, below_n, below_v):  # type: ignore[no-untyped-def]
    """Give each document left of ``mid`` the sums of those right of it with a larger v."""
    n = total = 0.0
    for k in range(lo, hi):
        p = order[k]
        if p >= mid:
            n += w[p]
            total += w[p] * v[p]
        else:
            below_n[p] += n
            below_v[p] += total


@kernel
def _add_higher(lo, mid, hi, v, w, order, above_n, above_v):  # type: ignore[no-untyped-def]
    """Give each document right of ``mid`` the sums of those left of it with a smaller v."""
    n = total = 0.0
    for k in range(hi - 1, lo - 1, -1):
        p = order[k]
        if p < mid:
            n += w[p]
            total += w[p] * v[p]
        else:
            above_n[p] += n
            above_v[p] += total


# --- API -------------------------------------------------------------------------------------


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
    """

    rows: I64
    start: I64
    of_query: I64

    @classmethod
    def of(cls, data: RankingData) -> GradeBlocks:
        """Return the blocks of ``data``."""
        query = data.query_of_row()
        rows = np.lexsort((-data.y, query))
        grade = data.y[rows]
        new = np.ones(len(rows), bool)
        new[1:] = (grade[1:] != grade[:-1]) | (query[1:] != query[:-1])
        start = np.append(np.flatnonzero(new), len(rows))
        return cls(rows, start, np.searchsorted(start, data.indptr))
