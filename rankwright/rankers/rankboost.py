"""RankBoost: rules of one feature and a threshold, boosted against misordered pairs."""

from __future__ import annotations

from rankwright.rankers.base import Ranker


class RankBoost(Ranker):
    """RankBoost: rules of one feature and a threshold, boosted against misordered pairs.

    Exponential loss on pairs with a sum of rules; each rule [x > theta] with r, by how much it
    agrees with the pairs as they are weighed, counts 1/2 ln((1 + r) / (1 - r))
    (`freund2003rankboost`). RankLib has ``n_candidates=10``. Missing values are taken as they are:
    they meet no rule.
    """

    loss_name = "pair_exp"
    models = ("additive",)
    defaults = {"n_candidates": 255, "falling": False}
