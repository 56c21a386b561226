"""``rankwright compare``: a table, one JSON object, sentences for what cannot be."""

from types import SimpleNamespace

import pytest
from command import run, run_json, sentence
from small_data import small_data

import rankwright
from rankwright.cli.compare import say_compiling
from rankwright.data.files import save
from rankwright.data.ranking_data import RankingData
from rankwright.data.rankings import Ranking


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "data.txt"
    save(small_data(queries=15, documents=8), path)
    return path


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def test_the_table_names_rankers_intervals_convention_and_baseline(file, cache):
    done = run("compare", file, "--rankers", "ranksvm,few=gbdt:n_estimators=3", "--folds", 3,
               "--cache", cache, "--convention", "letor4", alone=True)  # fmt: skip
    for text in ("ranksvm", "few", "ndcg@10", "–", "baseline", "convention letor4", "Holm"):
        assert text in done.stdout, text
    assert "1: fold 1 of 3, ranksvm: " in done.stderr


def test_auto_is_an_entry(file, cache):
    given = ("--rankers", "best=auto:time_limit=1,ranksvm", "--folds", 3, "--cache", cache)
    done = run("compare", file, *given, alone=True)
    assert "best: chose " in done.stdout


def test_a_loss_of_a_file_of_your_own_is_compared_in_other_processes(file, cache, tmp_path):
    own = tmp_path / "mine.py"
    own.write_text(
        "from rankwright.losses import from_function\n"
        "def squared(s, y): return 0.5 * ((s - y) ** 2).sum(), s - y\n"
        "loss = from_function(squared)\n"
    )
    trees = "model=trees:model.n_estimators=3:model.min_child_samples=5"
    rankers = f"named=ranker:loss=squared:{trees},mine=ranker:loss={own}:{trees}"
    options = ("--folds", 3, "--cache", cache, "--metrics", "map", "--jobs", 2)
    found = run_json("compare", file, "--rankers", rankers, *options)["metrics"]
    assert found["mine"]["map"] == pytest.approx(found["named"]["map"])


def test_json_has_metrics_tests_and_seconds(file, cache):
    options = ("--folds", 3, "--cache", cache, "--metrics", "map,ndcg@3")
    rankers = ("--rankers", "ranksvm,gbdt:n_estimators=3", "--baseline", "gbdt:n_estimators=3")
    command = ("compare", file, *rankers, *options)
    reported = run_json(*command)
    assert (
        set(reported["metrics"]) == set(reported["seconds"]) == {"ranksvm", "gbdt:n_estimators=3"}
    )
    cell = reported["metrics"]["ranksvm"]["map"]
    assert cell["low"] <= cell["mean"] <= cell["high"]
    assert [(test["ranker"], test["metric"]) for test in reported["tests"]] == [
        ("ranksvm", "map"),
        ("ranksvm", "ndcg@3"),
    ]
    again = run_json(*command)
    assert again["fits"] == 0
    assert again == {**reported, "fits": 0}


def test_a_ranker_that_cannot_take_the_data_is_named_and_the_exit_is_0(tmp_path, cache):
    data = small_data(queries=9, documents=6)
    data.X[0, 0] = float("nan")
    path = tmp_path / "holes.txt"
    save(RankingData.from_arrays(data.X, data.y, qid=data.qid.repeat(6)), path)
    options = ("--folds", 3, "--cache", cache)
    done = run("compare", path, "--rankers", "gbdt:min_child_samples=2,ranksvm", *options)
    assert "ranksvm: " in done.stdout
    none = run("compare", path, "--rankers", "ranksvm", *options, code=2)
    assert none.stderr.splitlines()[-1].startswith("rankwright: no ranker could be run; ranksvm: ")


def test_columns_runs_and_models_are_compared_by_their_names(tmp_path, cache):
    data = small_data(queries=15, documents=8, doc_id=[f"d{k}" for k in range(120)])
    save(data, tmp_path / "data.csv")
    Ranking.of(data, data.X[:, 0]).to_trec(tmp_path / "run.txt")
    rankwright.MEMR().fit(data).save(tmp_path / "model.rw")
    rankers = f"first=column:1,run=run:{tmp_path / 'run.txt'},mine=model:{tmp_path / 'model.rw'}"
    done = run("compare", tmp_path / "data.csv", "--rankers", rankers, "--folds", 3, "--cache",
               cache, "--metrics", "map")  # fmt: skip
    first, same, mine = (line.split() for line in done.stdout.splitlines()[1:6:2])
    assert (first[0], same[0], mine[0]) == ("first", "run", "mine")
    assert first[1] == same[1]
    assert "mine: fitted before this comparison, only scored here" in done.stdout
    assert "warning: mine was fitted before this comparison" in done.stderr


