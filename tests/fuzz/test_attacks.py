"""The runner of ``make soak``'s attacks, and every input that one of them found."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from rankwright.errors import DataError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fuzz"))

import attacks
from damage import Attack
from numba.core import event

WAYS = ["used", "refused", "raw", "signal"]


def write(folder):
    (folder / "whole.txt.in").write_text("used")
    return [folder / "whole.txt.in"]


def damage(path, target, rng):
    target.write_text(rng.choice(WAYS))


def use(path):
    way = path.read_text()
    if way == "refused":
        raise DataError("refused in a sentence.")
    if way == "raw":
        raise KeyError("raw")
    if way == "signal":
        os.kill(os.getpid(), signal.SIGSEGV)
    if way.startswith("compile"):
        with event.trigger_event("numba:compile"), event.trigger_event("numba:compile"):
            until = time.process_time() + 0.5
            while time.process_time() < until:
                pass
    if way.endswith("hang"):
        while True:
            pass


ATTACK = Attack("an attack of which some inputs are faults", write, damage, use)


def test_signals_and_raw_exceptions_are_counted_and_their_inputs_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}")
    counts = attacks.run_attack("own kind", "test_attacks:ATTACK", 0, 60, tmp_path / "found")
    kept = Counter(path.read_text() for path in (tmp_path / "found").glob("own-kind-*.in"))
    assert kept == {"raw": counts["raw exceptions"], "signal": counts["signals"]}
    assert kept.total() >= attacks._MOST_FAULTS  # it ended there, long before its time
    assert min(counts["used"], counts["refused"], *kept.values()) > 0
    assert counts["inputs"] == counts.total() - counts["inputs"]


@pytest.mark.parametrize(
    ("way", "status"),
    [("hang", -signal.SIGPROF), ("compile", 0), ("compile, hang", -signal.SIGPROF)],
)
def test_a_hang_ends_the_child_and_compiling_is_none(tmp_path, monkeypatch, way, status):
    monkeypatch.setattr(attacks, "_HANG_SECONDS", 0.2)
    (tmp_path / "damaged").write_text(way)
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        attacks.outcome_of(ATTACK, tmp_path / "damaged")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == status
    assert time.monotonic() - began < 30


def test_a_run_goes_on_where_the_last_one_stopped_and_counts_anew_after_a_fault():
    first = attacks.added({}, "kernel cache", Counter(inputs=3, used=1, refused=2), 60)
    second = attacks.added(first, "kernel cache", Counter(inputs=2, refused=1, signals=1), 60)
    assert (second["next"], second["inputs"], second["signals"]) == (5, 5, 1)
    assert second["minutes"] == 2
    third = attacks.added(second, "kernel cache", Counter(inputs=4, used=4), 60)
    assert (third["next"], third["inputs"], third["signals"]) == (9, 4, 0)


def test_what_was_run_last_had_no_fault():
    rows = attacks.results()
    assert rows.keys() <= attacks.ATTACKS.keys()
    for row in rows.values():
        assert [row[fault] for fault in attacks.FAULTS] == [0, 0, 0], row["name"]


def test_inputs_that_were_found_are_used_or_refused(tmp_path):
    for path in sorted(attacks.FOUND.glob("*")):
        command = [sys.executable, attacks.__file__, "--replay", str(path)]
        assert subprocess.run(command, check=False).returncode == 0, path
    # What an attack finds wrong is found wrong again.
    (tmp_path / "kernel-cache-0.request").write_text("no request")
    with pytest.raises(StopIteration):  # no whole input is like that
        attacks.replayed(tmp_path / "kernel-cache-0.request")
