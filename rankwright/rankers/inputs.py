"""What `fit`, `predict` and `score` accept: arrays, sparse matrices, frames or RankingData."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from os import PathLike
from typing import Any, cast

import numpy as np
from scipy import sparse
from sklearn import get_config

from rankwright.core.dtypes import as_feature_matrix, blocks, naming_features
from rankwright.core.order import first_of_runs
from rankwright.core.types import F64, FittedModel, FloatMatrix
from rankwright.data.content import query_codes, query_prints
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
    recoded,
    refuse_other_index,
    refuse_roles_as_features,
    usual_column,
)
from rankwright.data.ranking_data import RankingData, refuse_second_columns
from rankwright.errors import DataError, IncompatibleError, UsageError, brief, quoted
from rankwright.registry import unknown

_LOOKED_AT = 256  # rows that show whether a model gives all the same score

_HUGE = 1e150  # sums of squares of larger values overflow
_HIDDEN = 1e-10  # smallest range of a feature, relative to its largest absolute value

_MISNAMED = {
    "group": "the sizes of queries are group_sizes=, the query id of each row is qid=",
    "groups": "the query id of each row is qid=, the sizes of queries are group_sizes=",
    "query_id": "the query id of each row is qid=",
    "eval_group": "validation data is eval_set=(X, y, qid), with the query id of each row",
    "eval_qid": "validation data is eval_set=(X, y, qid), with the query id of each row",
    "valid": "validation data is eval_set=, ranking data or (X, y, qid)",
    "validation_data": "validation data is eval_set=, ranking data or (X, y, qid)",
    "early_stopping_rounds": "early_stopping_rounds= is a parameter of the ranker itself",
    "eval_metric": "metric= is a parameter of the ranker itself",
    "categorical_feature": "categorical_feature= is a parameter of the ranker itself",
    "init_model": "the fitted ranker to continue from is start=",
    "weight": "weights are sample_weight= (a row each) or query_weight= (a query each)",
}


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
    categories: AllCategories | None = None,
) -> RankingData:
    """Return the caller's data as RankingData; without ``qid`` all rows are one query.

    ``features`` and ``drop`` name the columns of a frame, or of RankingData with feature names,
    that are features and that are not. Columns of a frame that are not of the type category hold
    ``categories`` where some are known.
    """
    dropped = listed(drop) if not isinstance(drop, tuple) or drop else []
    if isinstance(X, RankingData):
        refuse_second_columns(
            y=y,
            qid=qid,
            group_sizes=group_sizes,
            sample_weight=sample_weight,
            query_weight=query_weight,
        )
        return X if features is None and not dropped else _with_features(X, features, drop)
    is_array = isinstance(X, np.ndarray) or sparse.issparse(X)
    names = None if is_array else frame_columns(X)
    if names is None and (features is not None or dropped):
        given = "drop" if features is None else "features"
        raise UsageError(
            f"{given}= names columns of a frame, but X is {type(X).__name__}, which has no column "
            "names; select its columns yourself, as in X[:, [0, 2]]."
        )
    if isinstance(qid, str) or isinstance(y, str):
        weights = {"sample_weight": sample_weight, "query_weight": query_weight}
        return _by_column_names(X, names, y, qid, weights, features, drop, categories)
    if isinstance(X, str | PathLike):
        as_feature_matrix(X)  # which says what to do with a path
    if y is None:
        raise DataError(
            "learning requires y to be passed, but the target y is None: "
            "give the grade of each row, or RankingData."
        )
    columns = None
    if names is not None:
        refuse_other_index(X, "X", y=y, qid=qid)
        names, columns = _feature_columns(names, features, drop)
        if features is None:
            refuse_roles_as_features(names)
        _refuse_grades_in_features(X, names, y)
    known = {} if names is None else _named({**(categories or {}), **frame_categories(X)}, names)
    table = X
    if names is not None:
        table = encoded_features(X, names, known) if known else _table(X, columns)
    if qid is None and group_sizes is None:
        warnings.warn(
            "no qid was given: all rows are taken as one query; pass qid=... or group_sizes=... "
            f"({how_to_route_qid()})",
            stacklevel=3,
        )
        with naming_features(names):
            group_sizes = [as_feature_matrix(table).shape[0]]
    return RankingData.from_arrays(
        table,
        y,
        qid=qid,
        group_sizes=group_sizes,
        sample_weight=sample_weight,
        query_weight=query_weight,
        feature_names=names,
        categories=known,
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
        valid = data_in_columns(
            data.feature_names, *eval_set, where="the validation data", categories=data.categories
        )
    elif isinstance(eval_set, RankingData):
        valid = eval_set
    else:
        raise UsageError(
            f"eval_set is (X, y, qid) or RankingData, not {type(eval_set).__name__}; "
            "rankwright.load reads a file as RankingData."
        )
    columns = _columns_by_name(data.feature_names, valid.feature_names, "the validation data")
    if columns is not None:
        features = as_feature_matrix(_taken_columns(valid.X, columns))
        valid = replace(valid, X=features, feature_names=data.feature_names)
    if valid.n_features != data.n_features:
        raise DataError(
            f"the validation data has {valid.n_features} features, the training data "
            f"{data.n_features}; give both the same columns in the same order."
        )
    return valid.in_categories(data.categories, "the validation set")


def features_like(ranker: Any, X: Any) -> FloatMatrix:
    """Return the features of ``X`` in the columns the ranker was fitted on."""
    ranker._fitted()
    names = X.feature_names if isinstance(X, RankingData) else frame_columns(X)
    known = getattr(ranker, "feature_names_in_", None)
    if known is None and names is not None:
        ordinary = default_names(ranker.n_features_in_)  # which a table of no names is written with
        known = ordinary if set(names) == set(ordinary) else None
    columns = _columns_by_name(known, names, "X")
    categories = getattr(ranker, "categories_", None)
    if isinstance(X, RankingData):
        features: FloatMatrix = X.X
        if X.categories:
            features = recoded(features, X.feature_names, X.categories, categories, "X")
        if columns is not None:
            features = _taken_columns(features, columns)
    else:
        wanted = None if names is None else list(names if known is None else known)
        with naming_features(wanted):
            if wanted is not None and (categories or frame_categories(X)):
                table = encoded_features(X, list(map(str, wanted)), categories)
            else:
                table = _table(X, columns)
            features = as_feature_matrix(table)
    if features.shape[1] != ranker.n_features_in_:
        raise DataError(
            f"X has {features.shape[1]} features, but {type(ranker).__name__} is expecting "
            f"{ranker.n_features_in_} features as input; give the columns it was fitted on, "
            "in that order."
        )
    return features


def data_in_columns(
    known: Sequence[str] | None,
    X: Any,
    y: Any,
    qid: Any,
    *,
    where: str = "X",
    categories: AllCategories | None = None,
) -> RankingData:
    """Return data with grades; of a frame the ``known`` features alone, whatever else it has."""
    names = frame_columns(X)
    if names is None or known is None:
        return ranking_data(X, y, qid, categories=categories)
    _columns_by_name(known, names, where)  # which names the one that is missing
    return ranking_data(X, y, qid, features=[str(name) for name in known], categories=categories)


def documents_of(ranker: Any, X: Any, *, qid: Any = None, group: Any = None) -> RankingData:
    """Return documents to be ranked, without grades, in the columns the ranker was fitted on.

    Of a frame ``qid`` and ``group`` may be names of columns. Query ids are found by
    `query_column`, document ids under their usual names.
    """
    features = features_like(ranker, X)
    names = frame_columns(X)
    given: dict[str, Any] = {"qid": qid, "group": group}
    if names is not None:
        column = columns_of_frame(X) if all(isinstance(name, str) for name in names) else None
        if qid is None:
            given["qid"] = query_column(ranker, X)
            if given["qid"] is None and getattr(ranker, "qid_column_", None) is not None:
                raise DataError(
                    f"the ranker was fitted with queries from column {quoted(ranker.qid_column_)}, "
                    "which the frame does not have; name its column of query ids with qid=..., or "
                    "pass qid=[0] * len(frame) if all rows are one query."
                )
        if column is not None:
            given["doc_id"] = usual_column("doc_id", _not_features(ranker, names))
        for role, value in given.items():
            if isinstance(value, str):
                if column is None:
                    raise DataError("column names must be text; rename the columns first.")
                given[role] = checked_ids(column(value), value, role)
    if given["qid"] is None:
        given["qid"] = np.zeros(features.shape[0], np.int64)
    names_in = getattr(ranker, "feature_names_in_", None)
    coded = getattr(ranker, "categories_", None)
    return RankingData.from_arrays(
        features, None, feature_names=names_in, categories=coded, **given
    )


def query_column(ranker: Any, X: Any) -> str | None:
    """Return the column of query ids of a frame: that of the training data, or a usual name."""
    names = frame_columns(X)
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    free = _not_features(ranker, names)
    remembered = getattr(ranker, "qid_column_", None)
    return remembered if remembered in free else usual_column("qid", free)


def _not_features(ranker: Any, names: Sequence[Any]) -> list[str]:
    """Return those columns of a frame that the ranker does not know as features."""
    known = set(map(str, getattr(ranker, "feature_names_in_", names)))
    return [str(name) for name in names if str(name) not in known]


def data_of_frame(ranker: Any, X: Any, qid: str | None, where: str) -> RankingData:
    """Return RankingData, or a frame as such; without a column named like grades these are NaN."""
    if isinstance(X, RankingData):
        return X
    names = frame_columns(X)
    if names is None:
        what = f"a tuple of {len(X)} parts" if isinstance(X, tuple) else type(X).__name__
        raise UsageError(
            f"{where} takes RankingData, or a frame with a column of query ids, not {what}; "
            "RankingData.from_arrays(X, y, qid=qid) makes RankingData of arrays."
        )
    ranker._fitted()
    known = [str(name) for name in getattr(ranker, "feature_names_in_", [])] or None
    _columns_by_name(known, names, "the frame")
    qid = qid or query_column(ranker, X)
    free = [name for name in map(str, names) if known is None or name not in known]
    label = usual_column("label", free) or ""
    roles, features = choose_columns(
        names, {**dict.fromkeys(USUAL_NAMES), "qid": qid, "label": label}, features=known
    )
    column = columns_of_frame(X)
    coded = _named(getattr(ranker, "categories_", None), features)
    categories = {**coded, **categories_of(column, features)}
    data = RankingData.from_arrays(**arrays_of_columns(column, roles, features, categories))
    return data if label else without_grades(data)


def without_grades(data: RankingData) -> RankingData:
    """Return the data with grades that are not known: NaN."""
    return data._replace(y=np.full(data.n_documents, np.nan))


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


def refuse_misnamed(arguments: dict[str, Any]) -> None:
    """Refuse arguments that other tools' ``fit`` has, and say what they are called here."""
    for name in arguments:
        hint = _MISNAMED.get(name, "help(Ranker.fit) shows what it takes")
        raise UsageError(f"fit takes no argument '{name}': {hint}.")


