"""Compiled tree scoring gives LightGBM's own scores, to the last bit."""

from dataclasses import replace

import lightgbm as lgb
import numpy as np
import pytest
from cases import each
from scipy import sparse

from rankwright import ranker, synthetic
from rankwright.errors import DataError, IncompatibleError
from rankwright.models.forest_scoring import Scorer
from rankwright.models.lightgbm_text import read_trees

FEATURES = 6


def data(seed=0, n=800, missing=0.0, zeros=0.0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, FEATURES)).astype(dtype)
    X[rng.random(X.shape) < missing] = np.nan
    X[rng.random(X.shape) < zeros] = 0.0
    known = np.nan_to_num(X)
    gaps = 1.0 * np.isnan(X[:, 1]) - (X[:, 2] == 0.0)
    y = known[:, 0] * known[:, 1] + np.abs(known[:, 2]) + gaps + 0.1 * rng.normal(size=n)
    return X, y


def grown(X, y, rounds=20, categorical="auto", **params):
    params = {"verbosity": -1, "num_leaves": 15, "min_data_in_leaf": 5, "num_threads": 1} | params
    train = lgb.Dataset(X, y, categorical_feature=categorical, params=params)
    return lgb.train(params, train, rounds)


def scorer(booster):
    return read_trees(booster.model_to_string(), booster.num_feature())


def assert_same(booster, X):
    """Dense and sparse, float64 and float32, one thread and five: the same bytes as LightGBM's."""
    forest = scorer(booster)
    for some in (X.astype(np.float64), X.astype(np.float32)):
        expected = booster.predict(some, num_threads=1)
        for n_jobs in (1, 2, 5):
            assert (forest.scores(some, n_jobs=n_jobs) == expected).all()
        thin = sparse.csr_array(some)
        assert (forest.scores(thin) == booster.predict(sparse.csr_matrix(some))).all()
        assert (forest.scores(thin) == expected).all()


MISSING = {
    "none are missing": ({}, {}),
    "NaN is missing": ({"missing": 0.2}, {}),
    "zeros among them": ({"missing": 0.1, "zeros": 0.3}, {}),
    "zero is missing": ({"missing": 0.1, "zeros": 0.3}, {"zero_as_missing": True}),
    "NaN is not": ({"missing": 0.1, "zeros": 0.2}, {"use_missing": False}),
}


@pytest.mark.parametrize("case", MISSING)
@each("seed", range(4))
def test_scores_are_lightgbms_whatever_is_missing(case, seed):
    gaps, params = MISSING[case]
    booster = grown(*data(seed, **gaps), **params)
    for other in ({}, {"missing": 0.4, "zeros": 0.4}):  # also where training saw nothing missing
        assert_same(booster, data(seed + 10, n=301, **other)[0])


def test_the_cases_have_splits_of_every_rule():
    rules = set()
    for gaps, params in MISSING.values():
        for seed in range(4):
            forest = scorer(grown(*data(seed, **gaps), **params))
            rules |= set(forest.rule[forest.splits].tolist())
    assert rules == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_on_a_threshold_and_next_to_it_go_the_right_way(dtype):
    X, y = data()
    booster = grown(X, y)
    forest = scorer(booster)
    at = forest.threshold[forest.splits].astype(dtype)
    near = [at, np.nextafter(at, dtype(np.inf)), np.nextafter(at, dtype(-np.inf))]
    rng = np.random.default_rng(0)
    hits = np.concatenate(near)
    X = rng.choice(hits, size=(3000, FEATURES))
    assert (forest.scores(X) == booster.predict(X)).all()
    moved = np.nextafter(X, dtype(np.inf))
    assert (forest.scores(moved) != forest.scores(X)).any()  # the data do reach thresholds


def test_extreme_values_and_signed_zeros_go_the_right_way():
    X, y = data(zeros=0.5)
    booster = grown(X, y)
    odd = [0.0, -0.0, np.inf, -np.inf, 1e-36, -1e-36, 1e-35, 1e-34, -1e-34, 5e-324, 1e300, -1e300]
    X = np.random.default_rng(0).choice([*odd, 0.5, np.nan], size=(4000, FEATURES))
    assert (scorer(booster).scores(X) == booster.predict(X)).all()
    with np.errstate(over="ignore"):
        X = X.astype(np.float32)
    assert (scorer(booster).scores(X) == booster.predict(X)).all()


def test_a_threshold_of_zero_takes_both_zeros_to_the_left():
    text = grown(*data(), rounds=1, num_leaves=2).model_to_string()
    lines = [
        "threshold=-0.0" if line.startswith("threshold=") else line for line in text.splitlines()
    ]
    forest = read_trees("\n".join(lines) + "\n", FEATURES)
    X = np.zeros((2, FEATURES))
    X[1] = -0.0
    left = forest.value[forest.left[0]]
    assert forest.scores(X).tolist() == [left, left]


def test_thresholds_beyond_float32_still_split():
    X, y = data()
    X[:, 0] *= 1e300
    booster = grown(X, y)
    with np.errstate(over="ignore"):
        narrow = X.astype(np.float32)
    assert (scorer(booster).scores(X) == booster.predict(X)).all()
    assert (scorer(booster).scores(narrow) == booster.predict(narrow)).all()


