"""The first fit: from the start of a process to a fitted ranker, with an empty and a warm cache.

Each process loads 1,000 rows and fits a ranker with its defaults. Kernels are compiled on first
use, and the cache keeps them. Peers fit the same rows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from rankwright import synthetic
from rankwright.data import save

from .contest import OURS, Results, Row, one_line
from .timing import seconds_of

ROWS, TURNS, LIMIT = 1_000, 2, 120.0
RANKERS = ("lambdamart", "memr", "dorm")
FIRST, WARM = "First fit, empty cache", "First fit, warm cache"
ARRAYS = """
import numpy as np
with np.load("data.npz") as arrays:
    X, y, sizes = arrays["X"], arrays["y"], arrays["sizes"]
qid = np.repeat(np.arange(len(sizes)), sizes)
"""
PEERS = {
    "LightGBM": "import lightgbm\nlightgbm.LGBMRanker(verbosity=-1).fit(X, y, group=sizes)",
    "XGBoost": "import xgboost\nxgboost.XGBRanker().fit(X, y, qid=qid)",
    "CatBoost": "import catboost\ncatboost.CatBoostRanker(iterations=100, verbose=0, "
    "allow_writing_files=False).fit(X, y, group_id=qid)",
}


def run() -> Results:
    results = Results()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = synthetic("mslr10k", queries=40)
        data = data.select(np.arange(np.searchsorted(data.indptr, ROWS, side="right") - 1))
        np.savez(folder / "data.npz", X=data.X, y=data.y, sizes=data.sizes)
        save(data, folder / "data.txt")
        for ranker in RANKERS:
            code = f"import rankwright as rw; rw.ranker({ranker!r}).fit(rw.load('data.txt'))"
            cache = folder / ranker
            first = _seconds(code, folder, cache)
            warm = min(_seconds(code, folder, cache) for _ in range(TURNS))
            results.ratios[f"{ranker}_compiling_vs_warm"] = first / warm
            about = f"{OURS}, {ranker}", "defaults"
            results.rows += [Row(FIRST, *about, first), Row(WARM, *about, warm)]
        for tool, lines in PEERS.items():
            try:
                seconds = min(_seconds(ARRAYS + lines, folder, folder) for _ in range(TURNS))
            except RuntimeError as error:
                results.absent[tool] = one_line(error)
                continue
            results.rows.append(Row(WARM, tool, "defaults", seconds))
    results.rows.sort(key=lambda row: row.task)
    return results


def _seconds(code: str, folder: Path, cache: Path) -> float:
    """Return the seconds of a Python process that runs ``code`` with this cache of kernels."""
    root = str(Path(__file__).resolve().parents[1])
    caches = {"RANKWRIGHT_CACHE": str(cache), "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", code]

    def process() -> None:
        environment = {**os.environ, **caches, "PYTHONPATH": root}
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])

    return seconds_of(process)
