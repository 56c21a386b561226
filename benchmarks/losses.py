"""LambdaRank gradients against LightGBM's, on lists of the size of web search.

LightGBM does not return its gradients. Their time is that of a round with them, less that of a
round with given gradients: medians of runs in turns, with the same threads. A test checks that the
gradients are equal (tests/losses/test_lambdarank.py).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import lightgbm
import numpy as np

from rankwright import RankingData
from rankwright.core.parallel import thread_count
from rankwright.losses import LambdaRank

from .contest import OURS, Results, Row

SHAPES = {"1200x100": (1_200, 100), "10000x120": (10_000, 120)}
ROUNDS, RUNS = 20, 5
TREE = {"num_leaves": 4, "learning_rate": 0.1, "verbose": -1, "deterministic": True}
# Few features and leaves: the rest of a round takes little time, so the difference is exact.
FEATURES = 4


def run() -> Results:
    results = Results()
    for name, shape in SHAPES.items():
        ours, theirs = _seconds(*shape)
        results.ratios[f"lambdarank_vs_lightgbm_{name}"] = ours / theirs
        task, settings = f"LambdaRank gradients, {name}", f"truncation 30, {thread_count()} threads"
        results.rows += [
            Row(task, OURS, settings, ours),
            Row(task, "LightGBM", f"lambdarank, {settings}", theirs),
        ]
    return results


def _seconds(n_queries: int, n_documents: int) -> tuple[float, float]:
    """Return our seconds for gradients and curvatures, and LightGBM's: medians of runs in turns."""
    rng = np.random.default_rng(0)
    n = n_queries * n_documents
    X = rng.normal(size=(n, FEATURES)).astype(np.float32)
    y = np.clip((X.sum(axis=1) * 0.6 + 1 + rng.normal(size=n)).round(), 0, 4)
    data = RankingData.from_arrays(X, y, group_sizes=np.full(n_queries, n_documents))
    threads = thread_count()
    params = {**TREE, "num_threads": threads, "force_row_wise": True}
    train = lightgbm.Dataset(X, y, group=data.sizes, params=params).construct()
    fixed = (y.mean() - y).astype(np.float32), np.ones(n, np.float32)

    def lightgbm_round(objective: str | Callable[..., object]) -> float:
        start = time.perf_counter()
        lightgbm.train({**params, "objective": objective}, train, ROUNDS)
        return (time.perf_counter() - start) / ROUNDS

    s = X.sum(axis=1, dtype=np.float64) * 0.5 + 0.1 * rng.normal(size=n)
    bound = LambdaRank().bind(data, n_jobs=threads)
    grad, curv = np.empty(n), np.empty(n)

    def our_round() -> float:
        start = time.perf_counter()
        for _ in range(ROUNDS // 2):
            bound.grad_curv(s, grad, curv)
        return (time.perf_counter() - start) / (ROUNDS // 2)

    our_round()  # compiles
    ours, theirs = [], []
    for _ in range(RUNS):
        ours.append(our_round())
        with_lambdas = lightgbm_round("lambdarank")
        theirs.append(with_lambdas - lightgbm_round(lambda *_: fixed))
    return statistics.median(ours), statistics.median(theirs)
