"""A busy machine: fits while two processes per core spin, against the same fits before.

Every fit runs in a process of its own, after a small one that loads and compiles: quiet, then with
the load, in turns. Peers are called as their users call them, with the threads that they choose.
OpenMP threads that spin while they wait take the time that the working ones need; ours sleep.
Data: the mslr10k shape, 9,000 rows.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from .contest import is_installed, reason, version
from .findings import OURS, Findings, Record
from .own_process import LIMIT, Fit, load, run_python, write_data

QUERIES, ROWS, TREES, TURNS = 80, 9_000, 60, 2
QUIET, BUSY = "A fit on a quiet machine", "The same fit with two spinning processes per core"


def ours(name: str, **settings: object) -> Fit:
    words = ", ".join(f"{key}={value!r}" for key, value in settings.items())
    lines = f"""
import rankwright as rw
fit = lambda few: rw.ranker({name!r}, **{settings!r}).fit(X, y, group_sizes=sizes)
"""
    return Fit(f"{OURS}, {name}", "rankwright", words or "defaults", lines)


_LIGHTGBM = f"""
import lightgbm
def fit(few):
    model = lightgbm.LGBMRanker(n_estimators=2 if few else {TREES}, verbosity=-1)
    model.fit(X, y, group=sizes)
"""
_XGBOOST = f"""
import xgboost
qid = np.repeat(np.arange(len(sizes)), sizes)
fit = lambda few: xgboost.XGBRanker(n_estimators=2 if few else {TREES}).fit(X, y, qid=qid)
"""
_CATBOOST = f"""
import catboost
qid = np.repeat(np.arange(len(sizes)), sizes)
def fit(few):
    model = catboost.CatBoostRanker(
        iterations=2 if few else {TREES}, loss_function="QueryRMSE", verbose=0,
        allow_writing_files=False,
    )
    model.fit(X, y, group_id=qid)
"""
CONTENDERS = {
    "lambdamart": ours("lambdamart", n_estimators=TREES),
    "gbdt": ours("gbdt", n_estimators=TREES),
    "random_forest": ours("random_forest", n_bags=10),
    "ranknet": ours("ranknet", epochs=5),
    "memr": ours("memr"),
    "lightgbm": Fit("LightGBM", "lightgbm", f"LGBMRanker, {TREES} trees", _LIGHTGBM),
    "xgboost": Fit("XGBoost", "xgboost", f"XGBRanker, {TREES} trees", _XGBOOST),
    "catboost": Fit("CatBoost", "catboost", f"CatBoostRanker, {TREES} trees", _CATBOOST),
}
_READ = """
import time
import numpy as np
with np.load("data.npz") as arrays:
    X, y, sizes = arrays["X"], arrays["y"], arrays["sizes"]
"""
_TIME = """
fit(True)
began = time.perf_counter()
fit(False)
print(time.perf_counter() - began)
"""


def run() -> Findings:
    found = Findings()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_data(folder, "mslr10k", QUERIES, ROWS)
        for name, one in CONTENDERS.items():
            if not is_installed(one.package):
                found.absent[one.peer] = f"{one.package} is not installed"
                continue
            try:
                quiet, busy = _measure(one, folder)
            except Exception as fault:
                found.failed[one.peer] = reason(fault)
                continue
            note = f"ended after {LIMIT:.0f} s" if busy >= LIMIT else ""
            for task, seconds, about in ((QUIET, quiet, ""), (BUSY, busy, note)):
                about_it = (one.peer, version(one.package), one.settings, seconds)
                found.records.append(Record(task, *about_it, note=about))
            found.figures[f"{name}_busy_vs_quiet"] = busy / quiet
    return found


def _measure(one: Fit, folder: Path) -> tuple[float, float]:
    """Return the least seconds of a quiet and of a busy fit, in turns."""
    code = _READ + one.lines + _TIME
    quiet, busy = [], []
    for _ in range(TURNS):
        quiet.append(float(run_python(code, folder, {})[1]))
        with load(2 * (os.cpu_count() or 1)):
            try:
                busy.append(float(run_python(code, folder, {})[1]))
            except subprocess.TimeoutExpired:
                busy.append(LIMIT)
                break
    return min(quiet), min(busy)
