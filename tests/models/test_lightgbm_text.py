"""LightGBM's text becomes node arrays and comes back as a text that LightGBM reads."""

import time

import lightgbm as lgb
import numpy as np
import pytest
from forests import as_bytes

from rankwright.errors import DataError
from rankwright.models.bagged_trees import mean_of
from rankwright.models.lightgbm_text import (
    check_head,
    is_whole,
    model_text,
    read_trees,
    tree_blocks,
)

rng = np.random.default_rng(0)
X = np.column_stack([rng.normal(size=(500, 3)), rng.integers(0, 40, 500)])
X[rng.random(X.shape) < 0.1] = np.nan
NAMES = list("abcd")


def grown(seed, rounds=3, **params):
    y = np.nan_to_num(X[:, 0]) + X[:, 3] % 3 + np.random.default_rng(seed).normal(size=500)
    params = {"verbosity": -1, "num_leaves": 5, "boost_from_average": False, **params}
    return lgb.train(params, lgb.Dataset(X, np.nan_to_num(y), categorical_feature=[3]), rounds)


def read(booster):
    return read_trees(booster.model_to_string(), 4)


@pytest.mark.parametrize(
    "params", [{}, {"zero_as_missing": True}, {"use_missing": False}, {"min_data_in_leaf": 500}]
)
def test_a_text_comes_back_with_the_same_numbers_and_the_scores_of_lightgbm(params):
    booster = grown(0, **params)
    forest = read(booster)
    text = model_text(NAMES, forest)
    assert is_whole(text)
    check_head(text, 4)
    assert as_bytes(read_trees(text, 4)) == as_bytes(forest)
    again = lgb.Booster(model_str=text)
    assert (again.predict(X) == booster.predict(X)).all()
    for kind in ("gain", "split"):
        assert (again.feature_importance(kind) == booster.feature_importance(kind)).all()
    explained = [model.predict(X, pred_contrib=True) for model in (again, booster)]
    np.testing.assert_allclose(*explained, atol=1e-12)


def test_the_first_trees_score_like_the_first_rounds():
    booster = grown(0)
    first = read(booster).select(0, 2)
    assert first.n_trees == 2
    assert (first.booster.predict(X) == booster.predict(X, num_iteration=2)).all()
    assert as_bytes(first.join([read(booster).select(2, 3)])) == as_bytes(read(booster))


def test_joined_trees_score_the_sum():
    a, b = grown(0), grown(1)
    expected = a.predict(X) + b.predict(X)
    np.testing.assert_allclose(read(a).join([read(b)]).scores(X), expected, atol=1e-12)


def test_the_mean_of_forests_scores_the_mean():
    a, b = grown(0), grown(1)
    forest = mean_of([read(a), read(b)])
    np.testing.assert_allclose(forest.scores(X), (a.predict(X) + b.predict(X)) / 2, atol=1e-12)
    np.testing.assert_allclose(forest.contributions(X).sum(1), forest.scores(X), atol=1e-9)


@pytest.mark.parametrize(
    ("line", "damaged"),
    [
        ("num_tree_per_iteration=1", "num_tree_per_iteration=0"),
        ("num_class=1", "num_class=9"),
        ("max_feature_idx=3", "max_feature_idx=1"),
        ("max_feature_idx=3\n", ""),
        ("feature_names=a ", "feature_names="),
        ("label_index=0", "label_index=0\nmax_feature_idx=1"),
    ],
)
def test_a_head_that_lightgbm_would_believe_is_refused(line, damaged):
    text = model_text(NAMES, read(grown(0)))
    assert line in text
    with pytest.raises(DataError, match="the text of the trees has"):
        check_head(text.replace(line, damaged, 1), 4)


def test_trees_without_an_end_are_refused_in_one_pass():
    began = time.monotonic()
    with pytest.raises(DataError, match="tree 0 of the model has no end"):
        tree_blocks("".join(f"Tree={k}\nnum_leaves=1\n" for k in range(60_000)))
    assert time.monotonic() - began < 2
