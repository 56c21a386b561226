"""Trees and linear models over Dask workers of one machine, beside LightGBM's own DaskLGBMRanker.

Data: the mslr30k shape (31,531 queries, 3.8 million documents of 136 features) in a store, in 32
parts, and 2,000 other queries for NDCG@10. Workers are processes of two threads; the parts lie on
them, and everything is imported and compiled, before the clock starts. A fit is timed as a whole:
processes, bins, gradients, trees, and what goes over the network. Trees are grown once for each
number of workers, linear models twice, of which the faster counts. One process with all threads
stands beside them. DaskLGBMRanker has the same trees, leaves, bins and rate, and LightGBM's
defaults otherwise. The area needs 16 cores; its figures are of the machine that is named above.
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

from rankwright import Ranker, RankingData, ranker
from rankwright.data.files import load, save
from rankwright.data.store import Store
from rankwright.distributed import Partitions, fit
from rankwright.distributed.cluster import Cluster, import_delayed, import_distributed
from rankwright.distributed.partitions import store_spans
from rankwright.models import Linear

from . import trees
from .contest import reason, version
from .data_sets import NotHereError, ndcg, train_and_test
from .findings import OURS, Curve, Findings, Record
from .timing import least, seconds_of, slope

SHAPE, QUERIES, HELD_OUT, PARTS = "mslr30k", 31_531, 2_000, 32
WORKERS, THREADS, TREES, STEPS = (8, 1, 4, 2), 2, 30, 10
PEER = "LightGBM, DaskLGBMRanker"
LINEAR: dict[str, Callable[[int], Ranker]] = {
    "Linear RankNet": lambda steps: Ranker("ranknet", Linear(max_iter=steps), solver="lbfgs"),
    "MEMR": lambda steps: ranker("memr", max_iter=steps),
}
Timed = dict[tuple[str, str, int], tuple[float, float | None]]
"""Seconds and NDCG@10 by task, contender and workers; 0 workers: one process with all threads."""


def run() -> Findings:
    cores, needed = os.cpu_count() or 1, max(WORKERS) * THREADS
    if cores < needed:
        raise NotHereError(f"this machine has {cores} cores, and the area needs {needed}")
    found, timed = Findings(), Timed()
    with tempfile.TemporaryDirectory() as scratch:
        train, test = write_data(Path(scratch), QUERIES, HELD_OUT)
        for n in (*WORKERS, 0):
            for name, measure in (MEASURED if n else ALONE).items():
                try:
                    timed |= measure(train, test, n)
                except Exception as fault:
                    found.failed[f"{name} on {n} workers"] = reason(fault)
    found.add(findings(timed))
    return found


def write_data(folder: Path, queries: int, held_out: int) -> tuple[Path, Path]:
    """Write stores of the data to learn from and to be judged on."""
    paths = folder / "train", folder / "test"
    for data, path in zip(train_and_test(SHAPE, queries, held_out), paths, strict=True):
        save(data, path, format="store")
    return paths


def findings(timed: Timed) -> Findings:
    """Return figures, records and curves of what was timed."""
    found = Findings()
    versions = {OURS: version("rankwright"), PEER: version("lightgbm")}
    tasks = dict.fromkeys(task for task, *_ in timed)
    for task in tasks:
        for n in sorted({n for own, _, n in timed if own == task}, reverse=True):
            where = (
                f"{n} workers of {THREADS} threads" if n > 1 else f"1 worker of {THREADS} threads"
            )
            where = where if n else "one process with all threads"
            for (own, peer, workers), (seconds, quality) in timed.items():
                if (own, workers) == (task, n):
                    about = (peer, versions.get(peer, version("lightgbm")), _settings(task, n))
                    found.records.append(Record(f"{task}, {where}", *about, seconds, quality))
        for peer in dict.fromkeys(peer for own, peer, n in timed if own == task and n):
            sizes = sorted(n for own, one, n in timed if (own, one) == (task, peer) and n)
            seconds = [timed[task, peer, n][0] for n in sizes]
            if len(sizes) > 1:
                found.curves.append(
                    Curve(task, "Dask workers", peer, versions[peer], [float(n) for n in sizes],
                          seconds, slope(sizes, seconds), _settings(task, max(sizes)))
                )  # fmt: skip
                name = task.lower().replace(" ", "_") + ("" if peer == OURS else "_lightgbm")
                many = f"{name}_{sizes[-1]}_workers_vs_{sizes[0]}"
                found.figures[many] = seconds[0] / seconds[-1]
    _beside(timed, found)
    return found


def _beside(timed: Timed, found: Findings) -> None:
    """Compare the trees of most workers with those of DaskLGBMRanker and of one process."""
    most = max(n for *_, n in timed)
    ours, theirs = timed.get(("LambdaMART", OURS, most)), timed.get(("LambdaMART", PEER, most))
    alone = timed.get(("LambdaMART", OURS, 0))
    if ours and theirs:
        found.figures["lambdamart_time_vs_dasklgbmranker"] = ours[0] / theirs[0]
        found.figures["lambdamart_ndcg10_minus_dasklgbmranker"] = ours[1] - theirs[1]
    if ours and alone:
        found.figures["lambdamart_ndcg10_minus_one_process"] = ours[1] - alone[1]


def _settings(task: str, workers: int) -> str:
    what = (
        f"{TREES} trees, {trees.LEAVES} leaves, {trees.BINS} bins, rate {trees.RATE}"
        if task == "LambdaMART"
        else f"at most {STEPS} steps"
    )
    return f"{what}, {PARTS} parts" if workers else what


# --- on workers ------------------------------------------------------------------------------


@contextmanager
def _workers(n: int) -> Iterator[Any]:
    distributed = import_distributed()
    with (
        distributed.LocalCluster(
            n_workers=n, threads_per_worker=THREADS, dashboard_address=":0", silence_logs=50
        ) as started,
        distributed.Client(started) as client,
    ):
        client.run(importlib.import_module, "lightgbm")
        yield client


def ours(train: Path, test: Path, n: int) -> Timed:
    """Return what Rankwright takes on so many workers."""
    timed = Timed()
    with _workers(n) as client:
        parts = _parts(train, client)
        some = Partitions.of(load(test).select(np.arange(4 * n)), n_parts=2 * n, client=client)
        for task, make in LINEAR.items():
            fit(make(1), some, client=client)  # loads and compiles
            call = lambda make=make: fit(make(STEPS), parts, client=client)  # noqa: E731
            timed[task, OURS, n] = least({task: call}, 2, warm_up=False)[task], None
        fit(_lambdamart(2), some, client=client)
        made = _lambdamart(TREES)
        seconds = seconds_of(lambda: fit(made, parts, client=client))
    data = load(test)
    timed["LambdaMART", OURS, n] = seconds, ndcg(data, made.predict(data.X))
    return timed


def dask_lgbm_ranker(train: Path, test: Path, n: int) -> Timed:
    """Return what DaskLGBMRanker takes on so many workers."""
    from lightgbm import DaskLGBMRanker

    with _workers(n) as client:
        arrays = _arrays(train, client)
        made = DaskLGBMRanker(
            client=client, n_estimators=TREES, num_leaves=trees.LEAVES, learning_rate=trees.RATE,
            max_bin=trees.BINS, verbosity=-1,
        )  # fmt: skip
        X, y, sizes = arrays
        seconds = seconds_of(lambda: made.fit(X, y, group=sizes))
        predict = made.to_local().predict
    data = load(test)
    return {("LambdaMART", PEER, n): (seconds, ndcg(data, predict(np.asarray(data.X))))}


def _lambdamart(n_estimators: int) -> Any:
    return ranker(
        "lambdamart", n_estimators=n_estimators, num_leaves=trees.LEAVES, learning_rate=trees.RATE,
        colsample_bytree=1.0, model__max_bins=trees.BINS,
    )  # fmt: skip


def _parts(store: Path, client: Any) -> Partitions:
    parts = Partitions.of(store, n_parts=PARTS, client=client)
    parts.map(_touch)
    return parts


def _touch(part: RankingData) -> float:
    return float(np.asarray(part.X).sum())  # read from the disk


def _arrays(store: Path, client: Any) -> tuple[Any, Any, Any]:
    """Return features, grades and sizes of the queries as Dask arrays on the workers."""
    import dask.array as da

    delayed, spans = import_delayed(), store_spans(str(store), PARTS)
    held = Cluster(client).spread(_read, [str(store)] * len(spans), spans)
    shapes = Cluster(client).results([client.submit(_shape, one) for one in held])
    found = []
    for k, dtype in enumerate((np.float32, np.int64, np.int64)):
        blocks = [
            da.from_delayed(delayed(client.submit(_get, one, k)), shape[k], dtype)
            for one, shape in zip(held, shapes, strict=True)
        ]
        found.append(client.persist(da.concatenate(blocks)))
    import_distributed().wait(found)
    X, y, sizes = found
    return X, y, sizes


def _read(store: str, span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    part = Store().read_queries(store, *span)
    return np.array(part.X), part.y.astype(np.int64), part.sizes


def _shape(arrays: tuple[np.ndarray, ...]) -> list[tuple[int, ...]]:
    return [array.shape for array in arrays]


def _get(arrays: tuple[np.ndarray, ...], k: int) -> np.ndarray:
    return arrays[k]


# --- in one process --------------------------------------------------------------------------


def one_process(train: Path, test: Path, n: int = 0) -> Timed:
    """Return what Rankwright and LightGBM take with all threads, without Dask."""
    data, other, threads = load(train), load(test), os.cpu_count() or 1
    few = other.select(np.arange(8))
    timed: dict[tuple[str, str, int], tuple[float, float | None]] = {}
    calls: dict[str, Callable[[RankingData], Any]] = {
        OURS: lambda on: trees.ours("lambdamart", on, threads=threads, n_estimators=TREES)(),
        "LightGBM": lambda on: trees.lightgbm(
            "lambdarank", on, threads=threads, n_estimators=TREES
        )(),
    }
    for peer, call in calls.items():
        call(few)
        predict: list[Any] = []
        seconds = seconds_of(lambda call=call, found=predict: found.append(call(data)))
        timed["LambdaMART", peer, n] = seconds, ndcg(other, predict[0](np.asarray(other.X)))
    for task, make in LINEAR.items():
        make(1).fit(few)
        call = lambda make=make: make(STEPS).fit(data)  # noqa: E731
        timed[task, OURS, n] = least({task: call}, 2, warm_up=False)[task], None
    return timed


MEASURED = {OURS: ours, PEER: dask_lgbm_ranker}
ALONE = {"one process": one_process}
