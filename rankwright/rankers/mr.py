"""MR: monotone retargeting without margins, by alternating minimisation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rankwright.core.types import FittedModel
from rankwright.data.ranking_data import RankingData
from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Log
from rankwright.rankers.selection import Selection

_HELD = 1e6  # a C_r at which the targets are those of the grades


class MR(Ranker):
    """MR: monotone retargeting without margins, targets and weights fitted in turns.

    The baseline of `acharyya2014memr`. ``C_r`` holds the targets to those of the grades.

    ``C_r=0`` is the paper's (3) as it stands. Equal scores, of weights of 0, have a loss of 0 then
    and are a solution; targets on the simplex (KL) and an intercept for each query, both of which
    (3) has, do not exclude it. What ranks is the way there: the first targets are those of the
    grades, from which turns lead toward 0, and l2 chosen on valid decides how far. A run from
    weights of 0 would stay there; over partitions, give a fitted ``start``. ``memr`` has margins in
    place of all this.
    """

    loss_name = "retarget"
    models = ("linear",)
    defaults = {"margin": "none", "C_r": 1.0, "solver": "alternating"}
    search_space = {"C_r": Log(0.01, 100.0)}

    def _fit_model(
        self, data: RankingData, callback: Selection, start: FittedModel | None
    ) -> FittedModel:
        if start is None and self.C_r == 0.0 and self.margin == "none":
            start = self._toward_the_grades(data)
        return super()._fit_model(data, callback, start)

    def _toward_the_grades(self, data: RankingData) -> FittedModel:
        """Return the model whose scores come nearest to the targets of the grades."""
        loss: Any = self.make_loss(data)
        model: Any = self.make_model()
        model = replace(model, solver="lbfgs", l2=1.0 if model.l2 == "auto" else model.l2)
        quiet = Selection(metric=self.metric, convention=self.convention, train=data, valid=None)
        fitted: FittedModel = model.fit(
            replace(loss, C_r=_HELD), data, callback=quiet, seed=self.seed, n_jobs=self.n_jobs
        )
        return fitted
