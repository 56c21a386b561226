"""SHAP values of trees: against the sum over all subsets, and against other libraries' own."""

from itertools import combinations
from math import factorial

import lightgbm
import numpy as np
import pytest
from other_models import QID, SIZES, training_data

import rankwright as rw
from rankwright.models.forest_scorer import ForestScorer
from rankwright.models.tree_shap import leaf_paths, shap_values

X, Y = training_data()


def _expected(scorer, cover, known, x, node):
    """Return the score below a node where only the features in ``known`` are."""
    if scorer.left[node] == node:
        return float(scorer.value[node])
    left, right = int(scorer.left[node]), int(scorer.right[node])
    f = int(scorer.feature[scorer.view[node]])
    if f in known:
        return _expected(scorer, cover, known, x, left if x[f] <= scorer.threshold[node] else right)
    parts = [cover[side] * _expected(scorer, cover, known, x, side) for side in (left, right)]
    return sum(parts) / (cover[left] + cover[right])


def test_values_are_the_mean_over_subsets():
    booster = lightgbm.train(
        {"num_leaves": 8, "verbosity": -1, "use_missing": False, "boost_from_average": False},
        lightgbm.Dataset(np.nan_to_num(X[:, :4]) * [1, 1, 1e38, 1], Y), 3,
    )  # fmt: skip
    scorer = ForestScorer.from_text(booster.model_to_string(), 4)
    rng = np.random.default_rng(0)
    cover = np.zeros(len(scorer.left))
    for node in range(len(cover) - 1, -1, -1):
        leaf = scorer.left[node] == node
        ends = [scorer.left[node], scorer.right[node]]
        cover[node] = rng.integers(1, 9) if leaf else cover[ends].sum()
    rows = rng.normal(size=(5, 4)) * 2
    paths = leaf_paths(scorer, cover)
    found = shap_values(scorer, paths, rows)
    for x, own in zip(rows, found, strict=True):

        def score(known, x=x):
            return sum(_expected(scorer, cover, known, x, int(r)) for r in scorer.roots)

        for i in range(4):
            others = [j for j in range(4) if j != i]
            total = sum(
                factorial(k) * factorial(3 - k) / factorial(4) * (score({*s, i}) - score({*s}))
                for k in range(4)
                for s in combinations(others, k)
            )
            np.testing.assert_allclose(own[i], total, atol=1e-12)
        np.testing.assert_allclose(paths.expected, score(set()), atol=1e-12)


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