def refuse_categories(ranker: Any, data: Any) -> None:
    """Refuse categories where the model takes numbers alone; ``data`` is ranking data or parts."""
    if not data.categories or getattr(ranker._part_of("model"), "takes_categories", False):
        return
    named = list(data.categories)
    shown = ", ".join(quoted(name) for name in named)
    raise IncompatibleError(
        f"model '{ranker.model_name}' of {type(ranker).__name__} takes numbers, and "
        f"{shown} {'are categories' if len(named) > 1 else 'is a category'}; use a model of trees, "
        f"such as LambdaMART, leave the column out with drop={named}, or encode it as numbers."
    )


def refuse_overflow(ranker: Any, data: RankingData) -> None:
    """Refuse features whose squares overflow, and warn of features far from 0 that hardly vary.

    Models that only compare values, such as trees and rules, are exempt.
    """
    if getattr(ranker._part_of("model"), "compares_values", False) or not data.n_documents:
        return
    low, high = _ranges(data.X)
    size = np.fmax(np.abs(low), np.abs(high))
    for column in np.flatnonzero(size > _HUGE)[:1]:
        raise DataError(
            f"{_name_of(data, column)} has values of {size[column]:.3g}, whose squares overflow in "
            f"a model '{ranker.model_name}'; divide it, take its logarithm, or use model='trees'."
        )
    for column in np.flatnonzero((high > low) & (high - low < _HIDDEN * size))[:1]:
        warnings.warn(
            f"{_name_of(data, column)} varies by {high[column] - low[column]:.3g} around "
            f"{high[column]:.3g}, which leaves few digits to tell documents apart; subtract its "
            "mean first.",
            stacklevel=3,
        )


