"""Coordinate Ascent: weights moved one at a time, each to where the measure is highest."""

from __future__ import annotations

from rankwright.rankers.metric_ranker import MetricRanker


class CoordinateAscent(MetricRanker):
    """Coordinate Ascent: weights moved one at a time, each to where the measure is highest.

    The best place along a feature is found exactly for measures of the first ranks, by following
    the changes of the ranking, and by steps for others (`metzler2007linear`); any measure may be
    climbed.

    Parameters
    ----------
    metric : str
        The measure to climb.
    n_restarts, n_passes, tolerance
        How often to begin, and when to stop.
    reg : float
        What is lost for the distance from the first weights.
    steps : "auto", "exact" or "ranklib"
        How a weight is moved. RankLib's own method is ``steps="ranklib", scale=False``; its flags
        are ``n_restarts`` (-r), ``n_steps`` (-i), ``tolerance`` (-tolerance), ``reg`` (-reg).
    """

    models = ("coordinate_ascent",)
