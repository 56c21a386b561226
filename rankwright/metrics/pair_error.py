"""All-pairs error: share of pairs of different grade in the wrong order.

    pair_error = (1/P) sum_{g_i > g_j} [s_i < s_j] + [s_i = s_j] / 2,    P = |{g_i > g_j}|       (1)

It compares scores, so a tie counts one half under every convention. Queries with a single grade are
omitted. Lower is better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64
from rankwright.metrics.base import PairMetric
from rankwright.metrics.ranked import Ranked

# --- kernels ---------------------------------------------------------------------------------


@kernel
def count_pairs(lo, hi, indptr, g, ends, ideal, out):
    """Count pairs of different grade, how many are wrong and tied, and all tied pairs.

    One pass from the best score down, with a Fenwick tree over the grades of the documents above.
    """
    for q in range(lo, hi):
        start, n = indptr[q], indptr[q + 1] - indptr[q]
        above = np.zeros(n + 1, np.int64)
        ascending = ideal[start : start + n][::-1]
        wrong = tied = tied_any = 0
        r = start
        while r < start + n:
            end = ends[r]
            for i in range(r, end):
                level = np.searchsorted(ascending, g[i])
                wrong += _count_below(above, level)
            inner = np.sort(g[r:end])
            tied_any += len(inner) * (len(inner) - 1) // 2
            tied += _different_pairs(inner)
            for i in range(r, end):
                _add(above, np.searchsorted(ascending, g[i]))
            r = end
        out[q, 0] = _different_pairs(ascending)
        out[q, 1] = wrong
        out[q, 2] = tied
        out[q, 3] = tied_any


@kernel
def _different_pairs(ascending):
    """Count pairs with different values in a sorted list."""
    pairs = run = 0
    for i in range(len(ascending)):
        run = run + 1 if i and ascending[i] == ascending[i - 1] else 0
        pairs += i - run
    return pairs


@kernel
def _add(tree, level):
    i = level + 1
    while i < len(tree):
        tree[i] += 1
        i += i & -i


@kernel
def _count_below(tree, level):
    total = 0
    i = level
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


# --- API -------------------------------------------------------------------------------------


def pair_counts(ranked: Ranked) -> F64:
    """Return, by query, the four counts of `count_pairs`."""
    out = np.empty((len(ranked.indptr) - 1, 4))
    ranked.map(count_pairs, ranked.grades, ranked.ends, ranked.judged.ideal, out)
    return out


@dataclass(frozen=True, repr=False, kw_only=True)
class PairError(PairMetric):
    """Share of pairs of different grade that are in the wrong order.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "pair_error", qid=[1] * 4)["pair_error"]
    0.8
    """

    key: ClassVar[str] = "pair_error"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    maximise: ClassVar[bool] = False

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: ARG002, D102
        pairs, wrong, tied, _ = pair_counts(ranked).T
        out[:] = (wrong + tied / 2) / pairs  # (1)
