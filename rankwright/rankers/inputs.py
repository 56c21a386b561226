"""What `fit`, `predict` and `score` accept: arrays, sparse matrices, frames or RankingData."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from os import PathLike
from typing import Any

import numpy as np

from rankwright.core.dtypes import as_feature_matrix
from rankwright.core.memory import taken_columns
from rankwright.core.queries import first_of_runs
from rankwright.core.types import FittedModel, FloatMatrix
from rankwright.data.columns import USUAL_NAMES
from rankwright.data.frames import default_names, frame_columns, refuse_other_index
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError, quoted

_LOOKED_AT = 256  # rows that tell whether a model gives all the same score

_MISNAMED = {
    "group": "the sizes of queries are group_sizes=, the query id of each row is qid=",
    "groups": "the query id of each row is qid=, the sizes of queries are group_sizes=",
    "query_id": "the query id of each row is qid=",
    "eval_group": "valid data is eval_set=(X, y, qid), with the query id of each row",
    "eval_qid": "valid data is eval_set=(X, y, qid), with the query id of each row",
    "valid": "valid data is eval_set=, ranking data or (X, y, qid)",
    "validation_data": "valid data is eval_set=, ranking data or (X, y, qid)",
    "early_stopping_rounds": "early_stopping_rounds= is a parameter of the ranker itself",
    "eval_metric": "metric= is a parameter of the ranker itself",
    "categorical_feature": "categorical_feature= is a parameter of the ranker itself",
    "init_model": "the fitted ranker to go on from is start=",
    "weight": "weights are sample_weight= (a row each) or query_weight= (a query each)",
}


def ranking_data(
    X: Any,
    y: Any = None,
    qid: Any = None,
    group_sizes: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
) -> RankingData:
    """Return the caller's data as RankingData; without ``qid`` all rows are one query."""
    if isinstance(X, RankingData):
        return X
    names = frame_columns(X)
    if isinstance(qid, str) or isinstance(y, str):
        return _by_column_names(X, names, y, qid)
    if isinstance(X, str | PathLike):
        as_feature_matrix(X)  # which says what to do with a path
    if y is None:
        raise DataError(
            "learning requires y to be passed, but the target y is None: "
            "give the grade of each row, or RankingData."
        )
    if names is not None:
        refuse_other_index(X, "X", y=y, qid=qid)
        _refuse_grades_in_features(X, names, y)
    if qid is None and group_sizes is None:
        features = as_feature_matrix(_table(X))
        warnings.warn(
            "no qid was given: all rows are taken as one query; pass qid=... or group_sizes=... "
            "(in cross-validation params={'qid': qid}, in a search fit(X, y, qid=qid)).",
            stacklevel=3,
        )
        group_sizes = [features.shape[0]]
    return RankingData.from_arrays(
        _table(X),
        y,
        qid=qid,
        group_sizes=group_sizes,
        sample_weight=sample_weight,
        query_weight=query_weight,
        feature_names=names,
    )


def eval_sets(
    given: Any,
    data: RankingData,
    read: Callable[[Any, RankingData], RankingData] | None = None,
) -> dict[str, RankingData]:
    """Return the caller's validation sets by name, in the columns of the training data.

    One is called "valid"; several, in a list or tuple, "valid_0", "valid_1", ...; a mapping names
    them. ``read`` makes ranking data of one of them.
    """
    if isinstance(given, Mapping):
        named = {str(name): one for name, one in given.items()}
    elif isinstance(given, list | tuple) and all(
        isinstance(one, RankingData | tuple | list) for one in given
    ):
        names = ["valid"] if len(given) == 1 else [f"valid_{n}" for n in range(len(given))]
        named = dict(zip(names, given, strict=True))
    else:
        named = {"valid": given}
    if not named:
        raise UsageError("eval_set is empty; give a validation set, or leave it out.")
    return {name: (read or valid_data)(one, data) for name, one in named.items()}


def valid_data(eval_set: Any, data: RankingData) -> RankingData:
    """Return the caller's validation set, in the columns of the training data."""
    if isinstance(eval_set, tuple | list):
        if len(eval_set) != 3:
            raise UsageError(
                "a validation set is (X, y, qid), with the query id of each row, or "
                f"RankingData; this one has {len(eval_set)} parts."
            )
        valid = ranking_data(*eval_set)
    elif isinstance(eval_set, RankingData):
        valid = eval_set
    else:
        raise UsageError(
            f"eval_set is (X, y, qid) or RankingData, not {type(eval_set).__name__}; "
            "rankwright.load reads a file as RankingData."
        )
    columns = _columns_by_name(data.feature_names, valid.feature_names, "the valid data")
    if columns is not None:
        features = as_feature_matrix(taken_columns(valid.X, columns))
        valid = replace(valid, X=features, feature_names=data.feature_names)
    if valid.n_features != data.n_features:
        raise DataError(
            f"the valid data has {valid.n_features} features, the training data "
            f"{data.n_features}; give both the same columns in the same order."
        )
    return valid


