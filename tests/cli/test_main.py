import logging
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import typer
from cases import case
from command import run, run_json, sentence
from small_data import small_data
from typer.testing import CliRunner

import rankwright
from rankwright import registry
from rankwright.cli import console, main
from rankwright.cli.main import app
from rankwright.data import save

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


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with data and a model."""
    folder = tmp_path_factory.mktemp("files")
    save(small_data(queries=4), folder / "data.txt")
    rankwright.ranker("ranksvm").fit(small_data(queries=4)).save(folder / "model.rw")
    return folder


PRINTING = (
    *("--help", "--version", "list losses", "list losses --json", "ranklib", "train --help"),
    *("inspect model.rw", "inspect data.txt --json", "rank model.rw data.txt"),
    *("evaluate data.txt --load model.rw", "explain model.rw data.txt --query 1"),
    *(
        "convert data.txt - --to letor",
        "convert data.txt - --to csv",
        "features a b --to elasticsearch",
    ),
    *("convert data.txt - --to arrow", "clicks --help"),
)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_a_full_disk_behind_standard_output_is_a_sentence(files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    monkeypatch.setattr(main, "_verbose", False)  # from an earlier command in this process
    for words in PRINTING:
        with case(words), open("/dev/full", "w") as full, pytest.raises(SystemExit) as ended:
            monkeypatch.setattr("sys.argv", ["rankwright", *words.split()])
            monkeypatch.setattr("sys.stdout", full)
            main.run()
        error = capsys.readouterr().err
        assert ended.value.code == 2, words
        assert error.count("\n") == 1, error
        assert "cannot be written: No space left on device; " in error
    command = [sys.executable, "-m", "rankwright", "list", "losses"]  # with the end of Python
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=full, check=False)
    assert done.returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_a_full_device_as_output_is_a_sentence(files, monkeypatch):
    monkeypatch.chdir(files)
    data, model, train = "data.txt", "model.rw", ("train", "ranksvm", "--train", "data.txt")
    writing = [
        (*train, "--save", "/dev/full"),
        (*train, "--checkpoint", "/dev/full"),
        ("tune", *train[1:], "--trials", "1", "--save", "/dev/full"),
        ("evaluate", data, "--load", model, "--per-query", "/dev/full"),
        ("features", "a", "--to", "elasticsearch", "-o", "/dev/full"),
        ("interleave", model, model, data, "-o", "/dev/full"),
        ("export", model, "--to", "json", "-o", "/dev/full"),
        ("demo", "-o", "/dev/full"),
    ]
    formats = ("letor", "csv", "parquet", "arrow", "store")
    writing += [("convert", data, "/dev/full", "--to", kind) for kind in formats]
    kinds = ("trec", "csv", "scores", "parquet")
    writing += [("rank", model, data, "-o", "/dev/full", "--to", kind) for kind in kinds]
    for words in writing:
        with case(*words):
            assert "/dev/full" in sentence(*words)
    done = run("ranklib", "-train", data, "-ranker", "4", "-save", "/dev/full", code=2)
    assert "/dev/full is a device" in done.stderr.splitlines()[-1]


def test_a_closed_pipe_is_no_error(tmp_path):
    command = f"{sys.executable} -m rankwright list metrics | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("alpha_ndcg")
    assert "Traceback" not in done.stderr
