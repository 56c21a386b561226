"""What `fit`, `predict` and `score` accept: arrays, sparse matrices, frames or RankingData."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.dtypes import as_feature_matrix
from rankwright.core.types import FloatMatrix
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError


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
    if names is not None and (isinstance(qid, str) or isinstance(y, str)):
        return RankingData.from_frame(X, qid=qid, label=y)
    if y is None:
        y = np.zeros(X.shape[0] if hasattr(X, "shape") else len(X))
    if qid is None and group_sizes is None:
        features = as_feature_matrix(X)
        warnings.warn(
            "no qid was given: all rows are taken as one query; pass qid=... or group_sizes=...",
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


def features_like(ranker: Any, X: Any) -> FloatMatrix:
    """Return the features of ``X`` in the columns the ranker was fitted on."""
    ranker._fitted()
    names = X.feature_names if isinstance(X, RankingData) else frame_columns(X)
    features = X.X if isinstance(X, RankingData) else None
    known = getattr(ranker, "feature_names_in_", None)
    if names is not None and known is not None and list(names) != list(known):
        absent = [name for name in known if name not in names]
        if absent:
            raise DataError(f"the feature '{absent[0]}' of the fitted ranker is missing in X.")
        columns = [list(names).index(name) for name in known]
        table = _table(X) if features is None else features
        features = as_feature_matrix(table[:, columns])
    elif features is None:
        features = as_feature_matrix(_table(X))
    if features.shape[1] != ranker.n_features_in_:
        raise DataError(
            f"X has {features.shape[1]} features, but {type(ranker).__name__} is expecting "
            f"{ranker.n_features_in_} features as input."
        )
    return features


def frame_columns(X: Any) -> list[str] | None:
    """Return the column names of a frame, None for anything else."""
    if isinstance(X, np.ndarray | list | tuple) or sparse.issparse(X):
        return None
    import narwhals as nw

    frame = nw.from_native(X, pass_through=True, eager_only=True)
    return list(frame.columns) if isinstance(frame, nw.DataFrame) else None


def _table(X: Any) -> Any:
    if frame_columns(X) is None:
        return X
    import narwhals as nw

    return nw.from_native(X, eager_only=True).to_numpy()
