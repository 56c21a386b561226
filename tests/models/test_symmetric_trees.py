"""Symmetric trees give the scores of a walk by hand, to the last bit, whatever their shape."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from rankwright.models.forest import Forest
from rankwright.persist.catboost_model import read_catboost

RIGHT = 1  # the feature whose missing values go right


def _model(depths, borders, features=4, seed=0):
    """Return trees as CatBoost writes them, with borders from a grid of so many."""
    rng = np.random.default_rng(seed)
    grid = np.sort(rng.normal(size=(features, borders)).astype(np.float32), axis=1)

    def split():
        feature = int(rng.integers(features))
        return {"float_feature_index": feature, "border": float(rng.choice(grid[feature]))}

    trees = [
        {"splits": [split() for _ in range(d)], "leaf_values": rng.normal(size=1 << d).tolist()}
        for d in depths
    ]
    info = [
        {"feature_index": j, "flat_feature_index": j,
         "nan_value_treatment": "AsTrue" if j == RIGHT else "AsFalse"}
        for j in range(features)
    ]  # fmt: skip
    return {
        "features_info": {"float_features": info},
        "oblivious_trees": trees,
        "scale_and_bias": [1.0, [0.0]],
    }


def _single(X):
    with np.errstate(over="ignore", under="ignore"):
        return X.astype(np.float32)


def _by_hand(model, X):
    """Return the sum of the leaves; split k decides bit k of the number of the leaf."""
    X, total = _single(X), np.zeros(len(X))
    for tree in model["oblivious_trees"]:
        leaf = np.zeros(len(X), int)
        for bit, one in enumerate(tree["splits"]):
            x = X[:, one["float_feature_index"]]
            above = x > np.float32(one["border"])
            if one["float_feature_index"] == RIGHT:
                above |= np.isnan(x)
            leaf += above * (1 << bit)
        total += np.array(tree["leaf_values"])[leaf]
    return total


def _rows(model, n=150):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 4))
    cuts = [one["border"] for tree in model["oblivious_trees"] for one in tree["splits"]]
    near = np.array([*cuts, 0.0, -0.0, np.inf, -np.inf, np.nan], np.float64)
    near = np.concatenate([near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf)])
    return np.where(rng.random(X.shape) < 0.5, rng.choice(near, X.shape), X)


@pytest.mark.parametrize(
    ("depths", "borders"),
    [
        ([6] * 20, 30),
        ([0, 1, 3, 0, 8], 5),  # the deepest whose leaves a byte numbers
        ([9, 2, 10], 5),
        ([8] * 160, 700),  # more borders of a feature than a byte counts
        ([0], 1),
    ],
)
@pytest.mark.parametrize("n", [1, 150, 300])
def test_scores_are_those_of_a_walk_by_hand(depths, borders, n):
    model = _model(depths, borders)
    forest = read_catboost(json.dumps(model).encode()).model
    assert depths == [0] or forest.scorer(np.float64).symmetric is not None
    X = _rows(model, n)
    expected = _by_hand(model, X)
    np.testing.assert_array_equal(forest.scores(X), expected)
    single = _single(X)
    np.testing.assert_array_equal(forest.scores(single), _by_hand(model, single))
    few = np.where(np.random.default_rng(3).random(X.shape) < 0.5, 0.0, X)
    np.testing.assert_array_equal(forest.scores(sparse.csr_array(few)), _by_hand(model, few))


def test_more_borders_than_a_byte_counts_are_there():
    model = _model([8] * 160, 700)
    forest = read_catboost(json.dumps(model).encode()).model
    columns = forest.scorer(np.float64).symmetric[1]
    assert len(columns[0]) > 4  # columns of bins, for 4 features
    assert np.diff(columns[2]).max() == 255


def _tree(rule=6, second=0.5, value=(1.0, 2.0, 4.0, 8.0)):
    """Return two levels: feature 0 at 0, and feature 1 at 0.5 and ``second``."""
    none = [-1] * 4
    return Forest.of_nodes(
        2,
        left=np.array([1, 3, 5, *none]),
        right=np.array([2, 4, 6, *none]),
        feature=np.array([0, 1, 1, 0, 0, 0, 0]),
        threshold=np.array([0.0, 0.5, second, 0, 0, 0, 0]),
        rule=np.full(7, rule),
        value=np.array([0, 0, 0, *value], np.float32),
        cover=np.ones(7),
        gain=np.zeros(7),
    )


@pytest.mark.parametrize(
    ("tree", "symmetric"),
    [(_tree(), True), (_tree(second=0.25), False), (_tree(rule=0), False)],
)
def test_trees_that_are_not_symmetric_are_walked(tree, symmetric):
    assert (tree.scorer(np.float64).symmetric is not None) == symmetric
    X = np.array([[-1.0, 0.0], [-1.0, 1.0], [1.0, 0.0], [1.0, 1.0], [1.0, 0.4]])
    last = 8.0 if tree.threshold[2] < 0.4 else 4.0
    np.testing.assert_array_equal(tree.scores(X), [1.0, 2.0, 4.0, 8.0, last])


def test_what_a_sparse_row_does_not_hold_may_be_missing():
    X = np.array([[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    found = {
        missing: replace(_tree(rule=7), absent_is_missing=missing) for missing in (False, True)
    }
    assert all(forest.scorer(np.float64).symmetric for forest in found.values())
    held = sparse.csr_array(X)
    np.testing.assert_array_equal(found[False].scores(held), [1.0, 2.0, 4.0, 1.0])
    np.testing.assert_array_equal(found[True].scores(held), [2.0, 8.0, 8.0, 8.0])


def test_leaves_in_single_precision_are_added_so():
    leaves = (0.1, 0.2, 0.3, 0.7)
    forest = Forest.of_trees(2, [_tree(value=leaves)] * 9, base=0.25)
    total = np.float32(0.25)
    for _ in range(9):
        total += np.float32(0.7)
    assert forest.scores(np.ones((1, 2)))[0] == np.float64(total)
