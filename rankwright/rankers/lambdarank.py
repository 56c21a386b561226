"""LambdaRank: RankNet's gradients, each weighed by what swapping the pair would change."""

from __future__ import annotations

from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Ints, Log


class LambdaRank(Ranker):
    """LambdaRank: RankNet's gradients, each weighed by what swapping the pair would change.

    Any metric with a swap: ndcg, dcg, map, mrr, err, p (`burges2010overview`). The model
    is a network, as in the paper; with trees it is LambdaMART.
    """

    loss_name = "lambdarank"
    models = ("network", "trees", "linear")
    defaults = {"metric": "ndcg@10", "solver": "sgd"}
    search_space = {"truncation": Ints(5, 100, log=True), "sigma": Log(0.3, 3.0)}
