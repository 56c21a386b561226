"""Rankers of ratings: CofiRank, MMMF and JRank, with recommendations and fold-in of new users.

Ratings are RankingData of `rankwright.data.ratings`, a frame with columns user, item and rating, or
a sparse matrix of users x items in which every stored entry is a rating. Grades are the ratings
minus the lowest rating.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
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
from rankwright.models.best_items import best_items
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
    """The best items of each user, best first: the result of `CofiRank.recommend_all`.

    Attributes
    ----------
    users : (m,) array
    items : (m, n) array
        Items as in the ratings. If a user has fewer than n items to choose from, the row ends with
        None, or with -1 if items are whole numbers.
    scores : (m, n) float64
        Their scores, -inf without an item.

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
        has_item = self.scores > -np.inf
        columns = {
            "user": np.repeat(self.users, has_item.sum(axis=1)),
            "rank": np.nonzero(has_item)[1] + 1,
            "item": self.items[has_item],
            "score": self.scores[has_item],
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
        """Fit to ratings, or to documents X with grades y as other rankers.

        Parameters
        ----------
        X : RankingData, frame with columns user, item and rating, or sparse matrix of ratings
            With ``y``, a matrix or frame of features.
        item_features : array (items, features)
            Features of each item, in the order of the columns of X. Items without ratings are
            scored by their features.
        eval_set : RankingData, (X, y, qid), a list of them, or a mapping from names to them
            Validation data: selects the best iteration, and l2 if it is "auto".
        **more
            As for other rankers: qid, group_sizes, weights, init_model, progress.
        """
        self._check()
        grouping = {name: more.pop(name, None) for name in _GROUPING}
        data, shift = _ratings(X, y, grouping)
        sets = {} if eval_set is None else eval_sets(eval_set, data, _valid_data)
        top = float(data.present().y.max(initial=0.0)) or 1.0
        train = self._in_levels(data, top)
        if self.levels is not None:  # training data in levels no longer equals validation data
            warn_of_training_data(data, next(reversed(sets.values()), None))
        if item_features is None:
            super().fit(train, eval_set=sets or None, **more)
        else:
            side = _standardised(item_features, data)
            wide_sets = {name: _with_side(valid, side) for name, valid in sets.items()}
            super().fit(_with_side(train, side), eval_set=wide_sets or None, **more)
            self.model_ = self._factors().with_side(side)
        self.model_ = replace(self._factors(), shift=shift, top=top)
        self.n_features_in_ = data.n_features
        if data.feature_names is not None:
            self.feature_names_in_ = np.array(data.feature_names, object)
        self.items_ = _items_as_rated(data)
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
        """Learn users from their ratings, in any form that `fit` accepts; the items are fixed.

        These ratings replace earlier ratings of the same users.
        """
        fitted = self._factors()
        columns = {name: grouping.get(name) for name in _GROUPING}
        data, _ = _ratings(X, y, columns, shift=fitted.shift)
        data = self._in_levels(self._columns_of(data), fitted.top)
        loss, model, solver = self.build()
        self.model_ = model.fold_in(loss, data, fitted, solver=solver, n_jobs=self.n_jobs)
        return self

    def predict(self, X: Any, *, qid: Any = None) -> F64:
        """Return the score of each row; higher scores rank first.

        Parameters
        ----------
        X : RankingData, frame with columns user and item, or features as in `fit`
        qid : array or str
            The user of each row of features, or the name of its column in a frame; by default the
            column that `rank` uses. Without it, scores do not depend on users.
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
        return np.asarray(data.in_caller_order(fitted.scores_of(data, n_jobs=self.n_jobs)))

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

        Items that the user has rated are excluded unless ``rated`` is true. Items are numbers or
        texts as in the ratings (``items_``), or texts if the model was read from a file. See
        `recommend_all` for ``items`` and ``filter_items``.
        """
        if user is None or (isinstance(user, Iterable) and not isinstance(user, str | bytes)):
            raise UsageError(
                f"recommend takes one user, not {quoted(user)}; recommend_all takes several."
            )
        best = self.recommend_all([user], n, rated=rated, items=items, filter_items=filter_items)
        has_item = best.scores[0] > -np.inf
        return best.items[0, has_item], best.scores[0, has_item]

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

        The result is identical to `recommend` for each user. Scores are computed in blocks of
        users, so that the memory in addition to the result is a few megabytes per thread.

        Parameters
        ----------
        users : sequence, default None
            The users; None means all users of the fit. Other users are scored by the biases of the
            items until `fold_in` learns them. Ids must have the same type as in `fit`.
        n : int, default 10
            Number of items.
        rated : bool, default False
            Include items that a user has rated.
        items : sequence, default None
            Items to choose from; None means all.
        filter_items : sequence, default None
            Items to exclude for all users. Items that the ranker does not know are ignored.

        Returns
        -------
        Recommendations
            ``users``, and ``items`` and ``scores`` with a row for each user and ``n`` columns, or
            fewer if there are fewer items to choose from. If a user has fewer items, the row ends
            with scores -inf and items None, or -1 if items are whole numbers.

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
        excluded = None if rated else (fitted.rated_begin, fitted.rated)
        best, scores = best_items(
            rows, int(n), fitted.parts, columns=columns, rated=excluded, n_jobs=self.n_jobs
        )
        ids = getattr(self, "items_", np.array([*self._column_of_item()], object))
        if ids.dtype.kind == "u" and int(ids.max(initial=0)) <= np.iinfo(np.int64).max:
            ids = ids.astype(np.int64)  # which has a -1
        is_whole = ids.dtype.kind == "i"
        best_ids: AnyArray = (ids if is_whole else ids.astype(object))[best]
        best_ids[best < 0] = -1 if is_whole else None
        return Recommendations(names, best_ids, scores)

    def _column_of_item(self) -> dict[str, int]:
        """Return the column of each item by its name."""
        names = getattr(self, "feature_names_in_", range(self._factors().n_features))
        return {str(name): column for column, name in enumerate(names)}

    def _columns_among(self, items: Any, filter_items: Any) -> I64 | None:
        """Return the columns of the items to choose from, ascending; None for all."""
        if items is None and filter_items is None:
            return None
        column_of_item = self._column_of_item()
        is_choice = np.full(len(column_of_item), items is None)
        for item in () if items is None else _as_ids("items", items).tolist():
            if str(item) not in column_of_item:
                raise DataError(
                    f"item {brief(item)} is not among the items of the ranker; leave it out of "
                    "items."
                )
            is_choice[column_of_item[str(item)]] = True
        for item in () if filter_items is None else _as_ids("filter_items", filter_items).tolist():
            is_choice[column_of_item.get(str(item), [])] = False
        return np.flatnonzero(is_choice)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags

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
        """Return the data in the columns of the fitted model; unknown items have no column."""
        names = getattr(self, "feature_names_in_", None)
        if _differ(data.feature_names, names):
            return _with_columns(data, names)
        return replace(data, X=features_like(self, data))

    def _pairs(self, frame: Any) -> RankingData:
        """Return the documents of a frame of users and items; unknown items have no column."""
        column, column_of_item = columns_of_frame(frame), self._column_of_item()
        users, items = np.asarray(column("user")), np.asarray(column("item"))
        columns = np.array([column_of_item.get(str(i), -1) for i in items.tolist()], np.int64)
        rows = np.flatnonzero(columns >= 0)
        shape = len(items), len(column_of_item)
        X = sparse.csr_array((np.ones(len(rows)), (rows, columns[rows])), shape)
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


def _as_ids(parameter: str, names: Any) -> AnyArray:
    """Return names as an array, of objects if their types differ."""
    if isinstance(names, np.ndarray) and names.ndim == 1 and names.dtype != object:
        return names
    is_scalar = isinstance(names, str | bytes) or getattr(names, "ndim", 1) != 1
    if is_scalar or not isinstance(names, Iterable) or not all(map(_is_id, names)):
        raise UsageError(f"{parameter} must be a list of names, not {quoted(names)}.")
    names = list(names)
    return np.array(names, None if len({*map(type, names)}) == 1 else object)


def _is_id(name: Any) -> bool:
    return isinstance(name, Hashable) and not isinstance(name, tuple)


_GROUPING = ("qid", "group_sizes", "sample_weight", "query_weight")


def _ratings(
    X: Any, y: Any, grouping: dict[str, Any], shift: float = np.nan
) -> tuple[RankingData, float]:
    """Return ratings and the number subtracted from them: the lowest one or a lower ``shift``."""
    if isinstance(X, RankingData) or y is not None:
        return ranking_data(X, y, **grouping), np.nan
    read: Callable[..., RankingData]
    if sparse.issparse(X):
        matrix: Any = X
        values, read = matrix.tocsr().data, ratings_of_matrix
    elif frame_columns(X) is not None:
        values = checked_numbers(columns_of_frame(X)("rating"), "rating", "rating")
        read = ratings_of_frame
    else:
        raise UsageError(
            "give ratings as RankingData, as a frame with columns user, item and rating, or as a "
            "sparse matrix of users x items; a matrix of features requires y to be passed, but the "
            "target y is None."
        )
    if not len(values):
        raise DataError("there are no ratings.")
    shift = float(np.fmin(shift, values.min()))
    return read(X, shift=shift), shift


def _valid_data(eval_set: Any, data: RankingData) -> RankingData:
    """Return the validation data in the columns of the training data."""
    if isinstance(eval_set, RankingData) and _differ(eval_set.feature_names, data.feature_names):
        eval_set = _with_columns(eval_set, data.feature_names)
    return valid_data(eval_set, data)


def _names_items(X: Any) -> bool:
    names = None if isinstance(X, RankingData) else frame_columns(X)
    return names is not None and {"user", "item"} <= set(names)


def _differ(names: Any, other_names: Any) -> bool:
    return names is not None and other_names is not None and [*names] != [*other_names]


def _with_columns(data: RankingData, names: Any) -> RankingData:
    """Return the data with the columns ``names``; other columns are dropped, new ones empty."""
    assert data.feature_names is not None
    column = {name: number for number, name in enumerate(names)}
    target = np.array([column.get(name, -1) for name in data.feature_names], np.int64)
    entries = sparse.coo_array(sparse.csr_array(data.X))
    rows, columns = entries.row, target[entries.col]
    is_named = columns >= 0
    X = sparse.csr_array(
        (entries.data[is_named], (rows[is_named], columns[is_named])),
        shape=(data.n_documents, len(column)),
    )
    return replace(data, X=X, feature_names=tuple(names))


def _items_as_rated(data: RankingData) -> AnyArray:
    """Return the item of each column with the type that it has in the ratings, if known."""
    if data.feature_names is None:
        return np.arange(data.n_features)
    names = np.array(data.feature_names, object)
    if data.doc_id is None:
        return names
    ids = set(data.doc_id.tolist())
    id_of_name = {str(item): item for item in ids}
    if not id_of_name.keys() <= set(data.feature_names) or all(isinstance(i, str) for i in ids):
        return names
    is_whole = data.doc_id.dtype.kind in "iu"  # then items without ratings are whole numbers, too
    numbers = [name.lstrip("-").isdecimal() for name in names]
    items = [
        id_of_name.get(name, int(name) if is_whole and is_number else name)
        for name, is_number in zip(names, numbers, strict=True)
    ]
    return np.array(items, data.doc_id.dtype if is_whole and all(numbers) else object)


def _standardised(features: Any, data: RankingData) -> F64:
    side = np.asarray(features, np.float64)
    if side.ndim != 2 or len(side) != data.n_features or not np.isfinite(side).all():
        raise DataError(
            f"item_features must be finite numbers, a row for each of the {data.n_features} items "
            f"(columns of X); they have shape {side.shape}."
        )
    deviation = side.std(axis=0)
    return np.asarray((side - side.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0))


def _with_side(data: RankingData, side: F64) -> RankingData:
    """Return the data with the features of each document's item in further columns."""
    X = sparse.csr_array(data.X)
    wide = sparse.csr_array(sparse.hstack([X, sparse.csr_array(X @ side)]))
    return replace(data, X=wide, feature_names=None)
