"""Other tools, and compounds of ours, as contenders: each has ``fit`` and ``predict``."""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from scipy.special import softmax

from rankwright.core.types import F64, AnyArray
from rankwright.data.ranking_data import RankingData
from rankwright.experiments.baselines import best_feature, feature_scores
from reproducibility.rating_kernels import GaussianProcess, JointKernel
from rankwright.rankers.base import ranker


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


PEERS: dict[str, type[Contender]] = {
    "liblinear_pairs": LiblinearPairs,
    "classifier_svm": ClassifierSVM,
    "best_feature": BestFeature,
    "joint_kernel": JointKernel,
    "gaussian_process": GaussianProcess,
}


def contender(name: str, **parameters: Any) -> Contender:
    """Return the ranker or the other tool of this name."""
    return PEERS[name](**parameters) if name in PEERS else ranker(name, **parameters)
