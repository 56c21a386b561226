"""JRank: PRank on the joint kernel of users and items (`basilico2004unifying`).

The steps are those of `rankwright.models.prank`, a rating at a time, with thresholds that all users
share; the features are those of `rankwright.models.joint_features`, so that what one user's ratings
teach serves all users as far as the kernel of users says. What is learnt is a factorisation with
vectors of items that the ratings give: (3) there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.parts import Part
from rankwright.core.types import Callback, Loss
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.models.fitted_factorization import FittedFactorization, items_of
from rankwright.models.joint_features import JointMap, check_users
from rankwright.models.mapped_callback import MappedCallback
from rankwright.models.missing import without_gaps
from rankwright.models.prank import PRankLinear


@dataclass(frozen=True, slots=True, repr=False)
class JRank(Part):
    """A perceptron on products of user and item features, both learnt from the ratings.

    Parameters
    ----------
    users : tuple of "all", "each" and "alike"
        The kernels of users that are added: what all like, what one user likes, and what those
        like whose ratings are alike.
    n_factors : int or None
        Number of leading features of the items to keep; None: all.
    n_tastes : int
        How many of them "alike" compares users by.
    n_passes : int
        Passes over the data; the best on valid is kept.
    averaging : bool
        Answer with the mean of the weights over all steps; False: with the last.
    threshold_step : float or "auto"
        How far a mistake moves a threshold; "auto": as far as it moves scores, on average.
    by_query : bool
        Visit ratings user after user; False: all in one order.
    """

    users: Sequence[str] = ("all", "each")
    n_factors: int | None = 20
    n_tastes: int = 5
    n_passes: int = 10
    averaging: bool = True
    threshold_step: float | str = "auto"
    by_query: bool = True

    def fit(
        self,
        loss: Loss,
        data: RankingData,
        *,
        callback: Callback,
        start: FittedFactorization | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> FittedFactorization:
        """Learn the kernels, then go over the ratings."""
        self._check(start)
        without_gaps(data.X, "jrank")
        rows, ordered = in_content_order(data, n_jobs=n_jobs)
        joint = JointMap.learnt(ordered, self.users, rank=self.n_factors, n_tastes=self.n_tastes)
        perceptron = PRankLinear(
            n_passes=self.n_passes,
            averaging=self.averaging,
            threshold_step=self.threshold_step,
            by_query=self.by_query,
            scale=False,
        )
        valid = None if callback.valid is None else joint.mapped(callback.valid)
        found = perceptron.fit(
            loss,
            joint.mapped(ordered),
            callback=MappedCallback(callback, rows, valid),
            random_state=random_state,
            n_jobs=n_jobs,
        )
        vectors, bias = joint.factors(found.coef)
        return FittedFactorization(
            ordered.qid,
            vectors,
            np.zeros(len(vectors)),
            joint.items,
            bias,
            *items_of(ordered),
            n_features=data.n_features,
            l2=0.0,
        )

    def _check(self, start: FittedFactorization | None) -> None:
        if start is not None:
            raise UsageError("JRank learns its kernels from the data it is given: leave out start.")
        check_users(self.users)
        for name in ("n_factors", "n_tastes"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise UsageError(f"{name} must be 1 or more, not {getattr(self, name)}.")

    def fold_in(self, *data: Any, **how: Any) -> FittedFactorization:  # noqa: ARG002
        """Refuse: users are learnt together."""
        raise UsageError(
            "JRank learns all users by one perceptron; to add users, fit again with their ratings."
        )

    restore = staticmethod(FittedFactorization.restore)
