"""IntervalRank: boosted trees toward the nearest scores whose grades stand in order."""

from __future__ import annotations

from rankwright.rankers.base import Ranker


class IntervalRank(Ranker):
    """IntervalRank: boosted trees toward the nearest scores whose grades stand in order.

    Each round corrects the scores of a query as little as puts its grades into separate
    intervals, and trees follow the correction (`moon2010intervalrank`).
    """

    loss_name = "interval"
    models = ("trees", "linear")
    defaults = {"scale_by_size": True}
