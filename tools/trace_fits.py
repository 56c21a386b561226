"""Count the files, functions and changes of file of five typical runs, as a measure of coupling.

A change of file is a call of a function of the package in another file than the call before it.
Each run is warmed up first, so that compiling and importing do not count. With ``--package TREE``
another checkout is measured::

    python tools/trace_fits.py --package ../rankwright-0.2.0
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

QUERIES, DOCUMENTS, FEATURES = 60, 20, 8


class Trace:
    """A profile function that records calls of the package while it is enabled."""

    def __init__(self, package: Path) -> None:
        self._package = f"{package}/"
        self.enabled = False
        self.reset()

    def reset(self) -> None:
        """Forget all calls."""
        self.calls: list[tuple[str, str]] = []

    def __call__(self, frame: Any, event: str, _: Any) -> None:
        """Record a call."""
        code = frame.f_code
        if self.enabled and event == "call" and code.co_filename.startswith(self._package):
            self.calls.append((code.co_filename, code.co_qualname))

    def row(self) -> tuple[int, int, int]:
        """Return the number of files, functions and changes of file."""
        files = [file for file, _ in self.calls]
        changes = sum(a != b for a, b in pairwise(files))
        return len(set(files)), len(set(self.calls)), changes


def documents(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, grades and query ids."""
    rng = np.random.default_rng(seed)
    X = rng.random((QUERIES * DOCUMENTS, FEATURES))
    noise = 0.3 * rng.normal(size=len(X))
    y = np.digitize(X[:, 0] + X[:, 1] + noise, [0.8, 1.2])
    return X, y, np.repeat(np.arange(QUERIES), DOCUMENTS)


def clicks_on(X: np.ndarray, y: np.ndarray, qid: np.ndarray) -> Any:
    """Return ten sessions of each query, with clicks on relevant documents near the top."""
    from rankwright import RankingData
    from rankwright.clicks import ClickLog

    rng = np.random.default_rng(2)
    queries, shown, clicked = [], [], []
    for query in np.unique(qid):
        rows = np.flatnonzero(qid == query)
        for _ in range(10):
            order = rng.permutation(rows)[:10]
            chance = (0.1 + 0.4 * y[order]) / np.arange(1, 11)
            queries.append(str(query))
            shown.append([f"d{row}" for row in order])
            clicked.append((rng.random(10) < chance).astype(int).tolist())
    names = np.array([f"d{row}" for row in range(len(X))])
    table = RankingData.from_arrays(X, y, qid=qid.astype(str), doc_id=names)
    log = ClickLog.from_arrays(
        queries, np.concatenate(shown), np.concatenate(clicked), session_sizes=[10] * len(queries)
    )
    return log.with_features(table)


def runs(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return the five runs by name."""
    import rankwright as rw
    from rankwright.cli.main import run

    (X, y, qid), valid = documents(0), documents(1)
    lines = [
        f"{grade} qid:{query} " + " ".join(f"{j}:{x:.6f}" for j, x in enumerate(row, start=1))
        for row, grade, query in zip(X, y, qid, strict=True)
    ]
    train = folder / "train.txt"
    train.write_text("\n".join(lines) + "\n")
    log = clicks_on(X, y, qid)

    def command() -> None:
        words = f"train lambdamart --train {train} --set n_estimators=10"
        sys.argv = ["rankwright", *words.split()]
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                run()
        except SystemExit as end:
            if end.code:
                raise

    return {
        "train lambdamart, 10 trees": command,
        "LambdaMART().fit, 20 trees": lambda: rw.LambdaMART(n_estimators=20).fit(X, y, qid=qid),
        "the same with validation": lambda: rw.LambdaMART(n_estimators=20).fit(
            X, y, qid=qid, eval_set=valid
        ),
        "MEMR().fit": lambda: rw.MEMR().fit(X, y, qid=qid),
        "one served request": served(folder),
        "fit(log, propensity=)": lambda: rw.LambdaMART(n_estimators=20).fit(
            log, propensity="joint"
        ),
    }


def served(folder: Path) -> Callable[[], Any]:
    """Return a request for a ranking to an application over a saved model."""
    from starlette.testclient import TestClient

    import rankwright as rw
    from rankwright.serve.app import Service
    from rankwright.serve.model_store import ModelStore
    from rankwright.serve.settings import Settings, parse_models

    X, y, qid = documents(0)
    path = folder / "model.rw"
    rw.LambdaMART(n_estimators=20).fit(X, y, qid=qid).save(path)
    application = Service(ModelStore(parse_models([str(path)])), Settings(reload_seconds=0))
    client = TestClient(application.middleware)
    body = {
        "query": "q",
        "documents": [{"id": str(i), "features": X[i].tolist()} for i in range(9)],
    }
    return lambda: client.post("/v1/models/model/rank", json=body).raise_for_status()


def main() -> None:
    """Print a row for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, default=Path(__file__).parent.parent)
    tree = parser.parse_args().package.resolve()
    sys.path.insert(0, str(tree))
    warnings.simplefilter("ignore")
    trace = Trace(tree / "rankwright")
    threading.setprofile(trace)
    with tempfile.TemporaryDirectory() as folder:
        rows = {}
        for name, run in runs(Path(folder)).items():
            run()
            trace.reset()
            trace.enabled = True
            sys.setprofile(trace)
            run()
            sys.setprofile(None)
            trace.enabled = False
            rows[name] = trace.row()
    print(f"{'run':28} files functions changes of file")
    for name, (files, functions, changes) in rows.items():
        print(f"{name:28} {files:5} {functions:9} {changes:15,}")


if __name__ == "__main__":
    main()
