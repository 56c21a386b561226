"""Learning from simulated clicks without position bias: NDCG@10 against LightGBM's ``position``.

Clicks come from a position-based user on the official folds: one feature ranks, the first ten
documents are shown 200 times, examination is (1/k)^eta, and an examined document of grade g is
clicked with probability 0.1 + 0.9 (2^g - 1)/3. The random numbers are those of recorded runs of
LightGBM 4.7.0, checked by a checksum of the click counts. No tool is given the propensities.

Ours are three rankers with the same settings everywhere; "clicks as grades" are the same rankers
without a correction. With the good logger of OHSUMED there is little to gain, and the correction
costs LambdaMART and LightGBM quality. ``..._gain_seen`` is the share of logs in which
`rankwright.clicks.debiasing_gain` reports a gain of the linear ranker at eta 1, from the clicks of
the training part only.
"""

from __future__ import annotations

import hashlib
import warnings
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

from rankwright import LambdaMART, Ranker, RankingData, clicks, models
from rankwright.clicks import Propensity
from rankwright.data import letor_folds

from .contest import OURS, Results, Row
from .data_sets import data_folder

FOLDS, SEEDS, WORKERS = 5, 3, 2
SHOWN, SESSIONS = 10, 200
CHECK = (61801, "fb91a5331ecd8fa0")  # clicks of fold 1, seed 0, eta 1 of MQ2008, and their digest
RANKERS: dict[str, Callable[[], Ranker]] = {
    "LambdaMART": lambda: LambdaMART(n_jobs=1),
    "query_offset, trees": lambda: Ranker(loss="query_offset", model=models.Trees(), n_jobs=1),
    "dual_softmax, linear": lambda: Ranker(
        loss="dual_softmax", model=models.Linear(l2=3.0), n_jobs=1
    ),
}
MAIN = "dual_softmax, linear"  # the ranker of debiasing_gain
PEER = "LightGBM, position"


class Log(NamedTuple):
    """A data set, the feature that ranks, and how many seeds debiasing_gain is asked for."""

    folder: str
    feature: int
    gain_seeds: int


SETS = {
    "mq2008": Log("MQ2008", 25, 1),
    "misleading": Log("OHSUMED_LETOR3/QueryLevelNorm", 39, SEEDS),
    "good": Log("OHSUMED_LETOR3/QueryLevelNorm", 45, SEEDS),
}


class FoldRuns(NamedTuple):
    """NDCG@10 of each run of a fold by eta and tool, and whether gains are seen."""

    ndcg: dict[tuple[int, str], list[float]]
    gain_seen: list[bool]


def run() -> Results:
    data_folder()  # raises if there is none
    results = Results()
    tasks = [(name, number) for name in SETS for number in range(1, FOLDS + 1)]
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as workers:
        folds = list(workers.map(runs_of_fold, *zip(*tasks, strict=True)))
    for name in SETS:
        parts = [fold for fold, task in zip(folds, tasks, strict=True) if task[0] == name]
        seen = [seen for part in parts for seen in part.gain_seen]
        results.ratios[f"{name}_gain_seen"] = float(np.mean(seen))
        for eta in (1, 2):
            tools = [tool for key, tool in parts[0].ndcg if key == eta]
            mean = {t: float(np.mean([part.ndcg[eta, t] for part in parts])) for t in tools}
            for tool, value in mean.items():
                shown = tool if tool.startswith("LightGBM") else f"{OURS}, {tool}"
                about = shown, f"mean of {FOLDS * SEEDS} runs", None, value
                measure = "NDCG@10 on the test folds, true grades"
                results.rows.append(Row(f"Clicks of {name}, eta {eta}", *about, measure))
            best = max(mean[ranker] for ranker in RANKERS)
            results.ratios[f"{name}_eta{eta}_minus_lightgbm"] = best - mean[PEER]
    return results


