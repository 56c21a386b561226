"""SHAP values of trees: against the sum over all subsets, and against other libraries' own."""

from itertools import combinations
from math import factorial

import lightgbm
import numpy as np
import pytest
from other_models import CATEGORY, QID, SIZES, training_data
from scipy import sparse

import rankwright as rw
from rankwright.errors import UsageError
from rankwright.models.forest import Forest
from rankwright.models.forest_scoring import EXACT_RIGHT
from rankwright.models.lightgbm_text import read_trees
from rankwright.models.tree_shap import TreeShap

X, Y = training_data()


def _expected(forest, known, x, node):
    """Return the score below a node where only the features in ``known`` are."""
    if forest.left[node] == node:
        return float(forest.value[node])
    left, right = int(forest.left[node]), int(forest.right[node])
    f, cover = int(forest.feature[node]), forest.cover
    if f in known:
        return _expected(forest, known, x, left if x[f] <= forest.threshold[node] else right)
    parts = [cover[side] * _expected(forest, known, x, side) for side in (left, right)]
    return sum(parts) / (cover[left] + cover[right])


def test_values_are_the_mean_over_subsets():
    booster = lightgbm.train(
        {"num_leaves": 8, "verbosity": -1, "use_missing": False, "boost_from_average": False},
        lightgbm.Dataset(np.nan_to_num(X[:, :4]) * [1, 1, 1e38, 1], Y), 3,
    )  # fmt: skip
    forest = read_trees(booster.model_to_string(), 4)
    rng = np.random.default_rng(0)
    cover = forest.cover
    for node in range(len(cover) - 1, -1, -1):
        leaf = forest.left[node] == node
        ends = [forest.left[node], forest.right[node]]
        cover[node] = rng.integers(1, 9) if leaf else cover[ends].sum()
    rows = rng.normal(size=(5, 4)) * 2
    shap = TreeShap.of(forest)
    found = shap.values(rows)
    for x, own in zip(rows, found, strict=True):

        def score(known, x=x):
            return sum(_expected(forest, known, x, int(r)) for r in forest.roots)

        for i in range(4):
            others = [j for j in range(4) if j != i]
            total = sum(
                factorial(k) * factorial(3 - k) / factorial(4) * (score({*s, i}) - score({*s}))
                for k in range(4)
                for s in combinations(others, k)
            )
            np.testing.assert_allclose(own[i], total, atol=1e-12)
        np.testing.assert_allclose(shap.expected, score(set()), atol=1e-12)


def test_values_are_those_of_lightgbm():
    params = {"num_leaves": 40, "min_data_in_leaf": 3, "max_cat_to_onehot": 1, "verbosity": -1}
    data = lightgbm.Dataset(X, Y, categorical_feature=[CATEGORY])
    booster = lightgbm.train({**params, "min_data_per_group": 3, "cat_smooth": 1}, data, 8)
    model = rw.import_model(booster).model_
    assert model.select(0, 1).is_set.any()
    for rows in (X, X.astype(np.float32)):
        theirs = booster.predict(rows, pred_contrib=True)
        np.testing.assert_allclose(model.contributions(rows), theirs, rtol=0, atol=1e-12)
    stored = sparse.csr_array(np.nan_to_num(X))
    theirs = booster.predict(sparse.csr_matrix(stored), pred_contrib=True).toarray()
    np.testing.assert_allclose(model.contributions(stored), theirs, rtol=0, atol=1e-12)


def test_trees_of_any_depth_are_explained():
    width = 60
    chain = _chain(splits=2000, n_features=width)
    shap = TreeShap.of(chain)
    rows = np.random.default_rng(0).uniform(0, 2000, (4, width))
    total = shap.values(rows).sum(1) + shap.expected
    np.testing.assert_allclose(total, chain.scores(rows), atol=1e-9)
    wide = _chain(splits=3000, n_features=3000)
    with pytest.raises(UsageError, match="up to 3,000 features on the way to a leaf, too many"):
        TreeShap.of(wide)


def _chain(splits, n_features):
    """Return a tree whose splits have a leaf to the left and the next split to the right."""
    at = np.arange(2 * splits + 1)
    left, right = at.copy(), at.copy()
    left[:splits] = splits + at[:splits]
    right[:splits] = np.append(at[1:splits], 2 * splits)
    is_split = at < splits
    return Forest(
        n_features=n_features,
        roots=np.zeros(1, np.int64),
        feature=np.where(is_split, at % n_features, 0),
        threshold=np.where(is_split, at, 0.0),
        left=left,
        right=right,
        value=np.where(is_split, 0.0, at % 7),
        rule=np.where(is_split, EXACT_RIGHT, 0),
        cover=np.ones(len(at)),
        gain=np.zeros(len(at)),
        shrinkage=np.ones(1),
    )


@pytest.mark.parametrize("categories", [False, True])
def test_values_are_those_of_xgboost(categories):
    xgboost = pytest.importorskip("xgboost")
    types = ["c" if categories and j == 4 else "q" for j in range(6)]
    data = xgboost.DMatrix(X, Y, feature_types=types, enable_categorical=True)
    data.set_group(SIZES)
    booster = xgboost.train({"objective": "rank:ndcg", "max_cat_to_onehot": 1}, data, 8)
    theirs = booster.predict(data, pred_contribs=True)
    np.testing.assert_allclose(
        rw.import_model(booster).model_.contributions(X), theirs, atol=2e-6, rtol=1e-5
    )


def test_values_are_those_of_catboost():
    catboost = pytest.importorskip("catboost")
    pool = catboost.Pool(X, Y, group_id=QID)
    model = catboost.CatBoost(
        {"loss_function": "QueryRMSE", "iterations": 8, "verbose": 0, "depth": 5,
         "allow_writing_files": False}
    ).fit(pool)  # fmt: skip
    theirs = model.get_feature_importance(pool, type="ShapValues")
    np.testing.assert_allclose(rw.import_model(model).model_.contributions(X), theirs, atol=1e-12)
