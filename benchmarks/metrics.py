"""NDCG@10 and MAP of 10,000 queries x 100 documents, against ranx and scikit-learn.

ranx gets its data prebuilt and sorted and its kernels compiled, while ours are sorted anew on every
call; what it costs to build ranx's run is reported beside. scikit-learn has no notion of a query,
so it is called once per query. All three must agree on the values before any is timed. The paired
randomisation test over queries is timed against SciPy's.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from rankwright.data.ranking_data import RankingData
from rankwright.metrics.evaluate import evaluate
from rankwright.metrics.significance import randomisation

QUERIES, DOCUMENTS = 10_000, 100


def run() -> dict[str, float]:
    rng = np.random.default_rng(0)
    y = rng.choice(5, size=(QUERIES, DOCUMENTS), p=[0.5, 0.2, 0.15, 0.1, 0.05]).astype(float)
    s = y + 2 * rng.standard_normal(y.shape)
    data = RankingData.from_arrays(
        np.zeros((y.size, 1), np.float32), y.ravel(), group_sizes=[DOCUMENTS] * QUERIES
    )
    ours = lambda: evaluate(data, s.ravel(), "ndcg@10,map")  # noqa: E731
    expected = list(ours().values())
    seconds = _best_of(20, ours)

    start = time.perf_counter()
    qrels, built = _ranx_data(y, s)
    build = time.perf_counter() - start
    from ranx import evaluate as evaluate_ranx

    names = ["ndcg_burges@10", "map"]
    theirs = lambda: evaluate_ranx(qrels, built, names, save_results_in_run=False)  # noqa: E731
    np.testing.assert_allclose([theirs()[name] for name in names], expected, rtol=1e-12)
    ranx = _best_of(5, theirs)

    start = time.perf_counter()
    values = [_sklearn_query(grades, scores) for grades, scores in zip(y, s, strict=True)]
    sklearn = time.perf_counter() - start
    np.testing.assert_allclose(np.mean(values, axis=0), expected, rtol=1e-12)
    return {
        "metrics_vs_ranx": ranx / seconds,
        "metrics_vs_ranx_with_building": (ranx + build) / seconds,
        "metrics_vs_sklearn": sklearn / seconds,
        "randomisation_vs_scipy": _randomisation(rng),
    }


def _randomisation(rng: np.random.Generator) -> float:
    """Return how many times as long SciPy's test of 10,000 paired values takes."""
    a, b = rng.random((2, QUERIES))
    theirs = lambda: stats.permutation_test(  # noqa: E731
        (a, b),
        lambda a, b, axis: (a - b).mean(axis=axis),
        permutation_type="samples",
        n_resamples=10_000,
        vectorized=True,
        batch=1_000,
        rng=np.random.default_rng(0),
    )
    assert abs(theirs().pvalue - randomisation(a, b).p_value) < 0.02
    return _best_of(2, theirs) / _best_of(5, lambda: randomisation(a, b))


def _best_of(times: int, call: Callable[[], Any]) -> float:
    best = np.inf
    for _ in range(times):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def _ranx_data(y: Any, s: Any) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ranx import Qrels, Run

        names = [f"d{i}" for i in range(DOCUMENTS)]
        judged = {
            f"q{q}": dict(zip(names, row, strict=True)) for q, row in enumerate(y.astype(int))
        }
        scored = {f"q{q}": dict(zip(names, row, strict=True)) for q, row in enumerate(s)}
        return Qrels(judged), Run(scored)


def _sklearn_query(grades: Any, scores: Any) -> tuple[float, float]:
    from sklearn.metrics import average_precision_score, ndcg_score

    ndcg = ndcg_score([2**grades - 1], [scores], k=10)
    return ndcg, average_precision_score(grades >= 1, scores)
