"""Ranking from a model file alone: the ranker's own scores, without the training packages."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from small_data import small_data

from rankwright import registry
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.persist import runtime
from rankwright.persist.container import ModelFileError, read_parts, write_parts
from rankwright.persist.model_file import load_model
from rankwright.rankers.base import ranker

DATA = small_data(queries=10, feature_names=list("abcdef"))
RANKERS = {  # one ranker of each family of models
    "additive": ("rankboost", {"n_rounds": 5}),
    "classifier": ("classification", {}),
    "coordinate_ascent": ("coordinate_ascent", {"n_restarts": 1}),
    "expression": ("rankgp", {"population": 30, "n_generations": 2}),
    "factorization": ("cofirank", {}),
    "feature_sum": ("adarank", {}),
    "forest": ("random_forest", {"n_bags": 2}),
    "jrank": ("jrank", {}),
    "kernel": ("ranker", {"loss": "ranknet", "model__l2": 0.1}),
    "least_squares": ("linear_regression", {}),
    "linear": ("listnet", {}),
    "network": ("ranknet", {"hidden_layer_sizes": (4,), "epochs": 2}),
    "passive_aggressive": ("pamir", {"n_steps": 100}),
    "prank": ("prank", {}),
    "trees": ("lambdamart", {"n_estimators": 3}),
}
HEAVY = ("sklearn", "lightgbm", "torch", "pandas", "polars", "scipy.optimize", "scipy.stats")
PROGRAM = """
import json, sys
import numpy as np
from rankwright.persist import runtime
rankings = {}
X = np.load(sys.argv[1])
for path in sys.argv[2:]:
    loaded = runtime.load(path)
    rankings[path] = loaded.rank(X, top=5).order.tolist()
    if loaded.receipt["model"] in ("trees", "forest"):
        loaded.model.contributions(X)
        loaded.model.importance("gain")
print(json.dumps([rankings, sorted(sys.modules)]))
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    found = {}
    for family, (name, parameters) in RANKERS.items():
        fitted = ranker(name, model=family, **parameters).fit(DATA)
        fitted.save(folder / f"{family}.rw")
        found[family] = folder / f"{family}.rw", fitted
    return found


def assert_same(ranking, expected):
    for name in ("order", "indptr", "scores"):
        np.testing.assert_array_equal(getattr(ranking, name), getattr(expected, name))


def test_every_family_of_models_is_tried():
    assert set(RANKERS) == set(registry.MODELS)


@pytest.mark.parametrize("family", RANKERS)
def test_scores_and_rankings_are_those_of_the_ranker(saved, family):
    path, fitted = saved[family]
    model = runtime.load(path)
    assert (model.scores(DATA) == fitted.predict(DATA)).all()
    assert_same(model.rank(DATA, top=3), fitted.rank(DATA, top=3))
    assert model.feature_names == tuple("abcdef")
    qid = np.tile(np.arange(20), 10)  # rows of a query apart
    X = np.asarray(DATA.X)
    assert (model.scores(X, qid=qid) == fitted.predict(X, qid=qid)).all()
    expected = fitted.rank(X, qid=qid, group=DATA.y, per_group=2, top=5)
    assert_same(model.rank(X, qid=qid, group=DATA.y, per_group=2, top=5), expected)
    expected = fitted.rank(DATA, group=DATA.y, per_group=1)
    assert_same(model.rank(DATA, group=DATA.y, per_group=1), expected)


def test_the_process_imports_none_of_the_training_packages(saved, tmp_path):
    X = np.asarray(DATA.X)[:20]
    np.save(tmp_path / "X.npy", X)
    paths = [str(path) for path, _ in saved.values()]
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "X.npy"), *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rankings, modules = json.loads(done.stdout)
    assert not [name for name in modules if name in HEAVY]
    for path, fitted in saved.values():
        one = RankingData.from_arrays(X, None, qid=np.zeros(20, int))
        assert rankings[str(path)] == runtime.load(path).rank(one, top=5).order.tolist()
        if not hasattr(fitted.model_, "scores_of"):
            assert rankings[str(path)] == fitted.rank(X, top=5).order.tolist()


