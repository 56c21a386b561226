"""Kernels of users and items, learnt from ratings, and what can be fitted with them.

Data are lists of ratings as of `rankwright.data.ratings`: a query is a user, and the features of a
document say which item it is. With r_ui the grades of a user less their mean, 0 where there is
none, and R their matrix,

    k(i, j) = <R_.i, R_.j> / |R_.i| |R_.j|  +  t_i t_j                                          (1)

is the likeness of items: the cosine of what all users of train gave them, and t, the mean of what
an item was given, put to mean 0 and variance 1 over items. For users there are

    "all":   k(u, v) = 1                   what is liked by everybody
    "each":  k(u, v) = [u = v]             what is liked by one user alone
    "alike": k(u, v) = <z_u, z_v>,  z_u = R_u. F / |R_u. F|                                     (2)

with F the leading columns of the items' feature map. The kernel of a rating is the joint one of
`basilico2004unifying`, (sum of kernels of users) x (1). Both factors have finite feature maps, and
so has their product: a linear model on these features is the kernel machine itself, not an
approximation of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.rankers.base import ranker as make_ranker
from rankwright.registry import unknown

USERS = ("all", "each", "alike")


def item_features(data: RankingData) -> F64:
    """Return features of the items whose products are (1), the leading ones first."""
    R = _centred(data)
    length = np.sqrt(np.asarray(R.multiply(R).sum(axis=0)).ravel())
    unit = R @ sparse.diags_array(1.0 / np.where(length > 0.0, length, 1.0))
    times = np.bincount(items_of(data), minlength=data.n_features)
    mean = np.asarray(R.sum(axis=0)).ravel() / np.maximum(times, 1)
    t = (mean - mean.mean()) / (mean.std() or 1.0)
    extent, Q = np.linalg.eigh(np.asarray((unit.T @ unit).toarray()) + np.outer(t, t))
    kept = np.flatnonzero(extent > extent[-1] * len(extent) * np.finfo(np.float64).eps)[::-1]
    features: F64 = Q[:, kept] * np.sqrt(extent[kept])
    return features


def tastes(data: RankingData, leading: F64) -> F64:
    """Return z of (2), a row for each user; zeros for one whose ratings are all alike."""
    z = np.asarray(_centred(data) @ leading, np.float64)
    length = np.linalg.norm(z, axis=1, keepdims=True)
    return z / np.where(length > 0.0, length, 1.0)


class JointKernel:
    """A ranker on the joint kernel of users and items.

    Parameters
    ----------
    ranker : str
    users : tuple of "all", "each" and "alike"
        The kernels of users that are added.
    rank : int or None
        Keep so many leading features of the items: the nearest kernel of that rank to (1).
    n_tastes : int
        Columns of F in (2).
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
        for name in users:
            if name not in USERS:
                raise UsageError(unknown("kernel of users", name, USERS))
        self.users, self.rank = tuple(users), rank
        self.n_tastes, self.longest = n_tastes, longest
        self.ranker = make_ranker(ranker, **{"scale": False, **params})

    def fit(self, X: RankingData) -> Self:
        """Learn the kernels and fit the ranker, from the same ratings."""
        self._items = item_features(X)[:, : self.rank]
        fitted = X.select(np.flatnonzero(X.sizes <= (self.longest or X.n_documents)))
        self._tastes = tastes(fitted, self._items[:, : self.n_tastes])
        self._place = {user: number for number, user in enumerate(fitted.qid.tolist())}
        self.ranker.fit(self.mapped(fitted))
        return self

    def predict(self, X: RankingData) -> F64:
        """Return a score for each document; a user not met in training has the common part."""
        return np.asarray(self.ranker.predict(self.mapped(X)), np.float64)

    def mapped(self, data: RankingData) -> RankingData:
        """Return the data with the feature map of the joint kernel."""
        user, item = _users(data, self._place)[data.query_of_row()], items_of(data)
        parts = {"all": self._of_all, "each": self._of_each, "alike": self._of_alike}
        X = sparse.hstack([parts[name](user, self._items[item]) for name in self.users], "csr")
        return replace(data, X=sparse.csr_array(X), feature_names=None)

    def _of_all(self, user: I64, phi: F64) -> Any:  # noqa: ARG002
        return sparse.csr_array(phi)

    def _of_each(self, user: I64, phi: F64) -> Any:
        n, d = phi.shape
        column = (user * d)[:, None] + np.arange(d)
        known = np.repeat(user >= 0, d)
        row = np.repeat(np.arange(n), d)
        cells = (phi.ravel()[known], (row[known], column.ravel()[known]))
        return sparse.csr_array(cells, shape=(n, len(self._place) * d))

    def _of_alike(self, user: I64, phi: F64) -> Any:
        z = np.where((user >= 0)[:, None], self._tastes[user], 0.0)
        return sparse.csr_array((z[:, :, None] * phi[:, None, :]).reshape(len(phi), -1))


class GaussianProcess:
    """Gaussian process regression of each user's ratings by scikit-learn, alone with (1).

    Parameters
    ----------
    noise : float
        Variance of a rating about the user's function, of which the prior variance is 1; ratings
        are put to mean 0 and variance 1 first.
    """

    def __init__(self, *, noise: float = 1.0) -> None:
        self.noise = noise

    def fit(self, X: RankingData) -> Self:
        """Learn the likeness of items; users are fitted when they are asked for."""
        self._items, self._train = item_features(X), X
        self._place = {user: number for number, user in enumerate(X.qid.tolist())}
        return self

    def predict(self, X: RankingData) -> F64:
        """Return the posterior mean for each document; 0 for a user not met in training."""
        scores, item = np.zeros(X.n_documents), items_of(X)
        for q, number in enumerate(_users(X, self._place).tolist()):
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


def _centred(data: RankingData) -> Any:
    """Return grades less the mean of their user, users x items."""
    sums = np.add.reduceat(data.y, data.indptr[:-1])
    user = data.query_of_row()
    values = data.y - (sums / data.sizes)[user]
    return sparse.csr_array((values, (user, items_of(data))), (data.n_queries, data.n_features))


def _users(data: RankingData, place: dict[Any, int]) -> I64:
    return np.array([place.get(user, -1) for user in data.qid.tolist()], np.int64)
