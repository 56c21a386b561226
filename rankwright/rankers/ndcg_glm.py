"""NDCG-consistent GLM: regression on gains over the ideal DCG."""

from __future__ import annotations

from rankwright.rankers.base import Ranker


class NDCGGLM(Ranker):
    """NDCG-consistent GLM: regression on gains over the ideal DCG, square or KL.

    The pointwise losses of `ravikumar2011ndcg`.
    """

    loss_name = "ndcg_glm"
    models = ("linear", "trees")
    defaults = {"solver": "tron"}
