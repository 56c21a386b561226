"""Linear regression: the line through the grades, in closed form."""

from __future__ import annotations

from rankwright.rankers.base import Ranker


class LinearRegression(Ranker):
    """Linear regression: the line through the grades, in closed form.

    The plainest baseline. An intercept is fitted and left out of the scores, since it changes no
    ranking. RankLib's linear regression is the same but for a slip: it leaves the last feature out
    and takes the intercept for its weight.

    Parameters
    ----------
    targets : "linear", "gain" or a tuple
        Target score of a grade: the grade, 2^grade - 1, or a value per grade.
    l2 : float or "auto"
        Ridge penalty; "auto" chooses on valid. RankLib's -L2, which is not divided by the number of
        queries, is 1e-10 by default: next to none.
    """

    loss_name = "squared"
    models = ("least_squares",)
    defaults = {"l2": 30.0}
