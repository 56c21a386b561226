"""Small problems of structured SVMs."""

import numpy as np

from rankwright.data.ranking_data import RankingData
from rankwright.models.linear_objective import LinearObjective

L2 = 0.05


def some_data(seed=0, queries=5, size=5, features=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * size, features))
    y = (X @ rng.normal(size=features) + rng.normal(size=len(X))).round().clip(0, 2)
    y.reshape(queries, size)[:, :2] = 0.0, 1.0
    return RankingData.from_arrays(X, y, group_sizes=np.full(queries, size))


def problem_of(loss, data, l2=L2):
    scale = np.ones(data.n_features)
    return LinearObjective(loss.bind(data), data, loss.traits, scale=scale, l2=l2)
