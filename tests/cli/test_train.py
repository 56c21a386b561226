import signal
import subprocess
import sys
import time

import pytest
from command import run, run_json, sentence
from small_data import small_data

from rankwright.data.files import save
from rankwright.persist.model_file import load_model

GBDT = ("train", "gbdt", "--set", "n_trees=5")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for seed, name in enumerate(("train", "valid", "test")):
        save(small_data(seed=seed), folder / f"{name}.txt")
    return folder


def parts(files):
    return [x for name in ("train", "valid", "test") for x in (f"--{name}", files / f"{name}.txt")]


def test_train_prints_saves_and_ranks(files, tmp_path):
    model = tmp_path / "m.rw"
    found = run_json(*GBDT, *parts(files), "--save", model, alone=True)
    assert found["saved"] == str(model)
    assert (found["ranker"], found["model"], found["resumed_from"]) == ("gbdt", "trees", None)
    for part in ("valid", "test"):
        assert list(found[part]) == ["ndcg@10", "ndcg@1", "ndcg@5", "map"]
    assert load_model(model).booster_.num_trees() == found["best_iteration"]

    run_file = tmp_path / "out.run"
    run("rank", model, files / "test.txt", "-o", run_file, alone=True)
    by_run = run_json("evaluate", files / "test.txt", "--scores", run_file, "--metrics", "ndcg@10")
    assert by_run["metrics"]["ndcg@10"] == pytest.approx(found["test"]["ndcg@10"])
    lines = run_file.read_text().splitlines()
    best = run("rank", model, files / "test.txt", "--top", 2).stdout.splitlines()
    assert best == [line for line in lines if line.split()[3] in ("1", "2")]
    by_model = run_json("evaluate", files / "test.txt", "--load", model, "--metrics", "ndcg@10")
    assert by_model["metrics"]["ndcg@10"] == pytest.approx(found["test"]["ndcg@10"])


def test_the_table_names_its_convention(files):
    text = run(*GBDT, *parts(files), "--convention", "letor3").stdout
    assert "convention letor3" in text
    assert "ndcg@10" in text


def test_the_same_seed_gives_the_same_bytes_on_any_number_of_threads(files, tmp_path):
    for threads in (1, 2, 5):
        run(
            *GBDT,
            "--train",
            files / "train.txt",
            "--threads",
            threads,
            "--save",
            tmp_path / f"{threads}.rw",
        )
    contents = {path.read_bytes() for path in tmp_path.iterdir()}
    assert len(contents) == 1


@pytest.mark.parametrize("model", ["trees", "linear"])
def test_the_model_can_be_chosen(files, model):
    assert (
        run_json("train", "gbdt", "--model", model, "--train", files / "train.txt")["model"]
        == model
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("train", "gdbt", "--train", "x"), "there is no ranker 'gdbt'; did you mean gbdt"),
        ((*GBDT, "--train", "absent.txt"), "absent.txt does not exist"),
        ((*GBDT, "--set", "leaves", "--train", "x"), "--set takes key=value, not 'leaves'"),
        (
            (*GBDT, "--set", "leafs=3", "--train", "x"),
            "no parameter of GBDT 'leafs'; did you mean leaves",
        ),
        (
            (*GBDT, "--model", "linear", "--train", "x"),
            "n_trees is not a parameter of model 'linear'",
        ),
        (("rank", "absent.rw", "x"), "absent.rw does not exist"),
    ],
)
def test_mistakes_are_one_sentence(arguments, expected):
    assert expected in sentence(*arguments)


def test_ctrl_c_saves_the_best_model_so_far(files, tmp_path):
    model, kept = tmp_path / "m.rw", tmp_path / "kept"  # which shows that trees are growing
    command = [sys.executable, "-m", "rankwright", "train", "gbdt", "--set", "n_trees=1000000",
               "--train", str(files / "train.txt"), "--save", str(model),
               "--checkpoint", str(kept), "--every", "5"]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while not list(kept.glob("state-*")):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "interrupted" in stderr
    assert 0 < load_model(model).booster_.num_trees() < 1_000_000


def test_a_failed_save_leaves_nothing_behind(files, tmp_path):
    target = tmp_path / "no" / "m.rw"
    assert "make it, or choose another --save" in sentence(
        *GBDT, "--train", files / "train.txt", "--save", target
    )
    assert not list(tmp_path.iterdir())
