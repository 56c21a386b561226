"""RankSVM: a linear ranker with a squared hinge on every pair of different grade."""

from __future__ import annotations

from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Choice


class RankSVM(Ranker):
    """RankSVM: a linear ranker with a squared hinge on every pair of different grade.

    Each better document is to lead each worse one of its query by a margin
    (`joachims2002ranksvm`); pairs are summed by sorting and never listed. ``pairs="query"`` lets
    each query count the same, however long; the sum C over pairs of other tools is
    l2 = 1 / (C x queries) with ``pairs="uniform"`` and ``scale=False``.
    """

    loss_name = "pair_hinge"
    models = ("linear", "trees", "kernel", "network")
    defaults = {"solver": "tron"}
    search_space = {"pairs": Choice("uniform", "query")}
