"""Gains, discounts and best sum of each query, for losses that aim at a sum over ranks.

The metric of an order is the sum over its first ``cut`` ranks of discount by rank times gain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError
from rankwright.metrics.base import AnyMetric
from rankwright.metrics.base import metric as make_metric
from rankwright.metrics.swap import LINEAR_SWAP, MRR_SWAP, SwapForm

_MANY = 1_000_000


class GainLists(NamedTuple):
    """A metric on one data set, without documents of weight 0."""

    gain: F64  # of each document: divided by the ideal sum, if the metric is normalised
    discount: F64  # of each rank
    cut: I64  # of each query: number of ranks that count, at most its number of documents
    best: F64  # of each query: metric of the best order


def gain_lists(loss: str, name: AnyMetric, data: RankingData) -> GainLists:
    """Return the metric ``name`` for ``loss``; raise unless it is a sum over ranks."""
    query, form = data.query_of_row(), form_over_ranks(loss, name, data)
    gain = form.gain * np.repeat(form.scale, data.sizes)
    cut = np.minimum(form.cut, data.sizes).astype(np.int64)
    rank = np.arange(data.n_documents) - data.indptr[query]
    discount = np.where(rank < cut[query], form.weight[rank], 0.0)
    best = np.bincount(query, gain[np.lexsort((-gain, query))] * discount, data.n_queries)
    return GainLists(gain, form.weight.copy(), cut, best.astype(np.float64))


def form_over_ranks(
    loss: str, name: AnyMetric, data: RankingData, *, mrr: bool = False
) -> SwapForm:
    """Return the metric ``name`` as a sum over ranks, or as mrr if ``loss`` supports it."""
    metric = make_metric(name)
    form: SwapForm | None = metric.swap_form(data) if hasattr(metric, "swap_form") else None
    if form is None or form.kind not in ((LINEAR_SWAP, MRR_SWAP) if mrr else (LINEAR_SWAP,)):
        raise IncompatibleError(
            f"{loss} needs a metric that is a sum over ranks; '{metric}' is not one. "
            f"Use ndcg, dcg, p{', wta, eru or mrr' if mrr else ' or eru'}."
        )
    return form


def total_discount(ranks: F64) -> F64:
    """Return the sum of the discounts 1/log2(rank + 1) of the first ``ranks`` ranks.

    A fraction of a rank counts as a fraction of its discount. Ranks above a million have the
    discount of the millionth.
    """
    most = min(int(np.ceil(ranks.max(initial=0.0))), _MANY) + 1
    table = np.append(0.0, np.cumsum(1.0 / np.log2(np.arange(most) + 2.0)))
    beyond = np.maximum(ranks - most, 0.0) / np.log2(most + 1.0)
    total: F64 = np.interp(ranks, np.arange(most + 1.0), table) + beyond
    return total
