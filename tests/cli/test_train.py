import signal
import subprocess
import sys
import time

import pytest
from command import run, run_json, sentence
from small_data import small_data

from rankwright import losses, models, solvers, synthetic
from rankwright.cli import options
from rankwright.data.files import convert, save
from rankwright.persist.container import read_parts
from rankwright.persist.model_file import load_model

GBDT = ("train", "gbdt", "--set", "n_estimators=5")


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


OWN_LOSS = """\
from rankwright.losses import from_function

def squared(scores, grades):
    return 0.5 * ((scores - grades) ** 2).sum(), scores - grades

loss = from_function(squared)
"""


def test_a_loss_of_a_file_of_your_own_trains(files, tmp_path):
    (tmp_path / "mine.py").write_text(OWN_LOSS)
    fit = ("train", "ranker", "--model", "trees", "--set", "model.n_estimators=3", *parts(files))
    own = run_json(*fit, "--set", f"loss={tmp_path / 'mine.py'}", "--save", tmp_path / "mine.rw")
    named = run_json(*fit, "--set", "loss=squared")
    assert own["test"] == pytest.approx(named["test"])
    (tmp_path / "mine.py").unlink()  # ranking needs no loss
    assert len(run("rank", tmp_path / "mine.rw", files / "test.txt").stdout) > 0
    assert sentence(*fit, "--set", f"loss={tmp_path / 'mine.py'}").startswith(
        "cannot read a loss from"
    )


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


def test_parameters_of_the_parts_are_set_by_dotted_names(files, tmp_path):
    settings = ("n_estimators=3", "model.num_leaves=4", "model.max_bins=15")
    given = [word for setting in settings for word in ("--set", setting)]
    found = run_json(
        "train", "lambdamart", *given, "--train", files / "train.txt", "--save", tmp_path / "m.rw"
    )
    assert (found["ranker"], found["model"], found["best_iteration"]) == ("lambdamart", "trees", 3)
    made = load_model(tmp_path / "m.rw")
    assert made.model == models.Trees(n_estimators=3, num_leaves=4, max_bins=15)
    assert run_json("inspect", tmp_path / "m.rw")["parameters"] == {
        "model.n_estimators": 3,
        "model.num_leaves": 4,
        "model.max_bins": 15,
    }


def test_a_loss_a_model_and_a_solver_are_put_together(files, tmp_path):
    trees = ("--set", "model=trees", "--set", "model.n_estimators=3")
    train = ("--train", files / "train.txt", "--save", tmp_path / "m.rw")
    found = run_json(
        "train", "ranker", "--set", "loss=listnet", "--set", "loss.k=3", *trees, *train
    )
    assert (found["ranker"], found["model"]) == ("ranker", "trees")
    made = load_model(tmp_path / "m.rw")
    assert (made.loss, made.model) == (losses.ListNet(k=3), models.Trees(n_estimators=3))
    solver = ("--set", "solver=lbfgs", "--set", "solver.tol=1e-8")
    found = run_json("train", "listnet", *solver, *train)
    assert found["model"] == "linear"
    assert load_model(tmp_path / "m.rw").solver == solvers.LBFGS(tol=1e-8)
    said = sentence("train", "ranker", "--model", "trees", *solver, *train)
    assert "'trees' takes no solver" in said
    said = sentence("train", "gbdt", "--set", "model.max_bin=15", *train)
    assert "Trees has no parameter 'max_bin'; it is called max_bins here" in said


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
            "GBDT has no parameter 'leafs'; did you mean num_leaves",
        ),
        (
            (*GBDT, "--model", "linear", "--train", "x"),
            "n_estimators is a parameter of GBDT's default model 'trees', which model=",
        ),
        (("rank", "absent.rw", "x"), "absent.rw does not exist"),
    ],
)
def test_mistakes_are_one_sentence(arguments, expected):
    assert expected in sentence(*arguments)


def test_ctrl_c_saves_the_best_model_so_far(files, tmp_path):
    model, kept = tmp_path / "m.rw", tmp_path / "kept"  # which shows that trees are growing
    command = [sys.executable, "-m", "rankwright", "train", "gbdt", "--set", "n_estimators=1000000",
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


def test_hidden_layers_are_a_list_and_go_by_their_name_here(tmp_path):
    pytest.importorskip("torch")
    given = ("--train", "no-such-file.txt")
    said = sentence("train", "ranknet", *given, "--set", "hidden=8,4")
    assert "RankNet has no parameter 'hidden'; it is called hidden_layer_sizes here" in said
    said = sentence("train", "listnet", *given, "--model", "network", "--set", "hidden=8,4")
    assert "its model has: write model__hidden_layer_sizes" in said
    data = tmp_path / "data.txt"
    save(small_data(queries=3, documents=4), data)
    model = tmp_path / "m.rw"
    layers = ("--set", "hidden_layer_sizes=8,4", "--set", "epochs=1")
    run("train", "ranknet", "--train", data, *layers, "--save", model)
    assert load_model(model).hidden_layer_sizes == (8, 4)
    said = sentence("train", "ranknet", "--train", data, "--set", "hidden_layer_sizes=8,a")
    assert "hidden_layer_sizes must be whole numbers" in said


def test_a_run_interrupted_while_it_scores_keeps_its_model(files, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(options, "metrics_of", interrupted)
    run(*GBDT, *parts(files), "--save", tmp_path / "m.rw", code=130)
    assert load_model(tmp_path / "m.rw").booster_.num_trees() > 0


def test_text_gives_the_model_that_its_store_gives(tmp_path):
    text, store = tmp_path / "t.txt.gz", tmp_path / "t.store"
    save(synthetic("mslr10k", queries=20), text)
    convert(text, store)
    for name, path in (("a", text), ("b", store)):
        run("train", "memr", "--train", path, "--save", tmp_path / name, "--set", "max_iter=3")
    (of_text, text_parts), (of_store, store_parts) = (
        read_parts(tmp_path / name) for name in ("a", "b")
    )
    assert of_text["first_feature_id"] == 1
    assert of_text == of_store
    assert text_parts == store_parts
