import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_data import small_data

import rankwright as rw
from rankwright import runtime
from rankwright.losses import Interval, ListNet
from rankwright.metrics import NDCG
from rankwright.models import Linear
from rankwright.persist.container import ModelFileError, read_parts, write_parts
from rankwright.persist.model_file import holds_all, kept_parameters, load_model
from rankwright.rankers.base import NotFittedError, ranker
from rankwright.solvers import TRON

DATA = small_data(feature_names=["a", "b", "c", "d", "e", "f"])

FITTED = [
    ("gbdt", {"n_estimators": 5}),
    ("listmle", {"model": Linear(l2=0.1)}),
    ("random_forest", {"n_bags": 3, "loss": Interval(lambda1=0.03)}),
    ("intervalrank", {"n_estimators": 3, "lambda1": float("inf"), "lambda2": float("inf")}),
    ("gbdt", {"n_estimators": 3, "targets": (0.0, 1.0, 5.0), "monotone_constraints": {"a": 1}}),
    ("ranker", {"loss": ListNet(target="gain"), "solver": TRON(tol=1e-6)}),
]


@pytest.mark.parametrize(("name", "params"), FITTED)
def test_a_loaded_ranker_scores_to_the_last_bit(tmp_path, name, params):
    fitted = ranker(name, **params).fit(DATA, eval_set=small_data(seed=1))
    fitted.save(tmp_path / "m.rw")
    again = load_model(tmp_path / "m.rw")
    assert (again.predict(DATA) == fitted.predict(DATA)).all()
    assert again.get_params() == fitted.get_params()
    assert again.curve_ == fitted.curve_
    assert list(again.feature_names_in_) == list("abcdef")


def test_what_a_file_says_of_its_fit_is_of_the_right_type(tmp_path):
    ranker("gbdt", n_estimators=2).fit(DATA).save(tmp_path / "m.rw")
    receipt, parts = read_parts(tmp_path / "m.rw")
    own = {key: value for key, value in receipt.items() if key not in ("format", "parts")}
    wrong = {"best_iteration": ["x", -1, True, 1.5, None], "data": [3, None]}
    wrong["curve"] = [[], {"loss": 3}, {"loss": ["x"]}, {"loss": [[1.0]]}]
    for name, values in wrong.items():
        for value in values:
            write_parts(tmp_path / "m.rw", {**own, name: value}, parts)
            with pytest.raises(ModelFileError, match="does not hold what its receipt says"):
                load_model(tmp_path / "m.rw")


def test_a_metric_object_is_its_name_in_the_file(tmp_path):
    fitted = ranker("lambdamart", metric=NDCG(k=5), n_estimators=3).fit(DATA)
    fitted.save(tmp_path / "m.rw")
    again = load_model(tmp_path / "m.rw")
    assert again.metric == "ndcg@5"
    assert (again.fit(DATA).predict(DATA) == fitted.predict(DATA)).all()


def test_the_same_seed_gives_the_same_bytes_for_any_number_of_threads(tmp_path):
    files = []
    for threads in (1, 2, 5):
        path = tmp_path / f"{threads}.rw"
        ranker("gbdt", n_estimators=5, subsample=0.5, n_jobs=threads).fit(DATA).save(path)
        files.append(path.read_bytes())
    assert files[0] == files[1] == files[2]


def test_a_ranker_that_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError, match="call fit first"):
        ranker("gbdt").save(tmp_path / "m.rw")
    assert not list(tmp_path.iterdir())


def test_nothing_in_the_file_is_a_pickle(tmp_path):
    ranker("gbdt", n_estimators=2).fit(DATA).save(tmp_path / "m.rw")
    with zipfile.ZipFile(tmp_path / "m.rw") as archive:
        assert sorted(archive.namelist()) == ["arrays.safetensors", "lightgbm.txt", "receipt.json"]


