"""Learning from click logs that resemble production: corrected clicks against clicks as grades.

Twelve designs vary the data, the user (examination (1/k)^eta, or users who read from the top), the
old ranker (good or poor, one fixed list or sampled lists) and the number of sessions per query
(5 to 500, the same for all queries or skewed). The designs were written down before the estimate
was changed. Each is simulated with five seeds. Six losses, one of each family, learn with linear
models and trees from clicks as grades, ``fit(log)``, and from ``fit(log, propensity="joint")``; a
cell is the mean difference of NDCG@10 by true grades. Cells with a mean below -0.01 are run again
with 20 seeds. The LETOR sets are trained on the training parts and judged on the validation parts
of their folds; hybrid search is synthetic. Nothing reads a test part.
"""

from __future__ import annotations

import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from itertools import product
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
from scipy import stats

from rankwright import Ranker, RankingData, clicks
from rankwright.clicks import ClickLog
from rankwright.data import letor_folds

from .contest import OURS, Results, Row
from .data_sets import data_folder, ndcg

LOSSES = ("squared", "ranknet", "lambdarank", "listnet", "xendcg", "approx_ndcg")
MODELS = ("linear", "trees")
SEEDS, MORE_SEEDS, WORKERS, FOLDS = 5, 20, 2, 5
HARM = -0.01
FOLDERS = {"mq2008": "MQ2008", "ohsumed": "OHSUMED_LETOR3/QueryLevelNorm"}


class Design(NamedTuple):
    """A log: who ranked what for whom, and how often."""

    data: str
    logger: int | str
    eta: float
    sessions: int
    temperature: float = 0.0
    skewed: bool = False
    user: str = "pbm"


DESIGNS = {
    "hybrid, sampled": Design("hybrid", "bm25", 0.9, 50, 0.5),
    "hybrid, sampled, skewed": Design("hybrid", "bm25", 0.9, 500, 0.5, skewed=True),
    "hybrid, fixed, strong": Design("hybrid", "bm25", 2.0, 200),
    "hybrid, poor logger, few": Design("hybrid", "age", 0.9, 20, 1.0),
    "hybrid, sampled, reads from the top": Design(
        "hybrid", "bm25", 1.0, 500, 0.5, skewed=True, user="dbn"
    ),
    "mq2008, fixed, few": Design("mq2008", 25, 1.0, 5),
    "mq2008, sampled, strong": Design("mq2008", 25, 2.0, 50, 0.5),
    "mq2008, fixed, no bias": Design("mq2008", 25, 0.0, 100),
    "mq2008, sampled, weak, skewed": Design("mq2008", 25, 0.5, 500, 0.5, skewed=True),
    "ohsumed, fixed, good logger": Design("ohsumed", 45, 1.0, 50),
    "ohsumed, poor logger, strong": Design("ohsumed", 39, 2.0, 200, 0.5),
    "ohsumed, sampled, few": Design("ohsumed", 45, 1.0, 5, 1.0),
}
STRONG = tuple(name for name in DESIGNS if "strong" in name)
Cell = tuple[str, str, str]  # design, loss, model


def run() -> Results:
    data_folder()  # raises if there is none
    cells = list(product(DESIGNS, LOSSES, MODELS))
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as workers:
        differences = _differences(workers, cells, range(SEEDS))
        low = [cell for cell in cells if differences[cell].mean() < HARM]
        more = _differences(workers, low, range(SEEDS, MORE_SEEDS)) if low else {}
    for cell in low:
        differences[cell] = np.append(differences[cell], more[cell])
    results = Results()
    for design in DESIGNS:
        for model in MODELS:
            values = [differences[design, loss, model].mean() for loss in LOSSES]
            settings = ", ".join(f"{a} {b:+.3f}" for a, b in zip(LOSSES, values, strict=True))
            task, tool = f"Clicks, {design}", f"{OURS}, {model}"
            measure = "NDCG@10 of corrected clicks minus clicks as grades, mean over losses"
            results.rows.append(Row(task, tool, settings, None, float(np.mean(values)), measure))
    means = {cell: float(values.mean()) for cell, values in differences.items()}
    results.ratios["worst_cell"] = min(means.values())
    results.ratios["harmed_cells"] = float(sum(_harmed(differences[cell]) for cell in cells))
    results.ratios["strong_bias_worst_cell"] = min(
        value for (design, _, _), value in means.items() if design in STRONG
    )
    return results


