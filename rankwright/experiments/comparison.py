"""What a comparison of rankers found: means with intervals, tests, and all that lies behind them.

A `Comparison` is all that a report needs. Its *entries* are the rankers as they were asked for,
each under a name of its own; its *runs* are one entry on one fold: the parameters used, the model
file, the learning curves, and a score for each test document. Every query is in the test part of
the folds as often as the folds say (once, where one file was cut), and queries are pooled over the
folds in their order, so ``per_query``, ``qid`` and ``fold_of_query`` go together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.split import Fold
from rankwright.errors import MissingExtraError, UsageError
from rankwright.metrics.significance import LEVEL, Interval
from rankwright.registry import unknown

FRAMES = ("pandas", "polars", "pyarrow")


@dataclass(frozen=True)
class Entry:
    """A ranker as it was asked for.

    Attributes
    ----------
    label : str
        Its name in the comparison, such as ``lambdamart`` or ``lambdamart:num_leaves=7``.
    ranker : str
        Its registered name, such as ``lambdamart``.
    parameters : mapping
        Those that were given; the others stand at their defaults.
    """

    label: str
    ranker: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """One entry on one fold: fitted to train, chosen on valid, scored on test once.

    Attributes
    ----------
    label : str
        The entry's.
    fold : int
        From 0.
    parameters : mapping
        All that decide on the fit of the ranker, with those that tuning chose.
    tuned : mapping
        What tuning chose, by parameter; empty without tuning.
    model : Path
        The model file, for `rankwright.load_model`.
    scores : (n,) array
        A score for each document of the fold's test part, in the order of its rows.
    curve : mapping of lists
        Learning curves, as ``curve_`` of a ranker: "loss", and the selection metric of each round
        as "train ndcg@10" and "valid ndcg@10".
    best_iteration : int
        The round that valid chose, counted from 1.
    seconds : float
        Time of the fit, with tuning that of all trials, when it was run; without compiling.
    size : int
        Bytes of the model file.
    compile_seconds : float
        Time in which the fit waited for kernels to be compiled or loaded.
    """

    label: str
    fold: int
    parameters: Mapping[str, Any]
    tuned: Mapping[str, Any]
    model: Path
    scores: F64
    curve: Mapping[str, Sequence[float]]
    best_iteration: int
    seconds: float
    size: int
    compile_seconds: float = 0.0


@dataclass(frozen=True)
class PairedTest:
    """An entry against the baseline on one metric, over the same queries.

    Attributes
    ----------
    difference : float
        Mean of the entry less that of the baseline.
    p_value : float
        Two-sided, of a paired randomisation test.
    adjusted : float
        The p-value after Holm's correction over the entries, for each metric by itself.
    wins, ties, losses : int
        Queries on which the entry is better than the baseline, as good, and worse.
    """

    ranker: str
    baseline: str
    metric: str
    difference: float
    p_value: float
    adjusted: float
    wins: int
    ties: int
    losses: int

    @property
    def significant(self) -> bool:
        """Whether the difference is beyond luck at the level of 5 %."""
        return self.adjusted <= LEVEL


@dataclass(frozen=True)
class Comparison:
    """Rankers compared on the same queries.

    Attributes
    ----------
    name : str
        Of the data: a file, a folder, or "data".
    entries : tuple of Entry
        All rankers asked for, in their order, also those that failed.
    baseline : str
        Label of the entry that the tests are against.
    metrics : tuple of str
        As the caller spelled them; the first one is the headline.
    maximise : mapping of str to bool
        Whether more is better, by metric.
    convention : str
    folds : sequence of Fold
        Train, valid and test of each fold; read or cut when they are asked for.
    qid : (Q,) array of object
        Id of each test query, folds one after the other.
    fold_of_query : (Q,) int array
        The fold it was tested in, from 0.
    runs : mapping
        Of each label, its `Run` in every fold.
    per_query : mapping
        ``per_query[label][metric]`` is the value of each test query; NaN where the convention
        leaves it out.
    intervals : mapping
        ``intervals[label][metric]``: the mean over queries and its 95 % bootstrap interval.
    tests : tuple of PairedTest
        Of every other entry and metric, against the baseline.
    failures : mapping
        A sentence for each label that could not be run; it has no runs, values or tests.
    fits : int
        How many runs were fitted for this comparison; the others came from the cache.
    """

    name: str
    entries: tuple[Entry, ...]
    baseline: str
    metrics: tuple[str, ...]
    maximise: Mapping[str, bool]
    convention: str
    folds: Sequence[Fold]
    qid: AnyArray
    fold_of_query: I64
    runs: Mapping[str, tuple[Run, ...]]
    per_query: Mapping[str, Mapping[str, F64]]
    intervals: Mapping[str, Mapping[str, Interval]]
    tests: tuple[PairedTest, ...]
    failures: Mapping[str, str]
    fits: int

    @property
    def rankers(self) -> tuple[str, ...]:
        """Labels of the entries that were run, in the order they were asked for."""
        return tuple(entry.label for entry in self.entries if entry.label in self.runs)

    @cached_property
    def scores(self) -> dict[str, tuple[F64, ...]]:
        """Scores of the test documents of every fold, by label."""
        return {label: tuple(run.scores for run in runs) for label, runs in self.runs.items()}

    @cached_property
    def models(self) -> dict[str, tuple[Path, ...]]:
        """Model files of every fold, by label."""
        return {label: tuple(run.model for run in runs) for label, runs in self.runs.items()}

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Time of a fit, by label: the median over the folds, without compiling."""
        return {
            label: float(np.median([run.seconds for run in runs]))
            for label, runs in self.runs.items()
        }

    @cached_property
    def compile_seconds(self) -> float:
        """Time in which the fits waited for kernels to be compiled or loaded, all together."""
        return float(sum(run.compile_seconds for runs in self.runs.values() for run in runs))

    @cached_property
    def sizes(self) -> dict[str, float]:
        """Mean bytes of an entry's model files, by label."""
        return {
            label: float(np.mean([run.size for run in runs])) for label, runs in self.runs.items()
        }

    def test(self, ranker: str, metric: str) -> PairedTest | None:
        """Return the test of an entry against the baseline; None for the baseline itself."""
        found = [t for t in self.tests if t.ranker == ranker and t.metric == metric]
        return found[0] if found else None

    # --- what it prints as -------------------------------------------------------------------

    def records(self) -> list[dict[str, Any]]:
        """Return a plain record for each entry and metric, rankers in their order."""
        return [self._record(label, metric) for label in self.rankers for metric in self.metrics]

    def frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return the records as a frame of pandas, polars or pyarrow."""
        import narwhals as nw

        if backend not in FRAMES:
            raise UsageError(unknown("frame backend", backend, FRAMES))
        records = self.records()
        columns = {name: [record[name] for record in records] for name in records[0]}
        try:
            return nw.from_dict(columns, backend=backend).to_native()
        except ModuleNotFoundError:
            if backend == "pyarrow":
                raise MissingExtraError("pyarrow", "parquet", "an Arrow table") from None
            raise UsageError(f"{backend} is not installed: pip install {backend}") from None

    def as_json(self) -> dict[str, Any]:
        """Return what ``rankwright compare --json`` prints."""
        return {
            "data": self.name,
            "folds": len(self.folds),
            "queries": len(self.qid),
            "convention": self.convention,
            "baseline": self.baseline,
            "metrics": {
                label: {
                    metric: {"mean": found.mean, "low": found.low, "high": found.high}
                    for metric, found in self.intervals[label].items()
                }
                for label in self.rankers
            },
            "tests": [{**asdict(test), "significant": test.significant} for test in self.tests],
            "seconds": self.seconds,
            "compile_seconds": self.compile_seconds,
            "bytes": self.sizes,
            "tuned": {
                label: [dict(run.tuned) for run in runs]
                for label, runs in self.runs.items()
                if any(run.tuned for run in runs)
            },
            "failures": dict(self.failures),
            "fits": self.fits,
        }

    def _record(self, label: str, metric: str) -> dict[str, Any]:
        found, test = self.intervals[label][metric], self.test(label, metric)
        return {
            "ranker": label,
            "metric": metric,
            "mean": found.mean,
            "low": found.low,
            "high": found.high,
            "difference": None if test is None else test.difference,
            "p_value": None if test is None else test.p_value,
            "adjusted": None if test is None else test.adjusted,
            "wins": None if test is None else test.wins,
            "ties": None if test is None else test.ties,
            "losses": None if test is None else test.losses,
            "seconds": self.seconds[label],
            "bytes": self.sizes[label],
        }

    def about(self) -> str:
        """Return the sentence under the table: how it was made and what its marks mean."""
        from rankwright.experiments.comparison_table import about

        return about(self)

    def __repr__(self) -> str:
        from rankwright.experiments.comparison_table import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        from rankwright.experiments.comparison_table import as_html

        return as_html(self)
