"""Measure what checks of input cost: this checkout against an earlier revision, in turns.

    python tools/measure_checks.py --before REVISION

Opens a store of 2 GB and ranks all of it, dense and sparse, and predicts 1,000 documents many times
with a linear model and with trees. Each turn is a process of its own; the least CPU time of a task
over all turns counts, as others may have the cores. Exits 1 where a task takes over 3 % more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse

ROOT = Path(__file__).resolve().parents[1]
MOST = 0.03
_PREDICTIONS = 200


def write_inputs(folder: Path, gigabytes: float) -> None:
    """Write the stores, and models for them."""
    import rankwright as rw
    from rankwright.data.files import save

    rng = np.random.default_rng(0)
    rows = 64 * int(gigabytes * 1e9 / (64 * 100 * 4))
    X = rng.random((rows, 100), np.float32)
    y, qid = rng.integers(0, 5, rows).astype(float), np.arange(rows) // 64
    save(rw.RankingData.from_arrays(X, y, qid=qid), folder / "dense.store")
    for name, ranker in {
        "linear": rw.LinearRegression(),
        "trees": rw.LambdaMART(n_estimators=100),
    }.items():
        ranker.fit(X[:6400], y[:6400], qid=qid[:6400]).save(folder / f"{name}.rw")
    per_row = 50
    wide = min(rows, 64 * int(gigabytes * 1e9 / (64 * per_row * 12)))
    places = np.sort(rng.integers(0, 20, (wide, per_row)).cumsum(axis=1), axis=1).ravel()
    held = (rng.random(wide * per_row), places.astype(np.int32), np.arange(wide + 1) * per_row)
    made = sparse.csr_array(held, shape=(wide, 1000))
    save(rw.RankingData.from_arrays(made, y[:wide], qid=qid[:wide]), folder / "sparse.store")
    rw.LinearRegression().fit(made[:6400], y[:6400], qid=qid[:6400]).save(folder / "sparse.rw")


def tasks(folder: Path) -> dict[str, Callable[[], object]]:
    """Return what is measured, by its name."""
    import rankwright as rw

    models = {name: rw.load_model(folder / f"{name}.rw") for name in ("linear", "trees", "sparse")}
    X = np.random.default_rng(1).random((1000, 100))

    def predict(name: str) -> None:
        for _ in range(_PREDICTIONS):
            models[name].predict(X)

    return {
        "open a dense store and rank it": lambda: models["linear"].predict(
            rw.load(folder / "dense.store")
        ),
        "open a sparse store and rank it": lambda: models["sparse"].predict(
            rw.load(folder / "sparse.store")
        ),
        "predict 1,000 documents, linear": lambda: predict("linear"),
        "predict 1,000 documents, trees": lambda: predict("trees"),
    }


def measure(folder: Path) -> dict[str, float]:
    """Return the least CPU seconds of each task over a few calls."""
    found = {}
    for name, task in tasks(folder).items():
        task()  # compiles or loads kernels
        seconds = []
        for _ in range(3):
            began = time.process_time()
            task()
            seconds.append(time.process_time() - began)
        found[name] = min(seconds)
    return found


def main() -> int:
    """Measure both revisions in turns; return 1 where checks cost too much."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--before", required=True, help="the revision to compare with")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--gigabytes", type=float, default=2.0, help="of each store")
    given = parser.parse_args()
    best: dict[str, dict[str, float]] = {"before": {}, "after": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = folder / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(before), given.before], check=True)
        try:
            write_inputs(folder, given.gigabytes)
            for _ in range(given.turns):
                for which, place in (("before", before), ("after", ROOT)):
                    done = subprocess.run(
                        [sys.executable, __file__, "--in-turn", str(folder)],
                        env={**os.environ, "PYTHONPATH": str(place), "RANKWRIGHT_THREADS": "1"},
                        stdout=subprocess.PIPE,
                        check=True,
                    )
                    for task, seconds in json.loads(done.stdout).items():
                        best[which][task] = min(seconds, best[which].get(task, seconds))
        finally:
            subprocess.run([*git, "remove", "--force", str(before)], check=True)
    worst = 0.0
    for task, seconds in best["after"].items():
        more = seconds / best["before"][task] - 1
        worst = max(worst, more)
        print(f"{task}: {best['before'][task]:.4f} s before, {seconds:.4f} s now, {more:+.1%}")
    return int(worst > MOST)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--in-turn"]:
        print(json.dumps(measure(Path(sys.argv[2]))))
    else:
        sys.exit(main())
