"""Ordinal SVM: scores that thresholds cut into the grades."""

from __future__ import annotations

from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Choice


class OrdinalSVM(Ranker):
    """Ordinal SVM: scores that thresholds cut into the grades.

    Support vector ordinal regression with implicit constraints (`chu2005svor`), where each query
    has thresholds of its own; both sides of a threshold weigh the same.
    """

    loss_name = "ordinal_hinge"
    models = ("linear", "trees")
    defaults = {"balanced": True, "solver": "bundle", "tolerance": 1e-8}
    search_space = {"balanced": Choice(True, False)}
