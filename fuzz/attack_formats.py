"""Damage files of every registered format of ranking data, and TREC runs with their judgments.

An input is a folder: the file, and those that stand beside it.
"""

from __future__ import annotations

import random
import shutil
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from damage import Attack, mutated
from small_data import small_data

import rankwright
from rankwright import registry
from rankwright.data.files import load, save
from rankwright.data.inspect import inspect
from rankwright.data.ranking_data import RankingData
from rankwright.data.ratings import ratings_of_triples
from rankwright.data.trec import judge_run

_METRICS = "ndcg(gain=linear)@10,map,mrr"
_ONE_STEP = {"max_iter": 1}

OTHERS = {"store", "feature_log"}


def write(folder: Path) -> Sequence[Path]:
    """Write a folder for each format, with all that it holds; `OTHERS` have their own attacks."""
    names = sorted(set(registry.names("formats")) - OTHERS)
    return [_written(folder / f"data.{name}", name) for name in names]


def write_runs(folder: Path) -> Sequence[Path]:
    """Write a run and its judgments."""
    return [_written(folder / "data.trec", "trec")]


@cache
def all_parts() -> RankingData:
    """Return data with every optional array."""
    rows = np.arange(48)
    return small_data(
        queries=8,
        documents=6,
        features=3,
        doc_id=np.char.add("d", rows.astype(str)),
        group=rows % 3,
        position=rows % 6 + 1,
        sample_weight=1.0 + rows % 2,
        query_weight=np.arange(1.0, 9.0),
        feature_names=["a", "b", "c"],
    )


def _written(folder: Path, name: str) -> Path:
    folder.mkdir()
    data = all_parts()
    if name == "ratings":
        data = ratings_of_triples(np.arange(40) % 8, np.arange(40) // 8, np.arange(40) % 5)
    options: dict[str, Any] = {}
    if name == "trec":
        options = {"qrels": folder / "qrels.txt", "feature": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what a format does not hold
        save(data, folder / "file", format=name, **options)
    return folder


def damage(path: Path, target: Path, rng: random.Random) -> None:
    """Write a copy of the folder with one of its files damaged."""
    shutil.copytree(path, target)
    file = target / rng.choice(sorted(one.name for one in path.iterdir()))
    file.write_bytes(mutated(file.read_bytes(), rng))


def use(path: Path) -> None:
    """Read the file of a folder, by its format, and use the data."""
    name = path.suffix[1:]
    judgments = path / "qrels.txt"
    use_data(load(path / "file", format=name, **({"qrels": judgments} if name == "trec" else {})))
    if name == "trec":
        run = judge_run(path / "file", judgments)
        rankwright.evaluate(run.data, run.scores, _METRICS)


def use_data(data: RankingData) -> None:
    """Inspect, evaluate, train on and rank ranking data."""
    data.to_frame("pyarrow")
    inspect(data)
    for ranker in (
        rankwright.Ranker(
            loss="ranknet", model=rankwright.models.Linear(missing="zero", **_ONE_STEP)
        ),
        rankwright.Ranker(
            loss="ranknet", model=rankwright.models.Trees(n_estimators=1, num_leaves=3)
        ),
    ):
        scores = ranker.fit(data).predict(data)
        ranker.rank(data, top=2).to_frame()
    rankwright.evaluate(data, np.nan_to_num(scores), _METRICS)


ATTACK = Attack("files of every format of ranking data but stores", write, damage, use)
RUNS = Attack("TREC runs and judgments", write_runs, damage, use)
