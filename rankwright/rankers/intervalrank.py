"""IntervalRank: boosted trees toward the nearest scores whose grades stand in order."""

from __future__ import annotations

from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Choice, Log


class IntervalRank(Ranker):
    """IntervalRank: boosted trees toward the nearest scores whose grades stand in order.

    Each round corrects the scores of a query as little as puts its grades into separate
    intervals, and trees follow the correction (`moon2010intervalrank`). Margins are soft by
    default: a hard pull on every document spends the trees on the order of the many low ones.
    """

    loss_name = "interval"
    models = ("trees", "linear", "network")
    # On valid data of OHSUMED and MQ2008 as good as any of lambda1 0.01 to 1, lambda2 0.1 and 1,
    # gain and linear targets; of those, the best fit to the top of long lists.
    defaults = {"scale_by_size": True, "lambda1": 0.03, "targets": "linear"}
    search_space = {
        "lambda1": Log(0.003, 3.0),
        "lambda2": Log(0.1, 10.0),
        "targets": Choice("linear", "gain"),
    }
