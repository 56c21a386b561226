"""``rankwright interleave``: lists of models, and the verdict on their clicks."""

import json

import numpy as np
import pytest
from command import run, run_json, sentence

import rankwright as rw
from rankwright import clicks
from rankwright.data.ranking_data import RankingData


def graded():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 20 * 8)
    X = np.column_stack([y + rng.normal(size=len(y)), rng.normal(size=len(y))])
    ids = [f"d{number}" for number in range(len(y))]
    return RankingData.from_arrays(X, y, group_sizes=[8] * 20, doc_id=ids)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data, a model that is good, and one that ranks by noise."""
    made, data = tmp_path_factory.mktemp("interleave"), graded()
    rw.data.save(data, made / "data.csv")
    rw.LinearRegression().fit(data).save(made / "good.rw")
    noise = RankingData.from_arrays(data.X, data.X[:, 1] > 0, group_sizes=data.sizes)
    rw.LinearRegression().fit(noise).save(made / "poor.rw")
    return made


def interleave(folder, *words, **options):
    models = folder / "good.rw", folder / "poor.rw"
    return run("interleave", *models, folder / "data.csv", *words, **options)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_lists_are_a_line_each(folder, tmp_path):
    path = tmp_path / "lists.jsonl"
    done = interleave(folder, "-o", path, "--k", 4, "--sessions", 3, "--seed", 5)
    assert "60 lists" in done.stdout
    found = lines(path)
    assert len(found) == 60
    assert set(found[0]) == {
        *("session", "query", "time", "documents", "positions", "teams", "interleaving")
    }
    assert all(len(one["documents"]) == 4 for one in found)
    assert found[0]["interleaving"] == {
        "method": "team_draft",
        "rankers": ["good.rw", "poor.rw"],
        "k": 4,
    }
    again = interleave(folder, "--k", 4, "--sessions", 3, "--seed", 5)
    assert again.stdout == path.read_text()


def test_every_method_and_table(folder, tmp_path):
    for method in ("optimised", "probabilistic"):
        path = tmp_path / f"{method}.csv"
        about = run_json(
            *("interleave", folder / "good.rw", folder / "poor.rw", folder / "data.csv"),
            *("-o", path, "--method", method, "--json"),
        )
        assert about["sessions"] == 20
        log = clicks.load_log(path)
        assert log.interleaving.method == about["interleaving"]["method"] == method
        assert log.credit is not None
    tau = interleave(folder, "--method", "probabilistic", "--set", "tau=1").stdout
    assert json.loads(tau.splitlines()[0])["interleaving"]["tau"] == 1


def test_three_models_are_multileaved(folder, tmp_path):
    third = tmp_path / "third.rw"
    third.write_bytes((folder / "good.rw").read_bytes())
    models = folder / "good.rw", folder / "poor.rw", third
    done = run("interleave", *models, folder / "data.csv")
    assert {team for line in done.stdout.splitlines() for team in json.loads(line)["teams"]} == {
        *(0, 1, 2)
    }


@pytest.fixture(scope="module")
def log(folder):
    """Clicks of simulated users on the lists."""
    path = folder / "log.jsonl"
    lists = clicks.interleave(
        graded(),
        {name: rw.load_model(folder / f"{name}.rw") for name in ("good", "poor")},
        sessions=40,
    )
    clicks.save_log(clicks.simulate_clicks(lists), path)
    return path


def test_the_verdict(log, tmp_path):
    shown = run("interleave", "score", log).stdout
    assert "team_draft, 800 sessions" in shown
    assert "'good' wins" in shown
    found = run_json("interleave", "score", log, "--json")
    assert found["winner"] == "good"
    assert found["pairs"][0]["preference"] > 0.5
    by_query = run_json("interleave", "score", log, "--unit", "query", "--json")
    assert by_query["pairs"][0]["units"] == 20
    picture = tmp_path / "verdict.png"
    run("interleave", "score", log, "--plot", picture)
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_it_runs_in_a_process_of_its_own(log):
    found = json.loads(run("interleave", "score", log, "--json", alone=True).stdout)
    assert found["winner"] == "good"


def test_lists_are_utf_8_whatever_the_locale_says(folder, tmp_path, monkeypatch):
    data = graded()
    rw.data.save(data._replace(doc_id=np.array([f"é{i}" for i in range(160)])), tmp_path / "é.csv")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    models = folder / "good.rw", folder / "poor.rw"
    done = run("interleave", *models, tmp_path / "é.csv", "--k", 2, alone=True)
    assert {len(json.loads(line)["documents"]) for line in done.stdout.splitlines()} == {2}
    assert "é" in done.stdout


def test_what_is_wrong_is_one_sentence(folder, log, tmp_path):
    def refused(*words):
        return sentence("interleave", *words)

    good, poor, data = folder / "good.rw", folder / "poor.rw", folder / "data.csv"
    assert "two or more model files" in refused(good, data)
    assert "did you mean team_draft" in refused(good, poor, data, "--method", "team-draft")
    assert "interleaves two rankers, not 3" in refused(
        good, poor, tmp_path / "c.rw", data, "--method", "optimised"
    )
    assert "given twice" in refused(good, good, data)
    assert "no parameter 'tau'" in refused(good, poor, data, "--set", "tau=1")
    assert "share standard output" in refused(good, poor, data, "--json")
    assert "k must be 1 or more" in refused(good, poor, data, "--k", 0)
    assert "are written as .csv" in refused("none.rw", "none.rw", "x", "-o", tmp_path / "a.txt")
    assert "missing.rw" in refused(good, tmp_path / "missing.rw", data)
    assert "unit must be" in refused("score", log, "--unit", "day")
    assert ".png, .svg or .pdf" in refused("score", "none.csv", "--plot", tmp_path / "a.gif")
    assert "no list 'clicks'" in refused("score", _unclicked(folder, tmp_path))
    plain = tmp_path / "plain.csv"
    plain.write_text("session,query,document,click\n1,q,a,0\n")
    assert "interleaving method" in refused("score", plain)


def _unclicked(folder, tmp_path):
    path = tmp_path / "lists.jsonl"
    interleave(folder, "-o", path)
    return path
