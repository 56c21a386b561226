"""Importance of features for a ranker: gain, splits, SHAP values, or permutation.

Permutation shuffles the values of one feature among the documents of each query. The importance is
the mean decrease of the metric,

    importance_f = metric(scores) - mean over repeats of metric(scores with f shuffled).       (1)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rankwright.core.rng import stream
from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.explanation.query import document_parts, in_columns_of
from rankwright.metrics.evaluation import Evaluator
from rankwright.rankers.inputs import data_of_frame

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker

KINDS = ("gain", "split", "shap", "permutation")


def importance(
    ranker: Ranker,
    kind: str = "permutation",
    *,
    data: Any = None,
    qid: str | None = None,
    metric: Any = None,
    repeats: int = 5,
    seed: int = 0,
) -> dict[str, float]:
    """Return the importance of each feature, the largest first.

    Parameters
    ----------
    ranker : fitted ranker
    kind : "gain", "split", "shap" or "permutation"
        "gain" and "split" need a tree model. "shap" is the mean absolute contribution to the scores
        of ``data``, for trees and linear models. "permutation" is (1), for any model.
    data : RankingData or frame
        For "shap" and "permutation". Columns of a frame are found as in `rankwright.explain`.
    qid : str
        Column of query ids in a frame; by default that of the training data, or a usual name.
    metric : str, Metric or callable
        Metric for "permutation"; by default the metric that selected the ranker.
    repeats : int, default 5
        Number of permutations of each feature.
    seed : int, default 0
        Seed of the permutations.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.RankingData.from_arrays(
    ...     [[0.1, 5.0], [0.9, 5.0], [0.5, 5.0]], [0, 2, 1], qid=[1, 1, 1], feature_names=["a", "b"]
    ... )
    >>> list(rw.importance(rw.MEMR().fit(data), "shap", data=data))
    ['a', 'b']
    """
    if kind not in KINDS:
        raise UsageError(f"importance is one of {', '.join(KINDS)}, not '{kind}'.")
    model = ranker._fitted()
    if kind in ("gain", "split"):
        if not hasattr(model, "importance"):
            raise UsageError(f"only trees have importance by {kind}; use 'shap' or 'permutation'.")
        values: F64 = model.importance(kind)
    elif data is None:
        raise UsageError(f"importance by {kind} looks at data: pass data=...")
    else:
        data = in_columns_of(ranker, data_of_frame(ranker, data, qid, "importance"))
        if kind == "shap":
            values = np.abs(document_parts(ranker, data)[:, :-1]).mean(axis=0)
        elif np.isnan(data.y).any():
            raise DataError("importance by permutation needs grades, and the frame has none.")
        else:
            values = _by_permutation(ranker, data, metric, repeats, seed)
    names = getattr(ranker, "feature_names_in_", np.arange(1, len(values) + 1))
    order = np.argsort(-values, kind="stable")
    return {str(names[column]): float(values[column]) for column in order}


def _by_permutation(ranker: Ranker, data: RankingData, metric: Any, repeats: int, seed: int) -> F64:
    metrics = [metric or ranker.selection_metric]
    evaluator = Evaluator(data, metrics, convention=ranker.convention, n_jobs=ranker.n_jobs)
    (name,) = evaluator.metrics
    before = evaluator(ranker.predict(data))[name]
    decrease = np.zeros(data.n_features)
    for repeat in range(repeats):
        key = stream(seed, "importance", repeat).random(data.n_documents)
        rows = np.lexsort((key, data.query_of_row()))  # shuffled within queries
        for column in range(data.n_features):
            after = evaluator(ranker.predict(_with_column_from(data, column, rows)))[name]
            decrease[column] += (before - after) / repeats  # (1)
    return decrease if evaluator.metrics[name].maximise else -decrease


def _with_column_from(data: RankingData, column: int, rows: I64) -> RankingData:
    X = data.X
    if isinstance(X, np.ndarray):
        dense = X.copy()
        dense[:, column] = X[rows, column]
        return replace(data, X=dense)
    parts = [X[:, :column], X[rows][:, [column]], X[:, column + 1 :]]
    return replace(data, X=sparse.csr_array(sparse.hstack(parts)))
