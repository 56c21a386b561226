"""XE-NDCG: boosted trees on a cross entropy that bounds NDCG."""

from __future__ import annotations

from rankwright.rankers.base import Ranker


class XENDCG(Ranker):
    """XE-NDCG: boosted trees on a cross entropy that bounds NDCG.

    As LightGBM's ``rank_xendcg`` (`bruch2021xendcg`); the noise of each round is seeded.
    """

    loss_name = "xendcg"
    models = ("trees", "network")
    # Better than 31 leaves by more than chance over six sets of valid data: docs/choose.md.
    model_defaults = {"trees": {"num_leaves": 7}}
