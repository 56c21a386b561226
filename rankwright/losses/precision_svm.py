"""Bound on precision at n: the n documents that score nearly as well as relevant ones (SVM-perf).

    L(s) = max over sets T of n documents of  sum_{i in T} s_i - sum_i r_i s_i + P@n(best) - P@n(T)
                                                                                                (1)

(`joachims2005svmperf`, Prec@k): T has the n documents with the largest s_i - [relevant]/n. r is the
best choice of n documents: relevant ones first, and equal ones share the places. So the loss does
not change with the level of the scores, which it would if r marked all relevant documents. It is
`position_svm` for p@n with c = a, and the grades are 0 and 1.

In a list of n documents or fewer, every order has the same precision at n. Such a list counts by
the precision at its number of relevant documents, at which precision and recall are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rankwright.core.parameters import Count, Positive, check_parameters
from rankwright.core.types import F64, I64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import BoundKernel, KernelLoss, document_weight
from rankwright.losses.position_svm import PositionSVM
from rankwright.metrics.p import Precision
from rankwright.metrics.ranked import Judged


@dataclass(frozen=True, slots=True, repr=False)
class PrecisionSVM(KernelLoss):
    """A convex bound on the loss of precision at n.

    Parameters
    ----------
    n : int
        Number of ranks that count; for a list of n documents or fewer, its number of relevant
        documents.
    min_grade : float
        Lowest grade of relevant documents.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.PrecisionSVM(n=5), model="linear")
    Ranker(loss=PrecisionSVM(n=5))
    """

    n: Count = 10
    min_grade: Positive = 1.0

    traits = Traits(smooth=False, convex=True)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundKernel:
        """Prepare the loss for one data set."""
        check_parameters(self)
        relevant = data._replace(y=(data.y >= self.min_grade).astype(np.float64))
        present = (document_weight(data) > 0.0).astype(np.float64)
        query = data.query_of_row()
        size = np.bincount(query, present, data.n_queries)
        hits = np.bincount(query, present * relevant.y, data.n_queries)
        ranks = np.where(size > self.n, self.n, np.maximum(hits, 1.0)).astype(np.int64)
        loss = PositionSVM(metric=_PrecisionByQuery(ranks=ranks), decay="metric", ties="mean")
        return loss.bind(relevant, n_jobs=n_jobs)


@dataclass(frozen=True, repr=False, kw_only=True)
class _PrecisionByQuery(Precision):
    """Precision at a number of ranks that depends on the query."""

    ranks: I64 = field(compare=False)  # an array has no hash

    def cut(self, judged: Judged) -> I64:  # noqa: ARG002
        return self.ranks

    def ranks_asked(self, judged: Judged) -> F64:  # noqa: ARG002
        return self.ranks.astype(np.float64)
