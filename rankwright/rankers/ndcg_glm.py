"""NDCG-consistent GLM: regression on gains over the ideal DCG."""

from __future__ import annotations

from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Choice


class NDCGGLM(Ranker):
    """NDCG-consistent GLM: regression on gains over the ideal DCG, square or KL.

    The pointwise losses of `ravikumar2011ndcg`.
    """

    loss_name = "ndcg_glm"
    models = ("linear", "trees", "network")
    defaults = {"solver": "tron"}
    search_space = {"divergence": Choice("square", "kl")}
