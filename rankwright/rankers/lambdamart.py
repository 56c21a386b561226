"""LambdaMART: boosted trees on gradients weighted by what a swap would change."""

from __future__ import annotations

from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Choice, Ints, Log


class LambdaMART(Ranker):
    """LambdaMART: boosted trees on gradients weighted by what a swap would change.

    The gradient of a pair is RankNet's times the change of the metric if the two documents
    swapped places (`burges2010overview`). Any metric with a swap: ndcg, dcg, map, mrr, err, p.
    """

    loss_name = "lambdarank"
    models = ("trees",)
    defaults = {"metric": "ndcg@10"}
    search_space = {
        "truncation": Ints(5, 100, log=True),
        "sigma": Log(0.3, 3.0),
        "normalize": Choice(True, False),
    }
