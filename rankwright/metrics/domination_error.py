"""Domination error: share of documents with a document of lower grade above them.

    domination_error = (1/|I|) sum_{i in I} [s_j > s_i for some j with g_j < g_i]                (1)

over the documents I that dominate another one, g_i > min g (`stevens2010domination`). It compares
scores: a tie is not an error under any convention. Over the orders of ties, a document without
dominated documents above it is before all m dominated documents of its block with probability

    1/(m + 1)                                                                                    (2)

Queries with a single grade are omitted. Lower is better.
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
def _domination_error(lo, hi, indptr, g, ends, mean, bottom, out):
    for q in range(lo, hi):
        lowest_above = np.inf
        dominating, errors = 0, 0.0
        r = indptr[q]
        while r < indptr[q + 1]:
            inner = np.sort(g[r : ends[r]])
            below = 0  # documents of the block with a lower grade
            for i in range(len(inner)):
                if i and inner[i] > inner[i - 1]:
                    below = i
                if inner[i] > bottom[q]:
                    dominating += 1
                    if inner[i] > lowest_above:
                        errors += 1.0
                    elif mean:
                        errors += below / (below + 1.0)  # (2)
            lowest_above = min(lowest_above, inner[0])
            r = ends[r]
        out[q] = errors / dominating  # (1)


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, kw_only=True)
class DominationError(PairMetric):
    """Share of documents with a document of lower grade above them.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> grades, scores = [2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2]
    >>> evaluate(grades, scores, "domination_error", qid=[1] * 4)["domination_error"]
    1.0
    """

    key: ClassVar[str] = "domination_error"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    maximise: ClassVar[bool] = False

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: D102
        bottom = ranked.judged.bottom
        ranked.map(_domination_error, ranked.grades, ranked.ends, mean, bottom, out)