def runs_of_fold(name: str, number: int) -> FoldRuns:
    """Return NDCG@10 of every tool in each run of a fold."""
    log = SETS[name]
    fold = letor_folds(data_folder() / log.folder)[number - 1]
    ndcg: dict[tuple[int, str], list[float]] = defaultdict(list)
    gain_seen = []
    for seed in range(SEEDS):
        for eta in (1, 2):
            rows = anchored_clicks(fold.train, log.feature, number, seed, eta)
            for tool, fit in _tools(rows).items():
                ndcg[eta, tool].append(ndcg_in_file_order(fold.test, fit()(fold.test)))
            if eta == 1 and seed < log.gain_seeds:
                gain = clicks.debiasing_gain(RANKERS[MAIN](), rows, n_jobs=1)
                gain_seen.append(gain.helps)
    return FoldRuns(dict(ndcg), gain_seen)


def _tools(rows: RankingData) -> dict[str, Callable[[], Callable[[RankingData], np.ndarray]]]:
    evenly = Propensity(np.ones(SHOWN))
    tools: dict[str, Callable[[], Any]] = {}
    for name, make in RANKERS.items():
        tools[name] = lambda m=make: m().fit(rows, propensity="joint").predict
        tools[f"{name}, clicks as grades"] = lambda m=make: m().fit(rows, propensity=evenly).predict
    tools[PEER] = lambda: _lightgbm(rows, position=True)
    tools["LightGBM, clicks as grades"] = lambda: _lightgbm(rows, position=False)
    return tools


def anchored_clicks(
    train: RankingData, feature: int, fold: int, seed: int, eta: int
) -> RankingData:
    """Return the clicks of the recorded runs: a row for each document that was shown."""
    rng = np.random.default_rng([seed, fold, eta])
    attraction = 0.1 + 0.9 * (np.exp2(train.y) - 1) / 3
    rows, counts, sizes = [], [], []
    for lo, hi in zip(train.indptr[:-1], train.indptr[1:], strict=True):
        column = np.asarray(train.X[lo:hi, feature - 1], np.float64)
        shown = lo + np.argsort(-column, kind="stable")[:SHOWN]
        examination = (1 / np.arange(1, len(shown) + 1)) ** eta
        draw = rng.random((SESSIONS, len(shown)))
        counts.append((draw < examination * attraction[shown]).sum(axis=0))
        rows.append(shown)
        sizes.append(len(shown))
    row, count = np.concatenate(rows), np.concatenate(counts)
    if (fold, seed, eta, feature) == (1, 0, 1, 25):
        digest = hashlib.sha256(count.astype("<i4").tobytes()).hexdigest()[:16]
        if (int(count.sum()), digest) != CHECK:
            raise ValueError(f"these are not the recorded clicks: {count.sum()}, {digest}")
    return RankingData.from_arrays(
        train.X[row],
        count / SESSIONS,
        group_sizes=sizes,
        sample_weight=np.full(len(row), float(SESSIONS)),
        position=np.concatenate([np.arange(1, size + 1) for size in sizes]),
    )


def ndcg_in_file_order(test: RankingData, scores: np.ndarray) -> float:
    """Return NDCG@10 as in the recorded runs: ties in file order, 0 for empty queries."""
    values = []
    for lo, hi in zip(test.indptr[:-1], test.indptr[1:], strict=True):
        gain = np.exp2(test.y[lo:hi]) - 1
        discount = 1 / np.log2(np.arange(2, min(hi - lo, 10) + 2))
        best = np.sort(gain)[::-1][:10] @ discount
        order = np.argsort(-scores[lo:hi], kind="stable")[:10]
        values.append(gain[order] @ discount / best if best > 0 else 0.0)
    return float(np.mean(values))


def _lightgbm(rows: RankingData, *, position: bool) -> Callable[[RankingData], np.ndarray]:
    """Return LightGBM's predictions with the settings of the recorded runs."""
    import lightgbm

    label = np.round(rows.y * SESSIONS)
    places = rows.position - 1 if position else None
    data = lightgbm.Dataset(rows.X, label, group=rows.sizes, position=places)
    params = {
        "objective": "lambdarank",
        "num_leaves": 15,
        "learning_rate": 0.1,
        "min_data_in_leaf": 20,
        "label_gain": list(range(SESSIONS + 1)),
        "seed": 0,
        "num_threads": 1,
        "verbose": -1,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        booster = lightgbm.train(params, data, num_boost_round=100)
    return lambda test: booster.predict(test.X)
