"""Growth curves: how time and memory grow with rows, features, lists, grades, threads and workers.

Each curve changes one thing and holds the others: queries of 100 documents, features, the documents
of one single list (to 200,000), distinct grades, and queries of one document beside one list of 100
(to a million), for the ten most used rankers with a few rounds each, the metrics and LambdaRank's
gradients. The most used are those of papers, tutorials and other tools: LambdaMART, regression
trees, random forests, RankNet, ListNet, RankSVM, RankBoost, and of ours IntervalRank, MEMR and
DORM. Times are CPU seconds of one thread, the least of two turns, after a small fit that compiles;
memory is the most that a fit adds to what is in use. The slope is that of log time over log size,
between the three largest sizes: 1 where twice the work takes twice the time (over threads and
workers, where the clock on the wall counts, -1 would be perfect). ``GROWTH_LARGE=1`` adds a size
ten times as large to each axis.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rankwright import RankingData, evaluate, ranker
from rankwright.core.memory import trim_memory
from rankwright.distributed import Partitions, fit
from rankwright.distributed.cluster import cluster
from rankwright.errors import MissingExtraError
from rankwright.losses.lambdarank import LambdaRank

from . import trees
from .contest import is_installed, reason, version
from .findings import OURS, Curve, Findings
from .timing import least, memory_in_use, peak_memory, slope

SHARES = [0.52, 0.32, 0.13, 0.02, 0.01]
QUERIES, LENGTH, FEATURES = 100, 100, 32  # what is held where it does not grow
ONE_LIST, ONE_DOCUMENT = "documents of one list", "queries of one document"
GROWN: dict[str, tuple[int, ...]] = {
    "queries": (125, 500, 2000),
    "features": (16, 64, 256),
    ONE_LIST: (20, 200, 2_000, 20_000, 200_000),
    "grades": (2, 8, 32, 128),
    ONE_DOCUMENT: (10_000, 100_000, 1_000_000),
}
PEERS_OVER = ("queries", "features")  # LightGBM refuses lists of more than 10,000 documents
FITTED = 3  # the largest sizes, between which the slope is taken
ROUNDS = 2
WORKERS, PARTS, WORKER_QUERIES, WORKER_ROUNDS = (1, 2), 4, 1000, 1
TREES_EACH = 10
Work = Callable[[RankingData, int], Callable[[], Any]]


def run() -> Findings:
    found = Findings()
    for axis, sizes in GROWN.items():
        found.add(_curves(axis, (*sizes, 10 * sizes[-1]) if _large() else sizes))
    held = _made(5 * QUERIES, LENGTH, FEATURES)
    found.add(_over_threads([(n, held) for n in (1, 2)]))
    found.add(_over_workers(_made(WORKER_QUERIES, LENGTH, FEATURES)))
    for line in found.curves:
        if line.peer == OURS and line.axis in GROWN:
            name = f"{line.task} over {line.axis}".lower().replace(" ", "_").replace("@", "")
            found.figures[name] = line.slope
    return found


def _large() -> bool:
    return os.environ.get("GROWTH_LARGE", "") not in ("", "0")


# --- the data of a point ---------------------------------------------------------------------


def _data(axis: str, size: int) -> RankingData:
    """Return the data of a point."""
    if axis == "queries":
        return _made(size, LENGTH, FEATURES)
    if axis == "features":
        return _made(QUERIES, LENGTH, size)
    if axis == "grades":
        return _made(QUERIES, LENGTH, FEATURES, grades=size)
    if axis == ONE_LIST:
        return _made(1, size, 8)
    return _made(np.append(np.ones(size, int), LENGTH), 1, 4)


def _made(
    queries: int | np.ndarray, length: int, features: int, *, grades: int | None = None
) -> RankingData:
    """Return data with the grades of web search, or with many equally frequent ones."""
    sizes = np.full(queries, length) if isinstance(queries, int) else queries
    rng = np.random.default_rng(0)
    X = rng.normal(size=(int(sizes.sum()), features)).astype(np.float32)
    noisy = X[:, :8].sum(axis=1) + 3.0 * rng.normal(size=len(X))
    below = np.cumsum(SHARES)[:-1] if grades is None else np.arange(1, grades) / grades
    y = np.searchsorted(np.quantile(noisy, below), noisy).astype(float)
    if grades is not None and grades > 32:
        y *= 31 / (grades - 1)  # a gain of 2^grade is finite, and grades are numbers
    return RankingData.from_arrays(X, y, group_sizes=sizes)


# --- curves ----------------------------------------------------------------------------------


def _curves(axis: str, sizes: Sequence[int]) -> Findings:
    """Measure everything at each size: time in turns, and then the memory of one more call."""
    found = Findings()
    points = [(size, _data(axis, size)) for size in sizes]
    for task, contenders in WORK.items():
        for peer, package, settings, work in contenders:
            if axis not in PEERS_OVER and peer != OURS:
                continue
            try:
                work(_made(10, 20, points[0][1].n_features), 1)()  # compiles and loads
                calls = {str(size): work(data, 1) for size, data in points}
                seconds = least(calls, ROUNDS, warm_up=False, clock=time.process_time)
                added = [_added_megabytes(call) for call in calls.values()]
            except Exception as fault:
                if isinstance(fault, ImportError) and not is_installed(package):
                    found.absent[peer] = f"{package} is not installed"
                else:
                    found.failed[peer] = f"{task} over {axis}: {reason(fault)}"
                continue
            found.curves.append(_curve(task, axis, peer, package, sizes, seconds, added, settings))
    return found


def _curve(
    task: str,
    axis: str,
    peer: str,
    package: str,
    sizes: Sequence[int],
    seconds: dict[str, float],
    megabytes: list[float],
    settings: str,
) -> Curve:
    numbers, times = [float(size) for size in sizes], list(seconds.values())
    last = slice(-FITTED, None)
    return Curve(
        task, axis, peer, version(package), numbers, times, slope(numbers[last], times[last]),
        settings, megabytes, _memory_slope(numbers, megabytes),
    )  # fmt: skip


def _added_megabytes(call: Callable[[], Any]) -> float:
    """Return the most that a call adds to the memory in use, a tenth of a megabyte at least."""
    trim_memory()  # else what calls before have freed would be used again
    before = memory_in_use()
    call()
    return max(0.1, (peak_memory() - before) / 2**20)


def _memory_slope(sizes: list[float], megabytes: list[float]) -> float | None:
    """Return the slope between the sizes that take megabytes; None where fewer than two do."""
    counted = [(n, mb) for n, mb in zip(sizes, megabytes, strict=False) if mb >= 1.0][-FITTED:]
    return slope(*zip(*counted, strict=True)) if len(counted) > 1 else None


def _over_threads(points: list[tuple[int, RankingData]]) -> Findings:
    found = Findings()
    for task in ("LambdaMART", "MEMR", "LambdaRank gradients"):
        peer, package, settings, work = WORK[task][0]
        calls = {str(threads): work(data, threads) for threads, data in points}
        threads = [threads for threads, _ in points]
        seconds = least(calls, ROUNDS)
        found.curves.append(_curve(task, "threads", peer, package, threads, seconds, [], settings))
    return found


def _over_workers(data: RankingData) -> Findings:
    """Fit over the same parts with more workers; data are there before the clock starts."""
    fits = {
        "MEMR": lambda: ranker("memr", max_iter=3, n_jobs=1),
        "LambdaMART": lambda: ranker(
            "lambdamart", n_estimators=TREES_EACH, num_leaves=trees.LEAVES,
            learning_rate=trees.RATE, colsample_bytree=1.0, model__max_bins=trees.BINS, n_jobs=1,
        ),
    }  # fmt: skip
    seconds: dict[str, list[float]] = {task: [] for task in fits}
    try:
        for n in WORKERS:
            with cluster(f"local:{n}") as client:
                parts = Partitions.from_data(data, client=client, n_parts=PARTS)
                calls = {
                    task: lambda m=make, p=parts, c=client: fit(m(), p, client=c)
                    for task, make in fits.items()
                }
                for task, taken in least(calls, WORKER_ROUNDS).items():
                    seconds[task].append(taken)
    except MissingExtraError as fault:
        return Findings(absent={"Dask workers": str(fault)})
    except Exception as fault:
        return Findings(failed={"Dask workers": reason(fault)})
    sizes, about = [float(n) for n in WORKERS], f"{PARTS} parts, processes of one thread"
    return Findings(
        curves=[
            Curve(task, "Dask workers", OURS, version("rankwright"), sizes, taken,
                  slope(sizes, taken), f"{about}, dask {version('dask')}")
            for task, taken in seconds.items()
        ]
    )  # fmt: skip


# --- the work --------------------------------------------------------------------------------


def _metrics(data: RankingData, threads: int) -> Callable[[], Any]:
    scores = data.X[:, 0].astype(np.float64)
    return lambda: evaluate(data, scores, "ndcg@10,map", n_jobs=threads)


def _gradients(data: RankingData, threads: int) -> Callable[[], Any]:
    bound = LambdaRank().bind(data, n_jobs=threads)
    scores = data.X[:, 0].astype(np.float64)
    grad, curv = np.empty(len(scores)), np.empty(len(scores))
    return lambda: bound.grad_curv(scores, grad, curv)


def _fit(name: str, **parameters: Any) -> Work:
    return lambda data, threads: lambda: ranker(name, n_jobs=threads, **parameters).fit(data)


def _lambdamart(data: RankingData, threads: int) -> Callable[[], Any]:
    return trees.ours("lambdamart", data, threads=threads, n_estimators=TREES_EACH)


def _lightgbm(data: RankingData, threads: int) -> Callable[[], Any]:
    return trees.lightgbm("lambdarank", data, threads=threads, n_estimators=TREES_EACH)


def _xgboost(data: RankingData, threads: int) -> Callable[[], Any]:
    more = {"lambdarank_num_pair_per_sample": 30}
    return trees.xgboost("rank:ndcg", data, threads=threads, n_estimators=TREES_EACH, **more)


def _ours(settings: str, work: Work) -> tuple[str, str, str, Work]:
    return OURS, "rankwright", settings, work


BOOSTING = f"{TREES_EACH} trees, {trees.LEAVES} leaves, {trees.BINS} bins"
FEW = {"n_estimators": TREES_EACH, "num_leaves": trees.LEAVES}
WORK: dict[str, list[tuple[str, str, str, Work]]] = {
    "NDCG@10 and MAP": [_ours("evaluate", _metrics)],
    "LambdaRank gradients": [_ours("truncation 30", _gradients)],
    "LambdaMART": [
        _ours(BOOSTING, _lambdamart),
        ("LightGBM", "lightgbm", f"lambdarank, {BOOSTING}", _lightgbm),
        ("XGBoost", "xgboost", f"rank:ndcg, topk 30 pairs, {BOOSTING}", _xgboost),
    ],
    "GBDT": [_ours(BOOSTING, _fit("gbdt", **FEW))],
    "Random forest": [_ours("5 bags of a tree, 100 leaves", _fit("random_forest", n_bags=5))],
    "IntervalRank": [_ours(BOOSTING, _fit("intervalrank", **FEW))],
    "RankNet": [_ours("network, 1 epoch", _fit("ranknet", model__epochs=1))],
    "RankNet, linear": [_ours("5 iterations", _fit("ranknet", model="linear", model__max_iter=5))],
    "ListNet": [_ours("linear, 5 iterations", _fit("listnet", max_iter=5))],
    "RankSVM": [_ours("5 iterations", _fit("ranksvm", max_iter=5))],
    "MEMR": [_ours("linear, 5 iterations", _fit("memr", max_iter=5))],
    "RankBoost": [_ours("10 rounds", _fit("rankboost", n_rounds=10))],
    "DORM": [_ours("linear, 5 iterations", _fit("dorm", max_iter=5))],
}
