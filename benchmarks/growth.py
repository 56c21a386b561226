"""Growth curves: how time grows with queries, list length, features, threads and Dask workers.

Each curve changes one thing and holds the others: rows grow with the queries at 100 documents each,
and the list length grows at a constant number of rows. Times are the least of turns; the slope is
that of log time over log size, 1 where twice the work takes twice the time (over threads and
workers, -1 would be perfect). Grades are drawn from 0 to 4 with the shares of web search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankwright import RankingData, evaluate, ranker
from rankwright.distributed import Partitions, fit
from rankwright.distributed.cluster import cluster
from rankwright.errors import MissingExtraError
from rankwright.losses.lambdarank import LambdaRank

from . import trees
from .contest import is_installed, reason, version
from .findings import OURS, Curve, Findings
from .timing import least, slope

SHARES = [0.52, 0.32, 0.13, 0.02, 0.01]
QUERIES, LENGTH, FEATURES = 500, 100, 32  # what is held where it does not grow
GROWN = {
    "queries": (125, 250, 500, 1000, 2000),
    "documents of a list": (10, 50, 250, 1250),
    "features": (16, 32, 64, 128),
}
WORKERS, PARTS, WORKER_QUERIES, WORKER_ROUNDS = (1, 2), 4, 1000, 1
ROUNDS, TREES_EACH = 3, 10
Work = Callable[[RankingData, int], Callable[[], Any]]


def run() -> Findings:
    found = Findings()
    for axis, sizes in GROWN.items():
        found.add(_curves(axis, [(size, *_data(axis, size)) for size in sizes]))
    held = _made(QUERIES, LENGTH, FEATURES)
    found.add(_curves("threads", [(n, held, n) for n in (1, 2)]))
    found.add(_over_workers(_made(WORKER_QUERIES, LENGTH, FEATURES)))
    for line in found.curves:
        if line.peer == OURS and line.axis in ("queries", "documents of a list", "features"):
            name = f"{line.task} over {line.axis}".lower().replace(" ", "_").replace("@", "")
            found.figures[name] = line.slope
    return found


def _data(axis: str, size: int) -> tuple[RankingData, int]:
    """Return the data of a point and its threads."""
    if axis == "queries":
        return _made(size, LENGTH, FEATURES), 1
    if axis == "features":
        return _made(QUERIES, LENGTH, size), 1
    return _made(QUERIES * LENGTH // size, size, FEATURES), 1


def _made(queries: int, length: int, features: int) -> RankingData:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(queries * length, features)).astype(np.float32)
    noisy = X[:, :8].sum(axis=1) + 3.0 * rng.normal(size=len(X))
    y = np.searchsorted(np.quantile(noisy, np.cumsum(SHARES)[:-1]), noisy).astype(float)
    return RankingData.from_arrays(X, y, group_sizes=np.full(queries, length))


def _curves(axis: str, points: list[tuple[int, RankingData, int]]) -> Findings:
    found = Findings()
    for task, contenders in WORK.items():
        for peer, package, settings, work in contenders:
            try:
                calls = {str(size): work(data, threads) for size, data, threads in points}
                seconds = least(calls, ROUNDS)
            except Exception as fault:
                if isinstance(fault, ImportError) and not is_installed(package):
                    found.absent[peer] = f"{package} is not installed"
                else:
                    found.failed[peer] = f"{task} over {axis}: {reason(fault)}"
                continue
            sizes, times = [float(size) for size, *_ in points], list(seconds.values())
            found.curves.append(
                Curve(task, axis, peer, version(package), sizes, times, slope(sizes, times),
                      settings)
            )  # fmt: skip
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


def _memr(data: RankingData, threads: int) -> Callable[[], Any]:
    return lambda: ranker("memr", max_iter=3, n_jobs=threads).fit(data)


def _lambdamart(data: RankingData, threads: int) -> Callable[[], Any]:
    return trees.ours("lambdamart", data, threads=threads, n_estimators=TREES_EACH)


def _lightgbm(data: RankingData, threads: int) -> Callable[[], Any]:
    return trees.lightgbm("lambdarank", data, threads=threads, n_estimators=TREES_EACH)


def _xgboost(data: RankingData, threads: int) -> Callable[[], Any]:
    more = {"lambdarank_num_pair_per_sample": 30}
    return trees.xgboost("rank:ndcg", data, threads=threads, n_estimators=TREES_EACH, **more)


BOOSTING = f"{TREES_EACH} trees, {trees.LEAVES} leaves, {trees.BINS} bins"
WORK: dict[str, list[tuple[str, str, str, Work]]] = {
    "NDCG@10 and MAP": [(OURS, "rankwright", "evaluate", _metrics)],
    "LambdaRank gradients": [(OURS, "rankwright", "truncation 30", _gradients)],
    "MEMR": [(OURS, "rankwright", "linear, 3 iterations", _memr)],
    "LambdaMART": [
        (OURS, "rankwright", BOOSTING, _lambdamart),
        ("LightGBM", "lightgbm", f"lambdarank, {BOOSTING}", _lightgbm),
        ("XGBoost", "xgboost", f"rank:ndcg, topk 30 pairs, {BOOSTING}", _xgboost),
    ],
}
