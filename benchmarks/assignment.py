"""DORM's worst orders against SciPy's assignment solver, and DORM's fit against LIBLINEAR on pairs.

The problems are those of NDCG@10, with the shares of grades that web search has. SciPy is timed on
cost matrices that are ready; ours is the whole loss with its gradient, from the scores on. Both
reach the same value. The fit is that of OHSUMED's first fold, and needs RANKWRIGHT_DATA.
"""

from __future__ import annotations

import os
import time

import numpy as np
from scipy.optimize import linear_sum_assignment

from rankwright.data.ranking_data import RankingData
from rankwright.losses.position_svm import PositionSVM

SHARES = {3: [0.7, 0.2, 0.1], 5: [0.5, 0.3, 0.15, 0.04, 0.01]}


def run() -> dict[str, float]:
    figures = {}
    for grades in SHARES:
        for n in (50, 100, 300):
            figures[f"assignment_vs_scipy_{grades}grades_{n}"] = _against_scipy(n, grades)
    worst = min(value for name, value in figures.items() if "3grades" in name)
    figures["assignment_vs_scipy_3grades_worst"] = worst
    if "RANKWRIGHT_DATA" in os.environ:
        figures.update(_against_liblinear())
    return figures


def _against_scipy(n: int, grades: int) -> float:
    """Return SciPy's time over ours for queries of n documents."""
    rng = np.random.default_rng(n)
    queries = 2_000 // n + 10
    y = rng.choice(grades, (queries, n), p=SHARES[grades]).astype(float)
    y[:, :2] = 0.0, 1.0
    s = y / grades + rng.normal(size=y.shape)
    a = np.append(1 / np.log2(np.arange(10) + 2.0), np.zeros(n - 10))
    c = 1 / np.arange(2.0, n + 2.0)
    gain = 2**y - 1
    ideal = np.sort(gain)[:, ::-1] @ a
    values = [np.outer(s[q], c) - np.outer(gain[q] / ideal[q], a) for q in range(queries)]
    data = RankingData.from_arrays(
        np.zeros((y.size, 1)), y.ravel(), group_sizes=np.full(queries, n)
    )
    bound, grad = PositionSVM(ties="file").bind(data, n_threads=1), np.empty(y.size)
    bound.grad(s.ravel(), grad)
    ours, scipys = [], []
    for _ in range(7):
        start = time.perf_counter()
        bound.grad(s.ravel(), grad)
        ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        found = [linear_sum_assignment(value, maximize=True) for value in values]
        scipys.append(time.perf_counter() - start)
    for q, value in enumerate(values):
        cref = np.empty(n)
        cref[np.argsort(-y[q], kind="stable")] = c
        expected = value[found[q]].sum() + 1.0 - cref @ s[q]
        assert abs(bound.per_query[q] - expected) < 1e-9
    return min(scipys) / min(ours)


def _against_liblinear() -> dict[str, float]:
    """Return the time of a fit over LIBLINEAR's, by the default solver and by cutting planes."""
    from rankwright.data.files import load
    from rankwright.experiments.peers import LiblinearPairs
    from rankwright.rankers.base import ranker

    data = load("ohsumed/fold1/train")
    fits = {
        "dorm_time_vs_liblinear_pairs": ranker("dorm", n_threads=1),
        "dorm_bundle_time_vs_liblinear_pairs": ranker(
            "dorm", solver="bundle", tolerance=1e-2, n_threads=1
        ),
        "": LiblinearPairs(),
    }
    times: dict[str, list[float]] = {name: [] for name in fits}
    for model in fits.values():
        model.fit(data)
    for _ in range(3):
        for name, model in fits.items():
            start = time.perf_counter()
            model.fit(data)
            times[name].append(time.perf_counter() - start)
    peer = min(times.pop(""))
    return {name: min(seconds) / peer for name, seconds in times.items()}
