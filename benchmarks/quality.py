"""The quality of rankings without tuning: every tool at its defaults, public sets, five folds.

Boosted trees, ours and the peers', may grow 500 and stop early on the validation part, the peers
after 50 rounds without a better value; all else is what each tool does when nothing is said.
NDCG@10 of the test parts by the standard convention, ties averaged. Our best tree ranker is chosen
by the validation parts, the best peer by the test parts; intervals are of the mean difference by
query (95 %, by resampling queries). Nothing else is chosen here, and no default was chosen on these
test parts.

``make bench AREA=quality QUALITY_DATA=DIR`` takes other sets: a folder of LETOR folds (Fold1,
Fold2, ... or S1.txt, S2.txt, ...), or a folder of such folders.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import rankwright as rw
from rankwright.data import letor_folds
from rankwright.errors import RankwrightError
from rankwright.metrics.significance import Interval, bootstrap_interval

from .contest import is_installed, reason, version
from .data_sets import data_folder
from .findings import OURS, Findings, Record

SETS = ("OHSUMED_LETOR3/QueryLevelNorm", "OHSUMED_LETOR3/Feature-null", "MQ2008")
TREES, PATIENCE = 500, 50
TREE_RANKERS = ("lambdamart", "xendcg", "gbdt", "gbrank", "intervalrank")
OTHERS = ("random_forest", "memr", "ranknet", "coordinate_ascent")
METRIC = "ndcg@10"


class Scored(NamedTuple):
    """The scores of a fitted ranker on the validation and on the test part."""

    valid: np.ndarray
    test: np.ndarray


@dataclass
class Result:
    """One tool on one set: the metric of each query, fold after fold, and seconds of all fits."""

    peer: str
    package: str
    settings: str
    valid: list[np.ndarray] = field(default_factory=list)
    test: list[np.ndarray] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def mean(self) -> float:
        """Mean over the queries of the test parts."""
        return float(np.mean(np.concatenate(self.test)))

    @property
    def valid_mean(self) -> float:
        """Mean over the queries of the validation parts."""
        return float(np.mean(np.concatenate(self.valid)))

    def lead(self, other: Result) -> Interval:
        """Return the mean difference to another tool, query by query, with its interval."""
        return bootstrap_interval(np.concatenate(self.test) - np.concatenate(other.test))


def run() -> Findings:
    found = Findings()
    for name, folder in _sets().items():
        print(f"  {name}", flush=True)
        results = [one for one in (_measure(each, folder, found) for each in _contenders()) if one]
        _compare(name, results, found)
    if os.environ.get("QUALITY_DATA"):
        found.absent["the public sets"] = "QUALITY_DATA names others"
    return found


def _sets() -> dict[str, Path]:
    """Return the folders of the sets by name."""
    named = os.environ.get("QUALITY_DATA")
    if not named:
        return {one.replace("/", " "): data_folder() / one for one in SETS}
    root = Path(named)
    if any(root.glob("Fold*")) or any(root.glob("S1.*")):
        return {root.name: root}
    return {one.name: one for one in sorted(root.iterdir()) if one.is_dir()}


def _measure(contender: Contender, folder: Path, found: Findings) -> Result | None:
    """Fit to each fold and judge; None where it is not installed or cannot take the data."""
    result = Result(contender.peer, contender.package, contender.settings)
    if not is_installed(contender.package):
        found.absent[contender.peer] = f"{contender.package} is not installed"
        return None
    for fold in letor_folds(folder):
        began = time.perf_counter()
        try:
            scored = contender.fit(fold)
        except RankwrightError as refusal:  # such as missing values for a linear model
            found.absent[f"{contender.peer} on {folder.name}"] = str(refusal)
            return None
        except Exception as fault:
            found.failed[f"{contender.peer} on {folder.name}"] = reason(fault)
            return None
        result.seconds += time.perf_counter() - began
        result.valid.append(_per_query(fold.valid, scored.valid))
        result.test.append(_per_query(fold.test, scored.test))
    print(f"    {result.peer} {result.mean:.4f}, {result.seconds:.0f} s", flush=True)
    return result


def _per_query(data: rw.RankingData, scores: np.ndarray) -> np.ndarray:
    return rw.evaluate(data, scores, METRIC).per_query[METRIC]


def _compare(name: str, results: list[Result], found: Findings) -> None:
    """Note every result, and the two figures with floors."""
    peers = [one for one in results if one.package != "rankwright"]
    best = max(peers, key=lambda one: one.mean, default=None)
    for one in results:
        note = ""
        if best is not None and one is not best:
            lead = one.lead(best)
            note = f"{lead.mean:+.4f} [{lead.low:+.4f}, {lead.high:+.4f}] against {best.peer}"
        about = (one.peer, version(one.package), one.settings, one.seconds, one.mean)
        found.records.append(Record(name, *about, note=note))
    trees = [one for one in results if one.peer.removeprefix(f"{OURS}, ") in TREE_RANKERS]
    auto = [one for one in results if one.peer == f"{OURS}, auto"]
    called = name.lower().replace(" ", "_").replace("-", "_")
    for what, own in (("tree", trees), ("auto", auto)):
        if best is None or not own:
            continue
        chosen = max(own, key=lambda one: one.valid_mean)
        lead = chosen.lead(best)
        found.figures[f"{called}_{what}_less_best_peer"] = lead.mean
        found.figures[f"{called}_{what}_less_best_peer_upper"] = lead.high


# --- the tools -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contender:
    """A tool at its defaults: ``fit`` takes a fold and returns scores."""

    peer: str
    package: str
    settings: str
    fit: Callable[[Any], Scored]


def _contenders() -> list[Contender]:
    early = f"{TREES} trees, early stopping {PATIENCE}"
    return [
        Contender("LightGBM, lambdarank", "lightgbm", early, _lightgbm("lambdarank")),
        Contender("LightGBM, xendcg", "lightgbm", early, _lightgbm("rank_xendcg")),
        Contender("XGBoost, rank:ndcg", "xgboost", early, _xgboost),
        Contender("CatBoost, YetiRank", "catboost", early, _catboost("YetiRank")),
        Contender("CatBoost, QueryRMSE", "catboost", early, _catboost("QueryRMSE")),
        *(_ours(name, n_estimators=TREES) for name in TREE_RANKERS),
        *(_ours(name) for name in OTHERS),
        Contender(f"{OURS}, auto", "rankwright", "defaults", _auto),
    ]


def _ours(name: str, **settings: Any) -> Contender:
    def fit(fold: Any) -> Scored:
        made = rw.ranker(name, **settings).fit(fold.train, eval_set=fold.valid)
        return Scored(made.predict(fold.valid), made.predict(fold.test))

    words = ", ".join(f"{key}={value}" for key, value in settings.items()) or "defaults"
    return Contender(f"{OURS}, {name}", "rankwright", words, fit)


def _auto(fold: Any) -> Scored:
    chosen = rw.auto(fold.train, eval_set=fold.valid).ranker
    return Scored(chosen.predict(fold.valid), chosen.predict(fold.test))


def _lightgbm(objective: str) -> Callable[[Any], Scored]:
    def fit(fold: Any) -> Scored:
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
        return Scored(model.predict(fold.valid.X), model.predict(fold.test.X))

    return fit


def _xgboost(fold: Any) -> Scored:
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
    return Scored(model.predict(fold.valid.X), model.predict(fold.test.X))


def _catboost(loss: str) -> Callable[[Any], Scored]:
    def fit(fold: Any) -> Scored:
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
        return Scored(model.predict(fold.valid.X), model.predict(fold.test.X))

    return fit
