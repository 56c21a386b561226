"""Rankers of ratings: CofiRank, MMMF, and what they share: new users, recommendations, items.

They read ratings in three forms: RankingData of `rankwright.data.ratings`, a frame with columns
user, item and rating, or a sparse matrix of users x items in which every stored entry is a rating.
Grades are ratings less the lowest one.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from scipy import sparse

from rankwright.core.parameters import at_least, check_whole, part_name
from rankwright.core.types import F64, I64, AnyArray, Loss
from rankwright.data.frames import (
    checked_numbers,
    columns_of_frame,
    frame_columns,
    frame_of_columns,
)
from rankwright.data.ranking_data import RankingData
from rankwright.data.rankings import Ranking
from rankwright.data.ratings import ratings_of_frame, ratings_of_matrix
from rankwright.errors import DataError, IncompatibleError, UsageError, brief, quoted
from rankwright.models.factorization import FittedFactorization
from rankwright.rankers.data_checks import warn_of_training_data
from rankwright.rankers.inputs import (
    documents_of,
    features_like,
    query_column,
    ranking_data,
)
from rankwright.rankers.parameters import (
    FactorParameters,
    StoppingParameters,
    named_ranker,
    parameter_group,
)
from rankwright.rankers.preparation import FitParts, eval_sets, valid_data


class Recommendations(NamedTuple):
    """The best items of each user, best first: what `CofiRank.recommend_all` returns.

    Attributes
    ----------
    users : (m,) array
    items : (m, n) array
        Items as they were in the ratings. At the end of a row, where fewer are left for a user,
        None, or -1 where items are whole numbers.
    scores : (m, n) float64
        Their scores, -inf where there is no item.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwright import Recommendations
    >>> best = Recommendations(np.array(["ann"]), np.array([["tea"]]), np.array([[0.5]]))
    >>> best.to_frame()
      user  rank item  score
    0  ann     1  tea    0.5
    """

    users: AnyArray
    items: AnyArray
    scores: F64

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return a frame with a row per recommendation: user, rank (from 1), item and score."""
        left = self.scores > -np.inf
        columns = {
            "user": np.repeat(self.users, left.sum(axis=1)),
            "rank": np.nonzero(left)[1] + 1,
            "item": self.items[left],
            "score": self.scores[left],
        }
        return frame_of_columns(columns, backend)


Levels = Annotated[int, at_least(2)] | None


