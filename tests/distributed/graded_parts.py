"""Data with grades that LightGBM does not take, in parts of whole queries."""

from dataclasses import replace

import numpy as np
from small_data import small_data

from rankwright.data.ranking_data import consecutive
from rankwright.models.trees import Trees

SMALL = Trees(
    n_estimators=6, num_leaves=4, min_child_samples=5, learning_rate=0.1, colsample_bytree=1.0
)


def graded(seed=0, **more):
    """Return data with fractional grades, and some far above LightGBM's limit of 31."""
    data = small_data(seed=seed, **more)
    return replace(data, y=np.array([0.0, 0.25, 40.5])[data.y.astype(int)])


def cut(data, *bounds):
    """Return consecutive parts of whole queries."""
    ends = [*bounds, data.n_queries]
    return [consecutive(data, lo, hi) for lo, hi in zip([0, *bounds], ends, strict=True)]