def test_tests_and_tables_are_chosen_by_options(file, cache, tmp_path):
    files = [tmp_path / name for name in ("t.tex", "t.md", "t.csv", "t.html")]
    written = [word for path in files for word in ("-o", path)]
    reported = run_json(
        "compare", file, "--rankers", "ranksvm,memr,first=column:1", "--folds", 3, "--cache", cache,
        "--metrics", "map", "--baseline", "all", "--test", "wilcoxon", "--correction", "bh",
        *written,
    )  # fmt: skip
    assert (reported["test"], reported["correction"], reported["all_pairs"]) == (
        "wilcoxon",
        "bh",
        True,
    )
    assert len(reported["tests"]) == 3
    assert reported["written"] == [str(path) for path in files]
    assert "Benjamini-Hochberg" in files[0].read_text()
    assert files[1].read_text().startswith("| Ranker | MAP |")
    assert files[2].read_text().startswith("ranker,letter,map,")
    plain = run_json("compare", file, "--rankers", "ranksvm,memr", "--folds", 3, "--cache", cache,
                     "--metrics", "map", "--correction", "none")  # fmt: skip
    assert plain["correction"] is None
    assert plain["tests"][0]["adjusted"] == plain["tests"][0]["p_value"]


def test_a_ranker_that_is_significantly_worse_fails(cache, tmp_path):
    data = small_data(queries=15, documents=8)
    data.X[:, 0], data.X[:, 1] = data.y, -data.y
    save(data, tmp_path / "data.csv")
    command = ("compare", tmp_path / "data.csv", "--folds", 3, "--cache", cache, "--metrics", "map",
               "--rankers", "good=column:1,bad=column:2,same=column:1")  # fmt: skip
    assert "Differences to good, with 95 % intervals" in run(*command).stdout
    for margin in ([], ["0.01"]):
        done = run(*command, "--fail-if-worse", *margin, code=1)
        said = done.stderr.splitlines()[-1]
        beyond = " by more than 0.01" if margin else ""
        assert said.startswith(f"rankwright: bad is significantly worse than good{beyond}: map -0.")
    assert run_json(*command, "--fail-if-worse=0.9999")["failures"] == {}
    failed = run(*command, "--fail-if-worse", "--json", code=1)
    assert failed.stdout.startswith("{")
    run(*command, "--fail-if-worse", "--baseline", "bad")


def test_a_gate_that_cannot_decide_is_an_error(cache, tmp_path, file):
    data = small_data(queries=9, documents=6)
    data.X[0, 0] = float("nan")
    save(data, tmp_path / "holes.csv")
    options = ("--folds", 3, "--cache", cache, "--metrics", "map", "--fail-if-worse")
    rankers = ("--rankers", "first=column:1,ranksvm")
    done = run("compare", tmp_path / "holes.csv", *rankers, *options, code=2)
    assert "--fail-if-worse cannot decide, as ranksvm could not be run: " in done.stderr
    done = run("compare", file, "--rankers", "first=column:1", *options, code=2)
    assert "cannot decide: map has no test" in done.stderr
    said = sentence("compare", file, *rankers, *options, "--baseline", "all")
    assert "needs one baseline" in said
    said = sentence("compare", file, *rankers, *options, "-1")
    assert "must be a number from 0" in said


def test_wrong_names_are_reported_before_anything_is_read(file, cache, tmp_path):
    said = sentence("compare", "no-such-file.txt", "--rankers", "rankswm")
    assert said.startswith("there is no ranker 'rankswm'; did you mean ranksvm")
    said = sentence("compare", file, "--rankers", "ranksvm", "-o", tmp_path / "no" / "report.html")
    assert "is not a folder; make it" in said
    said = sentence("compare", file, "--rankers", "ranksvm", "-o", tmp_path / "report.pdf")
    assert said.startswith("unknown file extension of 'report.pdf'")
    assert "no test called 'anova'" in sentence(
        "compare", file, "--rankers", "ranksvm", "--test", "anova"
    )


def test_seconds_of_compiling_are_said_unless_there_are_none(capsys):
    say_compiling(SimpleNamespace(compile_seconds=0.04))
    assert capsys.readouterr().err == ""
    say_compiling(SimpleNamespace(compile_seconds=0.64))
    assert capsys.readouterr().err.startswith("Compiling took 0.6 s, once;")
