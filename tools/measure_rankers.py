"""Measure every ranker with each of its models, and candidates for its defaults, on valid data.

``python tools/measure_rankers.py`` writes docs/choose/measured.json, from which `make pages` makes
docs/choose.md. A ranker is fitted to four fifths of the training queries, the others choose its
round, and valid data, which the fit has not seen, tell NDCG@10; no test file is opened. Each fit is
a process of its own, on one thread, ended when it takes too long; times are of the processor, after
a first fit to a few documents that loads what is compiled. A fit that is in the folder of results
is not done again.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import math
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
MEASURED = ROOT / "docs/choose/measured.json"
RATINGS = ("cofirank", "mmmf")
GENERAL = ("linear", "trees", "network")
WITH_KERNEL = ("dorm", "irsvm", "memr", "ranksvm", "svm_precision", "svm_rocarea")
CANDIDATES = ROOT / "docs/choose/candidates.toml"


@dataclass(frozen=True)
class DataSet:
    """Where rankers are measured: ``load`` gives train and valid of a fold."""

    about: str
    load: Callable[[int], tuple[Any, Any]]
    only: tuple[str, ...] = ()  # rankers that are measured here, with their default models

    def models_of(self, ranker: str, models: tuple[str, ...]) -> tuple[str, ...]:
        """Return the models of a ranker to measure here, its default first."""
        if self.only:
            return models[:1] if ranker in self.only else ()
        return () if ranker in RATINGS else models


def _letor(name: str) -> Callable[[int], tuple[Any, Any]]:
    def load(fold: int) -> tuple[Any, Any]:
        from rankwright.data.catalog import load

        train = load(f"{name}/fold{fold}/train")
        return train, load(f"{name}/fold{fold}/vali").with_n_features(train.n_features)

    return load


def _made_up(train: int, valid: int, **shape: Any) -> Callable[[int], tuple[Any, Any]]:
    def load(fold: int) -> tuple[Any, Any]:
        import numpy as np

        from rankwright.data.synthetic_data import Shape, synthetic

        data = synthetic(Shape(queries=train + valid, **shape), seed=fold)
        data = replace(data, X=data.X.astype(np.float64))
        return data.select(np.arange(train)), data.select(np.arange(train, train + valid))

    return load


def _jester(fold: int) -> tuple[Any, Any]:
    from rankwright.data.catalog import folder
    from reproducibility.study_data import load_ratings

    drawn = load_ratings(
        {"file": "Jester1/jester-data-1.csv.xz", "layout": "jester", "levels": 6, "known": 20,
         "users": 100, "input_users": 200, "draws": fold},
        folder(),
    )[fold - 1]  # fmt: skip
    return drawn.train, drawn.valid


SETS = {
    "ohsumed": DataSet(
        "OHSUMED: 63 queries of 150 documents, 45 features, 3 grades", _letor("ohsumed")
    ),
    "mq2008": DataSet(
        "MQ2008: 470 queries of 20 documents, 46 features, 3 grades", _letor("mq2008")
    ),
    "wide": DataSet(
        "synthetic web search: 100 queries of 60 documents, 136 features, 5 grades",
        _made_up(
            100, 150, name="wide", documents=15_000, features=136, shortest=5,
            grades=(0.52, 0.32, 0.13, 0.02, 0.01),
        ),
    ),
    "text": DataSet(
        "synthetic text: 60 queries of 100 documents, 5,000 features of which 1% are not zero, "
        "2 grades",
        _made_up(
            60, 100, name="text", documents=16_000, features=5_000, shortest=20, grades=(0.9, 0.1),
            density=0.01, interactions=0,
        ),
    ),
    "few": DataSet(
        "synthetic, few queries: 15 queries of 80 documents, 45 features, 3 grades",
        _made_up(
            15, 150, name="few", documents=13_200, features=45, shortest=20,
            grades=(0.7, 0.16, 0.14),
        ),
    ),
    "long": DataSet(
        "synthetic, long lists: 12 queries of 1,000 documents, 20 features, 2 grades, 2% good",
        _made_up(
            12, 30, name="long", documents=42_000, features=20, shortest=400, grades=(0.98, 0.02),
        ),
    ),
    "jester": DataSet(
        "Jester: 20 known ratings of each of 200 users and all of 200 more, 100 jokes, 6 grades",
        _jester,
        only=RATINGS,
    ),
    "large": DataSet(
        "synthetic web search: 400 queries of 100 documents, 136 features, 5 grades",
        _made_up(
            400, 200, name="large", documents=60_000, features=136, shortest=5,
            grades=(0.52, 0.32, 0.13, 0.02, 0.01),
        ),
        only=(
            "linear_regression", "memr", "ranksvm", "listnet", "gbdt", "gbrank", "intervalrank",
            "xendcg", "lambdamart", "lambdarank",
        ),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Job:
    """A ranker with a model and parameters of its own, on one fold of one set."""

    data_set: str
    fold: int
    ranker: str
    model: str
    parameters: tuple[tuple[str, Any], ...] = ()

    def file(self, folder: Path) -> Path:
        """Return where its result is kept: a default and the same value given are one fit."""
        return folder / f"{self.data_set}-{self.fold}" / f"{self._key()}.json"

    def _key(self) -> str:
        made = ranker_with(self.ranker, self.model, **dict(self.parameters))
        model = made.make_model()
        left_out = {field.name for field in fields(model)} | {"model"}
        own = [(k, v) for k, v in sorted(made.get_params(deep=False).items()) if k not in left_out]
        digest = hashlib.sha256(f"{own} {model}".encode()).hexdigest()[:12]
        return f"{self.ranker}-{self.model}-{digest}"


def ranker_with(name: str, model: str, /, **parameters: Any) -> Any:
    """Return a ranker on a model, with parameters of its own or of that model."""
    from rankwright.rankers.base import ranker

    known = ranker(name).get_params(deep=False)
    own = {"model": model}
    if model == ranker(name).model_name:  # its parameters are those of the ranker
        own = {}
    given = {key if key in known else f"model__{key}": v for key, v in parameters.items()}
    return ranker(name, **own, **given)


def models_of(name: str) -> tuple[str, ...]:
    """Return the models that a ranker is measured with, its default first."""
    from rankwright.rankers.base import ranker

    made = ranker(name)
    default = made.model_name
    if made.loss_class is None or default not in GENERAL:
        return (default,)
    others = (*GENERAL, "kernel") if name in WITH_KERNEL else GENERAL
    return (default, *(model for model in others if model != default))


def table_jobs() -> Iterator[Job]:
    """Yield every ranker x model x set, default models first."""
    from rankwright import registry

    rankers = [name for name in registry.RANKERS if name != "ranker"]
    for default, name, ranker in product((True, False), SETS, rankers):
        models = SETS[name].models_of(ranker, models_of(ranker))
        for model in models[:1] if default else models[1:]:
            yield Job(name, 1, ranker, model)


def candidate_jobs() -> Iterator[Job]:
    """Yield the candidates for defaults that docs/choose/candidates.toml names."""
    import tomllib

    asked = tomllib.loads(CANDIDATES.read_text(encoding="utf-8"))
    for entry in asked["try"]:
        for ranker, value in product(entry["rankers"], entry["values"]):
            for name in entry.get("sets", asked["sets"]):
                yield candidate(name, ranker, entry, value)


def candidate(name: str, ranker: str, entry: dict[str, Any], value: Any) -> Job:
    """Return the job of one value; ``ohsumed-3`` is its fold 3, ``wide-2`` draw 2."""
    data_set, _, fold = name.partition("-")
    given = ((entry["parameter"], value),)
    return Job(data_set, int(fold or 1), ranker, entry["model"], given)


# --- one fit ---------------------------------------------------------------------------------


def run(job: Job, folder: Path, limit: int) -> dict[str, Any]:
    """Return the result of a fit, done in a process of its own unless it was done before."""
    file = job.file(folder)
    if file.exists():
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return found
    file.parent.mkdir(parents=True, exist_ok=True)
    _load_kernels(job)
    child = multiprocessing.get_context("fork").Process(target=_fit, args=(job, file, limit))
    child.start()
    child.join()
    if child.exitcode not in (0, -signal.SIGXCPU):
        raise SystemExit(f"{job} ended with status {child.exitcode}.")
    if not file.exists():
        file.write_text(json.dumps({"too_slow": limit}), encoding="utf-8")
    return run(job, folder, limit)


@cache
def _parts(data_set: str, fold: int) -> tuple[Any, Any, Any]:
    """Return four fifths of train, the fifth that chooses the round, and valid."""
    from rankwright.data.split import train_valid_test

    train, valid = SETS[data_set].load(fold)
    if data_set == "jester":  # a user's other ratings cannot be held out by whole queries
        return train, None, valid
    cut = train_valid_test(train, (0.8, 0.0, 0.2))
    return cut.train, cut.test, valid


def _load_kernels(job: Job) -> None:
    """Fit the ranker to a few documents, so that the processes that follow need compile nothing."""
    from scipy.sparse import issparse

    train, held, _ = _parts(job.data_set, job.fold)
    _load_kernels_of(job.ranker, job.model, issparse(train.X), held is not None)


@cache
def _load_kernels_of(name: str, model: str, sparse: bool, chooses: bool) -> None:
    import numpy as np
    from scipy.sparse import csr_matrix

    from rankwright.data.ranking_data import RankingData
    from rankwright.errors import RankwrightError

    rng = np.random.default_rng(0)
    X = np.eye(24)[:, :12] if name in RATINGS else rng.random((24, 5))
    few = RankingData.from_arrays(
        csr_matrix(X) if sparse else X, np.tile([0.0, 1.0, 2.0], 8), qid=np.repeat([1, 2], 12)
    )
    with warnings.catch_warnings(), contextlib.suppress(RankwrightError):
        warnings.simplefilter("ignore")
        made = ranker_with(name, model, n_jobs=1)
        made.fit(few, eval_set=few if chooses else None).predict(few)


def _fit(job: Job, file: Path, limit: int) -> None:
    from rankwright.errors import RankwrightError
    from rankwright.metrics.evaluation import evaluate

    warnings.simplefilter("ignore")
    train, held, valid = _parts(job.data_set, job.fold)
    used = math.ceil(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + limit, resource.RLIM_INFINITY))
    try:
        made = ranker_with(job.ranker, job.model, n_jobs=1, **dict(job.parameters))
        began = time.process_time()
        made.fit(train, eval_set=held)
        train_seconds = time.process_time() - began
        began, times = time.process_time(), 0
        while times == 0 or time.process_time() - began < 0.02:
            scores, times = made.predict(valid), times + 1
        score_seconds = (time.process_time() - began) / times
    except RankwrightError as fault:
        file.write_text(json.dumps({"refused": str(fault)}), encoding="utf-8")
        return
    convention = "sklearn" if job.data_set == "jester" else "standard"
    values = evaluate(valid, scores, "ndcg@10", convention=convention).per_query["ndcg@10"]
    with tempfile.TemporaryDirectory() as scratch:
        made.save(Path(scratch) / "model.rw")
        size = (Path(scratch) / "model.rw").stat().st_size
    result = {
        "ndcg@10": [None if math.isnan(value) else round(value, 6) for value in values],
        "train_seconds": train_seconds,
        "score_ms_per_1000": 1e6 * score_seconds / valid.n_documents,
        "bytes": size,
    }
    file.write_text(json.dumps(result), encoding="utf-8")


# --- all of them -----------------------------------------------------------------------------


def main() -> int:
    """Do what is asked; return the exit status."""
    words = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    words.add_argument("--work", type=Path, default=ROOT / "build/choose", help="kept results")
    words.add_argument("--limit", type=int, default=15, help="seconds of one fit")
    words.add_argument("--minutes", type=float, default=60.0, help="then no fit is begun")
    words.add_argument("--only", choices=("table", "defaults"), help="a part of the work")
    asked = words.parse_args()
    for name in ("RANKWRIGHT_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    jobs = [
        *(table_jobs() if asked.only != "defaults" else ()),
        *(candidate_jobs() if asked.only != "table" else ()),
    ]
    import lightgbm  # noqa: F401  (once, for all processes)
    import torch  # noqa: F401

    end = time.monotonic() + 60 * asked.minutes
    for number, job in enumerate(jobs, 1):
        if time.monotonic() > end:
            print(f"stopped after {number - 1} of {len(jobs)} fits: run again to go on.")
            break
        found = run(job, asked.work, asked.limit)
        said = found.get("refused") or found.get("train_seconds", f"over {asked.limit} s")
        print(f"{number} of {len(jobs)}: {job}: {said}", flush=True)
    from summarize_measures import summary

    MEASURED.parent.mkdir(exist_ok=True)
    MEASURED.write_text(summary(asked.work), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
