import re
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pytest
from command import run, run_json, sentence
from distributed import LocalCluster
from small_data import small_data

from rankwright.data.files import load, save
from rankwright.distributed.cluster import ClusterError, _check_workers, cluster
from rankwright.errors import UsageError
from rankwright.persist.model_file import load_model
from rankwright.rankers.base import ranker

GBDT = ("train", "gbdt", "--set", "n_estimators=6", "--set", "num_leaves=4")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for seed, name in enumerate(("train", "valid")):
        save(small_data(seed=seed), folder / f"{name}.txt")
    return folder


def test_train_on_local_workers_saves_the_model_of_one_process(files, tmp_path):
    data = ("--train", files / "train.txt", "--valid", files / "valid.txt")
    one = run_json(*GBDT, *data, "--save", tmp_path / "one.rw")
    there = ("--dask", "local:2", "--parts", 3, "--checkpoint", tmp_path / "kept", "--every", 3)
    two = run_json(*GBDT, *data, "--save", tmp_path / "two.rw", *there, alone=True)
    assert two["best_iteration"] == one["best_iteration"]
    assert two["valid"] == pytest.approx(one["valid"])
    valid = load(files / "valid.txt")
    np.testing.assert_allclose(
        load_model(tmp_path / "two.rw").predict(valid),
        load_model(tmp_path / "one.rw").predict(valid),
        rtol=1e-6,
    )
    assert (tmp_path / "kept" / "receipt.json").exists()


def test_evaluate_on_a_scheduler_gives_the_figures_of_one_process(files, tmp_path):
    ranker("linear_regression").fit(load(files / "train.txt")).save(tmp_path / "m.rw")
    asked = ("evaluate", files / "valid.txt", "--load", tmp_path / "m.rw")
    with LocalCluster(
        n_workers=1, processes=False, protocol="tcp://", dashboard_address=":0"
    ) as started:
        there = ("--dask", started.scheduler_address, "--parts", 3)
        per_query = tmp_path / "q.tsv"
        found = run_json(*asked, *there, "--per-query", per_query, alone=True)
        save(load(files / "valid.txt"), tmp_path / "valid.store")
        stored = run_json("evaluate", tmp_path / "valid.store", *asked[2:], *there)
        assert stored["metrics"] == found["metrics"]
        assert "--dask evaluates models" in sentence(*asked[:2], "--feature", 1, *there)
    assert found == run_json(*asked, "--per-query", tmp_path / "one.tsv")
    assert per_query.read_text() == (tmp_path / "one.tsv").read_text()


def test_rank_and_tune_on_workers_give_what_one_process_gives(files, tmp_path):
    pytest.importorskip("optuna")
    model, run_file = tmp_path / "m.rw", tmp_path / "run.txt"
    ranker("linear_regression").fit(load(files / "train.txt")).save(model)
    data = ("--train", files / "train.txt", "--valid", files / "valid.txt")
    tune = ("tune", "ranksvm", *data, "--set", "pairs=query", "--trials", 3)
    with LocalCluster(
        n_workers=1, processes=False, protocol="tcp://", dashboard_address=":0"
    ) as started:
        there = ("--dask", started.scheduler_address)
        ranked = ("rank", model, files / "valid.txt", "-o", run_file, *there, "--parts", 3)
        reported = run_json(*ranked, alone=True)
        over = run_json(*tune, *there, "--at-once", 1, "--save", tmp_path / "tuned.rw")
        wrong = tmp_path / "parts"
        wrong.mkdir()
        save(load(files / "valid.txt"), wrong / "a.txt")
        command = ("rank", model, wrong, *there, "--read", "zero_base=true")
        said = run(*command, code=2).stderr.splitlines()[-1]
    assert said.startswith("rankwright: format 'letor' has no option 'zero_base' to read; it takes")
    assert (reported["queries"], reported["documents"]) == (30, 600)
    run("rank", model, files / "valid.txt", "-o", tmp_path / "one.txt")
    assert run_file.read_bytes() == (tmp_path / "one.txt").read_bytes()
    assert over["parameters"] == run_json(*tune)["parameters"]
    assert load_model(tmp_path / "tuned.rw").l2 == over["parameters"]["l2"]


def test_a_scheduler_that_does_not_answer_is_reported_in_a_sentence(files):
    reported = sentence(
        *GBDT, "--train", files / "train.txt", "--dask", "tcp://127.0.0.1:1", alone=True
    )
    assert reported == (
        "no scheduler answers at tcp://127.0.0.1:1; start one with `dask scheduler`, and workers "
        "with `dask worker`."
    )


@pytest.mark.parametrize(
    ("where", "reported"),
    [
        ("somewhere", "'somewhere' is not a cluster: give local:4, the address of a scheduler"),
        ("local:0", "local:N needs one worker or more, such as local:4."),
    ],
)
def test_what_is_no_cluster_is_reported(where, reported):
    with pytest.raises(UsageError, match=re.escape(reported)), cluster(where):
        pass


@pytest.mark.parametrize("content", ["not json", '{"other": 1}'])
def test_a_file_that_is_no_scheduler_file_is_reported(tmp_path, content):
    wrong = tmp_path / "scheduler.json"
    wrong.write_text(content)
    with pytest.raises(UsageError, match=r"scheduler.json' is not a cluster"), cluster(str(wrong)):
        pass


def test_options_that_go_together():
    reported = sentence("train", "gbdt", "--train", "t", "--parts", 3)
    assert reported == "--parts needs --dask, the cluster that the parts go to."
    reported = sentence("train", "auto", "--train", "t", "--dask", "local:2")
    assert "auto tries rankers with their default parameters and takes no --dask" in reported


class _Cluster:
    """A client whose worker has given versions of packages, and lacks others."""

    def __init__(self, **versions):
        self._versions = versions

    def wait_for_workers(self, count, timeout):
        if not self._versions:
            raise TimeoutError

    def run(self, function, package, on_error):
        assert function is version
        return {"tcp://w:1": self._versions.get(package) or PackageNotFoundError(package)}


def test_workers_that_cannot_do_the_work_are_named():
    _check_workers(_Cluster(rankwright=version("rankwright"), lightgbm=version("lightgbm")), "s")
    with pytest.raises(ClusterError, match="the scheduler at s has no worker; start some with"):
        _check_workers(_Cluster(), "s")
    with pytest.raises(ClusterError, match="worker tcp://w:1 has no rankwright; install"):
        _check_workers(_Cluster(lightgbm=version("lightgbm")), "s")
    with pytest.raises(ClusterError, match=r"tcp://w:1 has rankwright 0\.0\.1, this is"):
        _check_workers(_Cluster(rankwright="0.0.1"), "s")
