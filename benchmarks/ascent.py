"""Climbing NDCG@10 itself: Coordinate Ascent against fastrank's in the same run, and RankLib's.

fastrank and we get the ohsumed shape in memory, the same restarts, passes and threads; fastrank
stops at its own tolerance. RankLib 2.18 (``-ranker 4 -metric2t NDCG@10``, its defaults) took 13.5 s
of training on two cores on the first fold of OHSUMED and reached .4710 on the training data; it is
Java, so its figures are recorded and not measured here. Ours is then the least CPU time of three
fits on one thread, compiled before (on an idle machine, the time that a user waits), and its NDCG
is by RankLib's convention too. ``RANKWRIGHT_DATA`` names the folder of OHSUMED.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rankwright import RankingData, evaluate, ranker
from rankwright.data.split import letor_folds

from .contest import Contender, contest, version
from .data_sets import NotHereError, data_folder, ndcg, train_and_test
from .findings import OURS, Findings, Record
from .timing import least
from .trees import THREADS, fastrank_fit

RANKLIB_SECONDS, RANKLIB_NDCG = 13.5, 0.4710
RESTARTS, PASSES, ROUNDS = 5, 25, 3
QUERIES, HELD_OUT = 70, 36
FITS: dict[str, dict[str, Any]] = {
    "exact": {},
    "ranklib_steps": {"steps": "ranklib", "scale": False, "n_restarts": 5},
}


def run() -> Findings:
    found = Findings()
    climbed = found.add(_against_fastrank())
    found.note_figure("exact_vs_fastrank", climbed.ratio("fastrank", OURS))
    try:
        found.add(_against_ranklib())
    except NotHereError as fault:
        found.absent["RankLib"] = str(fault)
    return found


def _against_fastrank() -> Findings:
    train, test = train_and_test("ohsumed", QUERIES, HELD_OUT)
    size = f"{RESTARTS} restarts, at most {PASSES} passes, {THREADS} threads"
    return contest(
        "Coordinate Ascent, ohsumed shape",
        [
            Contender(
                OURS,
                "rankwright",
                f"exact line search, {size}",
                lambda: _ours(train, test),
                lambda scores: ndcg(test, scores()),
            ),
            Contender(
                "fastrank",
                "fastrank",
                f"coordinate_ascent, ndcg@10, {size}",
                lambda: _fastrank(train, test),
                lambda scores: ndcg(test, scores()),
                rounds=1,
                warm_up=False,
            ),
        ],
        rounds=ROUNDS,
    )


def _ours(train: RankingData, test: RankingData) -> Callable[[], Callable[[], np.ndarray]]:
    params = {"n_restarts": RESTARTS, "n_passes": PASSES, "n_jobs": THREADS}

    def fit() -> Callable[[], np.ndarray]:
        made = ranker("coordinate_ascent", **params).fit(train)
        return lambda: made.predict(test)

    return fit


def _fastrank(train: RankingData, test: RankingData) -> Callable[[], Callable[[], np.ndarray]]:
    from fastrank import TrainRequest

    request = TrainRequest.coordinate_ascent()
    request.measure = "ndcg@10"
    request.params.num_restarts, request.params.num_max_iterations = RESTARTS, PASSES
    request.params.seed, request.params.quiet = 0, True
    return fastrank_fit(train, test, request)


def _against_ranklib() -> Findings:
    folder = data_folder() / "OHSUMED_LETOR3" / "QueryLevelNorm"
    train = next(iter(letor_folds(folder))).train
    task, measure = "Coordinate Ascent, OHSUMED fold 1", "NDCG@10 on train, RankLib's convention"
    recorded = "recorded, its defaults, two cores"
    found = Findings()
    peer = Record(task, "RankLib", "2.18", recorded, RANKLIB_SECONDS, RANKLIB_NDCG, measure)
    for name, own in FITS.items():
        made = ranker("coordinate_ascent", convention="ranklib", n_jobs=1, **own)
        seconds = least({"": lambda m=made: m.fit(train)}, ROUNDS, clock=time.process_time)[""]
        reached = evaluate(train, made.predict(train), "ndcg@10", convention="ranklib")["ndcg@10"]
        found.figures[f"{name}_vs_ranklib"] = RANKLIB_SECONDS / seconds
        found.figures[f"{name}_ndcg10_minus_ranklib"] = reached - RANKLIB_NDCG
        who, steps = (OURS, "exact line search") if name == "exact" else (
            f"{OURS}, RankLib's steps", "steps=ranklib, 5 restarts")  # fmt: skip
        found.records.append(
            Record(
                task, who, version("rankwright"), f"{steps}, 1 thread", seconds, reached, measure
            )
        )
    found.records.append(peer)
    return found
