"""Boosting time against LightGBM's own lambdarank: same trees, leaves, rate, truncation, threads.

Medians of interleaved runs, data preparation included on both sides; the training NDCG@10 that
each reaches is reported beside them.
"""

from __future__ import annotations

import statistics
import time

import lightgbm as lgb
import numpy as np

from rankwright import RankingData, evaluate, ranker, synthetic

TREES, LEAVES, RATE, THREADS, RUNS = 40, 31, 0.1, 2, 5


def run() -> dict[str, float]:
    data = synthetic("mslr10k", queries=1000)
    ours("lambdamart", data)  # compiles the kernels
    ours("intervalrank", data)
    seconds: dict[str, list[float]] = {}
    quality: dict[str, float] = {}
    for _ in range(RUNS):
        for name in ("lightgbm", "lambdamart", "intervalrank"):
            started = time.perf_counter()
            scores = theirs(data) if name == "lightgbm" else ours(name, data)
            seconds.setdefault(name, []).append(time.perf_counter() - started)
            quality[name] = evaluate(data, scores, "ndcg@10")["ndcg@10"]
    median = {name: statistics.median(times) for name, times in seconds.items()}
    figures = {}
    for name in ("lambdamart", "intervalrank"):
        figures[f"{name}_time_vs_lightgbm"] = median[name] / median["lightgbm"]
        figures[f"{name}_ndcg10_minus_lightgbm"] = quality[name] - quality["lightgbm"]
    return figures


def ours(name: str, data: RankingData) -> np.ndarray:
    made = ranker(
        name, n_trees=TREES, num_leaves=LEAVES, learning_rate=RATE, n_threads=THREADS
    ).fit(data)
    return made.predict(data)


def theirs(data: RankingData) -> np.ndarray:
    params = {
        "objective": "lambdarank",
        "num_leaves": LEAVES,
        "learning_rate": RATE,
        "num_threads": THREADS,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }
    dataset = lgb.Dataset(data.X, data.y, group=data.sizes, params={"verbosity": -1})
    return lgb.train(params, dataset, TREES).predict(data.X)


if __name__ == "__main__":
    for name, value in run().items():
        print(f"{name:40s} {value:.3f}")
