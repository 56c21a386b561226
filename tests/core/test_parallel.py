import math
import subprocess
import sys
import threading

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwright.core import parallel
from rankwright.core.parallel import (
    documents_per_range,
    map_queries,
    map_ranges,
    ordered_sum,
    query_ranges,
    read_ahead,
    thread_count,
)
from rankwright.errors import UsageError


@given(st.lists(st.integers(0, 40_000), min_size=1, max_size=30))
def test_ranges_cover_every_query_once(sizes):
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    bounds = query_ranges(indptr)
    assert bounds[0] == 0
    assert bounds[-1] == len(sizes)
    assert (np.diff(bounds) > 0).all()


def test_queries_as_long_as_a_range_are_ranges_of_their_own():
    with documents_per_range(10):
        assert query_ranges(np.array([0, 10, 20, 30])).tolist() == [0, 1, 2, 3]
        assert query_ranges(np.array([0, 5, 10, 15, 20])).tolist() == [0, 2, 4]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_map_queries_visits_every_query_once(threads):
    visits = np.zeros(1000, int)

    def visit(lo, hi, indptr, visits):
        visits[lo:hi] += 1

    map_queries(visit, np.arange(0, 100_001, 100), visits, n_jobs=threads)
    assert (visits == 1).all()


def test_no_ranges_are_no_work():
    asked = []
    map_ranges(lambda *_: asked.append(1), np.array([0]), n_jobs=2)
    assert asked == []


def test_an_error_in_a_thread_reaches_the_caller():
    def fail(lo, hi, indptr):
        raise RuntimeError("in a thread")

    with pytest.raises(RuntimeError, match="in a thread"):
        map_queries(fail, np.arange(0, 100_001, 100), n_jobs=2)


def test_reading_ahead_is_one_item_ahead_in_another_thread_and_the_same_items():
    made = []

    def items():
        for number in range(5):
            made.append((number, threading.current_thread() is threading.main_thread()))
            yield number

    ahead = read_ahead(items())
    assert made == []
    assert next(ahead) == 0
    assert list(ahead) == [1, 2, 3, 4]
    assert made == [(number, False) for number in range(5)]


def test_an_error_while_reading_ahead_comes_after_what_was_read():
    def items():
        yield 1
        raise OSError("half way")

    ahead = read_ahead(items())
    assert next(ahead) == 1
    with pytest.raises(OSError, match="half way"):
        next(ahead)


def test_ordered_sum_is_close_to_the_exact_sum():
    values = np.random.default_rng(0).normal(size=100_000) * 10.0 ** np.arange(100_000).clip(0, 8)
    assert ordered_sum(values) == pytest.approx(math.fsum(values), rel=1e-12)
    assert ordered_sum(np.empty(0)) == 0.0


def test_threads_come_from_the_argument_then_the_environment_then_the_machine(monkeypatch):
    monkeypatch.delenv("RANKWRIGHT_THREADS", raising=False)
    assert thread_count() == joblib.cpu_count()
    monkeypatch.setenv("RANKWRIGHT_THREADS", "3")
    assert thread_count() == 3
    assert thread_count(4) == 4


@pytest.mark.parametrize("text", ["0", "many", "-1", "1.5"])
def test_a_wrong_thread_count_is_refused(monkeypatch, text):
    monkeypatch.setenv("RANKWRIGHT_THREADS", text)
    with pytest.raises(UsageError, match="1"):
        thread_count()


FORK = """
import os, warnings
import numpy as np
from rankwright.core.parallel import map_queries

warnings.simplefilter("ignore")  # Python 3.12 warns of any fork with threads
indptr, out = np.arange(0, 100_001, 100), np.zeros(1000)

def write(lo, hi, indptr, out):
    out[lo:hi] = 1

map_queries(write, indptr, out, n_jobs=2)
child = os.fork()
if child == 0:
    map_queries(write, indptr, out, n_jobs=2)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_threads_work_again_after_a_fork():
    run = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=600)
    assert run.stdout.strip() == "0"


# --- usable cores ----------------------------------------------------------------------------


@pytest.mark.parametrize("cores", [1, 3, 8])
def test_the_default_is_the_number_of_cores_that_joblib_counts(cores, monkeypatch):
    """It considers CPU affinity and the quota of control groups."""
    monkeypatch.delenv("RANKWRIGHT_THREADS", raising=False)
    monkeypatch.setattr(parallel, "_usable_cores", lambda: cores)
    assert thread_count() == thread_count(-1) == cores
    assert thread_count(-2) == max(1, cores - 1)
    assert thread_count(5) == 5  # an explicit number is used as it is
