"""What `evaluate` accepts: grades and scores in arrays, columns of a frame, or RankingData."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from rankwright.core.types import F64, AnyArray
from rankwright.data.frames import (
    USUAL_NAMES,
    Columns,
    columns_of_frame,
    frame_columns,
    refuse_other_index,
)
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.metrics.base import checked_scores

_USE = "evaluate(y, scores, metrics, qid=qid)"


def evaluated_data(
    data: Any, scores: Any, y: Any, columns: Mapping[str, Any]
) -> tuple[RankingData, F64]:
    """Return grades as ranking data, and the scores in the order of its rows.

    Parameters
    ----------
    data, scores, y
        As for `rankwright.evaluate`.
    columns
        Its other arguments on rows and queries, None where not given.
    """
    _refuse_ranker(data, scores)
    if isinstance(data, tuple) and any(map(_has_parts, data)):
        data, columns = _grades_of_tuple(data, columns)
    if isinstance(data, RankingData):
        for name, given in {"y": y, **columns}.items():
            if given is not None:
                raise UsageError(f"RankingData has its own {name}; leave {name}=... out.")
        return data, checked_scores(scores, data)
    names = frame_columns(data)
    if names is not None:
        column = columns_of_frame(data)
        if y is None:
            raise UsageError(_grades_of_frame(names))
        refuse_other_index(data, "frame", scores=scores, y=y, **columns)
        grades, values = _column(column, y, "y"), _column(column, scores, "scores")
        taken = {name: _column(column, given, name) for name, given in columns.items()}
    else:
        if y is not None:
            raise UsageError(
                f"grades are given twice, as the first argument and as y=...; write {_USE}."
            )
        for name, given in {"scores": scores, **columns}.items():
            if isinstance(given, str):
                raise UsageError(
                    f"{name}={given!r} names a column, but the first argument is not a frame; give "
                    f"{name} as an array with a value for each row."
                )
        refuse_other_index(data, "y", scores=scores, **columns)
        grades, values, taken = _grades(data), scores, dict(columns)
    return _grouped(grades, values, taken)


def _grouped(y: AnyArray, scores: Any, columns: dict[str, Any]) -> tuple[RankingData, F64]:
    n = len(y)
    if n == 0:
        raise DataError("there is no row to evaluate.")
    if columns["qid"] is None and columns["group_sizes"] is None:
        warnings.warn(
            "no qid was given: all rows are taken as one query; pass qid=... or group_sizes=...",
            stacklevel=4,
        )
        columns["group_sizes"] = [n]
    data = RankingData.from_arrays(np.zeros((n, 1), np.float32), y, **columns)
    return data, checked_scores(scores, data, caller_order=True)


def _refuse_ranker(data: Any, scores: Any) -> None:
    """Refuse a ranker in the place of grades or scores."""
    for place, given in (("first argument", data), ("scores argument", scores)):
        if callable(getattr(given, "predict", None)):
            raise UsageError(
                f"the {place} is a {type(given).__name__}; give what it predicts: evaluate(y, "
                "ranker.predict(X), metrics, qid=qid)."
            )


def _has_parts(part: Any) -> bool:
    """Whether a part of a tuple has parts itself, so that the tuple is not one of grades."""
    return not isinstance(part, str | bytes) and hasattr(part, "__len__")


def _grades_of_tuple(
    given: tuple[Any, ...], columns: Mapping[str, Any]
) -> tuple[Any, Mapping[str, Any]]:
    """Return the grades of (X, y, qid), as ``eval_set`` has it, and the columns with its qid."""
    if len(given) != 3:
        raise UsageError(
            f"the first argument is a tuple of {len(given)} parts; give the grades alone, with the "
            f"query of each row as qid, {_USE}, or (X, y, qid)."
        )
    for name in ("qid", "group_sizes"):
        if columns[name] is not None:
            raise UsageError(f"the first argument (X, y, qid) has the queries; omit {name}=....")
    _, y, qid = given
    return _grades(y), {**columns, "qid": qid}


def _grades(y: Any) -> AnyArray:
    """Return grades as a one-dimensional array, or say what they are instead."""
    if isinstance(y, str | PathLike):
        raise UsageError(f"the first argument is a text ({y}); read a file with rankwright.load.")
    if y is None:
        raise UsageError(f"the grades are None; write {_USE}.")
    try:
        array = np.asarray(y)
    except ValueError:  # lists of different lengths
        raise DataError(f"the grades are lists of different lengths; write {_USE}.") from None
    if array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    if array.ndim == 0:
        raise UsageError(f"the grades are {type(y).__name__}, where an array is expected: {_USE}.")
    if array.ndim != 1:
        raise DataError(
            f"the grades have the shape {array.shape}, where one for each row is expected; "
            f"put all queries end to end and write {_USE}."
        )
    return array


def _column(column: Columns, given: Any, name: str) -> Any:
    """Return the column of that name, or the array that was given instead."""
    if not isinstance(given, str):
        return given if name != "y" else _grades(given)
    return column(given)


def _grades_of_frame(names: list[str]) -> str:
    likely = [name for name in names if name.strip().lower() in USUAL_NAMES["label"]]
    example = likely[0] if likely else "grade"
    return (
        f"the column of the grades is not named; write evaluate(frame, 'score', metrics, "
        f"y={example!r}, qid='query')."
    )
