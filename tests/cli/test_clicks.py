"""``rankwright clicks``: what a log holds, click models of it, and rankers evaluated on it."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from cases import each
from click_sessions import random_log
from command import run_json, sentence
from small_data import small_data
from typer.testing import CliRunner

import rankwright as rw
from rankwright import RankSVM, clicks
from rankwright.cli.clicks import app
from rankwright.data.files import save
from rankwright.errors import DataError, UsageError


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("logs") / "log.csv"
    clicks.save_log(random_log(), path)
    return path


def test_inspect_shows_positions_and_findings(log):
    shown = run("inspect", log)
    assert shown.exit_code == 0, shown.output
    assert "sessions" in shown.output
    assert "examination" in shown.output
    assert "findings" in shown.output
    found = json.loads(run("inspect", log, "--json").output)
    assert [one["position"] for one in found["positions"]] == [1, 2, 3, 4]
    assert found["impressions"] == random_log().impression_weights().sum()


def test_inspect_draws_examination(log, tmp_path):
    path = tmp_path / "curve.svg"
    shown = run("inspect", log, "--plot", path)
    assert shown.exit_code == 0, shown.output
    assert f"wrote {path}" in shown.output
    assert "examination, relative to the first" in path.read_text()
    error = run("inspect", log, "--plot", tmp_path / "curve.gif").exception
    assert isinstance(error, UsageError)
    assert ".png, .svg or .pdf" in str(error)


def test_fit_evaluates_a_model(log):
    shown = run("fit", "pbm", log, "--test", log, "--set", "smoothing=2")
    assert shown.exit_code == 0, shown.output
    assert "examination:" in shown.output
    assert shown.output.count("perplexity") == 2
    model = clicks.PBM(smoothing=2).fit(random_log())
    found = json.loads(run("fit", "pbm", log, "--json", "--set", "smoothing=2").output)
    assert found["params"]["smoothing"] == 2
    assert found["scores"]["train"]["perplexity"] == model.evaluate(random_log()).perplexity
    assert len(found["parameters"]["examination"]) == 4
    assert run("fit", "dctr", log).exit_code == 0


def test_what_is_wrong_is_one_sentence(log):
    error = run("fit", "pmb", log).exception
    assert isinstance(error, UsageError)
    assert "did you mean pbm?" in str(error)
    error = run("inspect", log, "--read", "click=clck").exception
    assert isinstance(error, DataError)
    assert "'clck'" in str(error)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a log, its features, a propensity and two models, each as a file."""
    folder = tmp_path_factory.mktemp("evaluate")
    data = small_data(queries=30, documents=8)
    data = data._replace(doc_id=np.array([f"d{row}" for row in range(data.n_documents)]))
    made = clicks.simulate(data, 1, sessions=60, positions=5, temperature=1.0, propensity="slot")
    clicks.save_log(made, folder / "log.csv")
    data.to_frame().to_csv(folder / "data.csv", index=False)
    clicks.Propensity.power(1.0, positions=5).save(folder / "propensity.json")
    RankSVM().fit(data).save(folder / "good.rw")
    RankSVM().fit(data._replace(y=data.y.max() - data.y)).save(folder / "bad.rw")
    return folder


def test_evaluate_compares_models_on_a_log(files):
    options = ["--features", files / "data.csv", "--metric", "ctr@2", "--logged", "none"]
    models = [files / "good.rw", files / "bad.rw"]
    asked = ["evaluate", files / "log.csv", *models, *options, "--estimator", "snips"]
    shown = run(*asked)
    assert shown.exit_code == 0, shown.output
    text = " ".join(shown.output.split())
    assert "Estimated ctr@2" in text
    assert "worse" in text
    found = json.loads(
        run(
            "evaluate", files / "log.csv", *models, *options, "--estimator", "snips", "--json"
        ).output
    )
    assert found["differences"][0]["significant"]
    values = found["values"]
    assert values[str(models[0])]["value"] > values[str(models[1])]["value"]
    by_pbm = run(
        "evaluate", files / "log.csv", models[0], *options, "--estimator", "pbm",
        "--propensity", files / "propensity.json",
    )  # fmt: skip
    assert by_pbm.exit_code == 0, by_pbm.output
    assert (
        run("evaluate", files / "log.csv", models[0], *options, "--click-model", "pbm").exit_code
        == 0
    )


def test_evaluate_and_propensity_need_no_grades(files):
    frame = pd.read_csv(files / "data.csv")
    frame.drop(columns="label").to_csv(files / "plain.csv", index=False)
    evaluate = ["evaluate", files / "log.csv", files / "good.rw", "--metric", "ctr@2", "--json"]
    propensity = ["propensity", files / "log.csv", "--method", "dual", "--json"]
    for words in (evaluate, propensity):
        plain, graded = (
            run(*words, "--features", files / name) for name in ("plain.csv", "data.csv")
        )
        assert plain.exit_code == 0, plain.output
        assert plain.output == graded.output


def test_evaluate_refuses_what_the_log_cannot_say(files):
    options = ["--features", files / "data.csv", "--metric", "ctr@8", "--logged", "none"]
    error = run("evaluate", files / "log.csv", files / "good.rw", *options).exception
    assert isinstance(error, clicks.SupportError)
    assert "use ctr@5" in str(error)


