"""What losses that aim at a sum over ranks know of each query: gains, discounts and the best sum.

Places number the documents that count, query after query; a document of weight 0 has none. The
measure of an order is the sum over its first ``cut`` ranks of discount by rank times gain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError
from rankwright.losses.base import document_weight
from rankwright.metrics.evaluate import metric
from rankwright.metrics.swap import LINEAR_SWAP


class GainLists(NamedTuple):
    """A measure on one data set; query q has the places ``begin[q]:begin[q + 1]``."""

    begin: I64
    row: I64  # of each place: its row of the data
    gain: F64  # of each place: over the ideal sum, where the measure says so
    discount: F64  # of each rank
    cut: I64  # of each query: how many ranks count, at most its number of places
    best: F64  # of each query: the measure of the best order


def gain_lists(loss: str, name: str, data: RankingData) -> GainLists:
    """Lay out the measure ``name`` for ``loss``, or say that it is no sum over ranks."""
    row = np.flatnonzero(document_weight(data) > 0.0)
    query = data.query_of_row()[row]
    begin = np.searchsorted(query, np.arange(data.n_queries + 1)).astype(np.int64)
    counted = RankingData(np.zeros((len(row), 1)), data.y[row], begin, data.qid)
    measure = metric(name)
    form = measure.swap_form(counted) if hasattr(measure, "swap_form") else None
    if form is None or form.kind != LINEAR_SWAP:
        raise IncompatibleError(
            f"{loss} needs a measure that is a sum over ranks; '{name}' is none. "
            "Use ndcg, dcg, p or eru."
        )
    gain = form.gain * np.repeat(form.scale, counted.sizes)
    cut = np.minimum(form.cut, counted.sizes).astype(np.int64)
    rank = np.arange(len(row)) - begin[query]
    counts = np.where(rank < cut[query], form.weight[rank], 0.0)
    best = np.bincount(query, gain[np.lexsort((-gain, query))] * counts, data.n_queries)
    return GainLists(begin, row, gain, form.weight.copy(), cut, best.astype(np.float64))
