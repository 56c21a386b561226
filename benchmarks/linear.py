"""Linear rankers: least squares and pairs, against scikit-learn's solvers and XGBoost's gblinear.

The mslr10k shape in memory as float32, the same threads for all. Least squares is the same problem
on both sides. Pairs are the same objective (squared hinge on every pair of a query, same l2) for
RankSVM and scikit-learn's LinearSVC on the differences written out, which is why that one gets few
queries, with features standardised for both. XGBoost has a linear booster with its logistic loss
on pairs: against RankNet's loss here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rankwright import RankingData, ranker
from reproducibility.peers import LiblinearPairs

from .contest import Contender, contest
from .data_sets import ndcg, train_and_test
from .findings import OURS, Findings
from .trees import THREADS

QUERIES, FEW, HELD_OUT, ROUNDS, L2, BOOSTS = 1000, 40, 300, 3, 1e-2, 50


def run() -> Findings:
    train, test = train_and_test("mslr10k", QUERIES, HELD_OUT)
    found = Findings()
    squares = found.add(_least_squares(train, test))
    found.note_figure("least_squares_vs_sklearn", squares.ratio("scikit-learn", OURS))
    pairs = found.add(_pairs(*_standardised(train.select(np.arange(FEW)), test)))
    found.note_figure("ranksvm_vs_sklearn_pairs", pairs.ratio("scikit-learn", OURS))
    logistic = found.add(_logistic(train, test))
    found.note_figure("ranknet_linear_vs_xgboost", logistic.ratio("XGBoost", OURS))
    return found


def _least_squares(train: RankingData, test: RankingData) -> Findings:
    return contest(
        "Least squares on grades",
        [
            _ours("linear_regression", train, test, "closed form, l2=0", l2=0.0),
            Contender(
                "scikit-learn",
                "scikit-learn",
                f"LinearRegression, {THREADS} threads",
                lambda: _sklearn_squares(train, test),
                lambda scores: ndcg(test, scores()),
            ),
        ],
        rounds=ROUNDS,
    )


def _pairs(train: RankingData, test: RankingData) -> Findings:
    return contest(
        f"RankSVM, {FEW} queries",
        [
            _ours("ranksvm", train, test, f"l2={L2}", l2=L2, scale=False),
            Contender(
                "scikit-learn",
                "scikit-learn",
                f"LinearSVC (LIBLINEAR) on every pair written out, l2={L2}, tol=1e-3, 1 thread",
                lambda: lambda: LiblinearPairs(l2=L2).fit(train),
                lambda model: ndcg(test, model.predict(test)),
                rounds=1,
                warm_up=False,
            ),
        ],
        rounds=ROUNDS,
    )


def _logistic(train: RankingData, test: RankingData) -> Findings:
    return contest(
        "Logistic loss on pairs",
        [
            _ours("ranknet", train, test, "model=linear", model="linear"),
            Contender(
                "XGBoost",
                "xgboost",
                f"gblinear, rank:pairwise, topk 30 pairs, {BOOSTS} rounds, {THREADS} threads",
                lambda: _gblinear(train, test),
                lambda scores: ndcg(test, scores()),
                note="other pairs and a fixed number of rounds: not the same optimum",
            ),
        ],
        rounds=ROUNDS,
    )


def _standardised(train: RankingData, test: RankingData) -> tuple[RankingData, RankingData]:
    mean, deviation = train.X.mean(axis=0), train.X.std(axis=0) + 1e-9
    return tuple(replace(one, X=(one.X - mean) / deviation) for one in (train, test))


def _ours(
    name: str, train: RankingData, test: RankingData, settings: str, **params: Any
) -> Contender:
    return Contender(
        OURS,
        "rankwright",
        f"{name}, {settings}, {THREADS} threads",
        lambda: lambda: ranker(name, n_jobs=THREADS, **params).fit(train),
        lambda model: ndcg(test, model.predict(test)),
    )


def _sklearn_squares(
    train: RankingData, test: RankingData
) -> Callable[[], Callable[[], np.ndarray]]:
    from sklearn.linear_model import LinearRegression
    from threadpoolctl import threadpool_limits

    def fit() -> Callable[[], np.ndarray]:
        with threadpool_limits(THREADS):
            model = LinearRegression().fit(train.X, train.y)
        return lambda: model.predict(test.X)

    return fit


def _gblinear(train: RankingData, test: RankingData) -> Callable[[], Callable[[], np.ndarray]]:
    import xgboost as xgb

    params = {
        "booster": "gblinear",
        "objective": "rank:pairwise",
        "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": 30,
        "nthread": THREADS,
        "verbosity": 0,
    }
    deviation = train.X.std(axis=0) + 1e-9  # coordinate steps want features of one scale; so do we

    def fit() -> Callable[[], np.ndarray]:
        matrix = xgb.DMatrix(
            train.X / deviation, train.y, qid=train.query_of_row(), nthread=THREADS
        )
        booster = xgb.train(params, matrix, BOOSTS)
        return lambda: booster.predict(xgb.DMatrix(test.X / deviation))

    return fit
