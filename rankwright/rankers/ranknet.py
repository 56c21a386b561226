"""RankNet: logistic loss on every pair of documents of different grade."""

from __future__ import annotations

from rankwright.rankers.base import Ranker


class RankNet(Ranker):
    """RankNet: logistic loss on every pair of documents of different grade.

    The probability that one document is better than another is a sigmoid of the difference of
    their scores (`burges2005ranknet`). The network has one hidden layer of sigmoid units, as in the
    paper.
    """

    loss_name = "ranknet"
    models = ("network", "linear", "trees")
