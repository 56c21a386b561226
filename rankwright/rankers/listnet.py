"""ListNet: cross entropy between the softmax of the grades and that of the scores."""

from __future__ import annotations

from rankwright.rankers.base import Ranker


class ListNet(Ranker):
    """ListNet: cross entropy between the softmax of the grades and that of the scores.

    Compares the probabilities of being drawn first under grades and under scores
    (`cao2007listnet`).
    """

    loss_name = "listnet"
    models = ("linear", "trees")
