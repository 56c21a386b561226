"""Boosted trees and forests: LightGBM, XGBoost, CatBoost, scikit-learn.

All tools get the same features in memory (float32), the same number of trees, leaves and bins, the
same learning rate and threads; other settings are each tool's defaults. A fit includes binning.
Data: the mslr10k shape, 1,000 queries for training and 300 for NDCG@10.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankwright import RankingData, ranker

from .contest import OURS, Contender, Results, contest
from .data_sets import ndcg, train_and_test

TREES, LEAVES, BINS, RATE, THREADS, RUNS = 40, 31, 255, 0.1, 2, 5
QUERIES, HELD_OUT = 1000, 300
FOREST, FOREST_LEAVES, FOREST_QUERIES = 20, 64, 200
SETTINGS = f"{TREES} trees, {LEAVES} leaves, {BINS} bins, rate {RATE}, {THREADS} threads"
Predict = Callable[[Any], np.ndarray]
Fit = Callable[[], Predict]


def run() -> Results:
    train, test = train_and_test("mslr10k", QUERIES, HELD_OUT)
    lists = _boosted_lists(train, test)
    lists.set_ratio("lambdamart_time_vs_lightgbm", OURS, "LightGBM")
    lists.set_ratio("intervalrank_time_vs_lightgbm", f"{OURS}, IntervalRank", "LightGBM")
    theirs = ndcg(train, lightgbm("lambdarank", train)()(train.X))
    lists.ratios["lambdamart_ndcg10_minus_lightgbm"] = (
        ndcg(train, ours("lambdamart", train)()(train.X)) - theirs
    )
    points = _boosted_regression(train, test)
    points.set_ratio("gbdt_time_vs_lightgbm", OURS, "LightGBM")
    results = _forests(train.select(np.arange(FOREST_QUERIES)), test)
    results.add(lists)
    results.add(points)
    return results


def _boosted_lists(train: RankingData, test: RankingData) -> Results:
    def judge(predict: Predict) -> float:
        return ndcg(test, predict(test.X))

    contenders = [
        Contender(OURS, SETTINGS, lambda: ours("lambdamart", train), judge),
        Contender(
            "LightGBM",
            f"lambdarank, {SETTINGS}",
            lambda: lightgbm("lambdarank", train),
            judge,
        ),
        Contender(
            f"{OURS}, IntervalRank",
            SETTINGS,
            lambda: ours("intervalrank", train),
            judge,
        ),
        Contender(
            "XGBoost",
            f"rank:ndcg, topk 30 pairs, {SETTINGS}",
            lambda: xgboost("rank:ndcg", train, lambdarank_num_pair_per_sample=30),
            judge,
            rounds=2,
        ),
        Contender(
            "CatBoost",
            f"LambdaMart, Lossguide, {SETTINGS}",
            lambda: catboost("LambdaMart", train),
            judge,
            rounds=1,
            warm_up=False,
        ),
    ]
    return contest("LambdaMART", contenders, rounds=RUNS)


def _boosted_regression(train: RankingData, test: RankingData) -> Results:
    def judge(predict: Predict) -> float:
        return ndcg(test, predict(test.X))

    contenders = [
        Contender(OURS, f"gbdt, {SETTINGS}", lambda: ours("gbdt", train), judge),
        Contender("LightGBM", f"l2, {SETTINGS}", lambda: lightgbm("l2", train), judge),
        Contender(
            "scikit-learn",
            f"HistGradientBoostingRegressor, {SETTINGS}",
            lambda: histogram_trees(train),
            judge,
        ),
        Contender(
            "XGBoost",
            f"reg:squarederror, {SETTINGS}",
            lambda: xgboost("reg:squarederror", train),
            judge,
        ),
        Contender(
            "CatBoost",
            f"RMSE, Lossguide, {SETTINGS}",
            lambda: catboost("RMSE", train),
            judge,
            rounds=1,
            warm_up=False,
        ),
    ]
    return contest("Regression trees on grades", contenders, rounds=3)


def _forests(train: RankingData, test: RankingData) -> Results:
    from sklearn.ensemble import RandomForestRegressor

    def judge(predict: Predict) -> float:
        return ndcg(test, predict(test.X))

    settings = f"{FOREST} trees, {FOREST_LEAVES} leaves, a third of the features, {THREADS} threads"
    params = {"n_bags": FOREST, "num_leaves": FOREST_LEAVES, "colsample_bytree": 1 / 3}
    mine = ranker("random_forest", n_jobs=THREADS, **params)
    theirs = RandomForestRegressor(
        FOREST, n_jobs=THREADS, max_leaf_nodes=FOREST_LEAVES, max_features=1 / 3, random_state=0
    )
    contenders = [
        Contender(OURS, settings, lambda: lambda: mine.fit(train).predict, judge),
        Contender(
            "scikit-learn",
            f"RandomForestRegressor, {settings}",
            lambda: lambda: theirs.fit(train.X, train.y).predict,
            judge,
            rounds=1,
        ),
    ]
    return contest(f"Random forest, {train.n_queries} queries", contenders, rounds=3)


# --- how each tool is called, also by the areas memory and dask ----------------------------------


def ours(name: str, data: RankingData) -> Fit:
    params = {"n_estimators": TREES, "num_leaves": LEAVES, "learning_rate": RATE}
    params |= {"colsample_bytree": 1.0, "model__max_bins": BINS, "n_jobs": THREADS}
    return lambda: ranker(name, **params).fit(data).predict


def lightgbm(objective: str, data: RankingData) -> Fit:
    import lightgbm as lgb

    params = {
        "objective": objective,
        "num_leaves": LEAVES,
        "learning_rate": RATE,
        "max_bin": BINS,
        "num_threads": THREADS,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }

    def fit() -> Predict:
        dataset = lgb.Dataset(data.X, data.y, group=data.sizes, params={"verbosity": -1})
        return lgb.train(params, dataset, TREES).predict

    return fit


def xgboost(objective: str, data: RankingData, **more: Any) -> Fit:
    import xgboost as xgb

    params = {
        "objective": objective,
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_leaves": LEAVES,
        "max_depth": 0,
        "max_bin": BINS,
        "eta": RATE,
        "nthread": THREADS,
        **more,
    }
    query = data.query_of_row() if objective.startswith("rank:") else None

    def fit() -> Predict:
        matrix = xgb.QuantileDMatrix(data.X, data.y, qid=query, max_bin=BINS, nthread=THREADS)
        booster = xgb.train(params, matrix, TREES)
        return lambda X: booster.predict(xgb.DMatrix(X, nthread=THREADS))

    return fit


def catboost(loss: str, data: RankingData, *, n_estimators: int = TREES) -> Fit:
    from catboost import CatBoost, Pool

    params = {
        "loss_function": loss,
        "grow_policy": "Lossguide",
        "max_leaves": LEAVES,
        "border_count": BINS - 1,
        "learning_rate": RATE,
        "iterations": n_estimators,
        "thread_count": THREADS,
        "random_seed": 0,
        "allow_writing_files": False,
        "logging_level": "Silent",
    }

    def fit() -> Predict:
        pool = Pool(data.X, data.y, group_id=data.query_of_row(), thread_count=THREADS)
        return CatBoost(params).fit(pool).predict

    return fit


def histogram_trees(data: RankingData) -> Fit:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    model = HistGradientBoostingRegressor(
        learning_rate=RATE,
        max_iter=TREES,
        max_leaf_nodes=LEAVES,
        max_bins=BINS,
        early_stopping=False,
    )

    def fit() -> Predict:
        with threadpool_limits(THREADS):
            return model.fit(data.X, data.y).predict

    return fit
