"""NDCG@10 and MAP of 10,000 queries x 100 documents: ranx, scikit-learn, CatBoost.

ranx gets its data prebuilt and sorted and its kernels compiled, while ours are sorted anew on every
call; what it costs to build ranx's run is reported beside. scikit-learn has no notion of a query,
so it is called once per query. CatBoost measures NDCG@10 alone. All must agree on the values before
any is timed. The paired randomisation test over queries is timed against SciPy's.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from rankwright.data.ranking_data import RankingData
from rankwright.metrics.evaluation import evaluate
from rankwright.metrics.significance import randomisation

from .contest import Contender, contest
from .findings import OURS, Findings

QUERIES, DOCUMENTS = 10_000, 100
SAME = "equal to ours within 1e-12"


def run() -> Findings:
    rng = np.random.default_rng(0)
    y = rng.choice(5, size=(QUERIES, DOCUMENTS), p=[0.5, 0.2, 0.15, 0.1, 0.05]).astype(float)
    s = y + 2 * rng.standard_normal(y.shape)
    data = RankingData.from_arrays(
        np.zeros((y.size, 1), np.float32), y.ravel(), group_sizes=[DOCUMENTS] * QUERIES
    )
    found = Findings()
    values = found.add(_two_measures(data, y, s))
    found.note_figure("metrics_vs_ranx", values.ratio("ranx", OURS))
    found.note_figure("metrics_vs_ranx_with_building", values.figures.pop("building", None))
    found.figures.pop("building", None)
    found.note_figure("metrics_vs_sklearn", values.ratio("scikit-learn", OURS))
    one = found.add(_one_measure(data, s))
    found.note_figure("ndcg_vs_catboost", one.ratio("CatBoost", OURS))
    tests = found.add(_randomisation(rng))
    found.note_figure("randomisation_vs_scipy", tests.ratio("SciPy", OURS))
    return found


def _two_measures(data: RankingData, y: np.ndarray, s: np.ndarray) -> Findings:
    expected = list(evaluate(data, s.ravel(), "ndcg@10,map").values())
    agree = _agree(expected)
    built = {"seconds": 0.0}
    found = contest(
        "NDCG@10 and MAP of 10,000 x 100",
        [
            Contender(
                OURS,
                "rankwright",
                "evaluate, all cores",
                lambda: lambda: list(evaluate(data, s.ravel(), "ndcg@10,map").values()),
                agree,
                rounds=20,
            ),
            Contender(
                "ranx",
                "ranx",
                "ndcg_burges@10, map; built and sorted before, all cores",
                lambda: _ranx(y, s, built),
                agree,
                rounds=5,
                same=SAME,
            ),
            Contender(
                "scikit-learn",
                "scikit-learn",
                "ndcg_score(2**g - 1, k=10), average_precision_score, query by query, one thread",
                lambda: lambda: _sklearn(y, s),
                agree,
                rounds=1,
                warm_up=False,
                same=SAME,
            ),
        ],
        rounds=20,
        measure="mean of the two values",
    )
    ours, ranx = found.seconds(OURS), found.seconds("ranx")
    if ours and ranx:
        found.figures["building"] = (ranx + built["seconds"]) / ours
    return found


def _one_measure(data: RankingData, s: np.ndarray) -> Findings:
    agree = _agree([evaluate(data, s.ravel(), "ndcg@10")["ndcg@10"]])
    return contest(
        "NDCG@10 of 10,000 x 100",
        [
            Contender(
                OURS,
                "rankwright",
                "evaluate, all cores",
                lambda: lambda: [evaluate(data, s.ravel(), "ndcg@10")["ndcg@10"]],
                agree,
            ),
            Contender(
                "CatBoost",
                "catboost",
                "eval_metric NDCG:top=10;type=Exp, all cores",
                lambda: _catboost(data, s),
                agree,
                same=SAME,
            ),
        ],
        rounds=5,
        measure="NDCG@10",
    )


def _agree(expected: list[float]) -> Callable[[list[float]], float]:
    def mean(values: list[float]) -> float:
        np.testing.assert_allclose(values, expected, rtol=1e-12)
        return float(np.mean(values))

    return mean


def _randomisation(rng: np.random.Generator) -> Findings:
    """Let SciPy and us test 10,000 paired values; the p-values agree within what is drawn."""
    a, b = rng.random((2, QUERIES))
    ours = randomisation(a, b).p_value

    def theirs() -> float:
        found = stats.permutation_test(
            (a, b),
            lambda a, b, axis: (a - b).mean(axis=axis),
            permutation_type="samples",
            n_resamples=10_000,
            vectorized=True,
            batch=1_000,
            rng=np.random.default_rng(0),
        )
        return float(found.pvalue)

    def judge(p: float) -> float:
        assert abs(p - ours) < 0.02, (p, ours)
        return p

    return contest(
        "Paired randomisation test of 10,000 values",
        [
            Contender(
                OURS,
                "rankwright",
                "10,000 draws",
                lambda: lambda: randomisation(a, b).p_value,
                judge,
            ),
            Contender(
                "SciPy",
                "scipy",
                "permutation_test, samples, 10,000 draws, vectorized, batch 1,000",
                lambda: theirs,
                judge,
                rounds=2,
                warm_up=False,
                same="within .02 of ours",
            ),
        ],
        rounds=5,
        measure="p-value",
    )


# --- how each tool is called -----------------------------------------------------------------


def _ranx(y: Any, s: Any, built: dict[str, float]) -> Callable[[], list[float]]:
    """Return the call; how long the data took to build is left in ``built``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ranx import Qrels, Run
        from ranx import evaluate as evaluate_ranx

        start = time.perf_counter()
        names = [f"d{i}" for i in range(DOCUMENTS)]
        judged = {
            f"q{q}": dict(zip(names, row, strict=True)) for q, row in enumerate(y.astype(int))
        }
        scored = {f"q{q}": dict(zip(names, row, strict=True)) for q, row in enumerate(s)}
        qrels, run = Qrels(judged), Run(scored)
        built["seconds"] = time.perf_counter() - start
    wanted = ["ndcg_burges@10", "map"]

    def call() -> list[float]:
        found = evaluate_ranx(qrels, run, wanted, save_results_in_run=False)
        return [found[name] for name in wanted]

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