def features_like(ranker: Any, X: Any) -> FloatMatrix:
    """Return the features of ``X`` in the columns the ranker was fitted on."""
    ranker._fitted()
    names = X.feature_names if isinstance(X, RankingData) else frame_columns(X)
    features = X.X if isinstance(X, RankingData) else None
    known = getattr(ranker, "feature_names_in_", None)
    if known is None and names is not None:
        ordinary = default_names(ranker.n_features_in_)  # which a table of no names is written with
        known = ordinary if set(names) == set(ordinary) else None
    columns = _columns_by_name(known, names, "X")
    if columns is not None:
        if features is None:
            features = as_feature_matrix(_table(X)[:, columns])
        else:
            features = taken_columns(features, columns)
    elif features is None:
        features = as_feature_matrix(_table(X))
    if features.shape[1] != ranker.n_features_in_:
        raise DataError(
            f"X has {features.shape[1]} features, but {type(ranker).__name__} is expecting "
            f"{ranker.n_features_in_} features as input; give the columns it was fitted on, "
            "in that order."
        )
    return features


def refuse_misnamed(arguments: dict[str, Any]) -> None:
    """Refuse arguments that other tools' ``fit`` has, and say what they are called here."""
    for name in arguments:
        hint = _MISNAMED.get(name, "help(Ranker.fit) shows what it takes")
        raise UsageError(f"fit takes no argument '{name}': {hint}.")


def tell_of_equal_grades(data: RankingData) -> None:
    """Warn where no query has two grades: there is no order to learn."""
    if first_of_runs(data.y, data.indptr).sum() == np.count_nonzero(data.sizes):
        warnings.warn(
            "no query has documents of different grades, so there is no order to learn; check "
            "the grades, and that qid tells queries and not documents.",
            stacklevel=3,
        )


def tell_of_equal_scores(model: FittedModel, data: RankingData) -> None:
    """Warn of a model that ranks nothing: the same score for documents that differ."""
    if hasattr(model, "scores_of"):  # a score depends on the query too
        return
    if getattr(model, "is_constant", None) is False:  # known without scoring
        return
    rows = min(_LOOKED_AT, data.n_documents)
    scores = model.scores(data.X[:rows])
    if rows > 1 and (scores == scores[0]).all() and (data.y[:rows] != data.y[0]).any():
        warnings.warn(
            "the fitted model gives all documents the same score: a penalty (l2, l1) is too large, "
            "min_child_samples too high for so few documents, or the features do not vary.",
            stacklevel=3,
        )


# --- frames ------------------------------------------------------------------------------------


def _by_column_names(X: Any, names: list[str] | None, y: Any, qid: Any) -> RankingData:
    if names is None:
        named = "qid" if isinstance(qid, str) else "y"
        raise DataError(
            f"{named}={(qid if named == 'qid' else y)!r} names a column, but X is no frame; "
            f"give {named} as an array with a value for each row."
        )
    if not (isinstance(qid, str) and isinstance(y, str)):
        raise DataError(
            "y and qid must both be names of columns of the frame, as in fit(frame, 'label', "
            "qid='qid'), or both be arrays."
        )
    return RankingData.from_frame(X, qid=qid, label=y)


def _columns_by_name(
    known: Sequence[str] | None, names: Sequence[str] | None, where: str
) -> list[int] | None:
    """Return where the ``known`` features stand among ``names``; None: as they are."""
    if known is None or names is None or list(names) == list(known):
        return None
    place = {name: number for number, name in enumerate(names)}
    absent = [name for name in known if name not in place]
    if absent:
        near = difflib.get_close_matches(str(absent[0]), [str(name) for name in names], n=1)
        hint = f"; is it '{near[0]}'? Rename it" if near else "; add it, or rename what it is"
        raise DataError(
            f"the feature {quoted(absent[0])} of the fitted ranker is missing in {where}{hint}."
        )
    return [place[name] for name in known]


def _refuse_grades_in_features(X: Any, names: list[str], y: Any) -> None:
    for name in names:
        if str(name).lower() in USUAL_NAMES["label"]:
            values, grades = np.asarray(X[name]), np.asarray(y)
            if values.shape == grades.shape and (values == grades).all():
                raise DataError(
                    f"column {quoted(name)} of X holds the grades themselves; leave it out of the "
                    f"features, or pass the frame with y='{name}' and qid='...' as column names."
                )


def _table(X: Any) -> Any:
    names = frame_columns(X)
    if names is None:
        return X
    import narwhals as nw

    table = nw.from_native(X, eager_only=True).to_numpy()
    if table.dtype.kind not in "fiub":
        for name, values in zip(names, table.T, strict=True):
            value = next((v for v in values.tolist() if isinstance(v, str | date)), None)
            if value is not None:
                raise DataError(
                    f"column {quoted(name)} of X holds {value!r}, and features must be numbers; "
                    "encode it as numbers, or leave the column out."
                )
    return table
