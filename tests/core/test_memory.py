"""Memory is measured without mapped files, bounded with a sentence, and spared by mapped copies."""

import errno
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from scipy import sparse

from rankwright.core import memory
from rankwright.core.memory import anonymous_bytes, memory_limit, parse_size, shown_size
from rankwright.errors import DataError, MemoryLimitError, UsageError

MB = 1_000_000
RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GB", 2_000_000_000),
        ("500 mb", 500 * MB),
        ("1.5GiB", 3 * 2**29),
        ("64k", 64_000),
        (7, 7),
        (2e9, 2_000_000_000),
    ],
)
def test_sizes_as_people_write_them(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "2XB", "GB", "-1GB", "0", "1e9", "9" * 400, float("nan")])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(UsageError, match=r"memory"):
        parse_size(text)


def test_sizes_are_shown_with_three_digits():
    assert shown_size(1_534_000_000) == "1.53 GB"
    assert shown_size(20 * MB) == "20 MB"
    assert shown_size(12) == "12 bytes"


def test_arrays_count_and_mapped_files_do_not(tmp_path):
    file = tmp_path / "x.npy"
    np.save(file, np.ones(50 * MB // 8))
    before = anonymous_bytes()
    mapped = np.load(file, mmap_mode="r")
    assert mapped.sum() == mapped.size
    assert anonymous_bytes() - before < 10 * MB
    copy = np.array(mapped)
    assert anonymous_bytes() - before > 40 * MB
    assert copy.size == mapped.size


def test_a_peak_is_seen_after_it_is_over():
    with memory_limit(None) as gauge:
        before = anonymous_bytes()
        held = np.ones(80 * MB // 8)
        time.sleep(0.2)
        del held
    assert gauge.peak - before > 60 * MB


def run_past(limit, held_bytes=100 * MB, seconds=10.0):
    """Hold more than there was until somebody ends it."""
    with memory_limit(limit):
        held = np.ones(held_bytes // 8)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.01)
        return held


def test_a_run_past_its_bound_ends_with_a_sentence():
    memory.trim_memory()  # as the run does, which would make room that earlier tests left
    with pytest.raises(
        MemoryLimitError, match=r"the run was stopped: it used .* [MG]B .* allow more"
    ):
        limit = anonymous_bytes() + 20 * MB
        run_past(limit, int(memory.SLACK * limit) + 100 * MB)
    assert memory.memory_bound.get() is None


def test_a_run_within_its_bound_goes_on():
    assert run_past(2 * anonymous_bytes() + 200 * MB, seconds=0.1).nbytes == 100 * MB


def test_a_run_that_a_shell_put_into_the_background_ends_too():
    code = """if True:
        import signal, time
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as `command &` has it
        import numpy as np
        from rankwright.core.memory import anonymous_bytes, memory_limit
        from rankwright.errors import MemoryLimitError
        try:
            with memory_limit(anonymous_bytes() + 20_000_000):
                held = np.ones(100_000_000 // 8)
                time.sleep(20)
        except MemoryLimitError:
            print("ended", signal.getsignal(signal.SIGINT) == signal.SIG_IGN)
    """
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "ended True\n"


def test_a_bound_is_for_the_main_thread():
    def inside():
        with pytest.raises(UsageError, match="main thread"), memory_limit("9GB"):
            pass
        with memory_limit(None) as gauge:  # measuring alone interrupts nothing
            reported.append(gauge.peak)

    reported = []
    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert reported


def test_a_bound_holds_inside_and_gives_way_to_an_inner_one():
    assert memory.memory_bound.get() is None
    with memory_limit("90GB"):
        assert memory.memory_bound.get() == 90_000 * MB
        with memory_limit("80GB"):
            assert memory.memory_bound.get() == 80_000 * MB
        assert memory.memory_bound.get() == 90_000 * MB
        assert memory.room() < 90_000 * MB


def test_large_room_is_a_file_under_a_bound_and_nothing_is_left_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(memory.tempfile, "tempdir", str(tmp_path))
    most = 2 * anonymous_bytes() + 100 * MB
    with memory_limit(most):
        before = anonymous_bytes()
        large = memory.scratch((most // 4 // 8, 2), np.float32)
        large[:] = 1.0
        assert anonymous_bytes() - before < 10 * MB
    assert large.sum() == large.size
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_is_reported_before_the_room_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr(memory.tempfile, "tempdir", str(tmp_path))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(memory.os, "posix_fallocate", full)
    with (
        memory_limit("90GB"),
        pytest.raises(DataError, match=r"80 GB of .* space .*: No space.*TMPDIR"),
    ):
        memory.scratch((10**10,), np.float64)
    assert list(tmp_path.iterdir()) == []


def test_room_is_memory_without_a_bound():
    assert memory.scratch((3, 2), np.float32).base is None


@pytest.fixture
def mapped_copies(monkeypatch):
    """Let every copy go to a file, however small."""
    monkeypatch.setattr(memory, "_SMALL_SHARE", 1 << 60)
    monkeypatch.setattr(memory, "_BLOCK_BYTES", 64)
    monkeypatch.setattr(memory, "_SPARSE_ROWS", 3)
    with memory_limit("90GB"):
        yield


@pytest.mark.usefixtures("mapped_copies")
def test_rows_and_columns_taken_within_a_bound_are_those_taken_without():
    X = RNG.normal(size=(40, 5)).round(1) * (RNG.random((40, 5)) < 0.5)
    rows, columns = RNG.permutation(40)[:23], [3, 0]
    assert (memory.taken_rows(X, rows) == X[rows]).all()
    assert (memory.taken_columns(X, columns) == X[:, columns]).all()
    wide = sparse.csr_array(X)
    taken = memory.taken_rows(wide, rows)
    assert (taken.toarray() == X[rows]).all()
    assert taken.has_canonical_format
    assert (taken[2:9].toarray() == X[rows][2:9]).all()
