"""Model files that version 0.1 wrote load, and score to the last bit as they did then."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rankwright as rw
from rankwright import runtime

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