def test_a_model_scores_alike_in_another_process(tmp_path):
    fitted = ranker("gbdt", n_estimators=3).fit(DATA)
    fitted.save(tmp_path / "m.rw")
    np.save(tmp_path / "X.npy", DATA.X)
    code = (
        "import numpy as np, sys; from rankwright.persist.model_file import load_model\n"
        "print(load_model(sys.argv[1]).predict(np.load(sys.argv[2])).tobytes().hex())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "m.rw", tmp_path / "X.npy"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == fitted.predict(DATA.X).tobytes().hex()


# --- files of earlier versions ----------------------------------------------------------------


FOLDER = Path(__file__).parent / "files-0.1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
X, QID = np.array(EXPECTED["X"]), np.array(EXPECTED["qid"])


def scores(name):
    return [float.fromhex(text) for text in EXPECTED["scores"][name]]


@pytest.mark.parametrize("name", EXPECTED["scores"])
def test_a_file_of_0_1_scores_as_it_did(name):
    path = FOLDER / f"{name}.rw"
    assert rw.load_model(path).predict(X, qid=QID).tolist() == scores(name)
    assert runtime.load(path).scores(X, qid=QID).tolist() == scores(name)


def test_ratings_of_0_1_are_known_again():
    kept = EXPECTED["cofirank"]
    pairs = pd.DataFrame({"user": kept["user"], "item": kept["item"]})
    expected = [float.fromhex(text) for text in kept["scores"]]
    assert rw.load_model(FOLDER / "cofirank.rw").predict(pairs).tolist() == expected


def test_parameters_of_0_1_have_the_names_of_today():
    trees = rw.load_model(FOLDER / "lambdamart.rw")
    assert (trees.n_estimators, trees.num_leaves, trees.min_child_samples) == (12, 5, 5)
    assert (trees.subsample, trees.colsample_bytree, trees.reg_lambda) == (0.8, 0.7, 0.5)
    assert (trees.random_state, trees.early_stopping_rounds) == (3, 4)
    linear = rw.load_model(FOLDER / "memr.rw")
    assert (linear.l2, linear.tol, linear.max_iter, linear.solver) == (0.5, 1e-8, 200, "tron")
    network = rw.load_model(FOLDER / "ranknet.rw")
    assert (network.hidden_layer_sizes, network.epochs, network.batch_size) == ((5, 3), 4, 64)
    kernel = rw.load_model(FOLDER / "ranksvm_kernel.rw")
    assert kernel.model == rw.models.Kernel(gamma=0.2)
    assert kernel.solver == "lbfgs"
    forest = rw.load_model(FOLDER / "random_forest.rw")
    assert forest.loss == rw.losses.LambdaRank(sigma=2.0)
    composed = rw.load_model(FOLDER / "compose.rw")
    assert (composed.loss, composed.model) == (rw.losses.ListNet(k=2), rw.models.Linear())


@pytest.mark.parametrize("name", ["lambdamart", "memr", "random_forest", "compose", "dorm"])
def test_a_ranker_of_0_1_can_be_fitted_again_and_saved(name, tmp_path):
    ranker = rw.load_model(FOLDER / f"{name}.rw")
    rng = np.random.default_rng(0)
    ranker.fit(rng.normal(size=(40, 6)), rng.integers(0, 3, 40), qid=np.repeat(range(4), 10))
    ranker.save(tmp_path / "again.rw")
    again = rw.load_model(tmp_path / "again.rw")
    assert again.get_params(deep=False) == ranker.get_params(deep=False)
    assert again.predict(X, qid=QID).tolist() == ranker.predict(X, qid=QID).tolist()


def test_parameters_are_whole_unless_one_is_only_a_name():
    def own(grades, scores):
        return 0.0

    absent = kept_parameters(ranker("memr", metric=own))["metric"]
    for whole in (1.0, "map", None, [], {}, [1, [2]], {"a": [1], "b": {"c": "d"}}):
        assert holds_all(whole)
    for lacking in (absent, [1, absent], {"a": 1, "b": absent}, {"a": {"b": [absent]}}):
        assert not holds_all(lacking)