@pytest.mark.parametrize("seed", range(3))
def test_categories_go_the_way_of_their_set(seed):
    rng = np.random.default_rng(seed)
    X, y = data(seed)
    X[:, 3] = rng.integers(0, 90, len(X))  # sets of more than one word
    X[:, 4] = rng.integers(0, 5, len(X))
    y = y + rng.normal(size=90)[X[:, 3].astype(int)] + rng.normal(size=5)[X[:, 4].astype(int)]
    booster = grown(X, y, categorical=[3, 4], min_data_per_group=5, cat_smooth=1.0)
    assert 5 in scorer(booster).rule
    other = data(seed + 10)[0]
    other[:, 3] = rng.integers(-2, 130, len(other))  # some never seen, some negative
    other[:, 4] = rng.choice([0.0, 1.0, 2.5, -0.5, np.nan, 1e9, 4.0], len(other))
    assert_same(booster, other)


def test_deep_chains_of_splits():
    X = np.arange(60.0)[:, None] * np.ones(FEATURES)
    y = 3.0 ** X[:, 0]  # each split takes the last row off
    small = {"min_data_in_leaf": 1, "min_data_in_bin": 1, "min_sum_hessian_in_leaf": 0.0}
    booster = grown(X, y, num_leaves=50, rounds=5, **small)
    depths = booster.trees_to_dataframe()["node_depth"]
    assert depths.max() > 20
    assert_same(booster, X)


def test_trees_of_a_single_leaf():
    X, y = data()
    booster = grown(X, y, rounds=3, min_data_in_leaf=len(X))
    assert scorer(booster).n_trees == booster.num_trees() == 1  # LightGBM stops at once
    assert_same(booster, X)


def test_a_single_leaf_among_other_trees():
    X, y = data()
    leaf = scorer(grown(X, y, rounds=1, min_data_in_leaf=len(X)))
    trees = scorer(grown(X, y, rounds=3))
    assert_same(trees.join([leaf, trees]).booster, X)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 63, 64, 65, 255, 256, 257])
def test_any_number_of_rows(n):
    X, y = data()
    booster = grown(X, y)
    expected = booster.predict(X)[:n]
    assert (scorer(booster).scores(X[:n]) == expected).all()


def test_columns_in_any_layout_and_an_initial_score():
    X, y = data()
    booster = grown(X, y)
    forest = scorer(booster)
    expected, raised = 0.3 + booster.predict(X), replace(forest, offset=0.3)
    for some in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        assert (raised.scores(some) == expected).all()


def test_linear_leaves_are_refused():
    X, y = data()
    booster = grown(X, y, linear_tree=True)
    with pytest.raises(IncompatibleError, match="linear models in their leaves"):
        scorer(booster)


@pytest.mark.parametrize(
    ("line", "damage"),
    [
        ("split_feature=", lambda numbers: ["99", *numbers[1:]]),
        ("split_feature=", lambda numbers: numbers[1:]),
        ("left_child=", lambda numbers: ["0", *numbers[1:]]),  # a split that leads to itself
        ("right_child=", lambda numbers: ["-999", *numbers[1:]]),
        ("right_child=", lambda numbers: [numbers[1], *numbers[1:]]),  # a child of two splits
        ("leaf_value=", lambda numbers: ["inf", *numbers[1:]]),
        ("threshold=", lambda numbers: ["nan", *numbers[1:]]),
        ("leaf_count=", lambda numbers: numbers[1:]),
        ("num_cat=", lambda numbers: ["1000000000"]),
        ("leaf_value=", lambda numbers: numbers[1:]),
        ("leaf_value=", lambda numbers: ["0.1x", *numbers[1:]]),
        ("left_child=", lambda numbers: ["9" * 30, *numbers[1:]]),
        ("decision_type=", lambda numbers: ["1", *numbers[1:]]),  # a set that is not there
    ],
)
def test_damaged_trees_are_refused(line, damage):
    lines = grown(*data(), rounds=2).model_to_string().split("\n")
    last = max(k for k, text in enumerate(lines) if text.startswith(line))
    lines[last] = line + " ".join(damage(lines[last].removeprefix(line).split()))
    with pytest.raises(DataError, match="tree 1 of the model is damaged"):
        read_trees("\n".join(lines), FEATURES)


def test_a_forest_is_constant_where_no_tree_tells_rows_apart():
    data = synthetic("web", queries=10)
    grown = ranker("gbdt", n_estimators=2, min_child_samples=5).fit(data).model_
    stumps = ranker("gbdt", n_estimators=2, min_child_samples=10**6).fit(data).model_
    for model, constant in ((grown, False), (stumps, True)):
        assert model.is_constant == constant == bool(np.ptp(model.scores(data.X)) == 0.0)


def test_a_fit_without_validation_compiles_no_kernels_of_scoring(monkeypatch):
    def refuse(*_):
        raise AssertionError("a forest was compiled")

    monkeypatch.setattr(Scorer, "of", refuse)
    fitted = ranker("lambdamart", n_estimators=2).fit(synthetic("web", queries=10))
    assert fitted.model_.n_trees == 2
