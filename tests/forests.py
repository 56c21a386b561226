"""Helpers for tests of forests."""

import numpy as np

from rankwright.models.forest import Forest


def as_bytes(forest):
    """Return all numbers of a forest, for comparisons without any tolerance."""
    return {name: (a.dtype.str, a.tobytes()) for name, a in forest.arrays().items()}


def forest_of_splits(splits, n_features=2, offset=0.0):
    """Return trees with one split each: feature, threshold, rule, values of the leaves."""
    none = np.array([1, -1, -1])
    trees = [
        Forest.of_nodes(
            n_features,
            left=none,
            right=np.array([2, -1, -1]),
            feature=np.array([feature, 0, 0]),
            threshold=np.array([threshold, 0.0, 0.0]),
            rule=np.array([rule, 0, 0]),
            value=np.array([0.0, *values]),
            cover=np.array([2.0, 1.0, 1.0]),
            gain=np.array([1.0, 0.0, 0.0]),
        )
        for feature, threshold, rule, values in splits
    ]
    return Forest.of_trees(n_features, trees, offset=offset)