def _name_of(data: RankingData, column: int) -> str:
    names = data.feature_names
    return f"feature column {column}" if names is None else f"feature {quoted(names[column])}"


def _ranges(X: FloatMatrix) -> tuple[F64, F64]:
    """Return the minimum and maximum of each feature; NaN if all its values are missing."""
    if sparse.issparse(X):
        low, high = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        limit = min(_HUGE, float(np.finfo(X.dtype).max))
        far = np.flatnonzero(np.abs(X.data) > limit)  # smaller values pass the check
        np.fmin.at(low, X.indices[far], X.data[far])
        np.fmax.at(high, X.indices[far], X.data[far])
        return low, high
    low, high = np.full(X.shape[1], np.nan), np.full(X.shape[1], np.nan)
    for block in blocks(X):
        low = np.fmin(low, np.fmin.reduce(X[block], axis=0))
        high = np.fmax(high, np.fmax.reduce(X[block], axis=0))
    return low, high


def nothing_to_rank(data: RankingData) -> str | None:
    """Return why no ranking of ``data`` is better than another, None where one is."""
    present = np.count_nonzero(data.sizes)
    if first_of_runs(data.y, data.indptr).sum() > present:
        return None
    if data.n_documents == present:
        return (
            "every query has one document; check that qid names the query of each row, not the "
            "document"
        )
    if (data.y == data.y[0]).all():
        return f"all documents have the grade {data.y[0]:g}; check the column of grades"
    return (
        "within each query all documents have the same grade; check the grades, and that qid "
        "names the query of each row"
    )