@parameter_group
class Recommender(StoppingParameters):
    """Base of rankers that learn a vector for each user and each item.

    Users are identified by the query id and items by the name of their column. Unknown users and
    items are scored by the biases.

    Parameters
    ----------
    levels : int or None
        Round ratings to this many levels, for losses that need few grades or whole numbers. None
        uses each distinct rating as a level.
    """

    levels: Levels = None
    convention: str = "sklearn"

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
            What is known of each item, in the order of the columns of X. An item without ratings
            is then scored by its features.
        eval_set : RankingData, (X, y, qid), a list of them, or a mapping from names to them
            Validation data: selects the best iteration, and l2 where that is "auto".
        **more
            As for every ranker: qid, group_sizes, weights, init_model, progress.
        """
        self._check()
        grouping = {name: more.pop(name, None) for name in _GROUPING}
        data, shift = _ratings(X, y, grouping)
        sets = {} if eval_set is None else eval_sets(eval_set, data, self._valid_data)
        top = float(data.present().y.max(initial=0.0)) or 1.0
        train = self._in_levels(data, top)
        if self.levels is not None:  # its grades are no longer those of the validation data
            warn_of_training_data(data, next(reversed(sets.values()), None))
        if item_features is None:
            super().fit(train, eval_set=sets or None, **more)
        else:
            side = _standardised(item_features, data)
            wide = {name: _beside(one, side) for name, one in sets.items()}
            super().fit(_beside(train, side), eval_set=wide or None, **more)
            self.model_ = self._factors().with_side(side)
        self.model_ = replace(self._factors(), shift=shift, top=top)
        self.n_features_in_ = data.n_features
        if data.feature_names is not None:
            self.feature_names_in_ = np.array(data.feature_names, object)
        self.items_ = _own_ids(data)
        return self

    def build(self) -> FitParts:
        """Return the loss, the model and the solver of a fit, checked."""
        parts = super().build()
        if not hasattr(parts.model, "fold_in"):
            raise IncompatibleError(
                f"{self.name} learns a vector for each user and item, which model "
                f"'{part_name('models', parts.model)}' does not; leave model out, or give the loss "
                "to rankwright.Ranker with that model."
            )
        return parts

    def fold_in(self, X: Any, y: Any = None, **grouping: Any) -> Self:
        """Learn users from their ratings, given as for `fit`, with the items held as they are.

        Users that were known before are known by these ratings alone from then on.
        """
        fitted: Any = self._factors()
        named = {name: grouping.get(name) for name in _GROUPING}
        data, _ = _ratings(X, y, named, shift=fitted.shift)
        data = self._in_levels(self._columns_of(data), fitted.top)
        loss, model, solver = self.build()
        self.model_ = model.fold_in(loss, data, fitted, solver=solver, n_jobs=self.n_jobs)
        return self

    def predict(self, X: Any, *, qid: Any = None) -> F64:
        """Return a score for each row; a higher one ranks first.

        Parameters
        ----------
        X : RankingData, frame with columns user and item, or features as in `fit`
        qid : array or str
            The user of each row of features, or the name of its column in a frame; by default the
            column that `rank` would use. Without one, users are not taken into account.
        """
        fitted = self._factors()
        if isinstance(X, RankingData):
            return fitted.scores_of(self._columns_of(X), n_jobs=self.n_jobs)
        if _names_items(X):
            data = self._pairs(X)
        else:
            qid = query_column(self, X) if qid is None else qid
            if qid is None:
                return fitted.scores(features_like(self, X), n_jobs=self.n_jobs)
            data = documents_of(self, X, qid=qid)
        scores = fitted.scores_of(data, n_jobs=self.n_jobs)
        in_order: F64 = data.in_caller_order(scores)
        return in_order

    def rank(self, X: Any, **how: Any) -> Ranking:
        """Return the items of each user, best first; see `Ranker.rank`."""
        return super().rank(self._pairs(X) if _names_items(X) else X, **how)

    def recommend(
        self,
        user: Any,
        n: int = 10,
        *,
        rated: bool = False,
        items: Any = None,
        filter_items: Any = None,
    ) -> tuple[AnyArray, F64]:
        """Return the best ``n`` items for a user, best first, and their scores.

        Items that the user has rated are left out, unless ``rated`` is true. Items are as they were
        in the ratings, numbers or texts (``items_``); a model read from a file has them as texts.
        ``items`` and ``filter_items`` are those of `recommend_all`.
        """
        if user is None or (isinstance(user, Iterable) and not isinstance(user, str | bytes)):
            raise UsageError(
                f"recommend takes one user, not {quoted(user)}; recommend_all takes several."
            )
        found = self.recommend_all([user], n, rated=rated, items=items, filter_items=filter_items)
        left = found.scores[0] > -np.inf
        return found.items[0, left], found.scores[0, left]

    def recommend_all(
        self,
        users: Any = None,
        n: int = 10,
        *,
        rated: bool = False,
        items: Any = None,
        filter_items: Any = None,
    ) -> Recommendations:
        """Return the best ``n`` items of many users, best first.

        It takes a matrix product and a partial sort, in blocks of users: a few megabytes and 32
        bytes for each item a thread, beside the result. The result is that of `recommend` for each
        user, to the last bit.

        Parameters
        ----------
        users : sequence, default None
            The users; None: all that the ranker has seen. One that it has not seen is given the
            biases of the items, unless `fold_in` comes first. Text where users are numbers, or
            numbers where they are text, is refused.
        n : int, default 10
            Number of items.
        rated : bool, default False
            Whether items that a user has rated are among them.
        items : sequence, default None
            The items to choose from; None: all.
        filter_items : sequence, default None
            Items to leave out for every user; those that the ranker has not seen are ignored.

        Returns
        -------
        Recommendations
            ``users``, and ``items`` and ``scores`` with a row for each user and ``n`` columns, or
            as many as there are items to choose from. Where fewer are left for a user, the scores
            at the end are -inf and the items None, or -1 where items are whole numbers.

        Examples
        --------
        >>> import numpy as np
        >>> from scipy import sparse
        >>> from rankwright import CofiRank
        >>> stars = sparse.csr_array(np.array([[3, 0, 5], [1, 4, 0], [0, 5, 1]]))
        >>> CofiRank(n_factors=1).fit(stars).recommend_all([0, 1, 2], n=1).items.tolist()
        [[1], [2], [0]]
        """
        fitted = self._factors()
        check_whole("n", n, 1)
        names = fitted.users if users is None else _as_ids("users", users)
        rows = np.arange(len(names)) if users is None else fitted.numbers_of(names)
        if (rows < 0).any() and not fitted.item_bias.any():
            warnings.warn(
                f"user {names[int(np.argmax(rows < 0))]} is new to the model, which has no item "
                "biases, so all items have the same score; call fold_in with ratings of the user, "
                "or fit with biases=True.",
                stacklevel=2,
            )
        columns = self._columns_among(items, filter_items)
        best, scores = fitted.best_items(
            rows, int(n), rated=rated, columns=columns, n_jobs=self.n_jobs
        )
        known = getattr(self, "feature_names_in_", np.arange(fitted.n_features))
        own = getattr(self, "items_", known)
        if own.dtype.kind == "u" and int(own.max(initial=0)) <= np.iinfo(np.int64).max:
            own = own.astype(np.int64)  # which has a -1
        whole = own.dtype.kind == "i"
        found: AnyArray = (own if whole else own.astype(object))[best]
        found[best < 0] = -1 if whole else None
        return Recommendations(names, found, scores)

    def _columns_among(self, items: Any, filter_items: Any) -> I64 | None:
        """Return the columns of the items to choose from, ascending; None for all."""
        if items is None and filter_items is None:
            return None
        known = getattr(self, "feature_names_in_", np.arange(self._factors().n_features))
        place = {str(name): number for number, name in enumerate(known.tolist())}
        chosen = np.full(len(place), items is None)
        for item in () if items is None else _as_ids("items", items).tolist():
            if str(item) not in place:
                raise DataError(
                    f"item {brief(item)} is not among the items of the ranker; leave it out of "
                    "items."
                )
            chosen[place[str(item)]] = True
        for item in () if filter_items is None else _as_ids("filter_items", filter_items).tolist():
            chosen[place.get(str(item), [])] = False
        return np.flatnonzero(chosen)

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


@named_ranker
class CofiRank(Recommender, FactorParameters):
    """CofiRank: user and item factors with a ranking loss on each user's list.

    Ranking matrix factorisation (`weimer2008cofirank`; section 5.2 of `le2007dorm`) with any loss.
    With the default loss, scores keep the order of the ratings with their differences as margins.
    ``loss="position_svm"`` is the combination of section 5.2, DORM's bound on a metric. It has
    kinks and is minimised in turns by the bundle solver.

    Parameters
    ----------
    loss : loss or str
        Loss on each user's list: an object or a name, as for `Ranker`.

    Examples
    --------
    >>> import pandas as pd
    >>> import rankwright as rw
    >>> stars = {"user": list("aabbcc"), "item": list("xyxzyz"), "rating": [3, 5, 1, 4, 5, 1]}
    >>> rw.CofiRank(n_factors=1).fit(pd.DataFrame(stars)).recommend("a", n=1)[0].tolist()
    ['z']
    """

    loss: Any = "retarget"


@named_ranker
class MMMF(Recommender, FactorParameters):
    """MMMF: maximum margin matrix factorisation.

    Fast MMMF (`rennie2005mmmf`): user and item factors, thresholds between the levels of the
    ratings for each user, a smooth hinge loss at each threshold, and no biases. With
    ``method="als"`` a fit takes a quarter of the time and ends slightly above the minimum.

    Parameters
    ----------
    margin : float
        Margin between ratings and each threshold of their user.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from rankwright import MMMF
    >>> stars = sparse.csr_array(np.array([[3, 0, 5], [1, 4, 0], [0, 5, 1]]))
    >>> MMMF(n_factors=1).fit(stars).recommend_all([0, 1, 2], n=1).items.tolist()
    [[1], [2], [0]]
    """

    loss_class = "all_threshold"

    levels: Levels = 5
    margin: float = 1.0
    biases: bool = False
    method: str = "joint"


@named_ranker
class JRank(Recommender):
    """JRank: perceptron on the joint kernel of users and items, with thresholds between grades.

    PRank with a kernel (`basilico2004unifying`), as in Table 3 of `le2007dorm`. Both kernels are
    computed from the ratings: items are similar if their ratings are, and ``users`` determines how
    much the ratings of one user affect others.

    Parameters
    ----------
    users : sequence of "all", "each" and "alike"
        Kernels of users to add: one for all users, one per user, and one for users with similar
        ratings.
    n_factors : int or None
        Number of leading features of the items. None uses all.
    n_tastes : int
        Number of features by which "alike" compares users.
    n_passes : int
        Number of passes over the data. The best pass on the validation set is selected.
    averaging : bool
        Use the mean of the weights over all steps. False uses the last weights.
    threshold_step : float or "auto"
        Step of a threshold at a mistake. "auto" is the average step of a score.
    by_query : bool
        Visit ratings user by user. False visits them in one random order.

    Examples
    --------
    >>> import pandas as pd
    >>> from rankwright import JRank
    >>> columns = {"user": [1, 1, 2, 2], "item": ["x", "y", "x", "z"], "rating": [5, 1, 4, 2]}
    >>> ratings = pd.DataFrame(columns)
    >>> JRank().fit(ratings).predict(ratings).shape
    (4,)
    """

    model_class = "jrank"

    users: Sequence[str] = ("all", "each")
    n_factors: int | None = 20
    n_tastes: int = 5
    n_passes: int = 10
    averaging: bool = True
    threshold_step: float | str = "auto"
    by_query: bool = True

    def make_loss(self) -> Loss:
        """Return the smooth hinge at thresholds, which the learning curve shows."""
        from rankwright.losses.all_threshold import AllThreshold

        return AllThreshold()


def _as_ids(what: str, names: Any) -> AnyArray:
    """Return names as an array; mixed ones stay what they are."""
    if isinstance(names, np.ndarray) and names.ndim == 1 and names.dtype != object:
        return names
    scalar = isinstance(names, str | bytes) or getattr(names, "ndim", 1) != 1
    if scalar or not isinstance(names, Iterable) or not all(map(_is_id, names)):
        raise UsageError(f"{what} must be a list of names, not {quoted(names)}.")
    names = list(names)
    same = len({type(name) for name in names}) == 1
    return np.array(names) if same else np.array(names, object)


def _is_id(name: Any) -> bool:
    return isinstance(name, Hashable) and not isinstance(name, tuple)


_GROUPING = ("qid", "group_sizes", "sample_weight", "query_weight")


def _ratings(
    X: Any, y: Any, grouping: dict[str, Any], shift: float = np.nan
) -> tuple[RankingData, float]:
    """Return ratings and what was taken off them: ``shift``, or the lowest one if that is lower."""
    if isinstance(X, RankingData) or y is not None:
        return ranking_data(X, y, **grouping), np.nan
    if sparse.issparse(X):
        matrix: Any = X
        shift = float(np.fmin(shift, _lowest(matrix.tocsr().data)))
        return ratings_of_matrix(matrix, shift=shift), shift
    if frame_columns(X) is not None:
        rating = checked_numbers(columns_of_frame(X)("rating"), "rating", "rating")
        shift = float(np.fmin(shift, _lowest(rating)))
        return ratings_of_frame(X, shift=shift), shift
    raise UsageError(
        "give ratings as RankingData, as a frame with columns user, item and rating, or as a "
        "sparse matrix of users x items; a matrix of features requires y to be passed, but the "
        "target y is None."
    )


def _lowest(ratings: AnyArray) -> float:
    """Return the lowest rating."""
    if not len(ratings):
        raise DataError("there are no ratings.")
    return float(ratings.min())


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
    """Return the item of each column as the caller writes it, where the documents say."""
    if data.feature_names is None:
        return np.arange(data.n_features)
    names = np.array(data.feature_names, object)
    if data.doc_id is None:
        return names
    rated = set(_one_of_each(data).tolist())
    own = {str(item): item for item in rated}
    if not own.keys() <= set(data.feature_names) or all(isinstance(item, str) for item in rated):
        return names
    whole = data.doc_id.dtype.kind in "iu"  # so are the items without ratings
    ids = [own.get(name, int(name) if whole and _is_whole(name) else name) for name in names]
    return np.array(ids, data.doc_id.dtype if all(map(_is_whole, names)) and whole else object)


def _one_of_each(data: RankingData) -> AnyArray:
    """Return the documents' ids, those of ratings once for each item: there may be millions."""
    assert data.doc_id is not None
    X = data.X
    if isinstance(X, np.ndarray) or not (np.diff(X.indptr) == 1).all():
        return data.doc_id
    first = np.full(data.n_features, -1)
    first[X.indices[::-1]] = np.arange(data.n_documents)[::-1]
    once: AnyArray = data.doc_id[first[first >= 0]]
    return once


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
