"""Scoring time of tree ensembles against LightGBM's own predict, single thread, least of many runs.

500 trees of 64 leaves over 136 features; interleaved runs, and the same scores to the last bit.
Linear scores are timed against reading the features: NumPy's maximum of the same array.
"""

from __future__ import annotations

import time

import lightgbm as lgb
import numpy as np

from rankwright.models.linear import FittedLinear
from rankwright.models.trees import FittedTrees

ROWS, FEATURES, TREES, LEAVES, RUNS = 20_000, 136, 500, 64, 7


def run() -> dict[str, float]:
    """Return LightGBM's time over ours for many rows, for one query, and how scores differ."""
    X, booster = grown()
    ours = FittedTrees(booster.model_to_string(), 0.0, FEATURES)
    ours.scores(X[:8], n_threads=1)  # compiles the kernels
    ours.scores(X[:8].astype(np.float64), n_threads=1)
    wide = X.astype(np.float64)
    figures = {
        "forest_vs_lightgbm": ratio(booster, ours, X, RUNS),
        "forest_float64_vs_lightgbm": ratio(booster, ours, wide, RUNS),
        "one_query_of_1000_vs_lightgbm": ratio(booster, ours, X[:1000], 10 * RUNS),
        "one_query_of_100_vs_lightgbm": ratio(booster, ours, X[:100], 100 * RUNS),
        "linear_vs_reading": linear_ratio(RUNS),
    }
    same = [
        ours.scores(some, n_threads=1) - booster.predict(some, num_threads=1) for some in (X, wide)
    ]
    return {**figures, "largest_difference": float(np.abs(same).max())}


def grown() -> tuple[np.ndarray, lgb.Booster]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    y = np.clip((X[:, :6].sum(1) * 0.5 + 1 + rng.normal(size=ROWS)).round(), 0, 4)
    params = {
        "objective": "l2",
        "num_leaves": LEAVES,
        "learning_rate": 0.05,
        "boost_from_average": False,
        "num_threads": 2,
        "verbosity": -1,
    }
    return X, lgb.train(params, lgb.Dataset(X, y), TREES)


def ratio(booster: lgb.Booster, ours: FittedTrees, X: np.ndarray, runs: int) -> float:
    """Return how many times as long LightGBM takes, by the least time of each."""
    theirs, own = [], []
    for _ in range(runs):
        started = time.perf_counter()
        booster.predict(X, num_threads=1)
        middle = time.perf_counter()
        ours.scores(X, n_threads=1)
        theirs.append(middle - started)
        own.append(time.perf_counter() - middle)
    return min(theirs) / min(own)


def linear_ratio(runs: int) -> float:
    """Return how many times as long as linear scores NumPy takes to read 300 MB of features."""
    rng = np.random.default_rng(2)
    X = rng.random((30 * ROWS, FEATURES), np.float32)
    model = FittedLinear(rng.normal(size=FEATURES), None, FEATURES)
    model.scores(X[:8], n_threads=1)
    reading, own = [], []
    for _ in range(runs):
        started = time.perf_counter()
        X.max()
        middle = time.perf_counter()
        model.scores(X, n_threads=1)
        reading.append(middle - started)
        own.append(time.perf_counter() - middle)
    return min(reading) / min(own)


if __name__ == "__main__":
    for name, value in run().items():
        print(f"{name:40s} {value:.3f}")
