"""What rankers of ratings have beside the rest: cold users, recommendations, features of items.

They read ratings in three forms: RankingData of `rankwright.data.ratings`, a frame with columns
user, item and rating, or a sparse matrix of users x items in which every stored entry is a rating.
Grades are ratings less the lowest one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.frames import checked_numbers, columns_of_frame
from rankwright.data.ranking_data import RankingData
from rankwright.data.ratings import ratings_of_frame, ratings_of_matrix
from rankwright.errors import DataError, UsageError
from rankwright.models.fitted_factorization import FittedFactorization
from rankwright.rankers.base import Ranker
from rankwright.rankers.inputs import features_like, frame_columns, ranking_data, valid_data


class Recommender(Ranker):
    """Base of the rankers that learn a vector for each user and each item.

    A user is known by the query id and an item by the name of its column. Users and items that the
    ranker has not seen are given what is known without them: the biases of the items.
    """

    models = ("factorization",)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        item_features: Any = None,
        eval_set: Any = None,
        **more: Any,
    ) -> Self:
        """Fit to ratings, or to documents X with grades y as every ranker does.

        Parameters
        ----------
        X : RankingData, frame with columns user, item and rating, or sparse matrix of ratings
            A matrix or frame that comes with ``y`` holds features instead.
        item_features : array (items, features)
            What is known of each item, in the order of the columns of X. An item that nobody rated
            is then scored by its features.
        eval_set : RankingData or (X, y, qid)
            Valid data: selects the best round, and l2 where that is "auto".
        **more
            As for every ranker: qid, group_sizes, weights, start, progress.
        """
        grouping = {name: more.pop(name, None) for name in _GROUPING}
        data, shift = _ratings(X, y, grouping)
        valid = None if eval_set is None else self._valid_data(eval_set, data)
        top = float(data.present().y.max(initial=0.0)) or 1.0
        train = self._in_levels(data, top)
        if item_features is None:
            super().fit(train, eval_set=valid, **more)
        else:
            side = _standardised(item_features, data)
            wide = None if valid is None else _beside(valid, side)
            super().fit(_beside(train, side), eval_set=wide, **more)
            self.model_ = self._factors().with_side(side)
        self.model_ = replace(self._factors(), shift=shift, top=top)
        self.n_features_in_ = data.n_features
        if data.feature_names is not None:
            self.feature_names_in_ = np.array(data.feature_names, object)
        self.items_ = _own_ids(data)
        return self

    def fold_in(self, X: Any, y: Any = None, **grouping: Any) -> Self:
        """Learn users from their ratings, given as for `fit`, with the items held as they are.

        Users that were known before are known by these ratings alone from then on.
        """
        fitted: Any = self._factors()
        named = {name: grouping.get(name) for name in _GROUPING}
        data, _ = _ratings(X, y, named, shift=fitted.shift)
        data = self._in_levels(self._columns_of(data), fitted.top)
        model: Any = self.make_model()
        self.model_ = model.fold_in(self.make_loss(data), data, fitted, n_jobs=self.n_jobs)
        return self

    def predict(self, X: Any, *, qid: Any = None) -> F64:
        """Return a score for each row; a higher one ranks first.

        Parameters
        ----------
        X : RankingData, frame with columns user and item, or features as in `fit`
        qid : array
            The user of each row of features; without it nothing is known of the users.
        """
        fitted = self._factors()
        if isinstance(X, RankingData):
            return fitted.scores_of(self._columns_of(X), n_jobs=self.n_jobs)
        if _names_items(X):
            data = self._pairs(X)
        elif qid is None:
            return fitted.scores(features_like(self, X), n_jobs=self.n_jobs)
        else:
            data = RankingData.from_arrays(features_like(self, X), None, qid=qid)
        scores = fitted.scores_of(data, n_jobs=self.n_jobs)
        in_order: F64 = data.in_caller_order(scores)
        return in_order

    def rank(self, X: Any, **how: Any) -> I64:
        """Return row numbers, best first, user after user; see `Ranker.rank`."""
        return super().rank(self._pairs(X) if _names_items(X) else X, **how)

    def recommend(self, user: Any, n: int = 10, *, rated: bool = False) -> tuple[AnyArray, F64]:
        """Return the best ``n`` items for a user, best first, and their scores.

        Items that the user has rated are left out, unless ``rated`` is true. Items are as they were
        in the ratings, numbers or texts (``items_``); a model read from a file has them as texts.
        """
        fitted = self._factors()
        scores = fitted.scores_of_items(user)
        order = np.argsort(-scores, kind="stable")
        if not rated:
            order = order[~np.isin(order, fitted.rated_by(user))]
        best = order[:n]
        names = getattr(self, "feature_names_in_", np.arange(len(scores)))
        return getattr(self, "items_", names)[best], scores[best]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags

    def _valid_data(self, eval_set: Any, data: RankingData) -> RankingData:
        if isinstance(eval_set, RankingData) and _differ(
            eval_set.feature_names, data.feature_names
        ):
            eval_set = _with_columns(eval_set, list(data.feature_names or ()))
        return valid_data(eval_set, data)

    def _factors(self) -> FittedFactorization:
        fitted = self._fitted()
        assert isinstance(fitted, FittedFactorization)
        return fitted

    def _in_levels(self, data: RankingData, top: float) -> RankingData:
        """Return grades as whole numbers below ``levels``, by equal parts of 0 to ``top``."""
        if self.levels is None:
            return data
        if self.levels < 2:
            raise UsageError(f"levels must be 2 or more, not {self.levels}.")
        return replace(data, y=np.minimum(np.floor(data.y / top * self.levels), self.levels - 1.0))

    def _columns_of(self, data: RankingData) -> RankingData:
        """Return the data in the columns of the fitted model; items that it lacks have none."""
        known = getattr(self, "feature_names_in_", None)
        if known is not None and _differ(data.feature_names, known):
            return _with_columns(data, list(known))
        return replace(data, X=features_like(self, data))

    def _pairs(self, frame: Any) -> RankingData:
        """Return the documents of a frame of users and items."""
        column = columns_of_frame(frame)
        users, items = np.asarray(column("user")), np.asarray(column("item"))
        known = getattr(self, "feature_names_in_", np.arange(self._factors().n_features))
        place = {str(name): number for number, name in enumerate(known.tolist())}
        found = np.array([place.get(str(item), -1) for item in items.tolist()], np.int64)
        begin = np.concatenate(([0], np.cumsum(found >= 0)))
        X = sparse.csr_array(
            (np.ones(begin[-1]), found[found >= 0], begin), shape=(len(found), len(known))
        )
        return RankingData.from_arrays(X, None, qid=users)


_GROUPING = ("qid", "group_sizes", "sample_weight", "query_weight")


def _ratings(
    X: Any, y: Any, grouping: dict[str, Any], shift: float = np.nan
) -> tuple[RankingData, float]:
    """Return ratings and what was taken off them: ``shift``, or the lowest one if that is lower."""
    if isinstance(X, RankingData) or y is not None:
        return ranking_data(X, y, **grouping), np.nan
    if sparse.issparse(X):
        matrix: Any = X
        shift = float(np.fmin(shift, matrix.tocsr().data.min(initial=np.inf)))
        return ratings_of_matrix(matrix, shift=shift), shift
    if frame_columns(X) is not None:
        rating = checked_numbers(columns_of_frame(X)("rating"), "rating", "rating")
        shift = float(np.fmin(shift, np.min(rating, initial=np.inf)))
        return ratings_of_frame(X, shift=shift), shift
    raise UsageError(
        "give ratings as RankingData, as a frame with columns user, item and rating, or as a "
        "sparse matrix of users x items; a matrix of features requires y to be passed, but the "
        "target y is None."
    )


def _names_items(X: Any) -> bool:
    names = None if isinstance(X, RankingData) else frame_columns(X)
    return names is not None and {"user", "item"} <= set(names)


def _differ(names: Any, known: Any) -> bool:
    return names is not None and known is not None and list(names) != list(known)


def _with_columns(data: RankingData, known: list[str]) -> RankingData:
    """Return the data with the columns ``known``: others are dropped, missing ones are empty."""
    place = {name: number for number, name in enumerate(known)}
    assert data.feature_names is not None
    target = np.array([place.get(name, -1) for name in data.feature_names], np.int64)
    stored = sparse.coo_array(sparse.csr_array(data.X))
    row, column = stored.coords
    kept = target[column] >= 0
    X = sparse.csr_array(
        (stored.data[kept], (row[kept], target[column[kept]])),
        shape=(data.n_documents, len(known)),
    )
    return replace(data, X=X, feature_names=tuple(known))


def _own_ids(data: RankingData) -> AnyArray:
    """Return the item of each column as the caller writes it, where the documents tell."""
    if data.feature_names is None:
        return np.arange(data.n_features)
    names = np.array(data.feature_names, object)
    if data.doc_id is None:
        return names
    rated = set(data.doc_id.tolist())
    own = {str(item): item for item in rated}
    if not own.keys() <= set(data.feature_names) or all(isinstance(item, str) for item in rated):
        return names
    whole = data.doc_id.dtype.kind in "iu"  # so are the items that nobody rated
    ids = [own.get(name, int(name) if whole and _is_whole(name) else name) for name in names]
    return np.array(ids, data.doc_id.dtype if all(map(_is_whole, names)) and whole else object)


def _is_whole(name: str) -> bool:
    return name.lstrip("-").isdecimal()


def _standardised(features: Any, data: RankingData) -> F64:
    side = np.asarray(features, np.float64)
    if side.ndim != 2 or len(side) != data.n_features or not np.isfinite(side).all():
        raise DataError(
            f"item_features must be finite numbers, a row for each of the {data.n_features} items "
            f"(columns of X); they have shape {side.shape}."
        )
    deviation = side.std(axis=0)
    centred: F64 = (side - side.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    return centred


def _beside(data: RankingData, side: F64) -> RankingData:
    """Return the data with the side features of each document's item in further columns."""
    X = sparse.csr_array(data.X)
    wide = sparse.csr_array(sparse.hstack([X, sparse.csr_array(X @ side)]))
    return replace(data, X=wide, feature_names=None)