def refuse_nothing_to_rank(data: RankingData, where: str = "") -> None:
    """Refuse data on which every ranking is as good as any other."""
    why = nothing_to_rank(data)
    if why is not None:
        raise DataError(f"nothing to rank{where}: {why}.")


def warn_of_equal_grades(data: RankingData) -> None:
    """Warn where no query has two grades: there is no order to learn."""
    if nothing_to_rank(data) is not None:
        warnings.warn(
            "no query has documents of different grades, so there is no order to learn; check "
            "the grades, and that qid identifies queries, not documents.",
            stacklevel=3,
        )


OPTIMISTIC = (
    "holds the same queries as the training data, so the iteration that it selects and its metrics "
    "are too optimistic; give it other queries."
)


def warn_of_training_data(
    train: RankingData, valid: RankingData | None, name: str = "eval_set"
) -> None:
    """Warn if validation data has the documents and grades of the training data."""
    if valid is not None and has_same_queries(train, valid):
        warnings.warn(f"{name} {OPTIMISTIC}", stacklevel=3)


def has_same_queries(data: RankingData, other: RankingData) -> bool:
    """Return whether both hold the same queries, in any order, with equal grades and features."""
    if data is other:
        return True
    if _shape(data) != _shape(other):
        return False
    codes, others = (np.sort(query_codes(each)) for each in (data, other))
    return bool((codes == others).all())


def _shape(data: RankingData) -> tuple[int, int, int]:
    return data.n_queries, data.n_documents, data.n_features


def warn_of_equal_scores(model: FittedModel, data: RankingData) -> None:
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


def warn_of_cut_queries(ranker: Any, data: RankingData) -> None:
    """Warn where a query that is scored was fitted on too, with other documents.

    That is what folds by rows do, such as a plain ``cv=3`` of scikit-learn's tools.
    """
    seen = getattr(ranker, "_fitted_queries", None)
    if seen is None:
        return
    ids, codes = seen
    known = dict(zip(ids.tolist(), codes.tolist(), strict=True))
    shared = np.array([number for number, one in enumerate(data.qid.tolist()) if one in known], int)
    if not len(shared):
        return
    part = data if len(shared) == data.n_queries else data.select(shared)
    now = query_prints(part, n_jobs=ranker.n_jobs)[0].tolist()
    cut = [one for one, code in zip(part.qid.tolist(), now, strict=True) if known[one] != code]
    if cut:
        warnings.warn(
            f"{len(cut)} of {data.n_queries} queries that are scored, such as {quoted(cut[0])}, "
            "have other documents in the training data: folds that cut queries, such as cv=5 of "
            "scikit-learn, overrate a ranker; use cv=rankwright.QueryFolds(5) or "
            "rankwright.cross_validate. (If these are different queries, give them different ids.)",
            stacklevel=3,
        )


