"""Other tools, and compounds of ours, as contenders: each has ``fit`` and ``predict``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np
from scipy import sparse
from scipy.special import softmax

import rankwright as rw
from rankwright.comparison.baselines import best_feature, feature_scores
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.models.jrank import JointMap, check_users, item_features, numbers_of


class Contender(Protocol):
    """What an experiment needs of a ranker, ours or another tool's."""

    def fit(self, X: RankingData) -> Any:
        """Learn from training data."""

    def predict(self, X: RankingData) -> F64:
        """Return a score for each document."""


class LiblinearPairs:
    """RankSVM as scikit-learn makes it: LIBLINEAR on the differences of all pairs.

    ``l2`` is on our scale: the mean over queries of the sum of squared hinges plus l2/2 |w|^2.
    """

    def __init__(self, *, l2: float = 1e-3, tol: float = 1e-3) -> None:
        self.l2, self.tol = l2, tol

    def fit(self, X: RankingData) -> Self:
        """List every pair of different grades and fit a linear SVM to their differences."""
        from sklearn.svm import LinearSVC

        pairs, sign = _pairs(X)
        svm = LinearSVC(
            C=1.0 / (self.l2 * X.n_queries), fit_intercept=False, dual=False, tol=self.tol
        )
        self.coef_: F64 = svm.fit(pairs, sign).coef_[0]
        return self

    def predict(self, X: RankingData) -> F64:
        """Return a score for each document."""
        return np.asarray(X.X @ self.coef_, np.float64)


def _pairs(data: RankingData) -> tuple[AnyArray, AnyArray]:
    found: list[AnyArray] = []
    for lo, hi in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        grade, rows = data.y[lo:hi], np.asarray(data.X[lo:hi])
        better, worse = np.nonzero(grade[:, None] > grade[None, :])
        found.append(rows[better] - rows[worse])
    pairs: AnyArray = np.concatenate(found)
    sign = np.where(np.arange(len(pairs)) % 2, 1, -1)  # a classifier wants both classes
    pairs *= sign[:, None].astype(pairs.dtype)
    return pairs, sign


class ClassifierSVM:
    """Rank by scikit-learn's SVM classifier of the grades, on standardised features.

    With ``min_grade`` the classes are the grades from there on and those below, and the decision
    value is the score. Without, each grade is a class against the rest, and the score is the
    expected grade under softmax of ``sharpness`` times the decision values: a large one ranks by
    the predicted grade. ``gamma`` makes it an RBF machine.
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        gamma: float | None = None,
        min_grade: float | None = None,
        sharpness: float = 1.0,
    ) -> None:
        self.C, self.gamma, self.min_grade, self.sharpness = C, gamma, min_grade, sharpness

    def fit(self, X: RankingData) -> Self:
        """Fit to all documents, whatever their query."""
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC, LinearSVC

        svm = LinearSVC(C=self.C, dual=False, tol=1e-3) if self.gamma is None else self._curved(SVC)
        grade = X.y if self.min_grade is None else X.y >= self.min_grade
        self.classes_: AnyArray = np.unique(grade)
        if len(self.classes_) > 1:
            self.svm_ = make_pipeline(StandardScaler(), svm).fit(X.X, grade)
        return self

    def _curved(self, kind: Any) -> Any:
        from sklearn.multiclass import OneVsRestClassifier

        svm = kind(C=self.C, gamma=self.gamma)
        return svm if self.min_grade is not None else OneVsRestClassifier(svm)

    def predict(self, X: RankingData) -> F64:
        """Return a score for each document; all are alike where training had one class."""
        if len(self.classes_) < 2:
            return np.zeros(X.n_documents)
        margin = np.asarray(self.svm_.decision_function(X.X), np.float64)
        if margin.ndim == 1:
            return margin
        probability = softmax(self.sharpness * margin, axis=1)
        return np.asarray(probability @ self.classes_, np.float64)


class BestFeature:
    """The one feature, or its negative, that ranks the training data best by ``metric``."""

    def __init__(self, *, metric: str = "ndcg@10") -> None:
        self.metric = metric

    def fit(self, X: RankingData) -> Self:
        """Find the feature."""
        self.feature_, self.sign_ = best_feature(X, metric=self.metric)
        return self

    def predict(self, X: RankingData) -> F64:
        """Return the feature as scores."""
        return self.sign_ * feature_scores(X, self.feature_)


# --- kernels of users and items --------------------------------------------------------------


class JointKernel:
    """A ranker on the joint kernel of users and items.

    Parameters
    ----------
    ranker : str
    users : tuple of "all", "each" and "alike"
        The kernels of users that are added.
    rank : int or None
        Number of leading features of the items to keep: the nearest kernel of that rank.
    n_tastes : int
        Features of items that users are compared by.
    longest : int or None
        Fit the ranker to users with this many ratings or fewer; others serve the kernels alone.
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
        self.ranker = rw.ranker(ranker, **{"scale": False, **params})

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


# --- by name ---------------------------------------------------------------------------------

PEERS: dict[str, type[Contender]] = {
    "liblinear_pairs": LiblinearPairs,
    "classifier_svm": ClassifierSVM,
    "best_feature": BestFeature,
    "joint_kernel": JointKernel,
    "gaussian_process": GaussianProcess,
}


def contender(name: str, **parameters: Any) -> Contender:
    """Return the ranker or the other tool of this name."""
    return PEERS[name](**parameters) if name in PEERS else rw.ranker(name, **parameters)
