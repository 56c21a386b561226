"""Choose how relevance is estimated from clicks, on validation parts.

``python tools/choose_debiasing.py`` prints tables and what they choose. Clicks are simulated on the
training parts of the official folds, with seeds that the benchmark (``python -m benchmarks
unbiased``) does not use; what was learned from them is judged by true grades on the validation
parts. Test parts are not looked at. Chosen are ``clip`` of
`rankwright.clicks.debias` and the penalty ``l2`` of the benchmark's linear ranker together, by the
highest mean NDCG@10 over sets, eta 1 and 2, folds, seeds and the three rankers of the benchmark.
With both, penalties of `rankwright.rankers.debiasing.joint_propensity` are compared.

The synthetic set counts in no choice: it is there to see that what is chosen does no harm
elsewhere. Beside each choice is what the validation part of each fold alone would have chosen: the
five validation parts together hold the same queries as the five test parts do, so that only the
choice within a fold is blind to its test part.

About five minutes of one core. ``RANKWRIGHT_DATA`` names the folder of MQ2008 and OHSUMED.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import rankwright as rw
from benchmarks.data_sets import data_folder
from benchmarks.unbiased import SETS, SHOWN, anchored_clicks, ndcg_in_file_order
from rankwright import clicks, models
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import letor_folds
from rankwright.rankers.debiasing import debias, joint_propensity, weighed_by_ideal

CLIPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0)
JOINT_PENALTIES = (1e-3, 1e-2, 1e-1, 1.0)
GUARD = "synthetic, not chosen by"
SYNTHETIC_QUERIES = 300


class Case(NamedTuple):
    """Simulated clicks, and where what is learned from them is judged."""

    name: str
    fold: int
    rows: RankingData
    valid: RankingData


Values = dict[Any, dict[tuple[str, int], list[float]]]
"""NDCG@10 by what is tried, set and fold."""


def cases(seeds: int) -> Iterator[Case]:
    """Yield the clicks of each set, eta, fold and seed."""
    for name, (folder, feature) in SETS.items():
        for number, fold in enumerate(letor_folds(data_folder() / folder), 1):
            assert fold.valid is not None
            for eta in (1, 2):
                for seed in range(100, 100 + seeds):
                    rows = anchored_clicks(fold.train, feature, number, seed, eta)
                    yield Case(f"{name}, eta {eta}", number, rows, fold.valid)
    data = rw.synthetic("mq2008", queries=2 * SYNTHETIC_QUERIES, seed=1)
    train, valid = (
        data.select(np.arange(lo, lo + SYNTHETIC_QUERIES)) for lo in (0, SYNTHETIC_QUERIES)
    )
    for seed in range(100, 100 + seeds):
        rows = clicks.simulate(train, 41, positions=SHOWN, random_state=seed)
        yield Case(GUARD, 1, rows.to_ranking_data("query"), valid)


def trees() -> dict[str, rw.Ranker]:
    """Return the rankers of trees."""
    return {
        "LambdaMART": rw.LambdaMART(n_jobs=1),
        "query_offset, trees": rw.Ranker(loss="query_offset", model=models.Trees(), n_jobs=1),
    }


def linear(l2: float) -> rw.Ranker:
    """Return the linear ranker with a penalty."""
    return rw.Ranker(loss="dual_softmax", model=models.Linear(l2=l2), n_jobs=1)


def reached(ranker: rw.Ranker, data: RankingData, case: Case) -> float:
    """Return NDCG@10 on the validation part."""
    fitted = ranker.fit(weighed_by_ideal(ranker.make_loss(), data))
    return ndcg_in_file_order(case.valid, fitted.predict(case.valid))


Found = dict[Any, float]
"""NDCG@10 of a case, by what is tried."""


def try_clips(case: Case) -> Found:
    """Return values by (clip, ranker), with a ranker for each penalty of the linear one."""
    known, found = joint_propensity(case.rows, n_jobs=1), {}
    for clip in CLIPS:
        data = debias(case.rows, known, clip=clip, n_jobs=1)
        for name, ranker in (trees() | {l2: linear(l2) for l2 in PENALTIES}).items():
            found[clip, name] = reached(ranker, data, case)
    return found


def try_joint(case: Case, clip: float, l2: float) -> Found:
    """Return the mean of all rankers by the penalty of the joint propensity."""
    found = {}
    for penalty in JOINT_PENALTIES:
        known = joint_propensity(case.rows, l2=penalty, n_jobs=1)
        data = debias(case.rows, known, clip=clip, n_jobs=1)
        values = [reached(ranker, data, case) for ranker in (*trees().values(), linear(l2))]
        found[penalty] = float(np.mean(values))
    return found


def collected(every: list[Case], found: Iterable[Found]) -> Values:
    """Return what was found in all cases."""
    values: Values = defaultdict(lambda: defaultdict(list))
    for case, own in zip(every, found, strict=True):
        for tried, value in own.items():
            values[tried][case.name, case.fold].append(value)
    return values


def mean_of(values: Values, tried: list[Any]) -> dict[tuple[str, int], list[float]]:
    """Return the mean over several that were tried, by set and fold."""
    return {
        at: np.mean([values[one][at] for one in tried], axis=0).tolist() for at in values[tried[0]]
    }


def best(tried: Values) -> tuple[Any, list[Any]]:
    """Return what has the highest mean over all sets, and in each fold alone."""

    def highest(kept: Callable[[int], bool]) -> Any:
        means = {
            one: np.mean([np.mean(v) for (set_, k), v in by.items() if set_ != GUARD and kept(k)])
            for one, by in tried.items()
        }
        return max(means, key=lambda one: means[one])

    return highest(lambda _: True), [highest(lambda fold, k=k: fold == k) for k in range(1, 6)]


def print_table(title: str, tried: Values) -> None:
    """Print means by set as a table of Markdown, and what is best."""
    names = list(dict.fromkeys(name for by in tried.values() for name, _ in by))
    print(f"\n| {title} | mean | {' | '.join(names)} |")
    print("|---|" + "---|" * (len(names) + 1))
    for one, by in tried.items():
        means = {
            name: np.mean([x for (set_, _), v in by.items() if set_ == name for x in v])
            for name in names
        }
        counted = np.mean([mean for name, mean in means.items() if name != GUARD])
        print(f"| {one} | {counted:.4f} | {' | '.join(f'{means[n]:.4f}' for n in names)} |")
    chosen, by_fold = best(tried)
    folds = ", ".join(str(one) for one in by_fold)
    print(f"\nbest: {chosen}; in each fold alone: {folds}", flush=True)


def main() -> None:
    """Try all, and print what is chosen."""
    parser = argparse.ArgumentParser(description="Choose how relevance is estimated.")
    parser.add_argument("--seeds", type=int, default=1, help="simulations of each fold")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    given = parser.parse_args()
    every = list(cases(given.seeds))
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as workers:
        values = collected(every, workers.map(try_clips, every))
        both = {
            (clip, l2): mean_of(values, [*((clip, name) for name in trees()), (clip, l2)])
            for clip in CLIPS
            for l2 in PENALTIES
        }
        (clip, l2), by_fold = best(both)
        print(f"chosen: clip {clip:g}, l2 {l2:g}; by each fold alone: {by_fold}")
        print_table(f"clip, l2 {l2:g}, all rankers", {one: both[one, l2] for one in CLIPS})
        for name in trees():
            print_table(f"clip, {name}", {one: values[one, name] for one in CLIPS})
        print_table(f"clip, linear, l2 {l2:g}", {one: values[one, l2] for one in CLIPS})
        print_table(f"l2 of linear, clip {clip:g}", {one: values[clip, one] for one in PENALTIES})
        tried = workers.map(try_joint, every, repeat(clip), repeat(l2))
        print_table("l2 of the joint propensity", collected(every, tried))


if __name__ == "__main__":
    main()
