"""Regression on normalised gains, whose scores are consistent for NDCG (a GLM).

With w_i the weight of document i, the target of a document is its share of the ideal DCG,

    r_i = (2^g_i - 1) / IDCG                                                                    (1)

and the loss of a query is a divergence from the targets, up to a constant b of the query:

    square   min over b of  sum_i w_i/2 (s_i - b - r_i)^2                                       (2)
    kl       min over b of  sum_i w_i [r_i (log r_i - s_i + b) - r_i + exp(s_i - b)]            (3)

Both are convex and computed by `rankwright.losses.fixed_targets`. Up to a constant, (3) is
ListNet's loss with gains as targets. They are losses of `ravikumar2011ndcg` and baselines of
`acharyya2014memr`. A document of weight w fills w ranks of the ideal list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankwright.core.types import F64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import KernelLoss, document_weight, exp2_of_grades
from rankwright.losses.fixed_targets import DIVERGENCES, target_terms
from rankwright.losses.gain_lists import total_discount


@dataclass(frozen=True, slots=True, repr=False)
class NDCGGLM(KernelLoss):
    """Divergence between the scores and gains over the ideal DCG.

    Parameters
    ----------
    divergence : "square" or "kl"
        Squared error up to a constant per query, or cross entropy against the shares.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.NDCGGLM(divergence="kl"), model="linear")
    Ranker(loss=NDCGGLM(divergence='kl'))
    """

    divergence: Literal["square", "kl"] = "square"

    traits = Traits(convex=True)

    @property
    def run(self) -> Any:
        """Kernel of value, gradient and curvature."""
        return DIVERGENCES[self.divergence][0]

    @property
    def hessian(self) -> Any:
        """Kernel of products with the Hessian."""
        return DIVERGENCES[self.divergence][1]

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the terms of the kernel for r of (1)."""
        return target_terms(data, _gain_shares(data))


def _gain_shares(data: RankingData) -> F64:
    """Return (1); a document of weight w fills w ranks, the last of them in part."""
    query, w = data.query_of_row(), document_weight(data)
    gain = exp2_of_grades(data) - 1.0
    best_first = np.lexsort((w, -gain, query))
    filled = np.cumsum(w[best_first])
    filled = filled - np.append(0.0, filled)[data.indptr[:-1]][query]
    discount = total_discount(filled) - total_discount(filled - w[best_first])
    ideal = np.bincount(query, gain[best_first] * discount, data.n_queries)[query]
    shares: F64 = gain / np.where(ideal > 0.0, ideal, 1.0)
    return shares
