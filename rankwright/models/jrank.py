"""The joint kernel of users and items, as features: users x items, both learnt from ratings.

Lists are those of users, and the features x of a document say which item it is, a single 1 in the
item's column; any other features serve too, a document then being the sum of its columns. With
R_uk = sum over the list of u of x_ik times the grade less the list's mean, 0 where there is none,

    k(i, j) = <R_.i, R_.j> / |R_.i| |R_.j|  +  t_i t_j                                          (1)

is the kernel of items: the cosine of what all users gave them, and t, the mean of what an item was
given, put to mean 0 and variance 1 over items. For users there are

    "all":   k(u, v) = 1                   what is liked by everybody
    "each":  k(u, v) = [u = v]             what is liked by one user alone
    "alike": k(u, v) = <z_u, z_v>,  z_u = R_u. F / |R_u. F|                                     (2)

with F the leading columns of the items' feature map. The kernel of a rating is the joint one of
`basilico2004unifying`, (sum of kernels of users) x (1). Both factors have finite feature maps, and
so has their product: a linear model on these features is the kernel machine itself, not an
approximation of it. Its weights w for "all", w_u for "each" and W for "alike" make a factorisation,

    s = x' F w  +  <F' x, w_u + W' z_u>                                                         (3)

with the bias F w of the items, their vectors F, and a vector for each user.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.parameters import Part
from rankwright.core.products import one_blas_thread
from rankwright.core.types import F64, I64, AnyArray, Callback, Loss
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.models.callbacks import MappedCallback
from rankwright.models.factorization import FittedFactorization, items_of
from rankwright.models.missing import without_gaps
from rankwright.models.prank import PRankLinear
from rankwright.registry import unknown

USERS = ("all", "each", "alike")


def check_users(users: Sequence[str]) -> None:
    """Refuse kernels of users that there are not, and none at all."""
    for name in users:
        if name not in USERS:
            raise UsageError(unknown("kernel of users", str(name), USERS))
    if not users:
        raise UsageError(f"users names one or more of {', '.join(USERS)}.")


def item_features(data: RankingData) -> F64:
    """Return features of the items whose products are (1), the leading ones first."""
    R = _centred(data)
    length = np.sqrt(np.asarray(R.multiply(R).sum(axis=0)).ravel())
    unit = R @ sparse.diags_array(1.0 / np.where(length > 0.0, length, 1.0))
    times = np.asarray(abs(sparse.csr_array(data.X)).sum(axis=0), np.float64).ravel()
    mean = np.asarray(R.sum(axis=0)).ravel() / np.where(times > 0.0, times, 1.0)
    t = (mean - mean.mean()) / (mean.std() or 1.0)
    with one_blas_thread():
        extent, Q = np.linalg.eigh(np.asarray((unit.T @ unit).toarray()) + np.outer(t, t))
    least = extent[-1] * len(extent) * np.finfo(np.float64).eps
    kept = np.flatnonzero(extent > max(least, 0.0))[::-1]
    features: F64 = Q[:, kept] * np.sqrt(extent[kept])
    return features


def tastes(data: RankingData, leading: F64) -> F64:
    """Return z of (2), a row for each user; zeros for one whose ratings are all alike."""
    z = np.asarray(_centred(data) @ leading, np.float64)
    length = np.linalg.norm(z, axis=1, keepdims=True)
    return z / np.where(length > 0.0, length, 1.0)


def _centred(data: RankingData) -> Any:
    """Return R, users x items."""
    means = np.zeros(data.n_queries)
    some = data.sizes > 0
    sums = np.add.reduceat(data.y, data.indptr[:-1][some]) if some.any() else np.empty(0)
    means[some] = sums / data.sizes[some]
    user = data.query_of_row()
    shape = (data.n_queries, data.n_documents)
    grades = sparse.csr_array((data.y - means[user], (user, np.arange(data.n_documents))), shape)
    return sparse.csr_array(grades @ sparse.csr_array(data.X))


def numbers_of(users: AnyArray, place: dict[Any, int]) -> I64:
    """Return the number of each user, -1 where there is none."""
    return np.array([place.get(user, -1) for user in users.tolist()], np.int64)


@dataclass(frozen=True)
class JointMap:
    """The feature map of the joint kernel for the users of one data set.

    Parameters
    ----------
    kernels
        The kernels of users that are added: of "all", "each" and "alike".
    items, tastes
        F, a row for each column of X, and z, a row for each user.
    place
        Number of each user by name.
    """

    kernels: tuple[str, ...]
    items: F64
    tastes: F64
    place: dict[Any, int]

    @classmethod
    def learnt(
        cls,
        data: RankingData,
        kernels: Sequence[str],
        *,
        rank: int | None,
        n_tastes: int,
        fitted: RankingData | None = None,
    ) -> JointMap:
        """Learn the kernels from ``data``, for the users of ``fitted`` where those are fewer."""
        check_users(kernels)
        of_users = data if fitted is None else fitted
        items = np.ascontiguousarray(item_features(data)[:, :rank])
        place = {user: number for number, user in enumerate(of_users.qid.tolist())}
        return cls(tuple(kernels), items, tastes(of_users, items[:, :n_tastes]), place)

    def mapped(self, data: RankingData) -> RankingData:
        """Return the data with the features of the joint kernel; a stranger has those of "all"."""
        user = numbers_of(data.qid, self.place)[data.query_of_row()]
        phi = np.asarray(sparse.csr_array(data.X) @ self.items, np.float64)
        parts = {"all": self._of_all, "each": self._of_each, "alike": self._of_alike}
        X = sparse.hstack([parts[name](user, phi) for name in self.kernels], "csr")
        return replace(data, X=sparse.csr_array(X), feature_names=None)

    def factors(self, coef: F64) -> tuple[F64, F64]:
        """Return users' vectors and items' biases of (3), for weights of the mapped features."""
        d, n = self.items.shape[1], len(self.place)
        vectors, bias, first = np.zeros((n, d)), np.zeros(len(self.items)), 0
        for name in self.kernels:
            rows = {"all": 1, "each": n, "alike": self.tastes.shape[1]}[name]
            part = coef[first : first + rows * d].reshape(rows, d)
            first += rows * d
            if name == "all":
                bias += self.items @ part[0]
            else:
                vectors += part if name == "each" else self.tastes @ part
        return vectors, bias

    def _of_all(self, user: I64, phi: F64) -> Any:  # noqa: ARG002
        return sparse.csr_array(phi)

    def _of_each(self, user: I64, phi: F64) -> Any:
        n, d = phi.shape
        column = (user * d)[:, None] + np.arange(d)
        known = np.repeat(user >= 0, d)
        row = np.repeat(np.arange(n), d)
        cells = (phi.ravel()[known], (row[known], column.ravel()[known]))
        return sparse.csr_array(cells, shape=(n, len(self.place) * d))

    def _of_alike(self, user: I64, phi: F64) -> Any:
        z = np.where((user >= 0)[:, None], self.tastes[user], 0.0)
        return sparse.csr_array((z[:, :, None] * phi[:, None, :]).reshape(len(phi), -1))


# --- the ranker's model ----------------------------------------------------------------------
# JRank: PRank on the joint kernel of users and items (`basilico2004unifying`).
#
# The steps are those of `rankwright.models.prank`, a rating at a time, with thresholds that all
# users share; the features are those of `rankwright.models.jrank`, so that what one user's
# ratings teach serves all users as far as the kernel of users says. What is learnt is a
# factorisation with vectors of items that the ratings give: (3) there.


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
        Passes over the data; the best on the validation set is kept.
    averaging : bool
        Answer with the mean of the weights over all steps; False: with the last.
    threshold_step : float or "auto"
        How far a mistake moves a threshold; "auto": as far as it moves scores, on average.
    by_query : bool
        Visit ratings user after user; False: all in one order.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.JRank(model=rw.models.JRank(n_factors=5))
    JRank(model=JRank(n_factors=5))
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
            raise UsageError("JRank learns its kernels from the data it is given: leave start out.")
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
