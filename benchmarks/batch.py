"""Ranking files part by part: ``rankwright rank`` beside the plain reading of the same bytes.

400,000 documents of 136 features (float32) in lists of 100, as a Parquet file and as a store. The
plain reading of Parquet is pyarrow's, batch by batch, of the same columns; that of a store is
NumPy's maximum of the mapped features. Ranking reads, scores and writes a table of the ranking as
Parquet, or a TREC run as text; a figure is the time of plain reading over that of ranking, all with
the threads that each takes by itself. Peak memory is the anonymous one that ranking adds in a
process of its own: the parts in work, whatever the size of the file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rankwright import RankingData, ranker
from rankwright.cli.rank import rank_file
from rankwright.core.memory import Gauge, trim_memory
from rankwright.data import save

from .contest import version
from .findings import OURS, Findings, Record
from .timing import apart, least

ROWS, LENGTH, FEATURES, ROUNDS, TREES = 400_000, 100, 136, 3, 100


def run() -> Findings:
    found = Findings()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        make(place, ROWS)
        calls: dict[str, Callable[[], Any]] = {
            "parquet": lambda: _read_parquet(place / "data.parquet"),
            "store": lambda: np.load(place / "data.store" / "X.npy", mmap_mode="r").max(),
        }
        for data in ("parquet", "store"):
            for model in ("linear", "trees"):
                calls[f"{data}_{model}"] = _ranking(place, data, model, "parquet")
        calls["parquet_linear_as_text"] = _ranking(place, "parquet", "linear", "trec")
        seconds = least(calls, ROUNDS)
        for data, reader in (("parquet", "pyarrow"), ("store", "numpy")):
            task = f"Ranking a file of {ROWS:,} documents ({data})"
            for name, taken in seconds.items():
                if name.partition("_")[0] != data:
                    continue
                peer = f"{OURS}, {name.partition('_')[2].replace('_', ' ')}"
                if name == data:
                    peer, about = f"{reader}, reading alone", "features and query ids"
                else:
                    found.figures[f"{name}_vs_reading"] = seconds[data] / taken
                    about = "read, scored and written"
                used = reader if name == data else "rankwright"
                found.records.append(Record(task, peer, version(used), about, taken))
        for data in ("parquet", "store"):
            found.figures[f"{data}_memory_megabytes"] = apart(_added, folder, data) / 2**20
    return found


def make(folder: Path, rows: int) -> None:
    """Write the data as both, a linear model and one of trees."""
    rng = np.random.default_rng(0)
    X = rng.random((rows, FEATURES), np.float32).round(3)
    y = np.clip((4.0 * X[:, :4].mean(axis=1) + rng.normal(size=rows)).round(), 0, 4)
    data = RankingData.from_arrays(X, y, group_sizes=np.full(rows // LENGTH, LENGTH))
    save(data, folder / "data.parquet")
    save(data, folder / "data.store")
    some = data.select(np.arange(min(100, data.n_queries)))
    ranker("linear_regression").fit(some).save(folder / "linear.rw")
    ranker("lambdamart", n_estimators=TREES).fit(some).save(folder / "trees.rw")


def _ranking(folder: Path, data: str, model: str, to: str) -> Callable[[], Any]:
    paths = folder / f"{model}.rw", str(folder / f"data.{data}")
    return lambda: rank_file(*paths, {}, None, str(folder / f"out.{to}"), {"to": to})


def _read_parquet(path: Path) -> None:
    import pyarrow.parquet as parquet

    file = parquet.ParquetFile(path)
    wanted = [name for name in file.schema_arrow.names if name != "label"]
    for _ in file.iter_batches(columns=wanted):
        pass


def _added(folder: str, data: str) -> int:
    """Return the bytes that ranking adds to a process that has done it before, on few documents."""
    with tempfile.TemporaryDirectory() as small:
        make(Path(small), 1000)
        _ranking(Path(small), data, "linear", "parquet")()  # loads and compiles
    trim_memory()
    with Gauge() as gauge:
        before = gauge.look()
        _ranking(Path(folder), data, "linear", "parquet")()
    return gauge.peak - before
