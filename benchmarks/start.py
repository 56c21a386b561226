"""The first fit: from the start of the process, with an empty cache, to a fitted ranker.

1,000 rows of LETOR text are read and a ranker with its defaults is fitted, in a process of its own:
with kernels compiled ahead, as a wheel for a platform carries them; from a checkout, which compiles
(``RANKWRIGHT_COMPILE=1``); and warm, when the cache has all. Peers fit the same rows, from arrays.
Where the package has no compiled kernels, those of these rankers are made first.
"""

from __future__ import annotations

import compileall
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from numba.core.codegen import get_host_cpu_features

from rankwright.core.kernel_cache import BASELINES, has_features, machine

from .contest import is_installed, reason, version
from .findings import OURS, Findings, Record
from .own_process import Fit, run_python, write_data

ROWS, TURNS = 1_000, 2
RANKERS = (
    "lambdamart", "gbdt", "intervalrank", "random_forest", "linear_regression", "memr", "ranksvm",
    "dorm", "listmle", "rankboost",
)  # fmt: skip
COMPILED = ("lambdamart", "dorm")  # measured from a checkout too
FIRST, WARM, COMPILE = "First fit, compiled ahead", "The same, warm", "First fit of a checkout"
_ARRAYS = """
import numpy as np
with np.load("data.npz") as arrays:
    X, y, sizes = arrays["X"], arrays["y"], arrays["sizes"]
qid = np.repeat(np.arange(len(sizes)), sizes)
"""
PEERS = (
    Fit(
        "LightGBM",
        "lightgbm",
        "LGBMRanker, defaults",
        "import lightgbm\nlightgbm.LGBMRanker(verbosity=-1).fit(X, y, group=sizes)",
    ),
    Fit(
        "XGBoost",
        "xgboost",
        "XGBRanker, defaults",
        "import xgboost\nxgboost.XGBRanker().fit(X, y, qid=qid)",
    ),
    Fit(
        "CatBoost",
        "catboost",
        "CatBoostRanker, 100 iterations",
        "import catboost\ncatboost.CatBoostRanker(iterations=100, verbose=0, "
        "allow_writing_files=False).fit(X, y, group_id=qid)",
    ),
)


def run() -> Findings:
    found = Findings()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_data(folder, "mslr10k", 40, ROWS)
        site = _package_with_kernels(folder)
        worst = 0.0
        for name in RANKERS:
            code = f"import rankwright as rw; rw.ranker({name!r}).fit(rw.load('data.txt'))"
            try:
                first, warm = _in_turns(code, folder, site)
                worst = max(worst, first / warm)
                tasks = [(FIRST, first), (WARM, warm)]
                if name in COMPILED:
                    cold = _first(code, folder, site, {"RANKWRIGHT_COMPILE": "1"})
                    found.figures[f"{name}_compiling_vs_warm"] = cold / warm
                    tasks.append((COMPILE, cold))
            except Exception as fault:
                found.failed[f"{OURS}, {name}"] = reason(fault)
                continue
            for task, seconds in tasks:
                about = (f"{OURS}, {name}", version("rankwright"), "defaults, LETOR text")
                found.records.append(Record(task, *about, seconds))
        found.figures["first_vs_warm_worst"] = worst
        for one in PEERS:
            if not is_installed(one.package):
                found.absent[one.peer] = f"{one.package} is not installed"
                continue
            try:
                seconds = min(run_python(_ARRAYS + one.lines, folder, {})[0] for _ in range(TURNS))
            except Exception as fault:
                found.failed[one.peer] = reason(fault)
                continue
            about = (one.peer, version(one.package), one.settings)
            found.records.append(Record(FIRST, *about, seconds, note="a compiled library"))
    found.records.sort(key=lambda one: (FIRST, WARM, COMPILE).index(one.task))  # a table each
    return found


def _in_turns(code: str, folder: Path, site: Path) -> tuple[float, float]:
    """Return the least seconds of a first and of a warm process."""
    cache = folder / "warm"
    run_python(code, folder, _settings(site, cache))
    first, warm = [], []
    for _ in range(TURNS):
        first.append(_first(code, folder, site, {}))
        warm.append(run_python(code, folder, _settings(site, cache))[0])
    return min(first), min(warm)


def _first(code: str, folder: Path, site: Path, more: dict[str, str]) -> float:
    """Return the seconds of a process with an empty cache."""
    with tempfile.TemporaryDirectory(dir=folder) as empty:
        return run_python(code, folder, {**_settings(site, Path(empty)), **more})[0]


def _settings(site: Path, cache: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(site), "RANKWRIGHT_CACHE": str(cache)}


def _package_with_kernels(folder: Path) -> Path:
    """Return the folder to import from: of the installed wheel, or of a copy made like one."""
    spec = importlib.util.find_spec("rankwright")
    package = Path(str(spec.origin)).parent
    if (package / "compiled").is_dir():
        return package.parent
    site = folder / "site"
    shutil.copytree(package, site / "rankwright", ignore=shutil.ignore_patterns("__pycache__"))
    tool = package.parent / "tools" / "compile_kernels.py"
    words = [site / "rankwright" / "compiled", "--rankers", ",".join(RANKERS), "--cpus", _cpu()]
    subprocess.run(
        [sys.executable, tool, *words],
        env={**os.environ, "PYTHONPATH": str(package.parent)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    compileall.compile_dir(site, quiet=1)  # as pip does
    return site


def _cpu() -> str:
    """Return the best CPU that wheels carry code for and whose instructions this one has."""
    own = has_features(get_host_cpu_features())
    return next(cpu for cpu, needed in BASELINES[machine()].items() if needed <= own)
