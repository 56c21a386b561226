"""LambdaRank: RankNet's gradients, each weighed by what swapping the pair would change."""

from __future__ import annotations

from rankwright.rankers.base import Ranker


class LambdaRank(Ranker):
    """LambdaRank: RankNet's gradients, each weighed by what swapping the pair would change.

    Any metric with a swap: ndcg, dcg, map, mrr, err, p (`burges2010overview`). The original model
    is a network; here ``model`` is to be chosen. With trees it is LambdaMART.
    """

    loss_name = "lambdarank"
    models = ("trees", "linear")
    defaults = {"model": None, "metric": "ndcg@10", "solver": "sgd"}
