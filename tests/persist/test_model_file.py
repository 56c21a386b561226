import subprocess
import sys
import zipfile

import numpy as np
import pytest
from small_data import small_data

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
            with pytest.raises(ModelFileError, match="does not match its receipt"):
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
        assert sorted(archive.namelist()) == ["arrays.safetensors", "receipt.json"]


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


def test_parameters_are_whole_unless_one_is_only_a_name():
    def own(grades, scores):
        return 0.0

    absent = kept_parameters(ranker("memr", metric=own))["metric"]
    for whole in (1.0, "map", None, [], {}, [1, [2]], {"a": [1], "b": {"c": "d"}}):
        assert holds_all(whole)
    for lacking in (absent, [1, absent], {"a": 1, "b": absent}, {"a": {"b": [absent]}}):
        assert not holds_all(lacking)
