"""Checks of the data of a fit: errors for data that cannot be fitted, and warnings."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.dtypes import blocks
from rankwright.core.order import first_of_runs
from rankwright.core.types import F64, FittedModel, FloatMatrix
from rankwright.data.content import query_codes, query_prints
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, IncompatibleError, quoted

_LOOKED_AT = 256  # rows that show whether a model gives all the same score

_HUGE = 1e150  # sums of squares of larger values overflow
_HIDDEN = 1e-10  # smallest range of a feature, relative to its largest absolute value


def refuse_categories(ranker: Any, model: Any, data: Any) -> None:
    """Raise if the data, or its partitions, have categories and the model takes only numbers."""
    if not data.categories or getattr(model, "takes_categories", False):
        return
    names = list(data.categories)
    shown = ", ".join(map(quoted, names))
    raise IncompatibleError(
        f"model '{ranker.model_name}' of {type(ranker).__name__} takes numbers, and "
        f"{shown} {'are categories' if len(names) > 1 else 'is a category'}; use a model of trees, "
        f"such as LambdaMART, leave the column out with drop={names}, or encode it as numbers."
    )


def refuse_overflow(ranker: Any, model: Any, data: RankingData) -> None:
    """Raise for features whose squares overflow; warn of features far from 0 that hardly vary.

    Models that only compare values, such as trees and rules, are exempt.
    """
    if getattr(model, "compares_values", False) or not data.n_documents:
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
            f"{high[column]:.3g}, which leaves few digits to distinguish documents; subtract its "
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
    """Return the reason why all rankings of ``data`` are equally good, or None."""
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
    """Raise if all rankings of the data are equally good."""
    reason = nothing_to_rank(data)
    if reason is not None:
        raise DataError(f"nothing to rank{where}: {reason}.")


def warn_of_equal_grades(data: RankingData) -> None:
    """Warn if no query has documents of different grades."""
    if nothing_to_rank(data) is not None:
        warnings.warn(
            "no query has documents of different grades, so there is no order to learn; check "
            "the grades, and that qid identifies queries, not documents.",
            stacklevel=4,
        )


OPTIMISTIC = (
    "holds the same queries as the training data, so the iteration that it selects and its metrics "
    "are too optimistic; give it other queries."
)


def warn_of_training_data(
    train: RankingData,
    valid: RankingData | None,
    name: str = "eval_set",
    *,
    stacklevel: int = 3,
) -> None:
    """Warn if validation data has the documents and grades of the training data."""
    if valid is not None and has_same_queries(train, valid):
        warnings.warn(f"{name} {OPTIMISTIC}", stacklevel=stacklevel)


def has_same_queries(data: RankingData, other: RankingData) -> bool:
    """Return whether both hold the same queries, in any order, with equal grades and features."""
    if data is other:
        return True
    sizes = {(each.n_queries, each.n_documents, each.n_features) for each in (data, other)}
    if len(sizes) > 1:
        return False
    codes, other_codes = (np.sort(query_codes(each)) for each in (data, other))
    return bool((codes == other_codes).all())


def warn_of_equal_scores(model: FittedModel, data: RankingData) -> None:
    """Warn of a model with the same score for documents of different grades."""
    if hasattr(model, "scores_of"):  # a score depends on the query too
        return
    rows = min(_LOOKED_AT, data.n_documents)
    if rows < 2 or (data.y[:rows] == data.y[0]).all():
        return
    is_constant = getattr(model, "is_constant", None)
    if is_constant is None:  # only a forest can decide it without scoring
        scores = model.scores(data.X[:rows])
        is_constant = bool((scores == scores[0]).all())
    if is_constant:
        warnings.warn(
            "the fitted model gives all documents the same score: a penalty (l2, l1) is too large, "
            "min_child_samples too high for so few documents, or the features do not vary.",
            stacklevel=4,
        )


def warn_of_cut_queries(ranker: Any, data: RankingData) -> None:
    """Warn if a query was also in the training data, with other documents.

    Folds of rows cut queries in this way, such as a plain ``cv=3`` of scikit-learn's tools.
    """
    training = getattr(ranker, "_fitted_queries", None)
    if training is None:
        return
    ids, codes = training
    code_of = dict(zip(ids.tolist(), codes.tolist(), strict=True))
    shared = np.array([n for n, qid in enumerate(data.qid.tolist()) if qid in code_of], int)
    if not len(shared):
        return
    part = data if len(shared) == data.n_queries else data.select(shared)
    prints = query_prints(part, n_jobs=ranker.n_jobs)[0].tolist()
    cut = [q for q, code in zip(part.qid.tolist(), prints, strict=True) if code_of[q] != code]
    if cut:
        warnings.warn(
            f"{len(cut)} of {data.n_queries} queries that are scored, such as {quoted(cut[0])}, "
            "have other documents in the training data: folds that cut queries, such as cv=5 of "
            "scikit-learn, overrate a ranker; use cv=rankwright.QueryFolds(5) or "
            "rankwright.cross_validate. (If these are different queries, give them different ids.)",
            stacklevel=3,
        )
