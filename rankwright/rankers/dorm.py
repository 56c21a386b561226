"""DORM: direct optimisation of a ranking measure, by a bound on what it loses."""

from __future__ import annotations

from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Floats


class DORM(Ranker):
    """DORM: direct optimisation of a ranking measure, by a bound on what it loses.

    ``metric`` is any sum over ranks (ndcg, dcg, p, wta, eru) or mrr (`le2007dorm`), ``decay`` the
    power by which ranks count less, ``per_group`` a limit per host or topic within the ranks that
    count. ``ties="score"`` asks for no order among equal grades.

    The default solver visits query after query. ``solver="bundle"`` minimises the bound itself and
    tells how far from the optimum it is, and ``solver="column_generation"`` (with ``ties="mean"``
    or ``"file"``) is the published one; where relevant documents look much like others, as in
    OHSUMED, that optimum is at or near w = 0, where the bound is 1 and says nothing.
    The C of the paper is l2 = 1/(C x queries).
    """

    loss_name = "position_svm"
    models = ("linear", "trees", "kernel", "network")
    defaults = {"ties": "score", "solver": "online"}
    search_space = {"decay": Floats(0.25, 3.0)}
