"""GBRank: boosted trees on a squared hinge over pairs of different grade."""

from __future__ import annotations

from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Choice


class GBRank(Ranker):
    """GBRank: boosted trees on a squared hinge over pairs of different grade.

    Each better document is to beat each worse one by the difference of their targets, and
    documents of one grade are to stay together (`zheng2007gbrank`; `moon2010intervalrank`).
    """

    loss_name = "gbrank"
    models = ("trees", "linear", "network")
    search_space = {"targets": Choice("linear", "gain")}
