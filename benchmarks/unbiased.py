"""Learning from simulated clicks without position bias: NDCG@10 against LightGBM's ``position``.

Clicks come from a position-based user on the official folds: one feature ranks, the first ten
documents are shown 200 times, examination is (1/k)^eta, and a document of grade g is clicked, when
looked at, with 0.1 + 0.9 (2^g - 1)/3. Random numbers are those of the recorded runs of LightGBM
4.7.0 and XGBoost 3.2.0, of whose click counts a checksum is compared. No contender is given the
propensities. LightGBM runs here too, with its recorded settings; XGBoost's numbers (unbiased
LambdaRank) are recorded. Cascade and trust bias come from `rankwright.clicks.simulate`.

Ours are three rankers with the same settings everywhere. LambdaMART and the regression by trees are
at their defaults. The penalty of the linear ranker and the default of `rankwright.clicks.debias`
(doubly robust, clipped at 0.05) were chosen by ``tools/choose_debiasing.py``: clicks of other seeds
on the training parts, judged on the validation parts. "Clicks as grades" are the same rankers with
all positions taken to be looked at alike.

With a good logger on OHSUMED there is little to gain, and correction costs LambdaMART and LightGBM
more than it brings. ``..._gain_seen`` is the share of logs in which
`rankwright.clicks.debiasing_gain`, which sees clicks of the training part alone, reports a gain for
the linear ranker at eta 1: of all folds and seeds of OHSUMED, and of the first seed of MQ2008.

``RANKWRIGHT_BENCH_FOLDS`` and ``RANKWRIGHT_BENCH_SEEDS`` say how many of the five folds and three
seeds are run, ``RANKWRIGHT_BENCH_WORKERS`` in how many processes (2). ``RANKWRIGHT_DATA`` names the
folder of MQ2008 and OHSUMED.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from rankwright import LambdaMART, Ranker, RankingData, clicks, models
from rankwright.clicks import Propensity
from rankwright.data.split import Fold, letor_folds

from .contest import version
from .data_sets import data_folder
from .findings import OURS, Findings, Record

FOLDS = int(os.environ.get("RANKWRIGHT_BENCH_FOLDS", "5"))
SEEDS = int(os.environ.get("RANKWRIGHT_BENCH_SEEDS", "3"))
WORKERS = int(os.environ.get("RANKWRIGHT_BENCH_WORKERS", "2"))
SHOWN, SESSIONS = 10, 200
L2 = 3.0  # of the linear ranker
CHECK = (61801, "fb91a5331ecd8fa0")  # clicks of fold 1, seed 0, eta 1 of MQ2008, and their digest
SETS = {
    "MQ2008": ("MQ2008", 25),
    "OHSUMED, misleading logger": ("OHSUMED_LETOR3/QueryLevelNorm", 39),
    "OHSUMED, good logger": ("OHSUMED_LETOR3/QueryLevelNorm", 45),
}
KEYS = {
    "MQ2008": "mq2008",
    "OHSUMED, misleading logger": "misleading",
    "OHSUMED, good logger": "good",
}
GAIN_SEEDS = {"MQ2008": 1, "OHSUMED, misleading logger": SEEDS, "OHSUMED, good logger": SEEDS}
RECORDED = {  # XGBoost 3.2.0, unbiased LambdaRank on 50 of the 200 sessions
    ("MQ2008", "eta 1"): 0.47045,
    ("MQ2008", "eta 2"): 0.43612,
    ("OHSUMED, good logger", "eta 1"): 0.39625,
    ("OHSUMED, good logger", "eta 2"): 0.39362,
}
RANKERS: dict[str, Callable[[], Ranker]] = {
    "LambdaMART": lambda: LambdaMART(n_jobs=1),
    "query_offset, trees": lambda: Ranker(loss="query_offset", model=models.Trees(), n_jobs=1),
    "dual_softmax, linear": lambda: Ranker(
        loss="dual_softmax", model=models.Linear(l2=L2), n_jobs=1
    ),
}
MAIN = "dual_softmax, linear"  # which is compared with others
MEASURE = "NDCG@10 on the test folds, true grades"

Runs = dict[str, list[float]]
"""NDCG@10 of each run, by contender."""


class FoldRuns(NamedTuple):
    """What a fold gave: runs by users (eta or click model), and whether a gain is seen."""

    runs: dict[str, Runs]
    gain_seen: list[bool]


def run() -> Findings:
    found = Findings()
    tasks = [(name, number) for name in SETS for number in range(1, FOLDS + 1)]
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as workers:
        folds = dict(zip(tasks, workers.map(runs_of_fold, *zip(*tasks, strict=True)), strict=True))
    for name in SETS:
        own = [folds[name, number] for number in range(1, FOLDS + 1)]
        for users in own[0].runs:
            whos = own[0].runs[users]
            joined = {who: [v for fold in own for v in fold.runs[users][who]] for who in whos}
            _note(found, name, users, joined)
        found.figures[f"{KEYS[name]}_gain_seen"] = float(
            np.mean([seen for fold in own for seen in fold.gain_seen])
        )
    return found


def runs_of_fold(name: str, number: int) -> FoldRuns:
    """Return NDCG@10 of every contender in each run of a fold."""
    folder, feature = SETS[name]
    fold = next(islice(letor_folds(data_folder() / folder), number - 1, None))
    runs: dict[str, Runs] = defaultdict(lambda: defaultdict(list))
    gain_seen = []
    for seed in range(SEEDS):
        for eta in (1, 2):
            rows = anchored_clicks(fold.train, feature, number, seed, eta)
            _add_runs(runs[f"eta {eta}"], fold, rows, peers=True)
            if eta == 1 and seed < GAIN_SEEDS[name]:
                gain = clicks.debiasing_gain(RANKERS[MAIN](), rows, n_jobs=1)
                gain_seen.append(gain.helps)
        for model in ("cascade", "trust") if name == "MQ2008" else ():
            log = clicks.simulate(
                fold.train,
                feature,
                model=model,
                sessions=SESSIONS,
                positions=SHOWN,
                random_state=1000 * number + seed,
            )
            _add_runs(runs[model], fold, log.to_ranking_data("query"), peers=False)
    return FoldRuns({users: dict(own) for users, own in runs.items()}, gain_seen)


def _add_runs(runs: Runs, fold: Fold, rows: RankingData, *, peers: bool) -> None:
    for name, fit in _contenders(rows, peers):
        runs[name].append(ndcg_in_file_order(fold.test, fit()(fold.test)))


def _contenders(rows: RankingData, peers: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    evenly = Propensity(np.ones(SHOWN))  # clicks as grades
    for name, made in RANKERS.items():
        yield (
            f"{name}, clicks as grades",
            lambda m=made: m().fit(rows, propensity=evenly).predict,
        )
        yield name, lambda m=made: m().fit(rows, propensity="joint").predict
    if peers:
        yield "LightGBM position", lambda: _lightgbm(rows, position=True)
        yield "LightGBM, clicks as grades", lambda: _lightgbm(rows, position=False)


def _note(found: Findings, name: str, users: str, runs: Runs) -> None:
    """Keep the mean of each contender, and the figures that have floors."""
    task, mean = f"{name}, {users}", {who: float(np.mean(values)) for who, values in runs.items()}
    n = len(next(iter(runs.values())))
    for who, value in mean.items():
        peer = who if who.startswith("LightGBM") else OURS if who == MAIN else f"{OURS}, {who}"
        package = "lightgbm" if who.startswith("LightGBM") else "rankwright"
        note = ""
        if who in RANKERS:
            gain = np.array(runs[who]) - np.array(runs[f"{who}, clicks as grades"])
            note = f"{gain.mean():+.4f} over clicks as grades{_interval(gain)}"
        settings = (
            f"{who}, propensity='joint', mean of {n} runs"
            if who in RANKERS
            else f"mean of {n} runs"
        )
        found.records.append(
            Record(task, peer, version(package), settings, None, value, MEASURE, note=note)
        )
    if (name, users) in RECORDED:
        xgboost = RECORDED[name, users]
        found.records.append(
            Record(task, "XGBoost unbiased", "3.2.0", "recorded", None, xgboost, MEASURE)
        )
    key, best = f"{KEYS[name]}_{users.replace(' ', '')}", max(mean[who] for who in RANKERS)
    found.figures[f"{key}_ndcg10"] = best
    gains = [mean[who] - mean[f"{who}, clicks as grades"] for who in RANKERS]
    found.figures[f"{key}_least_gain"] = min(gains)
    if "LightGBM position" in mean:
        found.figures[f"{key}_minus_lightgbm"] = best - mean["LightGBM position"]
        alone = mean["LambdaMART"] - mean["LightGBM position"]
        found.figures[f"{key}_lambdamart_minus_lightgbm"] = alone


def _interval(gain: np.ndarray) -> str:
    """Return half a 95 % interval of the mean over folds, as text; runs of a fold count as one."""
    folds = gain.reshape(-1, SEEDS).mean(axis=1)
    if len(folds) < 2:
        return ""
    half = stats.t.ppf(0.975, len(folds) - 1) * folds.std(ddof=1) / np.sqrt(len(folds))
    return f" ± {half:.4f}"


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
    """Return NDCG@10 as the recorded runs have it: ties in file order, empty queries 0."""
    found = []
    for lo, hi in zip(test.indptr[:-1], test.indptr[1:], strict=True):
        gain = np.exp2(test.y[lo:hi]) - 1
        discount = 1 / np.log2(np.arange(2, min(hi - lo, 10) + 2))
        best = np.sort(gain)[::-1][:10] @ discount
        order = np.argsort(-scores[lo:hi], kind="stable")[:10]
        found.append(gain[order] @ discount / best if best > 0 else 0.0)
    return float(np.mean(found))


def _lightgbm(rows: RankingData, *, position: bool) -> Callable[[RankingData], np.ndarray]:
    """Return LightGBM's predictions with the settings of the recorded runs."""
    import lightgbm

    label = np.round(rows.y * SESSIONS)
    data = lightgbm.Dataset(
        rows.X, label, group=rows.sizes, position=rows.position - 1 if position else None
    )
    params = {
        "objective": "lambdarank", "num_leaves": 15, "learning_rate": 0.1, "min_data_in_leaf": 20,
        "label_gain": list(range(SESSIONS + 1)), "seed": 0, "num_threads": 1, "verbose": -1,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        booster = lightgbm.train(params, data, num_boost_round=100)
    return lambda test: booster.predict(test.X)
