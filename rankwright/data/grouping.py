"""From the query of each row, or the sizes of queries, to boundaries; and weights that fit them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from rankwright.core.dtypes import as_float_vector
from rankwright.core.types import F64, I64, AnyArray
from rankwright.errors import DataError

_WHOLE = 2.0**63  # from here on an id is no int64


def group_rows(qid: AnyArray) -> tuple[I64, AnyArray, I64 | None]:
    """Return query boundaries, ids in order of first appearance, and the rows in that order.

    The last is None where equal ids are already contiguous.
    """
    qid = _clean_ids(qid)
    starts = np.concatenate(([0], np.flatnonzero(qid[1:] != qid[:-1]) + 1))
    runs = qid[starts]
    number: dict[Any, int] = {}
    run_query = np.array([number.setdefault(value, len(number)) for value in runs.tolist()])
    ids = runs[np.unique(run_query, return_index=True)[1]]
    if len(number) == len(runs):
        return np.concatenate((starts, [len(qid)])).astype(np.int64), ids, None
    query = np.repeat(run_query, np.diff(np.concatenate((starts, [len(qid)]))))
    row = np.argsort(query, kind="stable").astype(np.int64)
    indptr = np.concatenate(([0], np.cumsum(np.bincount(query)))).astype(np.int64)
    return indptr, ids, row


def _clean_ids(qid: AnyArray) -> AnyArray:
    """Return ids that can be compared and counted, none of them missing."""
    if qid.dtype.kind == "O":
        missing = np.array([_is_missing(value) for value in qid.tolist()], bool)
    else:
        missing = np.isnan(qid) if qid.dtype.kind in "fmM" else np.zeros(len(qid), bool)
    if missing.any():
        raise DataError(f"the query id is missing at row {int(np.flatnonzero(missing)[0])}.")
    if qid.dtype.kind == "f" and (np.abs(qid) < _WHOLE).all():
        whole = qid.astype(np.int64)
        return whole if (whole == qid).all() else qid
    if qid.dtype.kind == "O":
        if all(isinstance(value, str) for value in qid.tolist()):
            return qid.astype(str)
        for row, value in enumerate(qid.tolist()):
            if not isinstance(value, Hashable):
                raise DataError(
                    f"the query id at row {row} is {value!r}; an id is a text, a number or a date."
                )
    return qid


def _is_missing(value: Any) -> bool:
    """Whether this is None, NaN, or pandas' NA or NaT, which are not even themselves."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA is ambiguous; so is an array
        return not isinstance(value, np.ndarray)


def refuse_sizes(qid: Any, n: int) -> None:
    """Refuse the sizes of queries where the id of each row is expected, as LightGBM's ``group``."""
    sizes = np.asarray(qid)
    if sizes.ndim == 1 and len(sizes) != n and sizes.dtype.kind in "iu" and sizes.sum() == n:
        raise DataError(
            f"qid has {len(sizes)} values for {n} rows and they add up to {n}: sizes of queries "
            "are given as group_sizes=..., qid takes the query id of each row."
        )


def checked_sizes(group_sizes: Any) -> I64:
    """Return the sizes of queries as whole numbers."""
    sizes = np.asarray(group_sizes)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise DataError("group_sizes must be whole numbers, 0 or more, one per query.")
    return sizes.astype(np.int64)


def boundaries_of_sizes(group_sizes: Any, n: int) -> tuple[I64, AnyArray, None]:
    """Return what `group_rows` does, of the sizes of queries whose rows are contiguous."""
    sizes = checked_sizes(group_sizes)
    if sizes.sum() != n:
        raise DataError(
            f"group_sizes add up to {int(sizes.sum())}, but there are {n} rows; "
            "give the number of rows of each query, or the id of each row as qid=..."
        )
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64), np.arange(len(sizes)), None


def checked_weights(values: Any, name: str, length: int) -> F64:
    """Return weights that are finite, 0 or more, and not all 0."""
    weights = as_float_vector(values, name, length)
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise DataError(f"{name} must be finite and 0 or more; number {at} is {weights[at]}.")
    if not weights.any():
        raise DataError(f"every {name} is zero, so nothing would count.")
    return weights


def query_weights(values: Any, n: int, indptr: I64, row: I64 | None) -> F64:
    """Return a weight per query, of as many, or of one per row that is the same in a query."""
    n_queries = len(indptr) - 1
    if len(np.asarray(values)) == n_queries:
        return checked_weights(values, "query_weight", n_queries)
    if len(np.asarray(values)) != n:
        raise DataError(
            f"query_weight has {len(np.asarray(values))} values; give one for each of the "
            f"{n_queries} queries, or for each of the {n} rows."
        )
    per_row = checked_weights(values, "query_weight", n)
    if row is not None:
        per_row = per_row[row]
    filled = indptr[:-1] < indptr[1:]
    weight = np.ones(n_queries)
    weight[filled] = per_row[indptr[:-1][filled]]
    if (per_row != np.repeat(weight, np.diff(indptr))).any():
        raise DataError("query_weight given per row must be the same on all rows of a query.")
    return weight