# --- frames ------------------------------------------------------------------------------------


def _by_column_names(
    X: Any,
    names: list[str] | None,
    y: Any,
    qid: Any,
    weights: dict[str, Any],
    features: Any,
    drop: Any,
    categories: AllCategories | None,
) -> RankingData:
    if names is None:
        named = "qid" if isinstance(qid, str) else "y"
        raise DataError(
            f"{named}={brief(qid if named == 'qid' else y)} names a column, but X is not a frame; "
            f"give {named} as an array with a value for each row."
        )
    if not all(one is None or isinstance(one, str) for one in (y, qid)):
        raise DataError(
            "y and qid must both be names of columns of the frame, as in fit(frame, 'label', "
            "qid='qid'), or both be arrays."
        )
    if not all(isinstance(name, str) for name in names):
        raise DataError("column names must be text; rename the columns first.")
    columns = {role: one for role, one in weights.items() if isinstance(one, str)}
    arrays = {role: one for role, one in weights.items() if one is not None and role not in columns}
    given: dict[str, Any] = {**dict.fromkeys(USUAL_NAMES), "qid": qid, "label": y, **columns}
    roles, chosen = choose_columns(names, given, features=features, drop=drop)
    column = columns_of_frame(X)
    known = {**_named(categories, chosen), **categories_of(column, chosen)}
    found = arrays_of_columns(column, roles, chosen, known)
    return RankingData.from_arrays(**{**found, **arrays})


def _taken_columns(X: FloatMatrix, columns: Sequence[int]) -> FloatMatrix:
    """Return ``X[:, columns]`` in C order; indexing a dense matrix returns Fortran order."""
    if not isinstance(X, np.ndarray):
        return X[:, columns]
    return cast(FloatMatrix, np.take(X, columns, axis=1))


def _with_features(data: RankingData, features: Any, drop: Any) -> RankingData:
    """Return ranking data with the chosen features alone."""
    if data.feature_names is None:
        raise UsageError(
            "features= and drop= go by names, and these features have none; give them names with "
            "RankingData.from_arrays(..., feature_names=...)."
        )
    names, columns = _feature_columns(data.feature_names, features, drop)
    if columns is None:
        return data
    X = as_feature_matrix(_taken_columns(data.X, columns))
    known = _named(data.categories, names) or None
    return replace(data, X=X, feature_names=tuple(names), categories=known)


def _feature_columns(
    names: Sequence[Any], features: Any, drop: Any
) -> tuple[list[str], list[int] | None]:
    """Return the names of the features, and where they stand; None: all columns as they are."""
    text = [str(name) for name in names]
    wanted, dropped = listed(features), listed(drop) or []
    for name in [*(wanted or []), *dropped]:
        if name not in text:
            raise DataError(unknown("column", name, text))
    if wanted is None and not dropped:
        return text, None
    chosen = [name for name in (text if wanted is None else wanted) if name not in dropped]
    return chosen, [text.index(name) for name in chosen]


def _named(categories: AllCategories | None, names: Sequence[str]) -> AllCategories:
    return {name: own for name, own in (categories or {}).items() if name in names}


def _columns_by_name(
    known: Sequence[str] | None, names: Sequence[str] | None, where: str
) -> list[int] | None:
    """Return where the ``known`` features stand among ``names``; None: as they are."""
    if known is None or names is None:
        return None
    known, names = [str(name) for name in known], [str(name) for name in names]
    if names == known:
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


def _table(X: Any, columns: list[int] | None = None) -> Any:
    """Return the features of X as an array: of a frame these columns alone, None for all."""
    names = frame_columns(X)
    if names is None:
        return X
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    if columns is not None:
        frame, names = frame[:, columns], [names[column] for column in columns]
    table = frame.to_numpy()
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
