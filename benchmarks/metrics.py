"""NDCG@10 and MAP of 10,000 queries x 100 documents: ranx, scikit-learn, CatBoost.

ranx gets data that are built and sorted before the clock starts; ours sort anew in each call.
scikit-learn has no queries, so it is called once per query. CatBoost computes only NDCG@10. The
values must agree.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from rankwright import RankingData, evaluate

from .contest import OURS, Contender, Results, contest

QUERIES, DOCUMENTS = 10_000, 100


def run() -> Results:
    rng = np.random.default_rng(0)
    y = rng.choice(5, size=(QUERIES, DOCUMENTS), p=[0.5, 0.2, 0.15, 0.1, 0.05]).astype(float)
    s = y + 2 * rng.standard_normal(y.shape)
    data = RankingData.from_arrays(
        np.zeros((y.size, 1), np.float32), y.ravel(), group_sizes=[DOCUMENTS] * QUERIES
    )
    both = _two_metrics(data, y, s)
    both.set_ratio("metrics_vs_ranx", "ranx", OURS)
    both.set_ratio("metrics_vs_sklearn", "scikit-learn", OURS)
    one = _one_metric(data, s)
    one.set_ratio("ndcg_vs_catboost", "CatBoost", OURS)
    both.add(one)
    return both


def _two_metrics(data: RankingData, y: np.ndarray, s: np.ndarray) -> Results:
    check = _check(list(evaluate(data, s.ravel(), "ndcg@10,map").values()))
    contenders = [
        Contender(
            OURS,
            "evaluate, all cores",
            lambda: lambda: list(evaluate(data, s.ravel(), "ndcg@10,map").values()),
            check,
        ),
        Contender(
            "ranx",
            "ndcg_burges@10, map; built and sorted before, all cores",
            lambda: _ranx(y, s),
            check,
            rounds=5,
        ),
        Contender(
            "scikit-learn",
            "ndcg_score(2**g - 1, k=10), average_precision_score by query, one thread",
            lambda: lambda: _sklearn(y, s),
            check,
            rounds=1,
            warm_up=False,
        ),
    ]
    task = "NDCG@10 and MAP of 10,000 x 100"
    return contest(task, contenders, rounds=20, measure="mean of the two values")


def _one_metric(data: RankingData, s: np.ndarray) -> Results:
    check = _check([evaluate(data, s.ravel(), "ndcg@10")["ndcg@10"]])
    contenders = [
        Contender(
            OURS,
            "evaluate, all cores",
            lambda: lambda: [evaluate(data, s.ravel(), "ndcg@10")["ndcg@10"]],
            check,
        ),
        Contender(
            "CatBoost",
            "eval_metric NDCG:top=10;type=Exp, all cores",
            lambda: _catboost(data, s),
            check,
        ),
    ]
    return contest("NDCG@10 of 10,000 x 100", contenders, rounds=5, measure="NDCG@10")


def _check(expected: list[float]) -> Callable[[list[float]], float]:
    def mean(values: list[float]) -> float:
        np.testing.assert_allclose(values, expected, rtol=1e-12)
        return float(np.mean(values))

    return mean


def _ranx(y: Any, s: Any) -> Callable[[], list[float]]:
    warnings.filterwarnings("ignore", module="ranx|numba")
    import ranx

    names = [f"d{i}" for i in range(DOCUMENTS)]

    def by_query(values: Any) -> dict[str, dict[str, Any]]:
        return {f"q{q}": dict(zip(names, row, strict=True)) for q, row in enumerate(values)}

    qrels, run = ranx.Qrels(by_query(y.astype(int))), ranx.Run(by_query(s))
    metrics = ["ndcg_burges@10", "map"]

    def call() -> list[float]:
        values = ranx.evaluate(qrels, run, metrics, save_results_in_run=False)
        return [values[name] for name in metrics]

    return call


def _sklearn(y: np.ndarray, s: np.ndarray) -> list[float]:
    from sklearn.metrics import average_precision_score, ndcg_score

    values = [
        (
            ndcg_score([2**grades - 1], [scores], k=10),
            average_precision_score(grades >= 1, scores),
        )
        for grades, scores in zip(y, s, strict=True)
    ]
    return np.mean(values, axis=0).tolist()


def _catboost(data: RankingData, s: np.ndarray) -> Callable[[], list[float]]:
    from catboost.utils import eval_metric

    query, scores = data.query_of_row(), s.ravel()
    return lambda: eval_metric(data.y, scores, "NDCG:top=10;type=Exp", group_id=query)
