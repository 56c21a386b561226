"""Random pairs of documents: a query, one of its documents, and a document of a lower grade.

Sample t depends only on the seed and t, so a resumed run continues with the same samples. The query
is sampled in proportion to its weight, the better document in proportion to its weight among those
with a document of a lower grade, and the worse document in proportion to its weight among these.
Samples are looked up in cumulated weights, so a document of weight 2 is sampled like two equal
neighbours of weight 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.kernels import hash_step, hash_uniform
from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.losses.pair_sums import GradeBlocks


class PairSampler(NamedTuple):
    """Cumulated weights of queries, and of documents sorted by grade."""

    rows: I64
    start: I64
    of_query: I64
    block: I64  # of each place
    dominating: I64  # the place in each query where its dominating documents end
    queries: F64
    documents: F64

    @property
    def has_pairs(self) -> bool:
        """Whether any query has a pair."""
        return bool(self.queries[-1] > 0.0)

    @classmethod
    def of(cls, data: RankingData, query_weight: F64, document_weight: F64) -> PairSampler:
        """Return the sampler of ``data``; queries of weight 0 are never sampled."""
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
def _find_dominating(start, of_query, w, out):
    for q in range(len(of_query) - 1):
        below = 0.0
        b = of_query[q + 1] - 1
        while b >= of_query[q] and below == 0.0:
            for k in range(start[b], start[b + 1]):
                below += w[k]
            b -= 1
        out[q] = start[b + 1]


@kernel
def _pick(lo, hi, cumulated, u):
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
def sample_pair(seed, t, pairs):
    """Return the rows of sample t: the better document and the worse one."""
    state = hash_step(hash_step(np.uint64(0), np.uint64(seed)), np.uint64(t))
    q = _pick(0, len(pairs.queries) - 1, pairs.queries, hash_uniform(state))
    state = hash_step(state, np.uint64(1))
    first = pairs.start[pairs.of_query[q]]
    better = _pick(first, pairs.dominating[q], pairs.documents, hash_uniform(state))
    state = hash_step(state, np.uint64(2))
    below = pairs.start[pairs.block[better] + 1]
    last = pairs.start[pairs.of_query[q + 1]]
    worse = _pick(below, last, pairs.documents, hash_uniform(state))
    return pairs.rows[better], pairs.rows[worse]
