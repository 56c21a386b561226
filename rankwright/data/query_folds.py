"""Cross-validation by whole queries, as a splitter of scikit-learn's tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import BaseCrossValidator, KFold

from rankwright.core.dtypes import as_vector
from rankwright.core.parameters import seed_of
from rankwright.core.rng import stream
from rankwright.core.types import I64
from rankwright.data.content import content_order
from rankwright.data.ranking_data import RankingData, group_rows, refuse_sizes
from rankwright.data.split import order_of_ids
from rankwright.errors import DataError, UsageError, quoted


class QueryFolds(BaseCrossValidator):  # type: ignore[misc]
    """Folds of whole queries, for ``cross_val_score``, ``GridSearchCV`` and the like.

    Every query is in the test part of exactly one fold, and the numbers of queries of the parts
    differ by at most one. The folds depend only on the query ids and ``random_state``, not on the
    order of the rows. With an integer ``random_state`` they are the folds of scikit-learn's
    ``GroupKFold(n_splits, shuffle=True, random_state=random_state)``, which takes the ids only as
    ``groups``.

    With scikit-learn's metadata routing one ``qid`` serves the splitter, ``fit`` and ``score``::

        sklearn.set_config(enable_metadata_routing=True)
        cross_val_score(ranker, X, y, params={"qid": qid}, cv=QueryFolds(5))
        GridSearchCV(ranker, grid, cv=QueryFolds(5)).fit(X, y, qid=qid)

    Without routing, scikit-learn passes the query ids to the splitter as ``groups=qid``, and none
    to ``score``, which is enough for estimators that need no query ids.

    Parameters
    ----------
    n_splits : int
        Number of folds, 2 or more.
    shuffle : bool
        Assign the queries to the folds at random. Otherwise they are in the order of their ids.
    random_state : int, numpy Generator or RandomState, or None
        Seed of the shuffle. None gives different folds at each call.

    Examples
    --------
    >>> import numpy as np
    >>> import rankwright as rw
    >>> qid = np.array([1, 1, 2, 2, 3, 3])
    >>> folds = rw.QueryFolds(3, shuffle=False)
    >>> [np.unique(qid[test]).tolist() for _, test in folds.split(qid, groups=qid)]
    [[1], [2], [3]]
    """

    __metadata_request__split: ClassVar[dict[str, bool]] = {"qid": True, "groups": True}

    def __init__(self, n_splits: int = 5, *, shuffle: bool = True, random_state: Any = 0) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, *_: Any, **__: Any) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        groups: Any = None,
        *,
        qid: Any = None,
    ) -> Iterator[tuple[I64, I64]]:
        """Return an iterator over the rows of the training and the test part of each fold.

        Parameters
        ----------
        X : array-like with a row for each document, or None
        y
            Not used.
        groups, qid : array-like (n,)
            Query id of each row. ``groups`` is scikit-learn's name for them.
        """
        rank, n_queries = self._ranks_of_ids(X, groups if qid is None else qid)
        seed = seed_of(self.random_state) % 2**32 if self.shuffle else None
        folds = KFold(self.n_splits, shuffle=self.shuffle, random_state=seed)
        tested = (np.isin(rank, queries) for _, queries in folds.split(np.empty(n_queries)))
        return ((np.flatnonzero(~test), np.flatnonzero(test)) for test in tested)

    def _ranks_of_ids(self, X: Any, qid: Any) -> tuple[I64, int]:
        """Return the rank of each row's query id among the distinct ids, and their number."""
        if isinstance(self.n_splits, bool) or not isinstance(self.n_splits, int | np.integer):
            raise UsageError(f"n_splits must be a whole number, not {self.n_splits!r}.")
        if self.n_splits < 2:
            raise UsageError(f"n_splits must be 2 or more, not {self.n_splits}.")
        if qid is None:
            raise UsageError(
                "QueryFolds needs the query id of each row: pass params={'qid': qid} with "
                "sklearn.set_config(enable_metadata_routing=True), or groups=qid without."
            )
        n = len(qid) if X is None else int(X.shape[0]) if hasattr(X, "shape") else len(X)
        refuse_sizes(qid, n)
        indptr, ids, row = group_rows(as_vector(qid, "qid", n))
        if len(ids) < self.n_splits:
            raise DataError(f"{len(ids)} queries cannot be cut into {self.n_splits} folds.")
        rank, rank_of_row = np.empty(len(ids), np.int64), np.empty(n, np.int64)
        rank[order_of_ids(ids)] = np.arange(len(ids))
        rank_of_row[slice(None) if row is None else row] = np.repeat(rank, np.diff(indptr))
        return rank_of_row, len(ids)


# --- folds of ranking data ---------------------------------------------------------------------


def folds_of_queries(
    data: RankingData, cv: Any, random_state: Any, *, name: str = "cv"
) -> Iterator[tuple[I64, I64]]:
    """Yield the numbers of the queries of the training and the test part of each fold.

    ``cv`` is the number of folds of `QueryFolds`, a splitter of scikit-learn, or an iterable of
    (train, test) rows in the caller's order. ``name`` is its name in error messages.
    """
    number = data.in_caller_order(data.query_of_row())
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        cv = QueryFolds(int(cv), random_state=random_state)
    if hasattr(cv, "split") and not isinstance(cv, str):
        rows = np.empty((data.n_documents, 0))
        parts: Iterable[Any] = cv.split(rows, data.in_caller_order(data.y), data.qid[number])
    elif isinstance(cv, Iterable) and not isinstance(cv, str):
        parts = cv
    else:
        raise UsageError(
            f"{name} is the number of folds, a splitter such as rankwright.QueryFolds(5), or an "
            f"iterable of (train, test) rows, not {cv!r}."
        )
    n_folds = 0
    for part in parts:
        n_folds += 1
        try:
            train, test = part
        except (TypeError, ValueError):
            raise UsageError(
                f"each fold of {name} is (train, test), two arrays of row numbers."
            ) from None
        queries = _whole_queries(data, number[np.asarray(train)])
        yield queries, _whole_queries(data, number[np.asarray(test)])
    if not n_folds:
        raise UsageError(f"{name} has no folds.")


def _whole_queries(data: RankingData, number: I64) -> I64:
    """Return the queries of some rows; raise an error unless these are whole queries."""
    counts = np.bincount(number, minlength=data.n_queries)
    cut = np.flatnonzero((counts != 0) & (counts != data.sizes))
    if len(cut):
        raise UsageError(
            f"these folds cut {len(cut)} of {data.n_queries} queries, such as "
            f"{quoted(data.qid[cut[0]])}: documents of one query in the training and the test part "
            "overrate a ranker; pass cv=5 or a rankwright.QueryFolds."
        )
    return np.flatnonzero(counts)


def deal_queries(data: RankingData, n_folds: int, *, seed: int = 0) -> list[I64]:
    """Return the queries of each of ``n_folds`` folds, ascending.

    The folds depend only on the content of the queries, not on their ids or the order of rows.
    """
    _, order = content_order(data)
    shuffled = order[stream(seed, "deal queries").permutation(len(order))]
    return [np.sort(queries) for queries in np.array_split(shuffled, n_folds)]
