"""``rankwright export`` and ``rankwright verify`` as a user runs them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from command import run, run_json, sentence
from small_data import small_data

import rankwright as rw


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.rw"
    data = small_data(queries=8, documents=10, features=4)
    rw.ranker("lambdamart", n_estimators=5, num_leaves=5).fit(data).save(path)
    return path


def test_an_export_is_written_and_verified(model, tmp_path):
    about = run_json(
        "export", model, "--to", "solr", "-o", tmp_path / "out", "--name", "mine", alone=True
    )
    assert about["format"] == "solr"
    found = run_json("verify", tmp_path / "out", alone=True)
    assert found["verified"] is True
    assert found["vectors"] == about["parity"]["vectors"]
    assert "holds" in run("verify", tmp_path / "out").stdout


def test_a_tampered_export_fails_with_a_sentence_and_exit_1(model, tmp_path):
    run("export", model, "--to", "json", "-o", tmp_path / "out")
    path = tmp_path / "out" / "parity.jsonl"
    path.write_text(path.read_text().replace("1", "2"))
    failed = run("verify", tmp_path / "out", code=1)
    assert failed.stderr.startswith("rankwright: ")
    assert "parity.jsonl was altered" in failed.stderr
    assert len(failed.stderr.strip().splitlines()) == 1
    failed = run("verify", tmp_path / "out", "--json", code=1)
    assert json.loads(failed.stdout)["verified"] is False


def test_what_is_wrong_is_said_in_a_sentence(model, tmp_path):
    out = tmp_path / "out"
    assert "did you mean solr" in sentence("export", model, "--to", "solar", "-o", out)
    assert "does not exist" in sentence("export", tmp_path / "none.rw", "--to", "c", "-o", out)
    assert "has no export.json" in sentence("verify", tmp_path)
    bad = ("export", model, "--to", "c", "-o", out, "--name", "a-b")
    assert "letters, digits and _" in sentence(*bad)
    assert not out.exists()


def test_a_folder_of_other_files_is_left_alone_unless_forced(model, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "precious.txt").write_text("mine")
    assert "holds other files" in sentence("export", model, "--to", "python", "-o", out)
    assert (out / "precious.txt").read_text() == "mine"
    run("export", model, "--to", "python", "-o", out, "--force")
    assert (out / "precious.txt").read_text() == "mine"
    run("verify", out)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_earlier_export_is_replaced(model, tmp_path):
    out = tmp_path / "out"
    run("export", model, "--to", "python", "-o", out)
    run("export", model, "--to", "ranklib", "-o", out)
    assert {path.name for path in out.iterdir()} == {"export.json", "model.txt", "parity.jsonl"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# --- versions of engines -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def model_of_gaps(tmp_path_factory):
    """Trees whose missing values go left at some splits and right at others."""
    path = tmp_path_factory.mktemp("gaps") / "model.rw"
    data = small_data(queries=15, documents=15, features=5)
    X = data.X.copy()
    X[np.random.default_rng(1).random(X.shape) < 0.15] = np.nan
    rw.ranker("lambdamart", n_estimators=12, num_leaves=7).fit(replace(data, X=X)).save(path)
    return path


def test_an_export_says_on_which_versions_it_is_right(model_of_gaps, tmp_path):
    written = run("export", model_of_gaps, "--to", "opensearch", "-o", tmp_path / "new")
    assert "right on opensearch 3.8 and later" in written.stdout
    failed = run("verify", tmp_path / "new", "--engine", "opensearch:2.17", code=1)
    table = [line.split() for line in failed.stdout.splitlines()]
    assert ["opensearch", ">=3.8", "yes"] in [line[:3] for line in table]
    assert ["opensearch", ">=1.0,<3.2", "no"] in [line[:3] for line in table]
    assert "on opensearch:2.17 does not hold" in failed.stderr
    assert failed.stderr.strip().endswith("to opensearch with --engine-version 2.17.")
    assert len(failed.stderr.strip().splitlines()) == 1
    run("verify", tmp_path / "new", "--engine", "opensearch")


def test_an_export_for_an_old_version_is_right_there(model_of_gaps, tmp_path):
    out = tmp_path / "old"
    version = ("--engine-version", "2.19")
    about = run_json("export", model_of_gaps, "--to", "opensearch", "-o", out, *version)
    assert about["engine"]["oldest_version"] == "1.0"
    found = run_json("verify", out, "--engine", "opensearch:2.17")
    assert found["verified"] is True
    rows = {(own["engine"], own["versions"]): own for own in found["releases"] if not own["setup"]}
    assert all(own["right"] and own["wrong"] == 0 for own in rows.values())
    assert len(rows) == 5


def test_an_engine_that_does_not_read_the_export_is_a_sentence(model, tmp_path):
    run("export", model, "--to", "json", "-o", tmp_path / "out")
    for engine in ("solr:9.1", "nothing"):
        assert "json has no versions of an engine" in sentence(
            "verify", tmp_path / "out", "--engine", engine
        )
