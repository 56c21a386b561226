"""ListNet: cross entropy between the softmax of the grades and that of the scores."""

from __future__ import annotations

from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Choice


class ListNet(Ranker):
    """ListNet: cross entropy between the softmax of the grades and that of the scores.

    Compares the probabilities of being drawn first under grades and under scores
    (`cao2007listnet`).
    """

    loss_name = "listnet"
    models = ("linear", "trees", "network")
    search_space = {"target": Choice("softmax", "gain")}
