"""What any ranker must beat: chance, and the best single feature."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from rankwright.core.rng import stream
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.metrics.base import metric as named
from rankwright.metrics.evaluation import Evaluator


def random_scores(data: RankingData, *, seed: int = 0) -> F64:
    """Return a score by chance for each document."""
    return stream(seed, "baseline", "random").random(data.n_documents)


def best_feature(train: RankingData, *, metric: str = "ndcg@10") -> tuple[int, int]:
    """Return the feature that ranks ``train`` best by itself, and its direction (1 or -1).

    Ties count as the mean over their orders. Categories have no order to rank by.
    """
    selects = named(metric).for_selection()
    evaluator = Evaluator(train, selects)
    candidates = [
        (evaluator.means(sign * feature_scores(train, column))[repr(selects)], -column, sign)
        for column in _ordered_columns(train)
        for sign in (1, -1)
    ]
    _, column, sign = max(candidates)
    return -column, sign


def _ordered_columns(data: RankingData) -> list[int]:
    """Return the features that are no unordered categories; all where there is no other."""
    columns = list(range(data.n_features))
    if not data.categories or data.feature_names is None:
        return columns
    unordered = {name for name, own in data.categories.items() if not own.ordered}
    return [k for k in columns if data.feature_names[k] not in unordered] or columns


def feature_scores(data: RankingData, column: int) -> F64:
    """Return one feature as scores; a missing value counts as zero."""
    values = data.X[:, [column]]
    dense = values.toarray() if sparse.issparse(values) else values
    return np.nan_to_num(np.asarray(dense, np.float64).ravel(), nan=0.0)
