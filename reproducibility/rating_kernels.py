"""What can be fitted with kernels of users and items: see `rankwright.models.joint_features`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse

from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.models.joint_features import JointMap, check_users, item_features, numbers_of
from rankwright.rankers.base import ranker as make_ranker


class JointKernel:
    """A ranker on the joint kernel of users and items.

    Parameters
    ----------
    ranker : str
    users : tuple of "all", "each" and "alike"
        The kernels of users that are added.
    rank : int or None
        Keep so many leading features of the items: the nearest kernel of that rank.
    n_tastes : int
        Features of items that users are compared by.
    longest : int or None
        Fit the ranker to users with so many ratings or fewer; others serve the kernels alone.
    **params
        Of the ranker, which takes the features as they are: ``scale`` is False.
    """

    def __init__(
        self,
        *,
        ranker: str = "dorm",
        users: Sequence[str] = ("all", "each"),
        rank: int | None = None,
        n_tastes: int = 5,
        longest: int | None = None,
        **params: Any,
    ) -> None:
        check_users(users)
        self.users, self.rank = tuple(users), rank
        self.n_tastes, self.longest = n_tastes, longest
        self.ranker = make_ranker(ranker, **{"scale": False, **params})

    def fit(self, X: RankingData) -> Self:
        """Learn the kernels and fit the ranker, from the same ratings."""
        fitted = X.select(np.flatnonzero(X.sizes <= (self.longest or X.n_documents)))
        self.map_ = JointMap.learnt(
            X, self.users, rank=self.rank, n_tastes=self.n_tastes, fitted=fitted
        )
        self.ranker.fit(self.map_.mapped(fitted))
        return self

    def predict(self, X: RankingData) -> F64:
        """Return a score for each document; a user not met in training has the common part."""
        return np.asarray(self.ranker.predict(self.map_.mapped(X)), np.float64)


class GaussianProcess:
    """Gaussian process regression of each user's ratings by scikit-learn, with the kernel of items.

    Parameters
    ----------
    noise : float
        Variance of a rating about the user's function, of which the prior variance is 1; ratings
        are put to mean 0 and variance 1 first.
    """

    def __init__(self, *, noise: float = 1.0) -> None:
        self.noise = noise

    def fit(self, X: RankingData) -> Self:
        """Learn the kernel of items; users are fitted when they are asked for."""
        self._items, self._train = item_features(X), X
        self._place = {user: number for number, user in enumerate(X.qid.tolist())}
        return self

    def predict(self, X: RankingData) -> F64:
        """Return the posterior mean for each document; 0 for a user not met in training."""
        scores, item = np.zeros(X.n_documents), items_of(X)
        for q, number in enumerate(numbers_of(X.qid, self._place).tolist()):
            if number >= 0:
                rows = slice(X.indptr[q], X.indptr[q + 1])
                scores[rows] = self._of_user(number, self._items[item[rows]])
        return scores

    def _of_user(self, number: int, asked: F64) -> AnyArray:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import DotProduct

        rows = slice(self._train.indptr[number], self._train.indptr[number + 1])
        regressor = GaussianProcessRegressor(
            DotProduct(sigma_0=0.0, sigma_0_bounds="fixed"),
            alpha=self.noise,
            optimizer=None,
            normalize_y=True,
        )
        known = self._items[items_of(self._train)[rows]]
        mean: AnyArray = regressor.fit(known, self._train.y[rows]).predict(asked)
        return mean


def items_of(data: RankingData) -> I64:
    """Return the item of each document: the column of its 1."""
    X = sparse.csr_array(data.X)
    if X.nnz != data.n_documents or (np.diff(X.indptr) != 1).any():
        raise UsageError("kernels of ratings need a 1 for the item in each row, and nothing else.")
    return np.asarray(X.indices, np.int64)
