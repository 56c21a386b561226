"""Reading LETOR text: speed against scikit-learn in the same run, and the peak of memory.

``python benchmarks/load.py`` prints the figures; ``benchmarks/run.py load`` holds them to floors.
"""

from __future__ import annotations

import gzip
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROWS, FEATURES, ROWS_PER_QUERY, ROUNDS = 100_000, 46, 40, 3

# Memory is measured in a process of its own, from after a first read that loads the kernels.
MEASURE = """
import os, pathlib, resource, sys
from rankwright.data.letor import Letor

def peak():
    status = pathlib.Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent held when it started us
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

Letor.read(sys.argv[1])
before = peak()
data = Letor.read(sys.argv[2])
arrays = sum(a.nbytes for a in (data.X, data.y, data.indptr, data.qid, data.doc_id))
print((peak() - before) / (arrays + os.path.getsize(sys.argv[2])))
"""


def run() -> dict[str, float]:
    """Return the ratios by name."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, large, packed = folder / "small.txt", folder / "large.txt", folder / "large.txt.gz"
        write_letor(small, 500)
        write_letor(large, ROWS)
        packed.write_bytes(gzip.compress(large.read_bytes(), 1))
        return {
            **_speeds(small, large),
            "load_memory_vs_arrays_plus_file": _memory(small, large),
            "load_memory_of_gz_vs_arrays_plus_file": _memory(small, packed),
        }


def write_letor(path: Path, rows: int) -> None:
    """Write a file in the shape of LETOR 4.0: six decimals, nearly half of them zero."""
    rng = np.random.default_rng(0)
    X = rng.random((rows, FEATURES)) * (rng.random((rows, FEATURES)) > 0.45)
    grades = rng.integers(0, 3, rows)
    line = " ".join(f"{feature}:%.6f" for feature in range(1, FEATURES + 1))
    line = f"%d qid:%d {line} #docid = GX%09d inc = 1 prob = 0.086622\n"
    with path.open("w") as stream:
        for row, x in enumerate(X):
            query = 10_000 + row // ROWS_PER_QUERY
            stream.write(line % (grades[row], query, *x.tolist(), row))


def _speeds(small: Path, large: Path) -> dict[str, float]:
    from sklearn.datasets import load_svmlight_file

    from rankwright.data.letor import Letor

    readers: dict[str, Callable[[Path], object]] = {
        "scikit-learn": lambda path: load_svmlight_file(path, query_id=True),
        "load_vs_sklearn": lambda path: Letor.read(path),
        "load_vs_sklearn_one_thread": lambda path: Letor.read(path, n_threads=1),
    }
    seconds: dict[str, list[float]] = {name: [] for name in readers}
    for path, rounds in ((small, 1), (large, ROUNDS)):
        for _ in range(rounds):
            for name, reader in readers.items():
                start = time.perf_counter()
                reader(path)
                seconds[name].append(time.perf_counter() - start)
    X, y, _ = load_svmlight_file(large, query_id=True)
    data = Letor.read(large)
    if not (np.array_equal(X.toarray(), data.X) and np.array_equal(y, data.y)):
        raise AssertionError("scikit-learn and rankwright read different numbers")
    peer = statistics.median(seconds.pop("scikit-learn")[1:])
    return {name: peer / statistics.median(times[1:]) for name, times in seconds.items()}


def _memory(small: Path, large: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(small), str(large)],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


if __name__ == "__main__":
    for name, ratio in run().items():
        print(f"{name:40s} {ratio:8.2f}")