def test_sparse_rows_score_as_dense_ones(saved):
    model = runtime.load(saved["trees"][0])
    X = np.asarray(DATA.X)
    assert (model.scores(sparse.csr_array(X)) == model.scores(X)).all()


def test_what_does_not_fit_is_refused(saved):
    import pandas as pd

    model = runtime.load(saved["linear"][0])
    with pytest.raises(DataError, match="X has 5 features, the model has 6"):
        model.scores(np.zeros((3, 5)))
    with pytest.raises(UsageError, match="pass the columns of the frame in the order"):
        model.rank(pd.DataFrame(np.zeros((3, 6)), columns=list("fedcba")))
    with pytest.raises(DataError, match="other features, or in another order"):
        model.scores(small_data(feature_names=list("fedcba")))
    with pytest.raises(UsageError, match="top must be 1 or more, not 0"):
        model.rank(np.zeros((3, 6)), top=0)


# --- forged files: well sealed, but the parts do not go together -----------------------------


def shorter(name):
    def forge(receipt, arrays):
        arrays[name] = arrays[name][:-1]

    return forge


def replaced(name, value):
    def forge(receipt, arrays):
        receipt[name] = value

    return forge


def without(name):
    def forge(receipt, arrays):
        del receipt[name]

    return forge


def far_column(receipt, arrays):
    arrays["feature"] = arrays["feature"] + 1000


def no_arrays(receipt, arrays):
    arrays.clear()


@pytest.mark.parametrize(
    ("family", "forge"),
    [
        ("linear", shorter("coef")),
        ("linear", no_arrays),
        ("linear", replaced("n_features", 10**12)),
        ("linear", replaced("n_features", 0)),
        ("linear", replaced("n_features", "6")),
        ("linear", replaced("feature_names", ["a"])),
        ("linear", replaced("feature_names", 6)),
        ("linear", replaced("feature_names", "abcdef")),
        ("linear", replaced("feature_names", list("abcdee"))),
        ("linear", without("ranker")),
        ("linear", without("curve")),
        ("linear", without("best_iteration")),
        ("linear", without("feature_names")),
        ("linear", replaced("model", "none")),
        ("linear", replaced("parameters", None)),
        ("linear", replaced("best_iteration", -1)),
        ("linear", replaced("curve", {"loss": [{"float": "x"}]})),
        ("linear", replaced("qid_column", 3)),
        ("linear", replaced("first_feature_id", 2)),
        ("linear", replaced("feature_deviation", ["x"])),
        ("trees", replaced("model", "linear")),
        ("additive", far_column),
        ("additive", shorter("value")),
        ("trees", shorter("left")),
        ("factorization", shorter("item_bias")),
    ],
)
def test_parts_that_do_not_go_together_are_refused(saved, family, forge, tmp_path):
    from safetensors.numpy import load, save

    receipt, parts = read_parts(saved[family][0])
    arrays = load(parts["arrays.safetensors"])
    forge(receipt, arrays)
    write_parts(tmp_path / "m.rw", receipt, {**parts, "arrays.safetensors": save(arrays)})
    for load_file in (runtime.load, load_model):
        with pytest.raises(ModelFileError, match="does not match its receipt"):
            load_file(tmp_path / "m.rw")


@pytest.mark.parametrize("model", ["none", "trees", {"part": {"kind": "models", "name": "trees"}}])
def test_a_ranker_of_another_model_than_the_file_holds_is_refused(saved, model, tmp_path):
    receipt, parts = read_parts(saved["linear"][0])
    receipt["parameters"] = {"model": model}
    write_parts(tmp_path / "m.rw", receipt, parts)
    with pytest.raises(ModelFileError, match="does not match its receipt"):
        load_model(tmp_path / "m.rw")
