"""RankNet: logistic loss on every pair of documents of different grade."""

from __future__ import annotations

from rankwright.rankers.base import Ranker


class RankNet(Ranker):
    """RankNet: logistic loss on every pair of documents of different grade.

    The probability that one document is better than another is a sigmoid of the difference of
    their scores (`burges2005ranknet`). The paper's model is a network; here ``model`` is to be
    chosen, linear or trees.
    """

    loss_name = "ranknet"
    models = ("linear", "trees")
    defaults = {"model": None}
