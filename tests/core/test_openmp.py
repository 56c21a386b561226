"""OpenMP threads of LightGBM sleep while they wait; other libraries and the environment are left.

What a library really does is read from libgomp itself, which prints its settings when it is loaded
and ``OMP_DISPLAY_ENV`` asks for them: with passive waiting its threads spin for 0 turns.
"""

import os
import re
import subprocess
import sys

import pytest

from rankwright.core import openmp

LOAD = """
import os
from rankwright.models.lightgbm_engine import lightgbm, lightgbm_threads
lightgbm()
print(sorted(name for name in os.environ if name == "OMP_WAIT_POLICY"), lightgbm_threads(10**6, 3))
"""

linux = pytest.mark.skipif(sys.platform != "linux", reason="libgomp is Linux's OpenMP library")


def spins(code, **environment):
    """Return what each libgomp says of its spinning, and what the code printed."""
    clean = {k: v for k, v in os.environ.items() if k not in openmp._CHOICES}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, "OMP_DISPLAY_ENV": "VERBOSE", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return re.findall(r"GOMP_SPINCOUNT = '(\w+)'", done.stderr), done.stdout


@linux
def test_lightgbm_waits_passively_and_the_environment_is_as_before():
    (count, *others), said = spins(LOAD)
    assert count == "0"
    assert "0" not in others  # of libraries that LightGBM's own imports load
    assert said.split() == ["[]", "3"]


@linux
def test_what_the_user_chose_stays():
    (count, *_), said = spins(LOAD, OMP_WAIT_POLICY="ACTIVE")
    assert count != "0"
    assert said.split() == ["['OMP_WAIT_POLICY']", "3"]


@linux
def test_a_library_that_is_loaded_later_keeps_its_own_waiting():
    later = LOAD + "import sklearn.utils._openmp_helpers\n"
    (count, *others), _ = spins(later)
    assert count == "0"
    assert "0" not in others


@linux
def test_where_lightgbm_came_first_it_is_said_and_busy_cores_are_left_alone():
    code = """
import logging, sys, lightgbm
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
from rankwright.core import openmp
openmp._running_tasks = lambda: 100
from rankwright.models.lightgbm_engine import lightgbm_threads
print("threads", lightgbm_threads(10**6, 3))
"""
    (count, *_), said = spins(code)
    assert count != "0"
    assert "was loaded before Rankwright" in said
    assert "threads 1" in said


@pytest.mark.parametrize(
    ("running", "cores", "threads"),
    [(1, 8, 6), (3, 8, 6), (4, 8, 5), (7, 8, 2), (8, 8, 1), (30, 8, 1), (None, 8, 6)],
)
def test_spinning_threads_are_no_more_than_idle_cores(running, cores, threads, monkeypatch):
    monkeypatch.setattr(openmp, "_lightgbm_spins", True)
    monkeypatch.setattr(openmp, "_running_tasks", lambda: running)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert openmp.spare_threads(6) == threads


def test_threads_that_sleep_may_be_many(monkeypatch):
    monkeypatch.setattr(openmp, "_lightgbm_spins", False)
    monkeypatch.setattr(openmp, "_running_tasks", lambda: 100)
    assert openmp.spare_threads(6) == 6


def test_running_tasks_are_those_of_proc_stat(tmp_path, monkeypatch):
    monkeypatch.setattr(openmp, "_STAT", tmp_path / "stat")
    assert openmp._running_tasks() is None
    (tmp_path / "stat").write_text("cpu  1 2 3\nprocs_running 5\nprocs_blocked 0\n")
    assert openmp._running_tasks() == 5


def test_passive_waiting_restores_the_environment_after_an_error(monkeypatch):
    for name in openmp._CHOICES:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ImportError), openmp.passive_waiting():
        assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
        raise ImportError
    assert "OMP_WAIT_POLICY" not in os.environ
