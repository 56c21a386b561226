import json
import subprocess

import pytest
import typer
from command import sentence

import rankwright.cli.bench as verb


def test_an_area_that_is_not_known_is_one_sentence():
    told = sentence("bench", "tres", alone=True)
    assert told.startswith("there is no area 'tres'; did you mean trees")


def test_an_older_result_is_not_told_after_a_run_that_failed(tmp_path, monkeypatch, capsys):
    (tmp_path / "load.json").write_text('{"seconds": 1}')
    failed = subprocess.CompletedProcess([], 1)
    monkeypatch.setattr(verb.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(typer.Exit):
        verb.bench(["load"], tmp_path, json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["passed"], told["areas"]) == (False, {"load": None})
