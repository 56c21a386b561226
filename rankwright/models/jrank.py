"""JRank: a perceptron on the joint kernel of users and items (`basilico2004unifying`).

A query is a user, and the features x of a document identify an item by a single 1 in its column.
Other features are possible; a document is then the sum of its columns. With R_uk = sum over the
documents of u of x_ik times the grade minus the user's mean grade, and 0 without a rating,

    k(i, j) = <R_.i, R_.j> / |R_.i| |R_.j|  +  t_i t_j                                          (1)

is the kernel of items: the cosine of their ratings, plus the product of their mean ratings t,
standardised over items. The kernels of users are

    "all":   k(u, v) = 1                   a taste common to all users
    "each":  k(u, v) = [u = v]             the taste of a single user
    "alike": k(u, v) = <z_u, z_v>,  z_u = R_u. F / |R_u. F|                                     (2)

with F the leading columns of the feature map of (1). The joint kernel is (sum of kernels of users)
x (1). Both factors have finite feature maps, so their product has one too, and a linear model on it
is exactly the kernel machine. Its weights w for "all", w_u for "each" and W for "alike" form a
factorisation,

    s = x' F w  +  <F' x, w_u + W' z_u>                                                         (3)

with item biases F w, item vectors F, and a vector for each user. PRank learns the weights, a rating
at a time, with thresholds that are common to all users (`rankwright.models.perceptron`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from rankwright.core.parameters import Auto, Count, Positive
from rankwright.core.products import one_blas_thread
from rankwright.core.types import F64, AnyArray, Loss, Round
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.models.factorization import FittedFactorization, items_of, rows_of
from rankwright.models.missing import without_gaps
from rankwright.models.perceptron import PRankLinear
from rankwright.models.schema import ModelPart
from rankwright.registry import unknown

USERS = ("all", "each", "alike")


def item_features(data: RankingData) -> F64:
    """Return the feature map of (1), a row for each item, with the leading columns first."""
    R = _centred(data)
    length = np.sqrt(R.multiply(R).sum(axis=0))
    unit = R @ sparse.diags_array(1.0 / np.where(length > 0.0, length, 1.0))
    n_ratings = np.asarray(abs(sparse.csr_array(data.X)).sum(axis=0), np.float64)
    mean = R.sum(axis=0) / np.where(n_ratings > 0.0, n_ratings, 1.0)
    t = (mean - mean.mean()) / (mean.std() or 1.0)
    with one_blas_thread():
        extent, Q = np.linalg.eigh((unit.T @ unit).toarray() + np.outer(t, t))
    rounding = extent[-1] * len(extent) * np.finfo(np.float64).eps
    columns = np.flatnonzero(extent > max(rounding, 0.0))[::-1]
    return np.asarray(Q[:, columns] * np.sqrt(extent[columns]))


def _centred(data: RankingData) -> Any:
    """Return R, users x items."""
    user, n = data.query_of_row(), data.n_documents
    has_ratings = data.sizes > 0
    mean = np.zeros(data.n_queries)
    if n:
        sums = np.add.reduceat(data.y, data.indptr[:-1][has_ratings])
        mean[has_ratings] = sums / data.sizes[has_ratings]
    grades = sparse.csr_array((data.y - mean[user], np.arange(n), data.indptr), (len(mean), n))
    return grades @ sparse.csr_array(data.X)


@dataclass(frozen=True)
class JointMap:
    """The feature map of the joint kernel.

    Parameters
    ----------
    items : array
        F, a row for each column of X.
    users : array
        Names of the users.
    user_features : sparse array
        The feature map of the kernels of users, a row for each user and one for unknown users.
    is_common : array of bool
        The columns of ``user_features`` that have the same value for everybody.
    """

    items: F64
    users: AnyArray
    user_features: Any
    is_common: AnyArray

    @classmethod
    def learn(
        cls, items: F64, data: RankingData, kernels: Sequence[str], *, n_tastes: int
    ) -> JointMap:
        """Return the map for the users of ``data``, from features of items and kernel names."""
        n = data.n_queries
        z = np.asarray(_centred(data) @ items[:, :n_tastes], np.float64)  # (2)
        length = np.linalg.norm(z, axis=1, keepdims=True)
        z /= np.where(length > 0.0, length, 1.0)
        parts: dict[str, Any] = {
            "all": np.ones((n + 1, 1)),
            "each": sparse.eye_array(n + 1, n),
            "alike": np.append(z, np.zeros((1, z.shape[1])), axis=0),
        }
        columns = [sparse.csr_array(parts[name]) for name in kernels]
        is_common = [np.full(parts[name].shape[1], name == "all") for name in kernels]
        features = sparse.csr_array(sparse.hstack(columns, "csr"))
        return cls(items, data.qid, features, np.concatenate(is_common))

    def mapped(self, data: RankingData) -> RankingData:
        """Return the data with the features of the joint kernel: products of user and item."""
        user = self.user_features[rows_of(data.qid, self.users)[data.query_of_row()]]
        item = np.asarray(sparse.csr_array(data.X) @ self.items, np.float64)
        n, d = item.shape
        columns = user.indices[:, None].astype(np.int64) * d + np.arange(d)
        values = user.data[:, None] * np.repeat(item, np.diff(user.indptr), axis=0)
        shape = (n, user.shape[1] * d)
        X = sparse.csr_array((values.ravel(), columns.ravel(), user.indptr * d), shape)
        return replace(data, X=X, feature_names=None)


@dataclass(frozen=True, slots=True, repr=False)
class JRank(ModelPart):
    """Perceptron on products of user and item features, both learned from the ratings.

    Parameters
    ----------
    users : tuple of "all", "each" and "alike"
        The kernels of users that are added: a taste common to all users, the taste of each user,
        and the taste of users whose ratings are similar.
    n_factors : int or None
        Number of leading features of the items; None uses all features.
    n_tastes : int
        Number of features by which "alike" compares users.
    n_passes : int
        Number of passes over the data; the validation set selects the best pass.
    averaging : bool
        Return the mean of the weights over all steps; False returns the last weights.
    threshold_step : float or "auto"
        Step of a threshold after a mistake; "auto" is the mean step of the scores.
    by_query : bool
        Visit ratings user after user; False ignores users in the order of visits.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.JRank(model=rw.models.JRank(n_factors=5))
    JRank(model=JRank(n_factors=5))
    """

    fitted_class: ClassVar[Any] = FittedFactorization

    users: Sequence[str] = ("all", "each")
    n_factors: Count | None = 20
    n_tastes: Count = 5
    n_passes: Count = 10
    averaging: bool = True
    threshold_step: Positive | Auto = "auto"
    by_query: bool = True

    def check(self) -> None:
        """Raise for parameters out of range."""
        for name in self.users:
            if name not in USERS:
                raise UsageError(unknown("kernel of users", str(name), USERS))
        if not self.users:
            raise UsageError(f"users names one or more of {', '.join(USERS)}.")

    def rounds(
        self,
        loss: Loss,
        data: RankingData,
        valid: RankingData | None = None,
        *,
        start: FittedFactorization | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> Iterator[Round]:
        """Learn the kernels, then yield a round for each pass over the ratings."""
        if start is not None:
            raise UsageError("JRank learns its kernels from the ratings: leave init_model out.")
        without_gaps(data.X, "jrank")
        _, ordered = in_content_order(data, n_jobs=n_jobs)
        items = np.ascontiguousarray(item_features(ordered)[:, : self.n_factors])
        joint = JointMap.learn(items, ordered, self.users, n_tastes=self.n_tastes)
        train, mapped_valid = joint.mapped(ordered), None if valid is None else joint.mapped(valid)
        perceptron = PRankLinear(
            n_passes=self.n_passes,
            averaging=self.averaging,
            threshold_step=self.threshold_step,
            by_query=self.by_query,
            scale=False,
        )
        for round_ in perceptron.rounds(
            loss, train, mapped_valid, random_state=random_state, n_jobs=n_jobs
        ):
            yield replace(round_, model=partial(_fitted, joint, ordered, round_.model))

    def fold_in(self, *data: Any, **how: Any) -> FittedFactorization:  # noqa: ARG002
        """Refuse: users are learned together."""
        raise UsageError(
            "JRank learns all users by one perceptron; to add users, fit again with their ratings."
        )


def _fitted(
    joint: JointMap, data: RankingData, perceptron: Callable[[], Any]
) -> FittedFactorization:
    """Return the factorisation (3) for the weights of a perceptron."""
    W = perceptron().coef.reshape(joint.user_features.shape[1], joint.items.shape[1])
    vectors = joint.user_features[:-1, ~joint.is_common] @ W[~joint.is_common]
    bias = joint.items @ W[joint.is_common].sum(axis=0)
    level = np.zeros(len(vectors))
    return FittedFactorization(
        data.qid, vectors, level, joint.items, bias, *items_of(data), data.n_features, l2=0.0
    )
