"""Ratings of items by users: each user is a query, and each rated item a document.

Grades are the ratings minus the lowest rating, so that they start at 0: stars from 1 to 5 become
0 to 4, Jester's -10 to 10 become 0 to 20. ``shift`` is the number to subtract instead of the lowest
rating: 0 keeps the ratings, and a common ``shift`` gives several data sets the same grades.

The features of a document identify its item: a sparse matrix with a column for each item and a
single 1 in each row. ``feature_names`` and ``doc_id`` are the items. ``items=[...]`` sets the
columns, for files that must have the same; by default they are the sorted items of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.types import I64, AnyArray
from rankwright.data.frames import checked_ids, checked_numbers, columns_of_frame
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError

# --- API -------------------------------------------------------------------------------------


def ratings_of_triples(
    users: Any,
    items_rated: Any,
    ratings: Any,
    *,
    shift: float | None = None,
    items: Sequence[Any] | None = None,
) -> RankingData:
    """Return ranking data of ratings in three arrays of users, items and ratings."""
    users, rated = np.asarray(users), np.asarray(items_rated)
    values = np.asarray(ratings, np.float64)
    all_items, column = _columns(rated, items)
    _refuse_repeated(users, rated, column)
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"rating {row} is {values[row]}; ratings must be finite.")
    lowest = float(values.min(initial=np.inf))
    offset = lowest if shift is None else _as_shift(shift)
    if offset > lowest:
        raise DataError(f"the rating {lowest} is below shift={offset}; grades start at 0.")
    entries, ends = np.ones(len(values), np.float32), np.arange(len(values) + 1)
    X = sparse.csr_array((entries, column, ends), shape=(len(values), len(all_items)))
    names = [str(item) for item in all_items.tolist()]
    return RankingData.from_arrays(X, values - offset, qid=users, doc_id=rated, feature_names=names)


def ratings_of_frame(
    frame: Any,
    *,
    user: str = "user",
    item: str = "item",
    rating: str = "rating",
    shift: float | None = None,
    items: Sequence[Any] | None = None,
) -> RankingData:
    """Return ranking data of a pandas, polars or Arrow frame with a row for each rating."""
    column = columns_of_frame(frame)
    return ratings_of_triples(
        checked_ids(column(user), user, "user"),
        checked_ids(column(item), item, "item"),
        checked_numbers(column(rating), rating, "rating"),
        shift=shift,
        items=items,
    )


def ratings_of_matrix(
    matrix: Any,
    *,
    users: Sequence[Any] | None = None,
    items: Sequence[Any] | None = None,
    shift: float | None = None,
) -> RankingData:
    """Return ranking data of a SciPy sparse matrix of users x items.

    Each stored entry is a rating, including stored zeros. ``users`` and ``items`` are the names of
    rows and columns, by default their numbers from 0.
    """
    stored = sparse.coo_array(sparse.csr_array(matrix))
    row, column = (np.asarray(index) for index in stored.coords)
    row_names = np.arange(stored.shape[0]) if users is None else np.asarray(users)
    column_names = np.arange(stored.shape[1]) if items is None else np.asarray(items)
    if (len(row_names), len(column_names)) != stored.shape:
        raise DataError(
            f"{len(row_names)} users and {len(column_names)} items are named for a matrix of "
            f"{stored.shape[0]} x {stored.shape[1]}."
        )
    return ratings_of_triples(
        row_names[row], column_names[column], stored.data, shift=shift, items=column_names.tolist()
    )


# --- columns ---------------------------------------------------------------------------------


def _columns(rated: AnyArray, items: Sequence[Any] | None) -> tuple[AnyArray, I64]:
    """Return the items in the order of their columns, and the column of each rating."""
    if items is None:
        sorted_items, column = np.unique(rated, return_inverse=True)
        return sorted_items, column.astype(np.int64)
    all_items = np.asarray(items)
    column_of_item = {item: number for number, item in enumerate(all_items.tolist())}
    try:
        return all_items, np.array([column_of_item[item] for item in rated.tolist()], np.int64)
    except KeyError as error:
        raise DataError(f"item {error.args[0]!r} is not among the given items.") from None


def _as_shift(shift: Any) -> float:
    with suppress(TypeError, ValueError):
        if np.isfinite(float(shift)):
            return float(shift)
    raise UsageError(f"shift must be a number, not {shift!r}.")


def _refuse_repeated(users: AnyArray, rated: AnyArray, column: I64) -> None:
    _, user = np.unique(users, return_inverse=True)
    pair = user.astype(np.int64) * (int(column.max(initial=0)) + 1) + column
    order = np.argsort(pair, kind="stable")
    repeated = np.flatnonzero(np.diff(pair[order]) == 0)
    if len(repeated):
        row = int(order[repeated + 1].min())
        raise DataError(
            f"user {users[row]} rates item {rated[row]} twice (rating {row}, counted from 0); "
            "keep one."
        )
