"""Pairs of documents drawn at random: a query, a document of it, and one that this dominates.

Draw number t is a function of the seed and t alone, so a run that stops and goes on draws as if it
had not stopped. A query is drawn by its weight, the better document by its weight among all that
dominate some other, the worse one by its weight among all of lower grade. Since draws cut the line
of cumulated weights, a document of weight 2 is drawn as the same document twice would be, where
both stand next to each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.scalar import hash_step, hash_uniform
from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.losses.pair_sums import GradeBlocks


class PairDraws(NamedTuple):
    """Where pairs are drawn from: cumulated weights of queries and of documents in grade order."""

    rows: I64
    start: I64
    of_query: I64
    block: I64  # of each place
    dominating: I64  # the place in each query where its dominating documents end
    queries: F64
    documents: F64

    @property
    def are_there(self) -> bool:
        """Whether any query holds a pair."""
        return bool(self.queries[-1] > 0.0)

    @classmethod
    def of(cls, data: RankingData, query_weight: F64, document_weight: F64) -> PairDraws:
        """Return the draws of ``data``; queries of weight 0 are never drawn."""
        blocks = GradeBlocks.of(data)
        w = document_weight[blocks.rows]
        dominating = np.empty(data.n_queries, np.int64)
        _find_dominating(blocks.start, blocks.of_query, w, dominating)
        return cls(
            blocks.rows,
            blocks.start,
            blocks.of_query,
            np.repeat(np.arange(len(blocks.start) - 1), np.diff(blocks.start)),
            dominating,
            np.append(0.0, np.cumsum(query_weight)),
            np.append(0.0, np.cumsum(w)),
        )


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _find_dominating(start, of_query, w, out):  # type: ignore[no-untyped-def]
    for q in range(len(of_query) - 1):
        below = 0.0
        b = of_query[q + 1] - 1
        while b >= of_query[q] and below == 0.0:
            for k in range(start[b], start[b + 1]):
                below += w[k]
            b -= 1
        out[q] = start[b + 1]


@kernel
def _pick(lo, hi, cumulated, u):  # type: ignore[no-untyped-def]
    """Return the k in lo:hi with cumulated[k] <= target < cumulated[k + 1]."""
    target = cumulated[lo] + u * (cumulated[hi] - cumulated[lo])
    while hi - lo > 1:
        mid = (lo + hi) // 2
        if cumulated[mid] <= target:
            lo = mid
        else:
            hi = mid
    return lo


@kernel
def draw_pair(seed, t, draws):  # type: ignore[no-untyped-def]
    """Return the rows of draw t: the better document and the worse one."""
    word = hash_step(hash_step(np.uint64(0), np.uint64(seed)), np.uint64(t))
    q = _pick(0, len(draws.queries) - 1, draws.queries, hash_uniform(word))
    word = hash_step(word, np.uint64(1))
    first = draws.start[draws.of_query[q]]
    better = _pick(first, draws.dominating[q], draws.documents, hash_uniform(word))
    word = hash_step(word, np.uint64(2))
    below = draws.start[draws.block[better] + 1]
    last = draws.start[draws.of_query[q + 1]]
    worse = _pick(below, last, draws.documents, hash_uniform(word))
    return draws.rows[better], draws.rows[worse]
