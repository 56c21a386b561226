"""BoltzRank: what a measure loses on average over rankings drawn by their energy."""

from __future__ import annotations

from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Floats, Log


class BoltzRank(Ranker):
    """BoltzRank: what a measure loses on average over rankings drawn by their energy.

    Rankings that put high scores first are likely ones (`volkovs2009boltzrank`); some are drawn in
    each round, and a network learns from what they lose.
    """

    loss_name = "boltzrank"
    models = ("network", "linear", "trees")
    defaults = {"metric": "ndcg@10", "solver": "sgd"}
    search_space = {"divergence": Floats(0.0, 1.0), "sharpness": Log(0.1, 10.0)}
