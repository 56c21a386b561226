"""Reading LETOR text: scikit-learn, XGBoost, CatBoost, fastrank; and the peak of memory.

One file of 100,000 rows x 46 features with comments, as LETOR 4.0 has them, into memory. CatBoost
refuses comments and gets the lines without them; LightGBM reads no query ids from such text, so it
is no contender. What each has read is compared with what we read: the numbers, to the last bit of
the type that the tool keeps, or where it does not show them, how many rows there are.
Memory is that of a process of its own, from after a first read that loads the kernels.
"""

from __future__ import annotations

import gzip
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .contest import Contender, contest
from .findings import OURS, Findings
from .timing import apart, memory_in_use, peak_memory

ROWS, FEATURES, ROWS_PER_QUERY, ROUNDS = 100_000, 46, 40, 3


def run() -> Findings:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, large, packed = folder / "small.txt", folder / "large.txt", folder / "large.txt.gz"
        write_letor(small, 500)
        write_letor(large, ROWS)
        packed.write_bytes(gzip.compress(large.read_bytes(), 1))
        found = _speeds(large)
        found.note_figure("load_vs_sklearn", found.ratio("scikit-learn", OURS))
        found.note_figure(
            "load_vs_sklearn_one_thread", found.ratio("scikit-learn", f"{OURS}, one thread")
        )
        for peer in ("XGBoost", "fastrank", "CatBoost"):
            found.note_figure(f"load_vs_{peer.lower()}", found.ratio(peer, OURS))
        found.figures["load_memory_vs_arrays_plus_file"] = apart(_memory, small, large)
        found.figures["load_memory_of_gz_vs_arrays_plus_file"] = apart(_memory, small, packed)
        return found


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


def _speeds(path: Path) -> Findings:
    from rankwright.data.letor import Letor

    X = Letor.read(path).X
    numbers, narrow = "the same numbers", "the same numbers, as float32"
    return contest(
        f"LETOR text, {ROWS:,} x {FEATURES}",
        [
            Contender(OURS, "rankwright", "all cores", lambda: lambda: Letor.read(path)),
            Contender(
                f"{OURS}, one thread",
                "rankwright",
                "n_jobs=1",
                lambda: lambda: Letor.read(path, n_jobs=1),
            ),
            Contender(
                "scikit-learn",
                "scikit-learn",
                "load_svmlight_file(query_id=True), one thread",
                lambda: _sklearn(path),
                lambda found: _equal(found[0].toarray(), X),
                same=numbers,
            ),
            Contender(
                "XGBoost",
                "xgboost",
                "DMatrix from libsvm text, all cores",
                lambda: _xgboost(path),
                lambda found: _equal(found.get_data().toarray()[:, 1:], X.astype(np.float32)),
                same=narrow,
                note="deprecated by XGBoost since 3.1",
            ),
            Contender(
                "CatBoost",
                "catboost",
                "Pool from libsvm text without comments, all cores",
                lambda: _catboost(path),
                lambda found: _equal(found.get_features(), X.astype(np.float32)),
                same=narrow,
            ),
            Contender(
                "fastrank",
                "fastrank",
                "open_ranksvm, one thread",
                lambda: _fastrank(path),
                lambda found: _equal(found.num_instances(), len(X)),
                same="as many rows",
            ),
        ],
        rounds=ROUNDS,
    )


def _equal(found: Any, expected: Any) -> None:
    if not np.array_equal(found, expected):
        raise AssertionError("what was read is not what we read")


def _sklearn(path: Path) -> Callable[[], Any]:
    from sklearn.datasets import load_svmlight_file

    return lambda: load_svmlight_file(path, query_id=True)


def _xgboost(path: Path) -> Callable[[], Any]:
    import xgboost as xgb

    def read() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return xgb.DMatrix(f"{path}?format=libsvm")

    return read


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
    """Return what a read adds to the process, over the arrays and the file together."""
    from rankwright.data.letor import Letor

    Letor.read(small)
    before = memory_in_use()
    data = Letor.read(large)
    arrays = sum(a.nbytes for a in (data.X, data.y, data.indptr, data.qid, data.doc_id))
    return (peak_memory() - before) / (arrays + large.stat().st_size)
