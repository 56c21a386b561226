"""What the fit of a linear model needs of its data: in one process, or over many.

`rankwright.models.linear.Linear.fit_over` asks for problems and scores and does not know where the
data are. `OneProcess` has them here; `rankwright.distributed.linear` has them in partitions.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy import sparse

from rankwright.core.products import times_vector
from rankwright.core.types import F64, I64, Callback, Loss
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import bound_loss, document_weight, order_weight
from rankwright.models.linear_problem import LinearProblem
from rankwright.models.missing import fill_values, filled

if TYPE_CHECKING:
    from rankwright.models.linear import Linear


class LinearWork(Protocol):
    """The data of a fit, wherever they are, as `Linear.fit_over` sees them."""

    fill: F64 | None
    deviation: F64

    def problem(self, l2: float) -> Any:
        """Return the problem with this penalty."""

    def by_column(self) -> Any:
        """Return the problem that steps along columns, with penalties to be set."""

    def train_scores(self, problem: Any, v: F64) -> Any:
        """Return for the callback the scores on train, given the problem and its solution."""

    def valid_scores(self, w: F64) -> Any:
        """Return for the callback the scores on valid, given weights in the scale of the data."""


class OneProcess:
    """Data in this process."""

    def __init__(
        self,
        model: Linear,
        loss: Loss,
        data: RankingData,
        callback: Callback,
        *,
        seeded: bool,
        n_jobs: int | None,
    ) -> None:
        self._rows: I64 | slice = slice(None)
        if seeded:
            self._rows, data = in_content_order(data, n_jobs=n_jobs)
        self.fill = fill_values(data.X, model.missing)
        X = filled(data.X, self.fill, "linear")
        self.deviation = model.deviations(X, document_weight(data))
        self._valid = (
            None if callback.valid is None else filled(callback.valid.X, self.fill, "linear")
        )
        self._data, self._loss, self._n_jobs = replace(data, X=X), loss, n_jobs
        self._weight = order_weight(data)
        self._total = float(self._weight.sum()) or 1.0

    @cached_property
    def _bound(self) -> Any:
        return bound_loss(self._loss, self._data, n_jobs=self._n_jobs)

    def problem(self, l2: float) -> LinearProblem:
        """Return the problem with this penalty."""
        return LinearProblem(
            self._data.X,
            self._data.indptr,
            self._bound,
            self._total,
            l2=l2,
            deviation=self.deviation,
            visited=np.flatnonzero(self._weight),
            document_weight=self._data.sample_weight,
            traits=self._loss.traits,
            n_jobs=self._n_jobs,
        )

    def by_column(self) -> Any:
        """Return the problem that steps along columns, with penalties to be set."""
        return self._bound.by_column(
            sparse.csc_array(self._data.X),
            total_weight=self._total,
            deviation=self.deviation,
            n_jobs=self._n_jobs,
        )

    def train_scores(self, problem: Any, v: F64) -> F64:
        """Return the scores on train, in the order of its rows."""
        scores = np.empty(self._data.n_documents)
        scores[self._rows] = problem.scores(v)
        return scores

    def valid_scores(self, w: F64) -> F64:
        """Return the scores on valid."""
        assert self._valid is not None, "asked for where there is validation data"
        return times_vector(self._valid, w, n_jobs=self._n_jobs)
