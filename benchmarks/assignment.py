"""DORM's worst orders against SciPy's assignment solver, and DORM's fit against LIBLINEAR on pairs.

The problems are those of NDCG@10, with the shares of grades that web search has. SciPy is timed on
cost matrices that are ready; ours is the whole loss with its gradient, from the scores on. Both
reach the same value. The fit is that of OHSUMED's first fold, and needs RANKWRIGHT_DATA.
"""

from __future__ import annotations

import os

import numpy as np
from scipy.optimize import linear_sum_assignment

from rankwright.data.ranking_data import RankingData
from rankwright.losses.position_svm import PositionSVM

from .contest import version
from .data_sets import ndcg
from .findings import OURS, Findings, Record
from .timing import least

SHARES = {3: [0.7, 0.2, 0.1], 5: [0.5, 0.3, 0.15, 0.04, 0.01]}


def run() -> Findings:
    found = Findings()
    for grades in SHARES:
        for n in (50, 100, 300):
            task = f"Worst orders, {grades} grades, lists of {n}"
            seconds = _against_scipy(n, grades)
            found.figures[f"assignment_vs_scipy_{grades}grades_{n}"] = (
                seconds["theirs"] / seconds["ours"]
            )
            found.records += [
                Record(task, OURS, version("rankwright"), "1 thread", seconds["ours"]),
                Record(
                    task, "SciPy", version("scipy"), "linear_sum_assignment, costs ready",
                    seconds["theirs"], same="the same value within 1e-9",
                ),
            ]  # fmt: skip
    worst = min(value for name, value in found.figures.items() if "3grades" in name)
    found.figures["assignment_vs_scipy_3grades_worst"] = worst
    if "RANKWRIGHT_DATA" in os.environ:
        found.add(_against_liblinear())
    else:
        found.absent["LIBLINEAR on OHSUMED"] = "RANKWRIGHT_DATA names no folder of data sets"
    return found


def _against_scipy(n: int, grades: int) -> dict[str, float]:
    """Return the least seconds of SciPy and of ours for queries of n documents."""
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
    bound, grad = PositionSVM(ties="file").bind(data, n_jobs=1), np.empty(y.size)
    found: list[tuple[np.ndarray, np.ndarray]] = []

    def theirs() -> None:
        found[:] = [linear_sum_assignment(value, maximize=True) for value in values]

    seconds = least({"ours": lambda: bound.grad(s.ravel(), grad), "theirs": theirs}, 7)
    for q, value in enumerate(values):
        cref = np.empty(n)
        cref[np.argsort(-y[q], kind="stable")] = c
        expected = value[found[q]].sum() + 1.0 - cref @ s[q]
        assert abs(bound.per_query[q] - expected) < 1e-9
    return seconds


def _against_liblinear() -> Findings:
    """Fit OHSUMED's first fold by the default solver, by cutting planes and by LIBLINEAR."""
    from rankwright.data.files import load
    from rankwright.rankers.base import ranker
    from reproducibility.peers import LiblinearPairs

    data = load("ohsumed/fold1/train")
    planes = {"solver": "bundle", "tol": 1e-2}
    fits = {
        OURS: (ranker("dorm", n_jobs=1), "dorm, 1 thread"),
        f"{OURS}, cutting planes": (ranker("dorm", n_jobs=1, **planes), "solver=bundle"),
        "scikit-learn": (LiblinearPairs(), "LinearSVC (LIBLINEAR) on every pair"),
    }
    calls = {name: lambda m=model: m.fit(data) for name, (model, _) in fits.items()}
    seconds = least(calls, 3)
    records = [
        Record(
            "DORM, OHSUMED fold 1", name,
            version("scikit-learn" if name == "scikit-learn" else "rankwright"), settings,
            seconds[name], ndcg(data, model.predict(data)), "NDCG@10 on train",
        )
        for name, (model, settings) in fits.items()
    ]  # fmt: skip
    peer = seconds["scikit-learn"]
    figures = {
        "dorm_time_vs_liblinear_pairs": seconds[OURS] / peer,
        "dorm_bundle_time_vs_liblinear_pairs": seconds[f"{OURS}, cutting planes"] / peer,
    }
    return Findings(figures, records)
