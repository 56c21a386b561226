"""IR-SVM: RankSVM with pairs weighed by their query and by what NDCG would lose."""

from __future__ import annotations

from rankwright.rankers.base import Ranker


class IRSVM(Ranker):
    """IR-SVM: RankSVM with pairs weighed by their query and by what NDCG would lose.

    Queries of many pairs do not outweigh the others, and a pair of grades counts by what trading
    places costs in the ideal list (`cao2006irsvm`).
    """

    loss_name = "pair_hinge"
    models = ("linear", "trees", "kernel", "network")
    defaults = {"pairs": "ir", "solver": "tron"}
    model_defaults = {"kernel": {"l2": 10.0}}
