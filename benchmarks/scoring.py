"""Scoring trees with LightGBM, XGBoost, CatBoost and scikit-learn on one thread; linear scores.

500 trees of 64 leaves over 136 features; 20,000 documents, and lists of 1,000 and 100 at a time.
Ours score LightGBM's trees and CatBoost's symmetric trees after import, and give the same bits. The
other tools score trees of their own with as many leaves. Linear scores are timed against a read of
the features (NumPy's maximum), and sparse ones against SciPy's product.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import lightgbm as lgb
import numpy as np
from scipy import sparse

from rankwright import import_model
from rankwright.models.linear import FittedLinear

from .contest import OURS, Contender, Results, contest
from .timing import least

ROWS, FEATURES, TREES, LEAVES, RUNS = 20_000, 136, 500, 64, 7
SIZE = f"{TREES} trees, {LEAVES} leaves, 1 thread"
SYMMETRIC, OURS_SYMMETRIC = "CatBoost, symmetric trees", f"{OURS}, the same symmetric trees"
Scorer = Callable[[Any], np.ndarray]


def run() -> Results:
    X = _data()[0]
    every = _contest(f"{ROWS:,} documents", X, RUNS)
    every.set_ratio("forest_vs_lightgbm", "LightGBM", OURS)
    every.set_ratio("symmetric_vs_catboost", SYMMETRIC, OURS_SYMMETRIC)
    few = _contest("one list of 100 documents", X[:100], 100 * RUNS)
    few.set_ratio("one_query_of_100_vs_lightgbm", "LightGBM", OURS)
    thousand = _contest("one list of 1,000 documents", X[:1000], 10 * RUNS)
    thousand.set_ratio("one_query_of_1000_vs_lightgbm", "LightGBM", OURS)
    results = Results()
    for part in (every, thousand, few):
        results.add(part)
    wide = X.astype(np.float64)
    results.ratios["largest_difference"] = max(
        float(np.abs(_ours()(some) - _lightgbm()(some)).max()) for some in (X, wide)
    )
    for name, reading, score in _linear_calls():
        seconds = least({"reading": reading, "ours": score}, RUNS)
        results.ratios[f"linear_{name}"] = seconds["reading"] / seconds["ours"]
    return results


def _contest(task: str, X: np.ndarray, rounds: int) -> Results:
    contenders = [
        Contender(tool, f"{settings}{SIZE}", lambda m=make: _call(m(), X))
        for tool, settings, make in SCORERS
    ]
    return contest(f"Scoring, {task}", contenders, rounds=rounds)


def _call(score: Scorer, X: np.ndarray) -> Callable[[], np.ndarray]:
    return lambda: score(X)


def _linear_calls() -> list[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """Return a name, the call to compare with, and the call that scores features of 300 MB."""
    rng = np.random.default_rng(2)
    X = rng.random((30 * ROWS, FEATURES), np.float32)
    model = FittedLinear(rng.normal(size=FEATURES))
    random = sparse.random_array((15 * ROWS, 2000), density=0.02, dtype=np.float32, rng=rng)
    csr, wide = sparse.csr_array(random), FittedLinear(rng.normal(size=2000))
    return [
        ("vs_reading", X.max, lambda: model.scores(X, n_jobs=1)),
        ("csr_vs_scipy", lambda: csr @ wide.coef, lambda: wide.scores(csr, n_jobs=1)),
    ]


# --- models, trained once -------------------------------------------------------------------------


@cache
def _data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    return X, np.clip((X[:, :6].sum(1) * 0.5 + 1 + rng.normal(size=ROWS)).round(), 0, 4)


@cache
def _booster() -> lgb.Booster:
    params = {"objective": "l2", "num_leaves": LEAVES, "learning_rate": 0.05}
    params |= {"boost_from_average": False, "num_threads": 2, "verbosity": -1}
    return lgb.train(params, lgb.Dataset(*_data()), TREES)


@cache
def _catboost_model(policy: str) -> Any:
    from catboost import CatBoostRegressor

    size = {"depth": 6} if policy == "SymmetricTree" else {"max_leaves": LEAVES}
    return CatBoostRegressor(
        iterations=TREES,
        grow_policy=policy,
        learning_rate=0.05,
        thread_count=2,
        allow_writing_files=False,
        logging_level="Silent",
        **size,
    ).fit(*_data())


def _ours() -> Scorer:
    return _imported(_booster())


def _imported(model: Any) -> Scorer:
    ours = import_model(model).model_
    return lambda X: ours.scores(X, n_jobs=1)


def _lightgbm() -> Scorer:
    return lambda X: _booster().predict(X, num_threads=1)


def _catboost(policy: str) -> Scorer:
    model = _catboost_model(policy)
    return lambda X: model.predict(X, thread_count=1)


@cache
def _xgboost() -> Scorer:
    import xgboost as xgb

    params = {"tree_method": "hist", "grow_policy": "lossguide", "max_leaves": LEAVES}
    params |= {"max_depth": 0, "eta": 0.05, "min_child_weight": 20, "nthread": 2}
    booster = xgb.train(params, xgb.QuantileDMatrix(*_data()), TREES)
    booster.set_param({"nthread": 1})
    return booster.inplace_predict


@cache
def _sklearn() -> Scorer:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    model = HistGradientBoostingRegressor(
        max_iter=TREES, max_leaf_nodes=LEAVES, learning_rate=0.05, early_stopping=False
    ).fit(*_data())

    def score(X: np.ndarray) -> np.ndarray:
        with threadpool_limits(1):
            return model.predict(X)

    return score


SCORERS: list[tuple[str, str, Callable[[], Scorer]]] = [
    (OURS, "LightGBM's trees, ", _ours),
    ("LightGBM", "predict, ", _lightgbm),
    ("XGBoost", "inplace_predict, ", _xgboost),
    ("CatBoost", "Lossguide trees, ", lambda: _catboost("Lossguide")),
    (SYMMETRIC, "depth 6, ", lambda: _catboost("SymmetricTree")),
    (OURS_SYMMETRIC, "imported, ", lambda: _imported(_catboost_model("SymmetricTree"))),
    ("scikit-learn", "HistGradientBoostingRegressor, ", _sklearn),
]
