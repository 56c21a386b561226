"""Boosted trees and forests: LightGBM, XGBoost, CatBoost, scikit-learn and fastrank.

Everyone gets the same features in memory (float32), the same number of trees, leaves and bins, the
same rate and threads, and does all the work from the array on: bins, gradients, trees. What is left
are each tool's own defaults. Data: the mslr10k shape, 1,000 queries to learn from and 300 others
for NDCG@10. A forest of fastrank grows by depth, so the leaves of the others are two to that power.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from rankwright import RankingData, ranker

from .contest import Contender, contest
from .data_sets import ndcg, train_and_test
from .findings import OURS, Findings

TREES, LEAVES, BINS, RATE, THREADS, RUNS = 40, 31, 255, 0.1, 2, 5
QUERIES, HELD_OUT = 1000, 300
FOREST, DEPTH, FOREST_QUERIES = 20, 6, 200
SETTINGS = f"{TREES} trees, {LEAVES} leaves, {BINS} bins, rate {RATE}, {THREADS} threads"
GROWN = f"{FOREST} trees, a third of the features, {THREADS} threads"
Fit = Callable[[], Callable[[Any], np.ndarray]]  # what is timed; it returns what predicts


def run() -> Findings:
    train, test = train_and_test("mslr10k", QUERIES, HELD_OUT)
    found = Findings()
    lists = found.add(_lambdamart(train, test))
    for name, peer in (("lambdamart", OURS), ("intervalrank", f"{OURS}, IntervalRank")):
        found.note_figure(f"{name}_time_vs_lightgbm", lists.ratio(peer, "LightGBM"))
    fits = {"lambdamart": ours("lambdamart", train), "intervalrank": ours("intervalrank", train)}
    theirs = ndcg(train, lightgbm("lambdarank", train)()(train.X))
    for name, fit in fits.items():
        found.figures[f"{name}_ndcg10_minus_lightgbm"] = ndcg(train, fit()(train.X)) - theirs
    points = found.add(_pointwise(train, test))
    found.note_figure("gbdt_time_vs_lightgbm", points.ratio(OURS, "LightGBM"))
    some = train.select(np.arange(FOREST_QUERIES))
    found.add(_forests(some, test))
    return found


def _lambdamart(train: RankingData, test: RankingData) -> Findings:
    judge = lambda predict: ndcg(test, predict(test.X))  # noqa: E731
    return contest(
        "LambdaMART",
        [
            Contender(OURS, "rankwright", SETTINGS, lambda: ours("lambdamart", train), judge),
            Contender(
                "LightGBM",
                "lightgbm",
                f"lambdarank, {SETTINGS}, deterministic, force_row_wise",
                lambda: lightgbm("lambdarank", train),
                judge,
            ),
            Contender(
                f"{OURS}, IntervalRank",
                "rankwright",
                f"another loss, {SETTINGS}",
                lambda: ours("intervalrank", train),
                judge,
            ),
            Contender(
                "XGBoost",
                "xgboost",
                f"rank:ndcg, hist, lossguide, topk 30 pairs, {SETTINGS}",
                lambda: xgboost("rank:ndcg", train, lambdarank_num_pair_per_sample=30),
                judge,
                rounds=2,
            ),
            Contender(
                "CatBoost",
                "catboost",
                f"LambdaMart, Lossguide, {SETTINGS}",
                lambda: catboost("LambdaMart", train),
                judge,
                rounds=1,
                warm_up=False,
            ),
        ],
        rounds=RUNS,
    )


def _pointwise(train: RankingData, test: RankingData) -> Findings:
    judge = lambda predict: ndcg(test, predict(test.X))  # noqa: E731
    return contest(
        "Regression trees on grades",
        [
            Contender(OURS, "rankwright", f"gbdt, {SETTINGS}", lambda: ours("gbdt", train), judge),
            Contender(
                "LightGBM",
                "lightgbm",
                f"l2, {SETTINGS}, deterministic, force_row_wise",
                lambda: lightgbm("l2", train),
                judge,
            ),
            Contender(
                "scikit-learn",
                "scikit-learn",
                f"HistGradientBoostingRegressor, {SETTINGS}",
                lambda: histogram_trees(train),
                judge,
            ),
            Contender(
                "XGBoost",
                "xgboost",
                f"reg:squarederror, hist, lossguide, {SETTINGS}",
                lambda: xgboost("reg:squarederror", train),
                judge,
            ),
            Contender(
                "CatBoost",
                "catboost",
                f"RMSE, Lossguide, {SETTINGS}",
                lambda: catboost("RMSE", train),
                judge,
                rounds=1,
                warm_up=False,
            ),
        ],
        rounds=3,
    )


def _forests(train: RankingData, test: RankingData) -> Findings:
    judge = lambda predict: ndcg(test, predict(test.X))  # noqa: E731
    return contest(
        f"Random forest, {train.n_queries} queries",
        [
            Contender(
                OURS, "rankwright", f"{2**DEPTH} leaves, {GROWN}", lambda: our_forest(train), judge
            ),
            Contender(
                "scikit-learn",
                "scikit-learn",
                f"RandomForestRegressor, {2**DEPTH} leaves, {GROWN}",
                lambda: sklearn_forest(train),
                judge,
                rounds=1,
            ),
            Contender(
                "fastrank",
                "fastrank",
                f"random_forest, depth {DEPTH}, half of the rows, 3 cuts a feature, {GROWN}",
                lambda: fastrank_forest(train, test),
                lambda scores: ndcg(test, scores()),
                rounds=1,
                warm_up=False,
            ),
        ],
        rounds=3,
    )


# --- how each tool is called -----------------------------------------------------------------


def ours(
    name: str, data: RankingData, *, threads: int = THREADS, n_estimators: int = TREES, **more: Any
) -> Fit:
    made = {
        "n_estimators": n_estimators,
        "num_leaves": LEAVES,
        "learning_rate": RATE,
        "colsample_bytree": 1.0,
        "model__max_bins": BINS,
    }
    params = {**made, "n_jobs": threads, **more}
    return lambda: ranker(name, **params).fit(data).predict


def lightgbm(
    objective: str,
    data: RankingData,
    *,
    threads: int = THREADS,
    n_estimators: int = TREES,
    **more: Any,
) -> Fit:
    import lightgbm as lgb

    params = {
        "objective": objective,
        "num_leaves": LEAVES,
        "learning_rate": RATE,
        "max_bin": BINS,
        "num_threads": threads,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
        **more,
    }

    def fit() -> Callable[[Any], np.ndarray]:
        dataset = lgb.Dataset(data.X, data.y, group=data.sizes, params={"verbosity": -1})
        return lgb.train(params, dataset, n_estimators).predict

    return fit


def xgboost(
    objective: str,
    data: RankingData,
    *,
    threads: int = THREADS,
    n_estimators: int = TREES,
    **more: Any,
) -> Fit:
    import xgboost as xgb

    params = {
        "objective": objective,
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_leaves": LEAVES,
        "max_depth": 0,
        "max_bin": BINS,
        "eta": RATE,
        "nthread": threads,
        **more,
    }
    query = data.query_of_row() if objective.startswith("rank:") else None

    def fit() -> Callable[[Any], np.ndarray]:
        matrix = xgb.QuantileDMatrix(data.X, data.y, qid=query, max_bin=BINS, nthread=threads)
        booster = xgb.train(params, matrix, n_estimators)
        return lambda X: booster.predict(xgb.DMatrix(X, nthread=threads))

    return fit


def catboost(
    loss: str, data: RankingData, *, threads: int = THREADS, n_estimators: int = TREES, **more: Any
) -> Fit:
    from catboost import CatBoost, Pool

    params = {
        "loss_function": loss,
        "grow_policy": "Lossguide",
        "max_leaves": LEAVES,
        "border_count": BINS - 1,
        "learning_rate": RATE,
        "iterations": n_estimators,
        "thread_count": threads,
        "random_seed": 0,
        "allow_writing_files": False,
        "logging_level": "Silent",
        **more,
    }

    def fit() -> Callable[[Any], np.ndarray]:
        pool = Pool(data.X, data.y, group_id=data.query_of_row(), thread_count=threads)
        return CatBoost(params).fit(pool).predict

    return fit


def histogram_trees(data: RankingData, *, threads: int = THREADS) -> Fit:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    def fit() -> Callable[[Any], np.ndarray]:
        model = HistGradientBoostingRegressor(
            learning_rate=RATE,
            max_iter=TREES,
            max_leaf_nodes=LEAVES,
            max_bins=BINS,
            early_stopping=False,
        )
        with threadpool_limits(threads):
            return model.fit(data.X, data.y).predict

    return fit


def our_forest(data: RankingData) -> Fit:
    params = {"n_bags": FOREST, "num_leaves": 2**DEPTH, "colsample_bytree": 1 / 3}
    return lambda: ranker("random_forest", n_jobs=THREADS, **params).fit(data).predict


def sklearn_forest(data: RankingData) -> Fit:
    from sklearn.ensemble import RandomForestRegressor

    params = {"max_leaf_nodes": 2**DEPTH, "max_features": 1 / 3, "random_state": 0}
    return lambda: (
        RandomForestRegressor(FOREST, n_jobs=THREADS, **params).fit(data.X, data.y).predict
    )


def fastrank_forest(data: RankingData, test: RankingData) -> Callable[[], Callable[[], np.ndarray]]:
    from fastrank import TrainRequest

    request = TrainRequest.random_forest()
    request.params.num_trees, request.params.max_depth = FOREST, DEPTH
    request.params.feature_sampling_rate = 1 / 3
    request.params.seed, request.params.quiet = 0, True
    return fastrank_fit(data, test, request)


def fastrank_fit(
    data: RankingData, test: RankingData, request: Any
) -> Callable[[], Callable[[], np.ndarray]]:
    """Return a call that trains by fastrank, which points at arrays: they are kept here."""
    os.environ["RAYON_NUM_THREADS"] = str(THREADS)  # it has no other setting
    from fastrank import CDataset

    kept = [
        (np.ascontiguousarray(one.X, np.float32), one.y, one.query_of_row().astype(np.int64))
        for one in (data, test)
    ]
    train, judged = (CDataset.from_numpy(*arrays) for arrays in kept)

    def fit() -> Callable[[], np.ndarray]:
        model = train.train_model(request)

        def scores() -> np.ndarray:
            found = judged.predict_scores(model)
            return np.array([found[row] for row in range(len(kept[1][1]))])

        return scores

    return fit