def test_evaluate_refuses_options_that_its_estimator_does_not_use(files):
    asked = ["evaluate", files / "log.csv", files / "good.rw", "--features", files / "data.csv"]
    for words, why in (
        (["--propensity", files / "propensity.json"], "--propensity is for the estimator pbm"),
        (["--estimator", "ips", "--click-model", "pbm"], "--click-model is for the estimators dr"),
    ):
        error = run(*asked, *words).exception
        assert isinstance(error, UsageError)
        assert why in str(error)


# --- propensity, and rankers that learn from clicks ----------------------------------------------


@pytest.fixture(scope="module")
def searches(tmp_path_factory):
    folder = tmp_path_factory.mktemp("searches")
    data = rw.synthetic("mq2008", queries=20, seed=1)
    data = data._replace(doc_id=np.array([f"d{row}" for row in range(data.n_documents)]))
    clicks.save_log(clicks.simulate(data, 41, sessions=30, swaps="all"), folder / "log.csv")
    save(data, folder / "train.csv")
    return folder


def test_propensity_is_shown_and_kept(searches, tmp_path):
    kept = tmp_path / "propensity.json"
    done = run("propensity", searches / "log.csv", "--method", "randomised", "--save", kept)
    assert done.exit_code == 0, done.output
    expected = clicks.estimate_propensity(clicks.load_log(searches / "log.csv"), "randomised")
    assert (clicks.Propensity.load(kept).examination == expected.examination).all()
    shown = f"2  {expected.examination[1]:.3f} [{expected.low[1]:.3f}, {expected.high[1]:.3f}]"
    assert shown in done.output
    found = json.loads(
        run("propensity", searches / "log.csv", "--method", "randomised", "--json").output
    )
    assert found["high"][1] == expected.high[1]


def test_propensity_of_features_takes_them(searches):
    log, features = searches / "log.csv", searches / "train.csv"
    found = json.loads(run("propensity", log, "--features", features, "--json").output)
    expected = clicks.estimate_propensity(clicks.load_log(log, features=rw.load(features)))
    assert found["examination"] == expected.examination.tolist()
    error = run("propensity", log).exception
    assert isinstance(error, UsageError)
    assert "give --features DATA" in str(error)


def trained(searches, tmp_path, *more):
    model = tmp_path / "model.rw"
    found = run_json(
        "train", "memr", "--train", searches / "train.csv", "--clicks", searches / "log.csv",
        "--save", model, *more,
    )  # fmt: skip
    return found, rw.load_model(model)


@each("what", ["joint", "dual", "file", "none"])
def test_train_learns_from_clicks_as_python_does(what, searches, tmp_path):
    log = clicks.load_log(searches / "log.csv", features=rw.load(searches / "train.csv"))
    known = {"joint": "joint", "none": None}.get(what)
    if what == "dual":
        known = clicks.estimate_propensity(log, "dual")
    if what == "file":
        known = clicks.Propensity.power(0.5, positions=10)
        known.save(tmp_path / "known.json")
    given = [] if what == "joint" else ["--propensity", tmp_path / "known.json"]
    if what in ("dual", "none"):
        given = ["--propensity", what]
    found, ranker = trained(searches, tmp_path, *given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = rw.MEMR().fit(log, propensity=known)
    assert (ranker.predict(log.features) == expected.predict(log.features)).all()
    assert ("propensity" in found) == (what != "none")
    if what != "none":
        assert found["propensity"]["examination"] == expected.propensity_.examination.tolist()


@each(
    ("words", "text"),
    [
        (["memr", "--propensity", "dual"], "--propensity: for a click log; give it by --clicks"),
        (["memr", "--read-clicks", "session=s"], "--read-clicks: for a click log"),
        (["auto", "--clicks", "log.csv"], "takes no --clicks"),
        (["memr", "--clicks", "log.csv", "--dask", "local:2"], "runs in one process"),
        (["memr", "--clicks", "log.csv", "--propensity", "nope"], "known: joint, none, random"),
        (["memr", "--clicks", "log.csv", "--read-clicks", "session=s"], "no column 's'"),
    ],
)
def test_train_refuses_options_of_clicks_that_do_not_fit(words, text, searches, monkeypatch):
    monkeypatch.chdir(searches)
    assert text in sentence("train", *words, "--train", "train.csv")


def test_train_needs_no_grades_beside_clicks(searches, tmp_path):
    rows = [line.split(",") for line in (searches / "train.csv").read_text().splitlines()]
    grade = rows[0].index('"label"')
    rest = [",".join(row[:grade] + row[grade + 1 :]) for row in rows]
    (tmp_path / "train.csv").write_text("\n".join(rest) + "\n")
    clicks.save_log(clicks.load_log(searches / "log.csv"), tmp_path / "log.csv")
    data = rw.load(searches / "train.csv")
    (_, plain), (_, graded) = trained(tmp_path, tmp_path), trained(searches, tmp_path)
    assert (plain.predict(data) == graded.predict(data)).all()


def test_train_needs_document_ids_to_find_documents(searches, tmp_path):
    save(small_data(), tmp_path / "train.txt")
    log = searches / "log.csv"
    error = sentence("train", "memr", "--train", tmp_path / "train.txt", "--clicks", log)
    assert "--train has no document ids" in error
