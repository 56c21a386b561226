"""Ranking quality without tuning: every tool at its defaults on public sets of five folds.

Boosted trees may grow 500 trees and stop early on the validation part (peers after 50 rounds
without an improvement). NDCG@10 of the test parts by the standard convention. Our best tree ranker
is chosen by the validation parts, the best peer by the test parts. Intervals are of the mean
difference per query (95 %, bootstrap over queries).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import rankwright as rw
from rankwright.data import Fold, letor_folds
from rankwright.errors import RankwrightError
from rankwright.metrics.significance import bootstrap_interval

from .contest import OURS, Results, Row
from .data_sets import LETOR_SETS, data_folder

TREES, PATIENCE = 500, 50
TREE_RANKERS = ("lambdamart", "xendcg", "gbdt", "gbrank", "intervalrank")
OTHERS = ("random_forest", "memr", "ranknet", "coordinate_ascent")
METRIC = "ndcg@10"
Scores = tuple[np.ndarray, np.ndarray]
"""The scores of a fitted ranker on the validation and on the test part."""


@dataclass
class Quality:
    """The metric of each query of one tool on one set, and the seconds of all fits."""

    valid: list[np.ndarray] = field(default_factory=list)
    test: list[np.ndarray] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def mean(self) -> float:
        """Return the mean over the queries of the test parts."""
        return float(np.mean(np.concatenate(self.test)))


def run() -> Results:
    results = Results()
    for name in LETOR_SETS:
        print(f"  {name}", flush=True)
        results.add(_compare(name))
    return results


def _compare(name: str) -> Results:
    results, measured = Results(), dict[str, Quality]()
    for tool, fit in TOOLS.items():
        try:
            measured[tool] = _measure(fit, letor_folds(data_folder() / name))
        except RankwrightError as error:  # such as missing values for a linear model
            results.absent[f"{tool} on {name}"] = str(error)
            continue
        except Exception as error:
            results.add_failure(tool, error)
            continue
        print(f"    {tool} {measured[tool].mean:.4f}", flush=True)
        settings = f"{TREES} trees, early stopping" if tool in TREE_TOOLS else "defaults"
        about = tool, settings, measured[tool].seconds, measured[tool].mean
        results.rows.append(Row(name, *about))
    peers = [tool for tool in measured if not tool.startswith(OURS)]
    trees = [tool for tool in measured if tool in TREE_TOOLS and tool not in peers]
    if peers and trees:
        best = measured[max(peers, key=lambda tool: measured[tool].mean)]
        chosen = max(trees, key=lambda tool: np.mean(np.concatenate(measured[tool].valid)))
        key = name.lower().replace("/", "_").replace("-", "_")
        for what, tool in (("tree", chosen), ("auto", f"{OURS}, auto")):
            if tool not in measured:
                continue
            difference = np.concatenate(measured[tool].test) - np.concatenate(best.test)
            lead = bootstrap_interval(difference)
            results.ratios[f"{key}_{what}_less_best_peer"] = lead.mean
            results.ratios[f"{key}_{what}_less_best_peer_upper"] = lead.high
    return results


def _measure(fit: Callable[[Fold], Scores], folds: Any) -> Quality:
    quality = Quality()
    for fold in folds:
        start = time.perf_counter()
        valid, test = fit(fold)
        quality.seconds += time.perf_counter() - start
        quality.valid.append(rw.evaluate(fold.valid, valid, METRIC).per_query[METRIC])
        quality.test.append(rw.evaluate(fold.test, test, METRIC).per_query[METRIC])
    return quality


# --- the tools -----------------------------------------------------------------------------------


def _ours(name: str, **settings: Any) -> Callable[[Fold], Scores]:
    def fit(fold: Fold) -> Scores:
        model = rw.ranker(name, **settings).fit(fold.train, eval_set=fold.valid)
        return model.predict(fold.valid), model.predict(fold.test)

    return fit


def _auto(fold: Fold) -> Scores:
    model = rw.auto(fold.train, eval_set=fold.valid).ranker
    return model.predict(fold.valid), model.predict(fold.test)


def _lightgbm(objective: str) -> Callable[[Fold], Scores]:
    def fit(fold: Fold) -> Scores:
        import lightgbm

        model = lightgbm.LGBMRanker(objective=objective, n_estimators=TREES, verbosity=-1)
        model.fit(
            fold.train.X,
            fold.train.y,
            group=fold.train.sizes,
            eval_X=(fold.valid.X,),
            eval_y=(fold.valid.y,),
            eval_group=[fold.valid.sizes],
            eval_at=[10],
            callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
        )
        return model.predict(fold.valid.X), model.predict(fold.test.X)

    return fit


def _xgboost(fold: Fold) -> Scores:
    import xgboost

    model = xgboost.XGBRanker(
        objective="rank:ndcg",
        n_estimators=TREES,
        early_stopping_rounds=PATIENCE,
        eval_metric="ndcg@10",
    )
    model.fit(
        fold.train.X,
        fold.train.y,
        qid=fold.train.query_of_row(),
        eval_set=[(fold.valid.X, fold.valid.y)],
        eval_qid=[fold.valid.query_of_row()],
        verbose=False,
    )
    return model.predict(fold.valid.X), model.predict(fold.test.X)


def _catboost(loss: str) -> Callable[[Fold], Scores]:
    def fit(fold: Fold) -> Scores:
        import catboost

        train, valid = (
            catboost.Pool(part.X, part.y, group_id=part.query_of_row())
            for part in (fold.train, fold.valid)
        )
        model = catboost.CatBoostRanker(
            loss_function=loss,
            iterations=TREES,
            eval_metric="NDCG:top=10;type=Exp",
            early_stopping_rounds=PATIENCE,
            verbose=0,
            allow_writing_files=False,
        )
        model.fit(train, eval_set=valid)
        return model.predict(fold.valid.X), model.predict(fold.test.X)

    return fit


TREE_TOOLS: dict[str, Callable[[Fold], Scores]] = {
    "LightGBM, lambdarank": _lightgbm("lambdarank"),
    "LightGBM, xendcg": _lightgbm("rank_xendcg"),
    "XGBoost, rank:ndcg": _xgboost,
    "CatBoost, YetiRank": _catboost("YetiRank"),
    "CatBoost, QueryRMSE": _catboost("QueryRMSE"),
    **{f"{OURS}, {name}": _ours(name, n_estimators=TREES) for name in TREE_RANKERS},
}
TOOLS = {
    **TREE_TOOLS,
    **{f"{OURS}, {name}": _ours(name) for name in OTHERS},
    f"{OURS}, auto": _auto,
}
