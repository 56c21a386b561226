"""Kills, two processes at once, a full disk: a file is whole, and a resumed fit equal."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import cycle
from pathlib import Path

import pytest
from soak import SECONDS, SEED
from writing_verbs import OBSTACLES, commands, contents, prepare, run_all

from rankwright.data.files import load, save
from rankwright.data.synthetic_data import synthetic

pytestmark = pytest.mark.soak
RNG = random.Random(SEED)


def started(words):
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "rankwright", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, start_new_session=True, **pipes)


def finished(process, seconds=300):
    """Wait for the end; return the exit status and standard output and error."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    with suppress(ProcessLookupError):  # its workers outlive it, and keep the pipes open
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait(), *process.communicate()


def files_in(folder):
    """Return the paths below a folder; a directory may be renamed while they are listed."""
    while True:
        with suppress(FileNotFoundError):
            return set(folder.rglob("*"))


def killed(words, seconds, folder=None):
    """Kill a command after some seconds, or when a file appears; return whether it was running."""
    process, ends = started(words), time.monotonic() + seconds
    before = folder and files_in(folder)
    while process.poll() is None and time.monotonic() < ends:
        if folder and files_in(folder) - before:
            time.sleep(RNG.choice([0, 0, 0.001, 0.01]))
            break
        time.sleep(0.001)
    process.kill()
    return finished(process)[0] == -signal.SIGKILL


# --- resumed fits ------------------------------------------------------------------------------

FITS = {
    "boost": ("lambdamart", "n_estimators=100", "colsample_bytree=0.5"),
    "adam": ("ranknet", "epochs=20"),
    "line_search": ("coordinate_ascent", "n_restarts=2"),
}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Options with training and validation data: MQ2008, or synthetic data without it."""
    folder = tmp_path_factory.mktemp("parts")
    if "RANKWRIGHT_DATA" in os.environ:
        sets = Path(os.environ["RANKWRIGHT_DATA"]) / "MQ2008"
        train, valid = (load(sets / f"{part}.txt.xz") for part in ("S1", "S2"))
    else:
        train, valid = (synthetic("mq2008", queries=n, seed=n) for n in (300, 80))
    save(train, folder / "train.store")
    save(valid, folder / "valid.store")
    return ["--train", folder / "train.store", "--valid", folder / "valid.store"]


@pytest.mark.parametrize("solver", FITS)
def test_a_fit_that_is_killed_and_resumed_has_the_same_bytes(solver, parts, tmp_path):
    ranker, *settings = FITS[solver]
    words = ["train", ranker, *parts]
    words += [word for setting in settings for word in ("--set", setting)]
    whole, again = tmp_path / "whole.rw", tmp_path / "again.rw"
    for _ in range(2):  # the first may have kernels to compile
        began = time.monotonic()
        status, _, error = finished(started([*words, "--save", whole]))
        assert status == 0, error
        seconds = time.monotonic() - began
    ends, resumed, turn = time.monotonic() + SECONDS / len(FITS), 0, 0
    while time.monotonic() < ends or (not resumed and turn < 20):
        turn += 1
        run = [*words, "--save", again, "--checkpoint", tmp_path / f"kept{turn}"]
        run += ["--every", RNG.randint(1, 10), "--resume", "--json"]
        for _ in range(RNG.randint(1, 2)):
            killed(run, RNG.uniform(0.2, 1.0) * seconds)
        status, output, error = finished(started(run))
        assert status == 0, error
        assert again.read_bytes() == whole.read_bytes(), run
        resumed += json.loads(output)["resumed_from"] is not None
        again.unlink()
    assert resumed


# --- commands that write -----------------------------------------------------------------------

KILLED = (
    *("train", "tune", "tune journal", "compare cache", "compare csv", "rank csv", "export json"),
    *("convert txt", "convert store", "convert parquet"),
)
TWICE = ("train", "compare cache", "rank csv", "export json", "convert txt", "convert store")
VARIES = ("tuning.log", "cache")  # which hold times


@pytest.fixture
def folder(tmp_path):
    """A folder with the data and models that the commands read."""
    prepare(tmp_path, queries=300)
    return tmp_path


def words_of(folder, name, turn=1):
    return ["-q", *(str(word).replace("TURN", str(turn)) for word in commands(folder)[name])]


def digests(folder):
    """Return the digests of the files that must be equal after every run to the end.

    Killed commands may leave hidden files.
    """
    digest_of = contents(folder / "out")
    return {
        name: digest
        for name, digest in digest_of.items()
        if name not in VARIES and ".partial" not in name
    }


@pytest.mark.parametrize("kind", OBSTACLES)
def test_every_command_that_cannot_write_leaves_the_files_as_they_were(kind, tmp_path):
    found = run_all([kind], tmp_path)[kind]
    assert {name: fault for name, fault in found.items() if fault} == {}


def test_a_killed_command_leaves_whole_files_and_runs_again(folder):
    seconds = {}
    for name in KILLED:
        began = time.monotonic()
        status, _, error = finished(started(words_of(folder, name)))
        assert status == 0, error
        seconds[name] = time.monotonic() - began
    expected, ends = digests(folder), time.monotonic() + SECONDS
    for number, name in enumerate(cycle(KILLED)):
        if time.monotonic() > ends:
            break
        words = words_of(folder, name, turn=2 + number // len(KILLED))
        if number % 2:
            killed(words, RNG.uniform(0.3, 1.0) * seconds[name])
        else:
            killed(words, 120, folder / "out")
        assert digests(folder).items() >= expected.items(), f"{name} changed a file when killed"
        status, _, error = finished(started(words))
        assert status == 0, f"{name} after a kill: {error}"
        assert digests(folder) == expected, f"{name} left or changed files after a kill"


def test_two_commands_at_once_write_whole_files(folder):
    for name in TWICE:
        assert finished(started(words_of(folder, name)))[0] == 0
        expected = digests(folder)
        both = [started(words_of(folder, name, turn=99)) for _ in range(2)]
        assert [status for status, *_ in map(finished, both)] == [0, 0], name
        assert digests(folder) == expected, name
    both = [started(words_of(folder, "checkpoint")) for _ in range(2)]
    statuses = sorted(status for status, *_ in map(finished, both))
    assert statuses in ([0, 0], [0, 2])  # the second finds the folder locked, or the run done
