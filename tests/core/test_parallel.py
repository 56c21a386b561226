import math
import os
import subprocess
import sys
import threading

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
    assert thread_count() == len(os.sched_getaffinity(0))
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


# --- limits of containers --------------------------------------------------------------------


def quota(tmp_path, own, **files):
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        path = tmp_path / "groups" / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return parallel._cpu_quota.__wrapped__(tmp_path / "groups", tmp_path / "own")


def test_the_quota_is_the_least_of_the_groups_above(tmp_path):
    limits = {"a__b__cpu_dot_max": "max 100000\n", "a__cpu_dot_max": "150000 100000\n"}
    assert quota(tmp_path, "0::/a/b\n", **limits, cpu_dot_max="400000 100000\n") == 1.5


def test_no_quota_is_no_limit(tmp_path):
    assert quota(tmp_path, "0::/\n", cpu_dot_max="max 100000\n") is None
    assert quota(tmp_path, "0::/elsewhere\n") is None
    assert parallel._cpu_quota.__wrapped__(tmp_path, tmp_path / "not Linux") is None


def test_the_quota_of_the_first_version_of_control_groups(tmp_path):
    (tmp_path / "own").write_text("4:memory:/x\n3:cpu,cpuacct:/x\n")
    folder = tmp_path / "groups" / "cpu,cpuacct" / "x"
    folder.mkdir(parents=True)
    (folder / "cpu.cfs_period_us").write_text("100000\n")
    for text, expected in (("-1\n", None), ("50000\n", 0.5)):
        (folder / "cpu.cfs_quota_us").write_text(text)
        found = parallel._cpu_quota.__wrapped__(tmp_path / "groups", tmp_path / "own")
        assert found == expected


@pytest.mark.parametrize(("limit", "threads"), [(None, 8), (0.5, 1), (1.5, 2), (3.0, 3), (20.0, 8)])
def test_threads_are_no_more_than_the_quota_pays_for(limit, threads, monkeypatch):
    monkeypatch.delenv("RANKWRIGHT_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(parallel, "_cpu_quota", lambda: limit)
    assert thread_count() == threads
    assert thread_count(-1) == threads
    assert thread_count(5) == 5  # what is asked for is given


def test_where_the_system_binds_no_process_all_cores_are_allowed(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(parallel, "_cpu_quota", lambda: None)
    for counted, threads in ((6, 6), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda counted=counted: counted)
        assert thread_count(-1) == threads
