"""``rankwright tune``: trials, the best model, and going on later."""

import pytest
from command import run, run_json, sentence
from small_data import small_data

import rankwright
from rankwright.data.files import save

pytest.importorskip("optuna")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    paths = []
    for number, part in enumerate(("train", "valid", "test")):
        paths += [f"--{part}", folder / f"{part}.txt"]
        save(small_data(queries=8, documents=8, seed=number), paths[-1])
    return paths


def test_the_best_model_is_saved_and_later_runs_go_on(files, tmp_path):
    storage, model = tmp_path / "trials.log", tmp_path / "model.rw"
    first = run_json("tune", "ranksvm", *files, "--trials", 2, "--storage", storage, alone=True)
    reported = run_json(
        "tune", "ranksvm", *files, "--trials", 4, "--storage", storage, "--save", model
    )
    assert [trial["parameters"] for trial in reported["trials"][:2]] == [
        trial["parameters"] for trial in first["trials"]
    ]
    best = max(reported["trials"], key=lambda trial: trial["value"])
    assert reported["parameters"] == best["parameters"]
    assert reported["valid"] == {"ndcg@10": best["value"]}
    loaded = rankwright.load_model(model)
    assert loaded.l2 == best["parameters"]["l2"]
    assert loaded.score(rankwright.load(files[5])) == reported["test"]["ndcg@10"]


def test_the_table_shows_the_best_trials_and_how_to_set_them(files):
    done = run("tune", "ranksvm", *files, "--trials", 2, "--set", "pairs=query")
    assert "valid ndcg@10" in done.stdout
    assert "best: --set l2=" in done.stdout
    assert "pairs" not in done.stdout  # what is set is not searched
    assert "1 of 2: complete " in done.stderr


def test_parameters_of_a_model_are_searched_by_dotted_names(files):
    given = ("--set", "loss=listnet", "--model", "trees", "--set", "model.n_estimators=3")
    done = run("tune", "ranker", *files, *given, "--trials", 2)
    assert "best: --set model.num_leaves=" in done.stdout
    assert "--set model.n_estimators=" not in done.stdout
    found = run_json("tune", "ranker", *files, *given, "--trials", 2)
    assert set(found["parameters"]) >= {"model__num_leaves", "model__learning_rate"}
    assert found["model"] == "trees"


def test_what_has_nothing_to_search_is_reported(files):
    said = sentence("tune", "ranksvm", *files, "--set", "l2=1", "--set", "pairs=query")
    assert "has nothing to search" in said


def test_a_space_and_folds_are_searched_without_valid(files):
    space = ("--space", "l2=0.01:1:log", "--space", "pairs=uniform,query")
    found = run_json("tune", "ranksvm", *files[:2], *space, "--folds", 2, "--trials", 3)
    assert set(found["parameters"]) == {"l2", "pairs"}
    assert all(0.01 <= trial["parameters"]["l2"] <= 1 for trial in found["trials"][1:])
    assert found["folds"]["ndcg@10"] == max(trial["value"] for trial in found["trials"])
    shown = run("tune", "ranksvm", *files[:2], *space, "--folds", 2, "--trials", 1).stdout
    assert "folds ndcg@10" in shown


def test_a_wrong_space_is_reported_before_data_are_read():
    given = ("tune", "lambdamart", "--train", "no-such-file.txt")
    assert "is reversed; write (7, 63)" in sentence(*given, "--space", "num_leaves=63:7")
    assert "'num_leafs'; did you mean num_leaves" in sentence(*given, "--space", "num_leafs=7:63")
    assert "key=value" in sentence(*given, "--space", "num_leaves")
    both = sentence(*given, "--valid", "no-such-file.txt", "--folds", 3)
    assert "valid and folds both" in both
