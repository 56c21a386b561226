"""What a comparison of rankers found: means with intervals, tests, and all that lies behind them.

A `Comparison` is all that a report needs. Its *entries* are the rankers as they were asked for,
each under a name of its own; its *runs* are one entry on one fold: the parameters used, the model
file, the learning curves, and a score for each test document. Queries are pooled over the folds in
the order of their first appearance, so ``per_query``, ``qid``, ``fold_of_query`` and
``query_weight`` go together. A query that several folds test is one query: its values are averaged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rankwright.comparison import tables
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.split import Fold
from rankwright.errors import UsageError
from rankwright.metrics.significance import LEVEL, Interval
from rankwright.registry import unknown

if TYPE_CHECKING:
    from rankwright.comparison.entries import Scorer


FRAMES = ("pandas", "polars", "pyarrow")


@dataclass(frozen=True)
class Entry:
    """A ranker, or anything else that gives scores, as it was asked for.

    Attributes
    ----------
    label : str
        Its name in the comparison, such as ``lambdamart`` or ``lambdamart:num_leaves=7``.
    ranker : str
        Its registered name, such as ``lambdamart``; what it is, where it is no named ranker.
    parameters : mapping
        Those that were given; the others stand at their defaults.
    scorer : Scorer or None
        What gives the scores of an entry that is no named ranker: an estimator of another library,
        a fitted model, a column, an array or a run file.
    """

    label: str
    ranker: str
    parameters: Mapping[str, Any]
    scorer: Scorer | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Run:
    """One entry on one fold: fitted to train, chosen on the validation set, scored on test once.

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
    model : Path or None
        The model file, for `rankwright.load_model`; None of entries that are no named ranker.
    scores : (n,) array
        A score for each document of the fold's test part, in the order of its rows.
    curve : mapping of lists
        Learning curves, as ``curve_`` of a ranker: "loss", and the selection metric of each round,
        such as "valid ndcg@10".
    best_iteration : int or None
        The round that valid chose, counted from 1.
    seconds : float or None
        Time of the fit, with tuning that of all trials, when it was run: without imports and the
        compilation of kernels, which a small fit before it takes care of. None of what was not
        fitted here.
    size : int or None
        Bytes of the model file.
    compile_seconds : float
        Time in which the fit waited for kernels to be compiled or loaded.
    """

    label: str
    fold: int
    parameters: Mapping[str, Any]
    tuned: Mapping[str, Any]
    model: Path | None
    scores: F64
    curve: Mapping[str, Sequence[float]]
    best_iteration: int | None
    seconds: float | None
    size: int | None
    compile_seconds: float = 0.0


@dataclass(frozen=True)
class PairedTest:
    """An entry against another, mostly the baseline, on one metric and over the same queries.

    Attributes
    ----------
    difference : float
        Mean of the entry less that of the baseline.
    p_value : float
        Two-sided, of the test of the comparison.
    adjusted : float
        The p-value after correction over all tests of the same metric; the p-value itself where
        the comparison has no correction.
    wins, ties, losses : int
        Queries on which the entry is better than the baseline, as good, and worse.
    low, high : float
        95 % interval of the difference, not corrected for several tests; NaN without one.
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
    low: float = np.nan
    high: float = np.nan

    @property
    def significant(self) -> bool:
        """Whether the difference is statistically significant at the 5 % level."""
        return self.adjusted <= LEVEL

    def reversed(self) -> PairedTest:
        """Return the same test seen from the other side."""
        return replace(
            self,
            ranker=self.baseline,
            baseline=self.ranker,
            difference=-self.difference,
            wins=self.losses,
            losses=self.wins,
            low=-self.high,
            high=-self.low,
        )


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
        Label of the entry that the tests are against; of all pairs, the first entry.
    all_pairs : bool
        Whether every entry is tested against every other.
    test_name : str
        "randomisation", "t" or "wilcoxon".
    correction : str or None
        "holm", "bh" or None: how p-values are adjusted for the number of tests.
    metrics : tuple of str
        As the caller spelled them; the first one is the headline.
    maximise : mapping of str to bool
        Whether more is better, by metric.
    convention : str
    folds : sequence of Fold
        Train, valid and test of each fold; read or cut when they are asked for.
    qid : (Q,) array of object
        Id of each test query, folds one after the other; each id once.
    fold_of_query : (Q,) int array
        The first fold that tests it, from 0.
    runs : mapping
        Of each label, its `Run` in every fold.
    per_query : mapping
        ``per_query[label][metric]`` is the value of each test query, averaged over the folds that
        test it; NaN where the convention leaves it out.
    intervals : mapping
        ``intervals[label][metric]``: the mean over queries and its 95 % bootstrap interval.
    tests : tuple of PairedTest
        Of every other entry and metric, against the baseline; or of every pair and metric, the
        later entry against the earlier.
    notes : mapping
        What to know about the scores of a label, such as that it was not fitted here.
    failures : mapping
        A sentence for each label that could not be run; it has no runs, values or tests.
    fits : int
        How many runs were fitted for this comparison; the others came from the cache.
    query_weight : (Q,) array or None
        Weight of each test query in means, intervals and tests; None without weights.
    repeated : bool
        Whether several folds test the same query.
    """

    name: str
    entries: tuple[Entry, ...]
    baseline: str
    all_pairs: bool
    test_name: str
    correction: str | None
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
    notes: Mapping[str, str]
    failures: Mapping[str, str]
    fits: int
    query_weight: F64 | None = None
    repeated: bool = False

    def n_queries(self, ranker: str, metric: str) -> int:
        """Return the number of queries that a mean is over: those with a value of the metric."""
        known = ~np.isnan(self.per_query[ranker][metric])
        return int((known if self.query_weight is None else known & (self.query_weight > 0)).sum())

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
        """Model files of every fold, by label, of entries that have them."""
        files = {
            label: tuple(run.model for run in runs if run.model is not None)
            for label, runs in self.runs.items()
        }
        return {label: found for label, found in files.items() if found}

    @cached_property
    def seconds(self) -> dict[str, float | None]:
        """Time of a fit, by label: the median over the folds; None of what was not fitted here."""
        times = {label: [run.seconds for run in runs] for label, runs in self.runs.items()}
        return {
            label: None if None in found else float(np.median(np.array(found, np.float64)))
            for label, found in times.items()
        }

    @cached_property
    def compile_seconds(self) -> float:
        """Time in which the fits waited for kernels to be compiled or loaded, all together."""
        return float(sum(run.compile_seconds for runs in self.runs.values() for run in runs))

    @cached_property
    def sizes(self) -> dict[str, float | None]:
        """Mean bytes of an entry's model files, by label; None where there are none."""
        sizes = {label: [run.size for run in runs] for label, runs in self.runs.items()}
        return {
            label: None if None in found else float(np.mean(np.array(found, np.float64)))
            for label, found in sizes.items()
        }

    def test(self, ranker: str, metric: str, against: str | None = None) -> PairedTest | None:
        """Return the test of an entry against another, the baseline by default.

        None where there was no such test, as for the baseline itself.
        """
        other = self.baseline if against is None else against
        for test in self.tests:
            if test.metric == metric and {test.ranker, test.baseline} == {ranker, other} != {other}:
                return test if test.ranker == ranker else test.reversed()
        return None

    def worse(self, margin: float = 0.0, metric: str | None = None) -> list[PairedTest]:
        """Return the tests of the entries that are significantly worse than the baseline.

        Parameters
        ----------
        margin : float, default 0
            If above 0, the 95 % interval of the difference must also lie wholly beyond the margin.
        metric : str
            The headline metric by default.
        """
        if not 0.0 <= margin < np.inf:
            raise UsageError(f"the margin must be a number from 0, not {margin}.")
        metric = metric or self.metrics[0]
        if metric not in self.metrics:
            raise UsageError(unknown("metric in this comparison called", metric, self.metrics))
        tests = (self.test(label, metric) for label in self.rankers)
        sign = 1.0 if self.maximise[metric] else -1.0
        return [
            test
            for test in tests
            if test is not None
            and test.significant
            and sign * test.difference < 0.0
            and (margin == 0.0 or max(sign * test.low, sign * test.high) < -margin)
        ]

    def learning_curve(self, ranker: str, metric: str | None = None) -> dict[str, Any] | None:
        """Return the curves by round, averaged over the folds as far as all of them go.

        ``metric`` is the first that was recorded by default: the one that selects the round.

        The keys are "metric", "rounds" (from 1), "valid", "train" where it is known, and "best":
        the round that each fold kept. None of an entry without rounds or validation data.
        """
        valid = "valid "
        if metric is None:
            names = [n for run in self.runs[ranker] for n in run.curve if n.startswith(valid)]
            metric = names[0].removeprefix(valid) if names else ""
        runs = [run for run in self.runs[ranker] if valid + metric in run.curve]
        if not runs:
            return None
        length = min(len(run.curve[f"valid {metric}"]) for run in runs)
        lines = {
            part: np.mean([run.curve[f"{part} {metric}"][:length] for run in runs], axis=0)
            for part in ("train", "valid")
            if all(f"{part} {metric}" in run.curve for run in runs)
        }
        best = [run.best_iteration for run in runs if run.best_iteration is not None]
        return {"metric": metric, "rounds": np.arange(1, length + 1), "best": best, **lines}

    # --- what it prints as -------------------------------------------------------------------

    def records(self) -> list[dict[str, Any]]:
        """Return a plain record for each entry and metric, rankers in their order."""
        return [self._record(label, metric) for label in self.rankers for metric in self.metrics]

    def to_frame(
        self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas", *, long: bool = False
    ) -> Any:
        """Return the table as a frame of pandas, polars or pyarrow.

        A row per ranker; of each metric the mean, ``low`` and ``high`` of its interval, the
        ``difference`` to the baseline with its ``low`` and ``high``, the adjusted ``p`` against the
        baseline, and the ``mark``: "+" or "-" where it is significantly better or worse, or the
        letters of the rankers it is better than, where all pairs were tested. With ``long=True`` a
        row per ranker and metric, as `records` returns them.
        """
        import narwhals as nw

        if backend not in FRAMES:
            raise UsageError(unknown("frame backend", backend, FRAMES))
        records = self.records() if long else []
        columns = (
            {name: [record[name] for record in records] for name in records[0]}
            if long
            else tables.columns(self)
        )
        try:
            return nw.from_dict(columns, backend=backend).to_native()
        except ModuleNotFoundError:
            raise UsageError(f"{backend} is not installed: pip install {backend}") from None

    def to_latex(
        self,
        *,
        metrics: Sequence[str] | None = None,
        digits: int = 4,
        intervals: bool = False,
        names: Mapping[str, str] | None = None,
        caption: str | None = None,
        label: str = "tab:comparison",
    ) -> str:
        """Return the table in LaTeX (package booktabs): best in bold, marks, and a caption.

        Parameters
        ----------
        metrics : sequence of str
            Those to show; all by default.
        digits : int, default 4
            Of the means.
        intervals : bool, default False
            Show the 95 % intervals too.
        names : mapping of str to str
            What to print instead of a ranker's or a metric's name.
        caption : str
            In LaTeX, instead of the one that says how the table was made and tested.
        label : str
            By which the text refers to the table.
        """
        return tables.to_latex(
            self, metrics=metrics, digits=digits, intervals=intervals, names=names,
            caption=caption, label=label,
        )  # fmt: skip

    def to_markdown(
        self,
        *,
        metrics: Sequence[str] | None = None,
        digits: int = 4,
        intervals: bool = False,
        names: Mapping[str, str] | None = None,
    ) -> str:
        """Return the table in Markdown: best in bold, marks, and a caption below.

        The parameters are those of `to_latex`.
        """
        return tables.to_markdown(
            self, metrics=metrics, digits=digits, intervals=intervals, names=names
        )

    def write(self, path: str | Path) -> None:
        """Write a report (.html), a table (.tex, .md, .csv) or all figures (.json)."""
        tables.write(self, path)

    def plot(self, kind: str = "metrics", **options: Any) -> Any:
        """Draw the comparison with matplotlib and return the Axes.

        Parameters
        ----------
        kind : {"metrics", "differences", "metric_at_k", "curves"}, default "metrics"
            Means with their intervals; differences from the baseline query by query, sorted; a
            metric at cut-offs 1 to 20; learning curves on validation and training data.
        metric : str
            The headline metric by default; "ndcg" for ``kind="metric_at_k"``.
        rankers : sequence of str
            Labels to draw; all by default.
        ks : sequence of int, default 1 to 20
            Cut-offs of ``kind="metric_at_k"``.
        ax : matplotlib Axes
            Where to draw; a new figure by default.
        """
        from rankwright.comparison.plot import plot

        return plot(self, kind, **options)

    def as_json(self) -> dict[str, Any]:
        """Return what ``rankwright compare --json`` prints."""
        return {
            "data": self.name,
            "folds": len(self.folds),
            "queries": len(self.qid),
            "averaged_over_folds": self.repeated,
            "weighted": self.query_weight is not None,
            "convention": self.convention,
            "baseline": self.baseline,
            "all_pairs": self.all_pairs,
            "test": self.test_name,
            "correction": self.correction,
            "metrics": {
                label: {
                    metric: {
                        "mean": _finite(found.mean),
                        "low": _finite(found.low),
                        "high": _finite(found.high),
                        "queries": self.n_queries(label, metric),
                    }
                    for metric, found in self.intervals[label].items()
                }
                for label in self.rankers
            },
            "tests": [
                {name: _finite(value) for name, value in asdict(test).items()}
                | {"significant": test.significant}
                for test in self.tests
            ],
            "seconds": self.seconds,
            "compile_seconds": self.compile_seconds,
            "bytes": self.sizes,
            "tuned": {
                label: [dict(run.tuned) for run in runs]
                for label, runs in self.runs.items()
                if any(run.tuned for run in runs)
            },
            "notes": dict(self.notes),
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
            "queries": self.n_queries(label, metric),
            "difference": None if test is None else test.difference,
            "difference_low": None if test is None else test.low,
            "difference_high": None if test is None else test.high,
            "p_value": None if test is None else test.p_value,
            "adjusted": None if test is None else test.adjusted,
            "wins": None if test is None else test.wins,
            "ties": None if test is None else test.ties,
            "losses": None if test is None else test.losses,
            "seconds": self.seconds[label],
            "bytes": self.sizes[label],
        }

    def remarks(self) -> list[str]:
        """Return lines on entries that failed or need a remark."""
        return tables.remarks(self)

    def differences(self) -> list[str]:
        """Return lines with the differences to the baseline and their 95 % intervals."""
        return tables.differences(self)

    def about(self) -> str:
        """Return the sentence under the table: how it was made and what its marks mean."""
        return tables.about(self)

    def __repr__(self) -> str:
        return tables.as_text(self)

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        return tables.as_html(self)


def _finite(value: Any) -> Any:
    """Return None for a number that is not finite, which JSON does not have."""
    return None if isinstance(value, float) and not np.isfinite(value) else value
