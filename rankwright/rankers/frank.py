"""FRank: rules of one feature and a threshold under the fidelity loss on pairs."""

from __future__ import annotations

from rankwright.rankers.base import Ranker


class FRank(Ranker):
    """FRank: rules of one feature and a threshold under the fidelity loss on pairs.

    The loss of a pair is at most 1, so that hopeless pairs do not decide (`tsai2007frank`). Missing
    values are taken as they are: they meet no rule.
    """

    loss_name = "fidelity"
    models = ("additive",)
    defaults = {"n_rounds": 200, "n_candidates": 255, "learning_rate": 0.3, "falling": False}
