"""Memory of work on a store: the peak of anonymous memory, as a share of the size of its features.

The ``mslr30k`` shape is written part by part to a store, and the command line trains, evaluates and
ranks from it under ``--memory``. What the code itself takes, seen on a few queries, is left out. A
copy of the features would show as 1 or more. ``RANKWRIGHT_BENCH_QUERIES`` makes another size.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rankwright.data.files import load, save_parts
from rankwright.data.synthetic_data import synthetic_parts

QUERIES, FEW = int(os.environ.get("RANKWRIGHT_BENCH_QUERIES", "4000")), 20
TREES = ("--set", "n_estimators=3")


def run() -> dict[str, float]:
    """Return the peaks, over those of a few queries, by the size of the features."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, queries in (("few", FEW), ("many", QUERIES)):
            save_parts(synthetic_parts("mslr30k", queries=queries), folder / f"{part}.store")
        size = load(folder / "many.store").X.nbytes
        few, many = (_peaks(folder, folder / f"{part}.store", size) for part in ("few", "many"))
        return {name: (many[name] - few[name]) / size for name in many}


def _peaks(folder: Path, store: Path, size: int) -> dict[str, int]:
    """Return the peak of each verb in bytes; trees have room for half of the features."""
    model, bound = folder / "memr.rw", f"{300_000_000 + size}B"
    return {
        "memr_vs_features": _peak("train", "memr", "--train", store, "--save", model),
        "evaluate_vs_features": _peak("evaluate", store, "--load", model),
        "rank_vs_features": _peak("rank", model, store, "-o", folder / "run.txt"),
        "lambdamart_vs_features": _peak(
            "train", "lambdamart", "--train", store, *TREES, memory=bound
        ),
    }


def _peak(*arguments: str | Path, memory: str = "90GB") -> int:
    command = [sys.executable, "-m", "rankwright", *map(str, arguments), "--memory", memory]
    done = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True)
    found: int = json.loads(done.stdout)["peak_anonymous_bytes"]
    return found


if __name__ == "__main__":
    for name, ratio in run().items():
        print(f"{name:30s} {ratio:6.2f}")
