"""Small problems of structured SVMs."""

import numpy as np

from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import document_weight, order_weight
from rankwright.models.linear_problem import LinearProblem

L2 = 0.05


def some_data(seed=0, queries=5, size=5, features=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * size, features))
    y = (X @ rng.normal(size=features) + rng.normal(size=len(X))).round().clip(0, 2)
    y.reshape(queries, size)[:, :2] = 0.0, 1.0
    return RankingData.from_arrays(X, y, group_sizes=np.full(queries, size))


def problem_of(loss, data, l2=L2):
    weight = order_weight(data)
    return LinearProblem(
        data.X,
        data.indptr,
        loss.bind(data),
        float(weight.sum()),
        l2=l2,
        deviation=np.ones(data.n_features),
        visited=np.flatnonzero(weight),
        document_weight=document_weight(data),
        traits=loss.traits,
    )
