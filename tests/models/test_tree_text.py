import time

import lightgbm as lgb
import numpy as np
import pytest

from rankwright.errors import DataError
from rankwright.models.tree_text import first_trees, join_trees, mean_of_forests, tree_blocks

X = np.random.default_rng(0).normal(size=(500, 3))


def forest(seed, rounds=3):
    y = X[:, 0] + np.random.default_rng(seed).normal(size=500)
    params = {"verbosity": -1, "num_leaves": 5, "boost_from_average": False}
    return lgb.train(params, lgb.Dataset(X, y), rounds)


def predict(text):
    return lgb.Booster(model_str=text).predict(X)


def test_the_first_trees_score_like_the_first_rounds():
    booster = forest(0)
    text = first_trees(booster.model_to_string(), 2)
    assert len(tree_blocks(text)) == 2
    assert (predict(text) == booster.predict(X, num_iteration=2)).all()
    assert "num_threads" not in text


def test_joined_trees_score_the_sum():
    a, b = forest(0), forest(1)
    text = join_trees([a.model_to_string(), b.model_to_string()])
    np.testing.assert_allclose(predict(text), a.predict(X) + b.predict(X), atol=1e-12)


def test_the_mean_of_forests_scores_the_mean():
    a, b = forest(0), forest(1)
    text = mean_of_forests([a.model_to_string(), b.model_to_string()])
    np.testing.assert_allclose(predict(text), (a.predict(X) + b.predict(X)) / 2, atol=1e-12)
    shap = lgb.Booster(model_str=text).predict(X, pred_contrib=True)
    np.testing.assert_allclose(shap.sum(1), predict(text), atol=1e-9)


def test_trees_without_an_end_are_refused_in_one_pass():
    began = time.monotonic()
    with pytest.raises(DataError, match="tree 0 of the model has no end"):
        tree_blocks("".join(f"Tree={k}\nnum_leaves=1\n" for k in range(60_000)))
    assert time.monotonic() - began < 2
