"""`rankwright train --checkpoint FOLDER`: killed at any moment, it goes on to the same bytes."""

import signal
import subprocess
import sys
import time

import pytest
from command import run, run_json, sentence
from small_data import small_data

from rankwright.data.files import save


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for seed, name in enumerate(("train", "valid")):
        save(small_data(seed=seed), folder / f"{name}.txt")
    settings = ("--set", "n_estimators=150", "--set", "num_leaves=4")
    given = ("--train", folder / "train.txt", "--valid", folder / "valid.txt")
    return ("train", "lambdamart", *given, *settings, "--threads", 1)


def killed(arguments, folder):
    """Run, and kill -9 as soon as there is a checkpoint."""
    command = [sys.executable, "-m", "rankwright", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while not list(folder.glob("state-*")):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


def test_kill_9_and_resume(train, tmp_path):
    whole, again, folder = tmp_path / "whole.rw", tmp_path / "again.rw", tmp_path / "kept"
    run(*train, "--save", whole)
    kept = ("--save", again, "--checkpoint", folder, "--every", 5)
    killed([*train, *kept], folder)
    assert not again.exists()
    assert "holds the checkpoint of an earlier run" in sentence(*train, *kept)
    other = sentence(*train, *kept, "--resume", "--set", "learning_rate=0.2")
    assert "learning_rate was 'auto' and is 0.2" in other
    found = run_json(*train, *kept, "--resume")
    assert found["resumed_from"] >= 1
    assert again.read_bytes() == whole.read_bytes()
    assert "resumed from round" in run(*train, *kept, "--resume").stdout


def test_resume_where_there_is_nothing_begins(train, tmp_path):
    quick = ("--set", "n_estimators=2", "--checkpoint", tmp_path / "new", "--resume")
    assert run_json(*train, *quick)["resumed_from"] is None


def test_options_without_a_folder_are_reported(train):
    assert sentence(*train, "--every", 3).startswith("--every needs --checkpoint FOLDER")
    assert sentence(*train, "--resume").startswith("--resume needs --checkpoint FOLDER")
