"""Ratings of items by users: each user is a query, each item a document that the user rated.

Grades are the ratings minus the lowest rating, so that they start at 0: stars from 1 to 5 become
0 to 4, Jester's -10 to 10 become 0 to 20. ``shift=0`` keeps ratings as they are, any other number
is taken off instead of the lowest; give it if several data sets must have the same grades.

Features say which item a document is: a sparse matrix with a column per item and a single 1 in
each row; ``feature_names`` and ``doc_id`` are the items. ``items=[...]`` fixes the columns, which
several files must share; by default they are the items of the file, sorted.
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
    """Return ranking data of ratings, given one by one in three arrays; see the module's text."""
    users, rated = np.asarray(users), np.asarray(items_rated)
    values = np.asarray(ratings, np.float64)
    known, column = _columns(rated, items)
    _refuse_repeated(users, rated, column)
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"rating {row} is {values[row]}; ratings must be finite.")
    lowest = float(values.min(initial=np.inf))
    taken = lowest if shift is None else _as_shift(shift)
    if taken > lowest:
        raise DataError(f"the rating {lowest} is below shift={taken}; grades start at 0.")
    ones, ends = np.ones(len(values), np.float32), np.arange(len(values) + 1)
    X = sparse.csr_array((ones, column, ends), shape=(len(values), len(known)))
    names = [str(item) for item in known.tolist()]
    return RankingData.from_arrays(X, values - taken, qid=users, doc_id=rated, feature_names=names)


def ratings_of_frame(
    frame: Any,
    *,
    user: str = "user",
    item: str = "item",
    rating: str = "rating",
    shift: float | None = None,
    items: Sequence[Any] | None = None,
) -> RankingData:
    """Return ranking data of a pandas, polars or Arrow frame with a row per rating."""
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

    Every stored entry is a rating, a stored zero too; ``users`` and ``items`` name rows and
    columns, which are otherwise numbered from 0.
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
        known, column = np.unique(rated, return_inverse=True)
        return known, column.astype(np.int64)
    known = np.asarray(items)
    place = {item: number for number, item in enumerate(known.tolist())}
    try:
        return known, np.array([place[item] for item in rated.tolist()], np.int64)
    except KeyError as unknown:
        raise DataError(f"item {unknown.args[0]!r} is not among the given items.") from None


def _as_shift(shift: Any) -> float:
    with suppress(TypeError, ValueError):
        if np.isfinite(float(shift)):
            return float(shift)
    raise UsageError(f"shift must be a number, not {shift!r}.")


def _refuse_repeated(users: AnyArray, rated: AnyArray, column: I64) -> None:
    _, user = np.unique(users, return_inverse=True)
    pair = user.astype(np.int64) * (int(column.max(initial=0)) + 1) + column
    order = np.argsort(pair, kind="stable")
    twice = np.flatnonzero(pair[order][1:] == pair[order][:-1])
    if len(twice):
        row = int(order[twice + 1].min())
        raise DataError(
            f"user {users[row]} rates item {rated[row]} twice (rating {row}, counted from 0); "
            "keep one."
        )
