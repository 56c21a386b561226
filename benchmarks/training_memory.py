"""Peak memory of training on the same features: trees and linear models, each in its own process.

A process holds the features (float32, mslr10k shape), trains a tiny model so that the tool is
loaded, and then the real one; what counts is the most that training adds to the features, with the
tool's own copies and bins. Settings are those of the areas trees and linear.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright import RankingData, ranker, synthetic

from . import trees
from .contest import is_installed, reason, version
from .findings import OURS, Findings, Record
from .timing import apart, memory_in_use, peak_memory, seconds_of

QUERIES, CATBOOST_TREES = 2000, 10
BOOSTING, SQUARES = "Memory of LambdaMART", "Memory of least squares"


@dataclass(frozen=True)
class Trained:
    """A tool, its settings, and what makes the call that trains."""

    task: str
    peer: str
    package: str
    settings: str
    fit: Callable[[RankingData], Callable[[], Any]]


def run() -> Findings:
    found = Findings()
    for name, one in CONTENDERS.items():
        try:
            seconds, added, features = apart(_measure, name, QUERIES)
        except Exception as fault:
            if isinstance(fault, ImportError) and not is_installed(one.package):
                found.absent[one.peer] = f"{one.package} is not installed"
            else:
                found.failed[one.peer] = reason(fault)
            continue
        note = f"features take {features / 2**20:.0f} MB"
        found.records.append(
            Record(
                one.task, one.peer, version(one.package), one.settings, seconds,
                peak_megabytes=added / 2**20, note=note,
            )
        )  # fmt: skip
        found.figures[f"{name}_vs_features"] = added / features
    if {"ours_vs_features", "lightgbm_vs_features"} <= found.figures.keys():
        ours, lightgbm = (found.figures[f"{name}_vs_features"] for name in ("ours", "lightgbm"))
        found.figures["lambdamart_vs_lightgbm"] = ours / lightgbm
    return found


def _measure(name: str, queries: int) -> tuple[float, int, int]:
    """Return seconds, bytes that training adds, and bytes of the features."""
    data = synthetic("mslr10k", queries=queries)
    fit = CONTENDERS[name].fit
    fit(data.select(np.arange(20)))()  # loads and compiles
    call = fit(data)
    before = memory_in_use()
    seconds = seconds_of(call)
    return seconds, peak_memory() - before, data.X.nbytes


def _sklearn_squares(data: RankingData) -> Callable[[], Any]:
    from sklearn.linear_model import LinearRegression

    return lambda: LinearRegression().fit(data.X, data.y)


CONTENDERS = {
    "ours": Trained(
        BOOSTING,
        OURS,
        "rankwright",
        f"lambdamart, {trees.SETTINGS}",
        lambda data: trees.ours("lambdamart", data),
    ),
    "lightgbm": Trained(
        BOOSTING,
        "LightGBM",
        "lightgbm",
        f"lambdarank, {trees.SETTINGS}",
        lambda data: trees.lightgbm("lambdarank", data),
    ),
    "xgboost": Trained(
        BOOSTING,
        "XGBoost",
        "xgboost",
        f"rank:ndcg, hist, QuantileDMatrix, {trees.SETTINGS}",
        lambda data: trees.xgboost("rank:ndcg", data, lambdarank_num_pair_per_sample=30),
    ),
    "catboost": Trained(
        BOOSTING,
        "CatBoost",
        "catboost",
        f"LambdaMart, {trees.SETTINGS}, but {CATBOOST_TREES} trees: more add no memory",
        lambda data: trees.catboost("LambdaMart", data, n_estimators=CATBOOST_TREES),
    ),
    "sklearn": Trained(
        BOOSTING,
        "scikit-learn",
        "scikit-learn",
        f"HistGradientBoostingRegressor on grades, {trees.SETTINGS}",
        trees.histogram_trees,
    ),
    "least_squares_ours": Trained(
        SQUARES,
        OURS,
        "rankwright",
        "linear_regression, l2=0",
        lambda data: lambda: ranker("linear_regression", l2=0.0).fit(data),
    ),
    "least_squares_sklearn": Trained(
        SQUARES, "scikit-learn", "scikit-learn", "LinearRegression", _sklearn_squares
    ),
}
