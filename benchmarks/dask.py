"""LambdaMART and MEMR on 1 and 8 Dask workers, and LightGBM's DaskLGBMRanker. Needs 16 cores.

Data: the mslr30k shape (31,531 queries, 3.8 million documents of 136 features) in a store, in 32
parts, and 2,000 other queries for NDCG@10. Workers are processes of two threads on one machine. The
parts are in their memory, and everything is imported and compiled, before the clock starts. A fit
is timed as a whole. DaskLGBMRanker has the same trees, leaves, bins and rate.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rankwright import Ranker, RankingData, load, ranker
from rankwright.data import save
from rankwright.data.store import Store
from rankwright.distributed import Partitions, fit
from rankwright.distributed.partitions import query_spans

from . import trees
from .contest import OURS, Results, Row
from .data_sets import UnavailableError, ndcg, train_and_test
from .timing import seconds_of

SHAPE, QUERIES, HELD_OUT, PARTS = "mslr30k", 31_531, 2_000, 32
WORKERS, THREADS, TREES, STEPS = (1, 8), 2, 30, 10
PEER = "LightGBM, DaskLGBMRanker"


def run() -> Results:
    cores, needed = os.cpu_count() or 1, max(WORKERS) * THREADS
    if cores < needed:
        raise UnavailableError(f"this area needs {needed} cores, and this machine has {cores}")
    results = Results()
    with tempfile.TemporaryDirectory() as name:
        paths = Path(name) / "train", Path(name) / "test"
        for data, path in zip(train_and_test(SHAPE, QUERIES, HELD_OUT), paths, strict=True):
            save(data, path, format="store")
        for n in WORKERS:
            results.add(_ours(*paths, n))
        results.add(_dask_lgbm_ranker(*paths, max(WORKERS)))
    seconds = {(row.task, row.tool): row.seconds for row in results.rows}
    few, many = (_where(n) for n in WORKERS)
    for name in ("LambdaMART", "MEMR"):
        speedup = seconds[f"{name}, {few}", OURS] / seconds[f"{name}, {many}", OURS]
        results.ratios[f"{name.lower()}_8_workers_vs_1"] = speedup
    theirs = seconds[f"LambdaMART, {many}", PEER]
    results.ratios["lambdamart_time_vs_dasklgbmranker"] = (
        seconds[f"LambdaMART, {many}", OURS] / theirs
    )
    return results


def _where(n: int) -> str:
    return f"{n} {'worker' if n == 1 else 'workers'} of {THREADS} threads"


@contextmanager
def _cluster(n: int) -> Iterator[Any]:
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=n, threads_per_worker=THREADS, dashboard_address=":0", silence_logs=50
        ) as started,
        distributed.Client(started) as client,
    ):
        client.run(importlib.import_module, "lightgbm")
        yield client


def _lambdamart(n_estimators: int) -> Ranker:
    return ranker(
        "lambdamart",
        n_estimators=n_estimators,
        num_leaves=trees.LEAVES,
        learning_rate=trees.RATE,
        colsample_bytree=1.0,
        model__max_bins=trees.BINS,
    )


def _ours(train: Path, test: Path, n: int) -> Results:
    results, judged = Results(), load(test)
    rankers: dict[str, Callable[[int], Ranker]] = {
        "LambdaMART": _lambdamart,
        "MEMR": lambda steps: ranker("memr", max_iter=steps),
    }
    with _cluster(n) as client:
        parts = Partitions.of(train, n_parts=PARTS, client=client)
        parts.map(_read_all)
        few = Partitions.of(judged.select(np.arange(4 * n)), n_parts=2 * n, client=client)
        for name, make in rankers.items():
            size, unit = (TREES, "trees") if name == "LambdaMART" else (STEPS, "steps")
            fit(make(2), few, client=client)  # loads and compiles
            model = make(size)
            seconds = seconds_of(lambda m=model: fit(m, parts, client=client))
            settings = f"{size} {unit}, {PARTS} parts"
            about = OURS, settings, seconds
            quality = ndcg(judged, model.predict(judged))
            results.rows.append(Row(f"{name}, {_where(n)}", *about, quality))
    return results


def _read_all(part: RankingData) -> float:
    return float(np.asarray(part.X).sum())


def _dask_lgbm_ranker(train: Path, test: Path, n: int) -> Results:
    import dask.array as da
    from dask.distributed import wait
    from lightgbm import DaskLGBMRanker

    with _cluster(n) as client:
        workers = list(client.scheduler_info(n_workers=-1)["workers"])
        parts = [
            client.submit(_arrays, str(train), span, workers=[workers[k % n]])
            for k, span in enumerate(query_spans(Store().read(train).sizes, PARTS))
        ]
        sizes = client.gather(client.map(_lengths, parts))
        dask_arrays = []
        for k, (width, dtype) in enumerate(
            [(sizes[0][3], np.float32), (None, np.int64), (None, np.int64)]
        ):
            blocks = [
                da.from_delayed(
                    client.submit(_get, part, k),
                    (length[k],) if width is None else (length[k], width),
                    dtype,
                )
                for part, length in zip(parts, sizes, strict=True)
            ]
            dask_arrays.append(client.persist(da.concatenate(blocks)))
        wait(dask_arrays)
        X, y, group = dask_arrays
        model = DaskLGBMRanker(
            client=client,
            n_estimators=TREES,
            num_leaves=trees.LEAVES,
            learning_rate=trees.RATE,
            max_bin=trees.BINS,
            verbosity=-1,
        )
        seconds = seconds_of(lambda: model.fit(X, y, group=group))
        local = model.to_local()
    judged = load(test)
    quality = ndcg(judged, local.predict(np.asarray(judged.X)))
    about = PEER, f"{TREES} trees, {PARTS} parts", seconds, quality
    return Results(rows=[Row(f"LambdaMART, {_where(n)}", *about)])


def _arrays(store: str, span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    part = Store().read_queries(store, *span)
    return np.array(part.X), part.y.astype(np.int64), part.sizes


def _lengths(arrays: tuple[np.ndarray, ...]) -> tuple[int, ...]:
    return *(len(array) for array in arrays), arrays[0].shape[1]


def _get(arrays: tuple[np.ndarray, ...], k: int) -> np.ndarray:
    return arrays[k]
