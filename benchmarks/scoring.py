"""Scoring trees: LightGBM, XGBoost, CatBoost and scikit-learn on one thread; and linear scores.

500 trees of 64 leaves over 136 features, 20,000 documents, and lists of 1,000 and 100 at a time. We
score LightGBM's own trees, to the same last bit; XGBoost and scikit-learn score as many trees with
as many leaves of their own. CatBoost does so twice: with such trees, and with the symmetric trees
that it is made for, of 64 leaves each; those we import and score too, to the same last bit.
Features are in memory (float32) and converted where a tool must; trees of their own give scores of
their own, which are not compared. Linear scores are timed against reading the features, NumPy's
maximum of the same array; sparse ones against SciPy's product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightgbm as lgb
import numpy as np
from scipy import sparse

import rankwright as rw
from rankwright.models.linear import FittedLinear
from rankwright.models.trees import FittedTrees

from .contest import Contender, contest, is_installed
from .findings import OURS, Findings
from .timing import least

ROWS, FEATURES, TREES, LEAVES, RUNS = 20_000, 136, 500, 64, 7
SIZE = f"{TREES} trees, {LEAVES} leaves, 1 thread"
SYMMETRIC = "CatBoost, symmetric trees"
OURS_SYMMETRIC = f"{OURS}, the same symmetric trees"
SAME = {
    "LightGBM": "the same scores, to the last bit",
    OURS_SYMMETRIC: "CatBoost's scores, to the last bit",
}
Scorer = Callable[[Any], np.ndarray]


def run() -> Findings:
    X, y = drawn()
    booster = grown(X, y)
    ours = FittedTrees(booster.model_to_string(), 0.0, FEATURES)
    wide = X.astype(np.float64)
    ours.scores(wide[:8], n_jobs=1)  # compiles
    scorers = _scorers(X, y, booster, ours)
    found = Findings()
    all_rows = found.add(_contest(f"{ROWS:,} documents", X, scorers, RUNS))
    found.note_figure("forest_vs_lightgbm", all_rows.ratio("LightGBM", OURS))
    found.note_figure("symmetric_vs_catboost", all_rows.ratio(SYMMETRIC, OURS_SYMMETRIC))
    found.figures["forest_float64_vs_lightgbm"] = ratio(booster, ours, wide, RUNS)
    for n, runs in ((1000, 10 * RUNS), (100, 100 * RUNS)):
        some = found.add(_contest(f"one list of {n:,} documents", X[:n], scorers, runs))
        found.note_figure(f"one_query_of_{n}_vs_lightgbm", some.ratio("LightGBM", OURS))
        for peer in ("XGBoost", "CatBoost"):
            found.note_figure(f"one_query_of_{n}_vs_{peer.lower()}", some.ratio(peer, OURS))
        faster = some.ratio(SYMMETRIC, OURS_SYMMETRIC)
        found.note_figure(f"symmetric_one_query_of_{n}_vs_catboost", faster)
    for name, read, score in linear_calls():
        seconds = least({"reading": read, "ours": score}, RUNS)
        found.figures[f"linear_{name}"] = seconds["reading"] / seconds["ours"]
    same = [
        ours.scores(some, n_jobs=1) - booster.predict(some, num_threads=1) for some in (X, wide)
    ]
    found.figures["largest_difference"] = float(np.abs(same).max())
    by_name = {peer: make for peer, _, _, make in scorers}
    if OURS_SYMMETRIC in by_name:
        apart = by_name[OURS_SYMMETRIC]()(X) - by_name[SYMMETRIC]()(X)
        found.figures["symmetric_largest_difference"] = float(np.abs(apart).max())
    return found


def drawn() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    return X, np.clip((X[:, :6].sum(1) * 0.5 + 1 + rng.normal(size=ROWS)).round(), 0, 4)


def grown(X: np.ndarray, y: np.ndarray) -> lgb.Booster:
    params = {
        "objective": "l2",
        "num_leaves": LEAVES,
        "learning_rate": 0.05,
        "boost_from_average": False,
        "num_threads": 2,
        "verbosity": -1,
    }
    return lgb.train(params, lgb.Dataset(X, y), TREES)


def ratio(booster: lgb.Booster, ours: FittedTrees, X: np.ndarray, runs: int) -> float:
    """Return how many times as long LightGBM takes, by the least time of each."""
    seconds = least(
        {
            "theirs": lambda: booster.predict(X, num_threads=1),
            "ours": lambda: ours.scores(X, n_jobs=1),
        },
        runs,
    )
    return seconds["theirs"] / seconds["ours"]


def linear_calls() -> list[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """Return names, what to compare with, and linear scores, of features of 300 MB each.

    NumPy's maximum reads dense features; SciPy multiplies sparse ones by the same weights.
    """
    rng = np.random.default_rng(2)
    X = rng.random((30 * ROWS, FEATURES), np.float32)
    model = FittedLinear(rng.normal(size=FEATURES), None, FEATURES)
    wide = X[: 15 * ROWS].astype(np.float64)
    some = sparse.random_array((15 * ROWS, 2000), density=0.02, dtype=np.float32, rng=rng)
    csr, many = sparse.csr_array(some), FittedLinear(rng.normal(size=2000), None, 2000)
    return [
        ("vs_reading", X.max, lambda: model.scores(X, n_jobs=1)),
        ("float64_vs_reading", wide.max, lambda: model.scores(wide, n_jobs=1)),
        ("csr_vs_scipy", lambda: csr @ many.coef, lambda: many.scores(csr, n_jobs=1)),
    ]


def _contest(task: str, X: np.ndarray, scorers: list[tuple[Any, ...]], runs: int) -> Findings:
    """Let every scorer score ``X``; models are fitted once, when first asked for."""
    return contest(
        f"Scoring, {task}",
        [
            Contender(
                peer,
                package,
                f"{what}{SIZE}",
                lambda m=make: _call(m(), X),
                same=SAME.get(peer, ""),
            )
            for peer, package, what, make in scorers
        ],
        rounds=runs,
    )


def _call(score: Scorer, X: np.ndarray) -> Callable[[], np.ndarray]:
    return lambda: score(X)


def _scorers(
    X: np.ndarray, y: np.ndarray, booster: lgb.Booster, ours: FittedTrees
) -> list[tuple[str, str, str, Callable[[], Scorer]]]:
    """Return name, package, settings, and what makes the scorer, of every tool."""
    once: dict[str, Any] = {}

    def kept(name: str, make: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: once[name] if name in once else once.setdefault(name, make())

    symmetric = kept("symmetric", lambda: trained_catboost(X, y, "SymmetricTree"))
    scorers = [
        (OURS, "rankwright", "", lambda: lambda Z: ours.scores(Z, n_jobs=1)),
        ("LightGBM", "lightgbm", "predict, ", lambda: lambda Z: booster.predict(Z, num_threads=1)),
        ("XGBoost", "xgboost", "inplace_predict, ", kept("xgboost", lambda: _xgboost(X, y))),
        (
            "CatBoost",
            "catboost",
            "Lossguide trees, ",
            kept("catboost", lambda: _catboost(trained_catboost(X, y, "Lossguide"))),
        ),
        (SYMMETRIC, "catboost", "SymmetricTree, depth 6, ", lambda: _catboost(symmetric())),
        (
            "scikit-learn",
            "scikit-learn",
            "HistGradientBoostingRegressor, ",
            kept("sklearn", lambda: _sklearn(X, y)),
        ),
    ]
    if is_installed("catboost"):
        about = "CatBoost's model imported, "
        imported = kept("imported", lambda: _imported(symmetric()))
        scorers.append((OURS_SYMMETRIC, "rankwright", about, imported))
    return scorers


def trained_xgboost(X: np.ndarray, y: np.ndarray) -> Any:
    """Return a booster of XGBoost, on one thread from now on."""
    import xgboost as xgb

    params = {"tree_method": "hist", "grow_policy": "lossguide", "max_leaves": LEAVES}
    params |= {"max_depth": 0, "eta": 0.05, "min_child_weight": 20}
    booster = xgb.train({**params, "nthread": 2}, xgb.QuantileDMatrix(X, y), TREES)
    booster.set_param({"nthread": 1})
    return booster


def trained_catboost(X: np.ndarray, y: np.ndarray, policy: str) -> Any:
    """Return a model of CatBoost whose trees grow by a policy."""
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
    ).fit(X, y)


def _xgboost(X: np.ndarray, y: np.ndarray) -> Scorer:
    return trained_xgboost(X, y).inplace_predict


def _catboost(model: Any) -> Scorer:
    return lambda Z: model.predict(Z, thread_count=1)


def _imported(model: Any) -> Scorer:
    ours = rw.import_model(model).model_
    return lambda Z: ours.scores(Z, n_jobs=1)


def _sklearn(X: np.ndarray, y: np.ndarray) -> Scorer:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    model = HistGradientBoostingRegressor(
        max_iter=TREES, max_leaf_nodes=LEAVES, learning_rate=0.05, early_stopping=False
    ).fit(X, y)

    def score(Z: np.ndarray) -> np.ndarray:
        with threadpool_limits(1):
            return model.predict(Z)

    return score
