"""MR: monotone retargeting without margins, by alternating minimisation."""

from __future__ import annotations

from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Log


class MR(Ranker):
    """MR: monotone retargeting without margins, targets and weights fitted in turns.

    The baseline of `acharyya2014memr`. ``C_r`` holds the targets to those of the grades: without
    it weights of 0 fit best.
    """

    loss_name = "retarget"
    models = ("linear",)
    defaults = {"margin": "none", "C_r": 1.0, "solver": "alternating"}
    search_space = {"C_r": Log(0.01, 100.0)}
