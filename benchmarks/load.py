"""Loading LETOR text: scikit-learn, XGBoost, CatBoost and fastrank; peak memory.

One file of 100,000 rows x 46 features with comments, as in LETOR 4.0. CatBoost refuses comments and
gets the lines without them. LightGBM reads no query ids from such text. The loaded values are
compared with ours. Memory is measured in a process of its own, after a first load that compiles.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.data.letor import Letor

from .contest import OURS, Contender, Results, contest
from .timing import in_new_process, peak_memory, reset_peak_memory

ROWS, FEATURES, ROWS_PER_QUERY, ROUNDS = 100_000, 46, 40, 3


def run() -> Results:
    with tempfile.TemporaryDirectory() as name:
        small, large = Path(name) / "small.txt", Path(name) / "large.txt"
        write_letor(small, 500)
        write_letor(large, ROWS)
        results = _speeds(large)
        results.set_ratio("load_vs_sklearn", "scikit-learn", OURS)
        results.ratios["load_memory_vs_arrays_plus_file"] = in_new_process(_memory, small, large)
        return results


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


def _speeds(path: Path) -> Results:
    X = Letor.read(path).X
    narrow = X.astype(np.float32)
    contenders = [
        Contender(OURS, "all cores", lambda: lambda: Letor.read(path)),
        Contender(
            f"{OURS}, one thread",
            "n_jobs=1",
            lambda: lambda: Letor.read(path, n_jobs=1),
        ),
        Contender(
            "scikit-learn",
            "load_svmlight_file(query_id=True), one thread",
            lambda: _sklearn(path),
            lambda loaded: _check_equal(loaded[0].toarray(), X),
        ),
        Contender(
            "XGBoost",
            "DMatrix from libsvm text (deprecated since 3.1), all cores",
            lambda: _xgboost(path),
            lambda loaded: _check_equal(loaded.get_data().toarray()[:, 1:], narrow),
        ),
        Contender(
            "CatBoost",
            "Pool from libsvm text without comments, all cores",
            lambda: _catboost(path),
            lambda loaded: _check_equal(loaded.get_features(), narrow),
        ),
        Contender(
            "fastrank",
            "open_ranksvm, one thread",
            lambda: _fastrank(path),
            lambda loaded: _check_equal(loaded.num_instances(), len(X)),
        ),
    ]
    return contest(f"LETOR text, {ROWS:,} x {FEATURES}", contenders, rounds=ROUNDS)


def _check_equal(loaded: Any, expected: Any) -> None:
    if not np.array_equal(loaded, expected):
        raise AssertionError("the loaded values differ from ours")


def _sklearn(path: Path) -> Callable[[], Any]:
    from sklearn.datasets import load_svmlight_file

    return lambda: load_svmlight_file(path, query_id=True)


def _xgboost(path: Path) -> Callable[[], Any]:
    import xgboost as xgb

    warnings.filterwarnings("ignore", module="xgboost")
    return lambda: xgb.DMatrix(f"{path}?format=libsvm")


def _catboost(path: Path) -> Callable[[], Any]:
    from catboost import Pool

    plain = path.with_suffix(".plain")
    lines = path.read_text().splitlines()
    plain.write_text("".join(f"{line.partition('#')[0].rstrip()}\n" for line in lines))
    return lambda: Pool(f"libsvm://{plain}")


def _fastrank(path: Path) -> Callable[[], Any]:
    from fastrank import CDataset

    return lambda: CDataset.open_ranksvm(str(path))


def _memory(small: Path, large: Path) -> float:
    """Return the peak of memory that a load adds, over the sum of its arrays and the file."""
    Letor.read(small)
    before = reset_peak_memory()
    data = Letor.read(large)
    arrays = sum(a.nbytes for a in (data.X, data.y, data.indptr, data.qid, data.doc_id))
    return (peak_memory() - before) / (arrays + large.stat().st_size)