def _harmed(differences: np.ndarray) -> bool:
    """Return whether the 95 % interval of the mean lies below -0.01."""
    half = stats.t.ppf(0.975, len(differences) - 1) * stats.sem(differences)
    return bool(differences.mean() + half < HARM)


def _differences(
    workers: ProcessPoolExecutor, cells: list[Cell], seeds: range
) -> dict[Cell, np.ndarray]:
    """Return the differences of each cell, one for each seed."""
    names = list(dict.fromkeys(design for design, _, _ in cells))
    tasks = [(name, seed) for name in names for seed in seeds]
    losses = [[cell[1:] for cell in cells if cell[0] == name] for name, _ in tasks]
    values = dict(zip(tasks, workers.map(_differences_of_log, tasks, losses), strict=True))
    return {
        (design, loss, model): np.array([values[design, seed][loss, model] for seed in seeds])
        for design, loss, model in cells
    }


def _differences_of_log(
    task: tuple[str, int], rankers: list[tuple[str, str]]
) -> dict[tuple[str, str], float]:
    name, seed = task
    train, judged = train_and_judged(DESIGNS[name].data, seed)
    log = simulated_log(DESIGNS[name], train, seed)
    differences = {}
    for loss, model in rankers:
        values = []
        for propensity in (None, "joint"):
            ranker = Ranker(loss=loss, model=model, n_jobs=1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # fit(log) warns that positions are not corrected
                ranker.fit(log, propensity=propensity)
            values.append(ndcg(judged, ranker.predict(judged)))
        differences[loss, model] = values[1] - values[0]
    return differences


def simulated_log(design: Design, train: RankingData, seed: int) -> ClickLog:
    """Return the clicks of a design; a skewed one keeps 5 sessions of most queries."""
    log = clicks.simulate(
        train,
        design.logger,
        model=design.user,
        eta=design.eta,
        sessions=design.sessions,
        temperature=design.temperature,
        random_state=seed,
    )
    if not design.skewed:
        return log
    popularity = 1.0 + np.random.default_rng([seed, 3]).pareto(0.6, train.n_queries)
    kept = np.ceil(np.minimum(5.0 * popularity, design.sessions))
    return log.select(log.time < kept[log.query])


@lru_cache(maxsize=16)
def train_and_judged(name: str, seed: int) -> tuple[RankingData, RankingData]:
    """Return the queries of the log, and other queries with true grades."""
    if name == "hybrid":
        return hybrid_search(2 * seed), hybrid_search(2 * seed + 1)
    fold = letor_folds(data_folder() / FOLDERS[name])[seed % FOLDS]
    return fold.train, fold.valid


def hybrid_search(seed: int, queries: int = 200) -> RankingData:
    """Return candidates of hybrid search with raw feature scales and grades 0 to 4."""
    rng = np.random.default_rng([seed, 7])
    sizes = rng.integers(30, 51, queries)
    n = int(sizes.sum())
    query = np.repeat(np.arange(queries), sizes)
    topic = rng.normal(size=n) + 0.3 * rng.normal(size=queries)[query]
    spread = rng.uniform(0.5, 1.5, queries)[query]
    bm25 = np.maximum(0.0, 12.0 + 4.0 * (0.6 * topic + 0.8 * spread * rng.normal(size=n)))
    cosine = np.tanh(0.5 + 0.25 * (0.7 * topic + 0.7 * rng.normal(size=n)))
    title = (rng.random(n) < 1.0 / (1.0 + np.exp(2.0 - 1.5 * topic))).astype(float)
    age, length = rng.exponential(300.0, n), np.exp(rng.normal(6.0, 1.0, n))
    popularity = rng.pareto(2.0, n)
    quality = np.clip(0.5 + 0.15 * topic + 0.2 * rng.normal(size=n), 0.0, 1.0)
    noise = rng.normal(size=(n, 3))
    relevance = topic + 0.8 * stats.zscore(cosine) + 0.5 * title + 0.4 * quality - 0.3 * (age > 500)
    names = ["bm25", "cosine", "title", "age", "length", "popularity", "quality", "a", "b", "c"]
    return RankingData.from_arrays(
        np.column_stack([bm25, cosine, title, age, length, popularity, quality, noise]),
        np.searchsorted([0.9, 1.7, 2.5, 3.3], relevance).astype(float),
        qid=query,
        doc_id=np.arange(n),
        feature_names=names,
    )
