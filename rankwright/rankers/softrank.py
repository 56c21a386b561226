"""SoftRank: what a measure loses on average when scores are shaken by noise."""

from __future__ import annotations

from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Log


class SoftRank(Ranker):
    """SoftRank: what a measure loses on average when scores are shaken by noise.

    A smooth stand-in for NDCG or another sum over ranks (`taylor2008softrank`), under a network as
    in the paper. The noise is small by default: under much of it the ranks of long lists crowd in
    the middle, and a measure of the first ten has no slope to follow.
    """

    loss_name = "softrank"
    models = ("network", "linear", "trees")
    # Of sigma 0.1, 0.3 and 1 the best on valid data of OHSUMED and MQ2008.
    defaults = {"metric": "ndcg@10", "sigma": 0.1}
    search_space = {"sigma": Log(0.1, 10.0)}
