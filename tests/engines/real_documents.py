"""Count the pairs of real documents, with missing values, that exports put in the wrong order.

``python tests/engines/real_documents.py`` does so for every ranker and target, with the raw
documents of OHSUMED in the folder that RANKWRIGHT_DATA names.
"""

import os
import sys
import tempfile
import time
from inspect import signature
from pathlib import Path
from typing import NamedTuple

import numpy as np

import rankwright as rw
from rankwright import registry
from rankwright.errors import RankwrightError, UsageError
from rankwright.export import export_model, verify_export
from rankwright.export.target import DOUBLE, SINGLE
from rankwright.models.portable import portable

RAW = "OHSUMED_LETOR3/Feature-null"
QUERIES = 12
NETWORK = {"epochs": 3, "activation": "sigmoid", "hidden_layer_sizes": (6,)}
TREES = {"n_estimators": 12, "num_leaves": 8}
SMALL = {"missing": "mean", "n_rounds": 20, "n_bags": 5, "max_iter": 30, **NETWORK, **TREES}
MODELS = {
    "linear": rw.models.Linear(missing="mean"),
    "trees": rw.models.Trees(**TREES),
    "network": rw.models.Network(missing="mean", **NETWORK),
}


class Counts(NamedTuple):
    """What became of the documents: errors of the engine, pairs, and those in the wrong order."""

    errors: int
    pairs: int
    reversed: int


def raw_documents(data_dir):
    """Return queries to train on and other queries, with features in float32."""
    found = []
    for part in ("S1", "S5"):
        data = rw.load(data_dir / RAW / f"{part}.txt.xz", dtype="float32")
        found.append(data.select(np.arange(QUERIES)))
    assert all(np.isnan(data.X).any() and (data.X < 0).any() for data in found)
    return found


def fitted(name, train, model=None):
    """Return a small ranker of a name, on its own model or on one of `MODELS`."""
    if model is not None:
        return rw.ranker(name, model=MODELS[model]).fit(train)
    known = signature(registry.resolve("rankers", name)).parameters
    return rw.ranker(name, **{key: x for key, x in SMALL.items() if key in known}).fit(train)


def count_reversed(ranker, about, found, documents, rows):
    """Compare scores of an engine with the model's, for the rows in ``rows``."""
    X, score = np.asarray(documents.X, float), about["score"]
    wanted = ranker.model_.scores(X) * score["scale"] + score["offset"]
    if score["function"] == "sigmoid":
        wanted = 1.0 / (1.0 + np.exp(-wanted))
    epsilon = SINGLE if about["precision"]["numbers"] == "float32" else DOUBLE
    rounding = portable(ranker.model_, ranker.model_name).error(X, epsilon) * abs(score["scale"])
    rounding += epsilon * np.abs(wanted)
    errors = pairs = wrong = 0
    for a, b in zip(documents.indptr[:-1], documents.indptr[1:], strict=True):
        here = a + np.flatnonzero(rows[a:b])
        errors += int(np.isnan(found[here]).sum())
        near = 2 * (rounding[here, None] + rounding[None, here])
        apart = wanted[here, None] - wanted[None, here] > near
        pairs += int(apart.sum())
        wrong += int((found[here, None] < found[None, here])[apart].sum())
    return Counts(errors, pairs, wrong)


def engine_scores(to, folder, about, X, engine=None):
    """Return what an engine scores rows, by the reader of its target."""
    target = registry.resolve("exports", to)()
    if engine is None:
        return target.scores(folder, about, X)
    return target.scores_on(target.release(*engine.split(":")), folder, about, X)


def answerable(about, X):
    """Whether each row lacks only features that the export says may be missing."""
    may = np.array([feature["may_be_missing"] for feature in about["features"]])
    return ~(np.isnan(X) & ~may).any(axis=1)


def count_for(ranker, to, folder, documents, *, engine=None, **options):
    """Export a ranker, verify it, and count on the documents that it may be asked for."""
    about = export_model(ranker, to, folder, **options)
    verify_export(folder)
    X = np.asarray(documents.X, float)
    rows = answerable(about, X)
    found = engine_scores(to, folder, about, np.where(rows[:, None], X, 0.0), engine)
    return count_reversed(ranker, about, found, documents, rows), int(rows.sum())


class Totals:
    """What became of all exports; `line` writes one of them, `text` the sums."""

    def __init__(self):
        self.verified = self.refused = self.failed = self.unanswered = 0
        self.counts = Counts(0, 0, 0)

    def add(self, ranker, to, documents):
        """Export a ranker, and return a line where something is wrong."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                found, rows = count_for(ranker, to, Path(folder) / "out", documents)
            except UsageError:
                self.refused += 1
                return ""
            except RankwrightError as error:
                self.failed += 1
                return f"failed: {error}\n"
        self.verified += 1
        self.unanswered += documents.n_documents - rows
        self.counts = Counts(*(a + b for a, b in zip(self.counts, found, strict=True)))
        return f"{found}\n" if found.errors or found.reversed else ""

    def text(self, documents):
        """Return the sums, a line each."""
        errors, pairs, wrong = self.counts
        return (
            f"{self.verified} exports verified, {self.refused} refused, {self.failed} failed\n"
            f"{documents.n_documents} documents: {errors} errors of engines, {wrong} reversed "
            f"pairs of {pairs}\n"
            f"{self.unanswered} documents left out: they lack a feature that may not be missing\n"
        )


def main():
    """Write a line for each export that is wrong, then the totals."""
    started = time.perf_counter()
    train, documents = raw_documents(Path(os.environ["RANKWRIGHT_DATA"]))
    totals, say = Totals(), sys.stdout.write
    for name in registry.RANKERS:
        for model in (None, *MODELS):
            try:
                ranker = fitted(name, train, model)
            except Exception as error:  # this counts what is exported, not what can be fitted
                say(f"{name} on {model or 'its own model'} is not fitted: {error!r}\n")
                continue
            for to in registry.EXPORTS:
                if line := totals.add(ranker, to, documents):
                    say(f"{name} on {model or 'its own model'} for {to}: {line}")
    say(f"{totals.text(documents)}{time.perf_counter() - started:.0f} seconds\n")


if __name__ == "__main__":
    main()
