"""MMMF: maximum margin matrix factorisation, each rating on its side of every threshold."""

from __future__ import annotations

from rankwright.rankers.recommender import Recommender


class MMMF(Recommender):
    """MMMF: maximum margin matrix factorisation, each rating on its side of every threshold.

    Fast MMMF (`rennie2005mmmf`): user and item factors, thresholds of each user between the levels
    of the ratings, a smooth hinge at each of them, and no biases.

    Parameters
    ----------
    levels : int or None
        Round ratings to so many levels; None takes each value as a level.
    """

    loss_name = "all_threshold"
    defaults = {"levels": 5, "biases": False, "convention": "sklearn"}
