"""Algorithms of other libraries and combinations of ours, each with ``fit`` and ``predict``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import softmax
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import DotProduct
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import rankwright as rw
from rankwright.comparison.baselines import best_feature, feature_scores
from rankwright.models.jrank import JointMap, item_features


class LiblinearPairs:
    """RankSVM without a ranking library: LIBLINEAR on the differences of all pairs.

    ``l2`` is on our scale: the mean over queries of the sum of squared hinges plus l2/2 |w|^2.
    """

    def __init__(self, *, l2: float = 1e-3, tol: float = 1e-3) -> None:
        self.l2, self.tol = l2, tol

    def fit(self, X: rw.RankingData) -> Self:
        """List every pair of different grades and fit a linear SVM to their differences."""
        differences = []
        for query in X.queries():
            better, worse = np.nonzero(query.y[:, None] > query.y[None, :])
            differences.append(query.X[better] - query.X[worse])
        pairs = np.concatenate(differences)
        sign = np.where(np.arange(len(pairs)) % 2, 1, -1)  # a classifier needs both classes
        pairs *= sign[:, None].astype(pairs.dtype)
        C = 1.0 / (self.l2 * X.n_queries)
        svm = LinearSVC(C=C, fit_intercept=False, dual=False, tol=self.tol)
        self.coef_ = svm.fit(pairs, sign).coef_[0]
        return self

    def predict(self, X: rw.RankingData) -> Any:
        """Return a score for each document."""
        return np.asarray(X.X @ self.coef_, np.float64)


class ClassifierSVM:
    """Rank by scikit-learn's SVM classifier of the grades, on standardised features.

    With ``min_grade`` the classes are the grades from there on and those below, and the decision
    value is the score. Without it, each grade is a class against the rest, and the score is the
    expected grade under the softmax of ``sharpness`` times the decision values. ``gamma`` makes it
    an RBF machine.
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

    def fit(self, X: rw.RankingData) -> Self:
        """Fit to all documents, whatever their query."""
        if self.gamma is None:
            svm = LinearSVC(C=self.C, dual=False, tol=1e-3)
        else:
            svm = SVC(C=self.C, gamma=self.gamma)
            if self.min_grade is None:
                svm = OneVsRestClassifier(svm)
        grade = X.y if self.min_grade is None else X.y >= self.min_grade
        self.classes_ = np.unique(grade)
        if len(self.classes_) > 1:
            self.svm_ = make_pipeline(StandardScaler(), svm).fit(X.X, grade)
        return self

    def predict(self, X: rw.RankingData) -> Any:
        """Return a score for each document; all are 0 if training had one class."""
        if len(self.classes_) < 2:
            return np.zeros(X.n_documents)
        margin = np.asarray(self.svm_.decision_function(X.X), np.float64)
        if margin.ndim == 1:
            return margin
        return softmax(self.sharpness * margin, axis=1) @ self.classes_


class BestFeature:
    """The one feature, or its negative, that has the best NDCG@10 on the training data."""

    def fit(self, X: rw.RankingData) -> Self:
        """Find the feature."""
        self.feature_, self.sign_ = best_feature(X, metric="ndcg@10")
        return self

    def predict(self, X: rw.RankingData) -> Any:
        """Return the feature as scores."""
        return self.sign_ * feature_scores(X, self.feature_)


class JointKernel:
    """DORM on the joint kernel of users and items (`rankwright.models.jrank`).

    Parameters
    ----------
    users : tuple of "all", "each" and "alike"
        The kernels of users that are added.
    longest : int or None
        Fit DORM to users with this many ratings or fewer; others serve to learn the kernels.
    **params
        Of `rankwright.DORM`.
    """

    def __init__(
        self, *, users: Sequence[str] = ("all", "each"), longest: int | None = None, **params: Any
    ) -> None:
        self.users, self.longest = tuple(users), longest
        self.ranker = rw.DORM(scale=False, **params)

    def fit(self, X: rw.RankingData) -> Self:
        """Learn the kernels, with the 20 leading features of items, and fit DORM."""
        fitted = X.select(np.flatnonzero(X.sizes <= (self.longest or X.n_documents)))
        items = item_features(X)[:, :20]
        self.map_ = JointMap.learn(items, fitted, self.users, n_tastes=5)
        self.ranker.fit(self.map_.mapped(fitted))
        return self

    def predict(self, X: rw.RankingData) -> Any:
        """Return a score for each document."""
        return self.ranker.predict(self.map_.mapped(X))


class GaussianProcess:
    """scikit-learn's Gaussian process for each user's ratings, with a learnt kernel of items.

    ``noise`` is the variance of a rating about the user's function, whose prior variance is 1.
    """

    def __init__(self, *, noise: float = 1.0) -> None:
        self.noise = noise

    def fit(self, X: rw.RankingData) -> Self:
        """Learn the kernel of items; users are fitted when they are asked for."""
        self._items, self._train = item_features(X), X
        return self

    def predict(self, X: rw.RankingData) -> Any:
        """Return the posterior mean for each document; 0 for a user without training data."""
        place = {user: number for number, user in enumerate(self._train.qid.tolist())}
        scores = np.zeros(X.n_documents)
        for q, user in enumerate(X.qid.tolist()):
            if user in place:
                rows = slice(X.indptr[q], X.indptr[q + 1])
                scores[rows] = self._predict_user(place[user], self._items[_items(X)[rows]])
        return scores

    def _predict_user(self, number: int, asked: Any) -> Any:
        rows = slice(self._train.indptr[number], self._train.indptr[number + 1])
        kernel = DotProduct(sigma_0=0.0, sigma_0_bounds="fixed")
        process = GaussianProcessRegressor(
            kernel, alpha=self.noise, optimizer=None, normalize_y=True
        )
        features = self._items[_items(self._train)[rows]]
        return process.fit(features, self._train.y[rows]).predict(asked)


def _items(data: rw.RankingData) -> Any:
    """Return the item of each document: the column of its 1."""
    return sparse.csr_array(data.X).indices
