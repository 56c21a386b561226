"""The folder of an export: names, what it says of itself, and files that are not as written."""

import json
import os
import signal
from pathlib import Path

import pytest
from exported_models import named, of_rules, of_weights

from rankwright.export.folder import ABOUT, PARITY, export_model, verify_export
from rankwright.export.target import ParityError


def test_names_are_made_fit_for_every_target_and_the_old_ones_kept(tmp_path):
    ranker = named(of_weights([1.0, 2.0, 3.0, 4.0]), "title match", "title-match", "7", "prix d'or")
    about = export_model(ranker, "vespa", tmp_path / "o")
    names = [feature["name"] for feature in about["features"]]
    assert names == ["title_match", "title_match_2", "feature_7", "prix_d_or"]
    assert about["features"][0]["in_training"] == "title match"
    verify_export(tmp_path / "o")


def test_no_name_stands_twice_where_a_made_one_is_taken(tmp_path):
    ranker = named(of_weights([1.0, 2.0, 3.0]), "a_b_3", "a b", "a-b")
    about = export_model(ranker, "json", tmp_path / "o")
    names = [feature["name"] for feature in about["features"]]
    assert names == ["a_b_3", "a_b", "a_b_3_3"]


@pytest.mark.parametrize("name", [ABOUT, PARITY])
def test_a_missing_or_empty_file_is_refused(tmp_path, name):
    export_model(of_weights([1.0, 2.0]), "json", tmp_path / "out")
    (tmp_path / "out" / name).write_text("")
    with pytest.raises(ParityError, match=name):
        verify_export(tmp_path / "out")
    (tmp_path / "out" / name).unlink()
    with pytest.raises(ValueError, match=name):
        verify_export(tmp_path / "out")


def test_what_an_evaluator_needs_and_does_not_find_is_refused(tmp_path):
    """Digests are of the files beside export.json: what it says itself may be anything."""
    changes = [
        ("solr", "engine", {"name": "solr"}),
        ("solr", "engine", ["solr", "9.9"]),
        ("vespa", "engine", {"version": "8"}),
        ("solr", "upload", [{}, {}]),
    ]
    for to, key, value in changes:
        export_model(of_weights([1.0, 2.0]), to, tmp_path / "out", force=True)
        about = json.loads((tmp_path / "out" / ABOUT).read_text())
        assert about[key] != value
        (tmp_path / "out" / ABOUT).write_text(json.dumps({**about, key: value}))
        with pytest.raises(ParityError, match="its evaluator cannot read"):
            verify_export(tmp_path / "out")


def test_a_killed_export_leaves_no_part_of_an_export(tmp_path, monkeypatch):
    ranker = of_weights([1.0, 2.0])
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(Path, "write_bytes", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        export_model(ranker, "json", tmp_path / "out")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    (partial,) = tmp_path.iterdir()
    assert partial.name.startswith(".out.")
    export_model(ranker, "json", tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"out", partial.name}


def test_an_export_says_what_it_is(tmp_path):
    about = export_model(of_rules([(0, 0.5, 1.0)]), "solr", tmp_path / "out", name="mine")
    assert json.loads((tmp_path / "out" / ABOUT).read_text()) == about
    assert about["format"] == "solr"
    assert about["ranker"] == "rankboost"
    assert about["name"] == "mine"
    assert about["precision"]["features"] == "float32"
    assert [upload["file"] for upload in about["upload"]] == ["features.json", "model.json"]
    assert set(about["files"]) == {"features.json", "model.json", PARITY}
