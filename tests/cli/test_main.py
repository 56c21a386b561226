import logging
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import typer
from command import run, run_json, sentence
from typer.testing import CliRunner

import rankwright
from rankwright import registry
from rankwright.cli import console
from rankwright.cli.main import app

COMPILING = logging.getLogger("rankwright.core.jit")


def test_the_version():
    assert run("--version", alone=True).stdout.strip() == f"rankwright {rankwright.__version__}"


def test_help_names_every_verb():
    text = run("--help", alone=True).stdout
    for verb in ("demo", "list", "inspect", "train", "evaluate", "rank", "convert"):
        assert verb in text


def test_help_keeps_brackets():
    other = typer.Typer(rich_markup_mode=app.rich_markup_mode)

    @other.command()
    def install():
        """Run pip install rankwright[serve] first."""

    assert "rankwright[serve]" in CliRunner().invoke(other, ["--help"]).stdout


@pytest.mark.parametrize("terminal", [True, False])
def test_compiling_is_reported_on_a_terminal(terminal, monkeypatch, capsys):
    monkeypatch.setattr(console.err, "_force_terminal", terminal)
    monkeypatch.setattr(COMPILING, "handlers", [])
    monkeypatch.setattr(COMPILING, "level", logging.NOTSET)
    run("list", "rankers")
    COMPILING.info("Compiling.")
    assert capsys.readouterr().err == ("Compiling.\n" if terminal else "")


def test_completion_is_there_for_the_shell():
    asked = {
        "_RANKWRIGHT_COMPLETE": "complete_bash",
        "COMP_WORDS": "rankwright tra",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [Path(sys.executable).parent / "rankwright"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **asked},
    )
    assert done.stdout.split() == ["train"]


@pytest.mark.parametrize(
    "kind",
    [
        "rankers",
        "losses",
        "models",
        "solvers",
        "metrics",
        "formats",
        "conventions",
        "data",
        "shapes",
    ],
)
def test_list_has_a_line_for_each_name(kind):
    entries = run_json("list", kind)[kind]
    assert entries
    assert all(entries.values())
    text = run("list", kind).stdout
    assert all(name in text for name in entries)


def test_what_plug_ins_announce_is_listed_too(monkeypatch):
    entry = EntryPoint("own_squared", "rankwright.losses.squared:Squared", "rankwright.losses")
    monkeypatch.setattr(
        registry, "plugins", lambda kind: {"own_squared": entry} if kind == "losses" else {}
    )
    assert run_json("list", "losses")["losses"]["own_squared"].startswith("Squared error")
    assert "own_squared" not in run_json("list", "models")["models"]


def test_a_kind_that_is_not_there():
    assert "did you mean metrics" in sentence("list", "metric")


def test_verbose_shows_the_traceback_too(tmp_path):
    done = run("-v", "inspect", tmp_path / "none.txt", code=2)
    assert "Traceback" in done.stderr
    assert "none.txt does not exist" in done.stderr.splitlines()[-1]


def test_a_closed_pipe_is_no_error(tmp_path):
    command = f"{sys.executable} -m rankwright list metrics | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("auc")
    assert "Traceback" not in done.stderr
