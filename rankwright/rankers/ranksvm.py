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

    With ``model="kernel"`` l2 is 10 by default: on the validation parts of OHSUMED and MQ2008 (mean
    NDCG@10 of five folds) .454 and .496, where 1e-3 has .372 and .493, and gamma = 1/features, as
    it was before, .356 and .469.
    """

    loss_name = "pair_hinge"
    models = ("linear", "trees", "kernel", "network")
    defaults = {"solver": "tron"}
    model_defaults = {"kernel": {"l2": 10.0}}
    search_space = {"pairs": Choice("uniform", "query")}
