"""Inputs of `fit`, `predict`, `rank` and `score`: arrays, sparse matrices, frames, RankingData.

`ranking_data` converts documents with grades, `documents_of` documents without grades, and
`features_like` features only. After a fit, a `Layout` has the columns that the ranker needs.
`_table` reads the features of a frame; if grades and query ids are columns of the frame too,
`rankwright.data.frames` reads all columns.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from os import PathLike
from typing import Any

import numpy as np
from sklearn import get_config

from rankwright.core.dtypes import as_feature_matrix, naming_features
from rankwright.core.types import FloatMatrix
from rankwright.data.frames import (
    USUAL_NAMES,
    AllCategories,
    arrays_of_columns,
    categories_of,
    checked_ids,
    choose_columns,
    columns_of_frame,
    default_names,
    encoded_features,
    frame_categories,
    frame_columns,
    listed,
    match_columns,
    refuse_other_index,
    refuse_roles_as_features,
)
from rankwright.data.ranking_data import RankingData, refuse_second_columns
from rankwright.errors import DataError, UsageError, brief, quoted
from rankwright.registry import unknown


@dataclass(frozen=True)
class Layout:
    """Names and categories of the features that a ranker was fitted to; None if it has none."""

    names: tuple[str, ...] | list[str] | None
    categories: AllCategories | None

    @classmethod
    def of(cls, ranker: Any) -> Layout:
        """Return the layout of a fitted ranker."""
        names = getattr(ranker, "feature_names_in_", None)
        text = None if names is None else [str(name) for name in names]
        return cls(text, getattr(ranker, "categories_", None))

    def other_columns(self, columns: Sequence[Any]) -> list[str]:
        """Return the columns of a frame that are not features; none if the features are unnamed."""
        names = {*(self.names or map(str, columns))}
        return [name for name in map(str, columns) if name not in names]


def ranking_data(
    X: Any,
    y: Any = None,
    qid: Any = None,
    group_sizes: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    *,
    features: Any = None,
    drop: Any = (),
    like: Layout | None = None,
    where: str = "X",
) -> RankingData:
    """Return the caller's documents with grades; without ``qid`` all rows are one query.

    Parameters
    ----------
    X, y, qid, group_sizes, sample_weight, query_weight, features, drop
        As for `Ranker.fit`.
    like : Layout, optional
        Features that a frame must have; its other columns are not features.
    where : str
        The frame, for messages.
    """
    columns = {"y": y, "qid": qid, "group_sizes": group_sizes}
    columns |= {"sample_weight": sample_weight, "query_weight": query_weight}
    selects = features is not None or bool(listed(drop))
    if isinstance(X, RankingData):
        refuse_second_columns(**columns)
        return _selected(X, features, drop) if selects else X
    names, categories = frame_columns(X), None
    if names is not None and like is not None:
        categories = like.categories
        if like.names is not None:
            _refuse_missing(like.names, names, where)
            features = like.names
    if names is None and selects:
        raise UsageError(
            f"{'drop' if features is None else 'features'}= names columns of a frame, but X is "
            f"{type(X).__name__}, which has no column names; select its columns yourself, as in "
            "X[:, [0, 2]]."
        )
    if isinstance(qid, str) or isinstance(y, str):
        return _data_of_columns(X, names, columns, features, drop, categories)
    if y is None and not isinstance(X, str | PathLike):
        raise DataError(
            "learning requires y to be passed, but the target y is None: "
            "give the grade of each row, or RankingData."
        )
    coded: AllCategories = {}
    if names is not None:
        refuse_other_index(X, "X", y=y, qid=qid)
        names = _chosen(names, features, drop)
        if features is None:
            refuse_roles_as_features(names)
        _refuse_grades_in_features(X, names, y)
        coded = _of_names({**(categories or {}), **frame_categories(X)}, names)
    table = _table(X, names, coded)
    if qid is None and group_sizes is None:
        with naming_features(names):
            columns["group_sizes"] = [as_feature_matrix(table).shape[0]]
        warnings.warn(
            "no qid was given: all rows are taken as one query; pass qid=... or group_sizes=... "
            f"({how_to_route_qid()})",
            stacklevel=3,
        )
    return RankingData.from_arrays(table, **columns, feature_names=names, categories=coded)


def features_like(ranker: Any, X: Any) -> FloatMatrix:
    """Return the features of ``X`` in the columns the ranker was fitted on."""
    ranker._fitted()
    layout = Layout.of(ranker)
    expected, categories = layout.names, layout.categories
    names = X.feature_names if isinstance(X, RankingData) else frame_columns(X)
    if expected is None and names is not None:
        numbered = default_names(ranker.n_features_in_)  # in tables, if features have no names
        expected = list(numbered) if {*names} == {*numbered} else None
    features: FloatMatrix
    if isinstance(X, RankingData):
        refuse_other_feature_ids(X, getattr(ranker, "first_feature_id_", None), "the data")
        features = in_columns(X, expected, "X").in_categories(categories, "X").X
    else:
        if names is not None and expected is not None:
            _refuse_missing(expected, names, "X")
            names = expected
        with naming_features(names):
            features = as_feature_matrix(_table(X, names, categories))
    if features.shape[1] != ranker.n_features_in_:
        raise DataError(
            f"X has {features.shape[1]} features, but {type(ranker).__name__} is expecting "
            f"{ranker.n_features_in_} features as input; give the columns it was fitted on, "
            "in that order."
        )
    return features


def documents_of(ranker: Any, X: Any, *, qid: Any = None, group: Any = None) -> RankingData:
    """Return documents without grades in the columns that the ranker was fitted to.

    ``qid`` and ``group`` may name columns of a frame. Query ids are found by `query_column`,
    document ids under their usual names.
    """
    features, layout = features_like(ranker, X), Layout.of(ranker)
    names = frame_columns(X)
    roles: dict[str, Any] = {"qid": qid, "group": group}
    if names is not None:
        if qid is None:
            roles["qid"] = query_column(ranker, X)
            if roles["qid"] is None and getattr(ranker, "qid_column_", None) is not None:
                raise DataError(
                    f"the ranker was fitted with queries from column {quoted(ranker.qid_column_)}, "
                    "which the frame does not have; name its column of query ids with qid=..., or "
                    "pass qid=[0] * len(frame) if all rows are one query."
                )
        if _are_text(names):
            roles |= match_columns(
                layout.other_columns(names), {"doc_id": USUAL_NAMES["doc_id"]}, columns={}
            )
        for role, value in roles.items():
            if isinstance(value, str):
                roles[role] = checked_ids(columns_of_frame(X)(value), value, role)
    if roles["qid"] is None:
        roles["qid"] = np.zeros(features.shape[0], np.int64)
    return RankingData.from_arrays(
        features,
        None,
        feature_names=layout.names,
        categories=layout.categories,
        **roles,
    )


def query_column(ranker: Any, X: Any) -> str | None:
    """Return the column of query ids of a frame: as in the training data, or a usual name."""
    names = frame_columns(X)
    if names is None or not _are_text(names):
        return None
    columns = Layout.of(ranker).other_columns(names)
    training_column: str | None = getattr(ranker, "qid_column_", None)
    if training_column in columns:
        return training_column
    return match_columns(columns, {"qid": USUAL_NAMES["qid"]}, columns={}).get("qid")


def data_of_frame(ranker: Any, X: Any, qid: str | None, where: str) -> RankingData:
    """Return RankingData, or a frame as RankingData; grades are NaN if it has no such column."""
    if isinstance(X, RankingData):
        return X
    names = frame_columns(X)
    if names is None:
        kind = f"a tuple of {len(X)} parts" if isinstance(X, tuple) else type(X).__name__
        raise UsageError(
            f"{where} takes RankingData, or a frame with a column of query ids, not {kind}; "
            "RankingData.from_arrays(X, y, qid=qid) makes RankingData of arrays."
        )
    ranker._fitted()
    layout = Layout.of(ranker)
    others = [name for name in map(str, names) if name not in (layout.names or ())]
    label = match_columns(others, {"label": USUAL_NAMES["label"]}, columns={}).get("label")
    qid = qid or query_column(ranker, X)
    data = ranking_data(X, label or "", qid, like=layout, where="the frame")
    return data if label else without_grades(data)


def without_grades(data: RankingData) -> RankingData:
    """Return the data with unknown grades: NaN."""
    return data._replace(y=np.full(data.n_documents, np.nan))


# --- columns -----------------------------------------------------------------------------------


def _table(X: Any, names: Sequence[Any] | None, categories: AllCategories | None) -> Any:
    """Return the features of X as an array: of a frame the columns ``names``, with codes."""
    if names is None:
        return X
    if categories or frame_categories(X):
        return encoded_features(X, names, categories)
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    place = {str(name): number for number, name in enumerate(frame.columns)}
    table = frame[:, [place[str(name)] for name in names]].to_numpy()
    if table.dtype.kind not in "fiub":
        for name, values in zip(names, table.T, strict=True):
            value = next((v for v in values.tolist() if isinstance(v, str | date)), None)
            if value is not None:
                raise DataError(
                    f"column {quoted(name)} of X holds {brief(value)}, and features must be "
                    'numbers or categories; make it a category for trees with astype("category"), '
                    f"encode it as numbers, or leave the column out with drop=[{quoted(name)}]."
                )
    return table


def _data_of_columns(
    X: Any,
    names: list[str] | None,
    columns: dict[str, Any],
    features: Any,
    drop: Any,
    categories: AllCategories | None,
) -> RankingData:
    """Return the data of a frame whose grades or query ids are a column given by name."""
    y, qid = columns["y"], columns["qid"]
    if names is None:
        role = "qid" if isinstance(qid, str) else "y"
        raise DataError(
            f"{role}={brief(columns[role])} names a column, but X is not a frame; "
            f"give {role} as an array with a value for each row."
        )
    if not all(column is None or isinstance(column, str) for column in (y, qid)):
        raise DataError(
            "y and qid must both be names of columns of the frame, as in fit(frame, 'label', "
            "qid='qid'), or both be arrays."
        )
    if not _are_text(names):
        raise DataError("column names must be text; rename the columns first.")
    weights = {role: columns[role] for role in ("sample_weight", "query_weight")}
    named = {role: column for role, column in weights.items() if isinstance(column, str)}
    arrays = {r: w for r, w in weights.items() if w is not None and r not in named}
    wanted = {**dict.fromkeys(USUAL_NAMES), **named, "label": y, "qid": qid}
    roles, chosen = choose_columns(names, wanted, features=features, drop=drop)
    column = columns_of_frame(X)
    coded = {**_of_names(categories, chosen), **categories_of(column, chosen)}
    return RankingData.from_arrays(**{**arrays_of_columns(column, roles, chosen, coded), **arrays})


def _selected(data: RankingData, features: Any, drop: Any) -> RankingData:
    """Return ranking data with the features that ``features`` and ``drop`` choose."""
    if data.feature_names is None:
        raise UsageError(
            "features= and drop= are names of features, and these features have no names; use "
            "RankingData.from_arrays(..., feature_names=...)."
        )
    return in_columns(data, _chosen(data.feature_names, features, drop), "X")


def in_columns(data: RankingData, names: Sequence[str] | None, where: str) -> RankingData:
    """Return ranking data with the features ``names``; the data if they or its names are None."""
    if names is None or data.feature_names is None or [*names] == [*data.feature_names]:
        return data
    _refuse_missing(names, data.feature_names, where)
    place = {name: number for number, name in enumerate(data.feature_names)}
    columns = [place[name] for name in names]
    # np.take because indexing a dense matrix returns Fortran order
    X = np.take(data.X, columns, axis=1) if isinstance(data.X, np.ndarray) else data.X[:, columns]
    categories = _of_names(data.categories, names) or None
    return replace(data, X=as_feature_matrix(X), feature_names=tuple(names), categories=categories)


def _chosen(names: Sequence[Any], features: Any, drop: Any) -> list[str]:
    """Return the names of the features."""
    text = [str(name) for name in names]
    wanted, dropped = listed(features), listed(drop) or []
    for name in [*(wanted or []), *dropped]:
        if name not in text:
            raise DataError(unknown("column", name, text))
    return [name for name in (text if wanted is None else wanted) if name not in dropped]


def _of_names(categories: AllCategories | None, names: Sequence[str]) -> AllCategories:
    return {name: values for name, values in (categories or {}).items() if name in names}


def _are_text(names: Sequence[Any]) -> bool:
    return all(isinstance(name, str) for name in names)


def refuse_other_feature_ids(data: RankingData, first_id: int | None, where: str) -> None:
    """Raise if LETOR text was read with another numbering of features than the training data."""
    ids = data.feature_ids
    if first_id is not None and ids is not None and ids.is_inferred and ids.first != first_id:
        raise DataError(
            f"{where} was read with feature ids from {ids.first}, the training data with ids from "
            f"{first_id}; read both with the same zero_based=True or zero_based=False."
        )


def _refuse_missing(expected: Sequence[str], names: Sequence[Any], where: str) -> None:
    """Raise if a feature of the fitted ranker is not among the columns ``names``."""
    text = dict.fromkeys(str(name) for name in names)
    for name in map(str, expected):
        if name not in text:
            near = difflib.get_close_matches(name, text, n=1)
            hint = f"; is it '{near[0]}'? Rename it" if near else "; add it, or rename the column"
            raise DataError(
                f"the feature {quoted(name)} of the fitted ranker is missing in {where}{hint}."
            )


def _refuse_grades_in_features(X: Any, names: Sequence[str], y: Any) -> None:
    for name in names:
        if name.lower() in USUAL_NAMES["label"]:
            values, grades = np.asarray(X[name]), np.asarray(y)
            if values.shape == grades.shape and (values == grades).all():
                raise DataError(
                    f"column {quoted(name)} of X holds the grades themselves; leave it out of the "
                    f"features, or pass the frame with y='{name}' and qid='...' as column names."
                )


# --- refusals and warnings --------------------------------------------------------------------


def how_to_route_qid() -> str:
    """Return how query ids reach rankers in scikit-learn's tools, as one sentence."""
    if get_config()["enable_metadata_routing"]:
        switched = ""
    else:
        switched = "sklearn.set_config(enable_metadata_routing=True) first, then "
    return (
        f"in scikit-learn's cross-validation and searches: {switched}cv=rankwright.QueryFolds(5) "
        "and params={'qid': qid} or fit(X, y, qid=qid); or rankwright.cross_validate(ranker, X, y, "
        "qid=qid, cv=5), which needs no setting."
    )
