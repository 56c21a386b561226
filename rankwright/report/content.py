"""What a report shows, as plain values: everything is read off a `Comparison` and its model files.

The page holds the value of every query. Documents, scores and contributions of whole queries would
make it large, so some queries can be opened: those on which rankers differ most from the baseline,
and others drawn at random, as many as fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rankwright.comparison.result import Comparison
from rankwright.comparison.tables import CORRECTIONS
from rankwright.comparison.tables import about as sentence_of
from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.report.conclusion import conclusion
from rankwright.report.metric_help import explain_metric
from rankwright.report.opened_queries import About, chosen_queries, opened_queries, short

_POINTS = 120  # of a learning curve
_VALUES = 4_000_000  # values per query in the page, at most


def report_content(comparison: Comparison) -> dict[str, Any]:
    """Return all that the page shows, ready for JSON."""
    opened = chosen_queries(comparison)
    profile, calibration = _Profile(), _Calibration(comparison)
    queries: dict[int, dict[str, Any]] = {}
    about = {label: About() for label in comparison.rankers}
    first = 0
    for number, fold in enumerate(comparison.folds):
        test = fold.test
        profile.add(test)
        calibration.add(number, test)
        here = opened[(opened >= first) & (opened < first + test.n_queries)]
        if len(here) or number == 0:
            views = opened_queries(comparison, number, test, here - first, about)
            queries |= {int(q): view for q, view in zip(here, views, strict=True)}
        first += test.n_queries
    return {
        "name": comparison.name,
        "about": sentence_of(comparison, arrows=True),
        "conclusion": list(conclusion(comparison)),
        "metrics": list(comparison.metrics),
        "maximise": dict(comparison.maximise),
        "explained": {
            metric: explain_metric(metric, maximise=comparison.maximise[metric])
            for metric in comparison.metrics
        },
        "baseline": comparison.baseline,
        "corrected": f" after {CORRECTIONS[comparison.correction]}"
        if comparison.correction
        else "",
        "profile": profile.found(comparison),
        "rankers": [
            {**_ranker(comparison, label), **about[label].found(), "grades": calibration.of(label)}
            for label in comparison.rankers
        ],
        "failures": {**comparison.notes, **comparison.failures},
        "qid": [str(qid) for qid in comparison.qid],
        "values": _values(comparison),
        "opened": {str(q): queries[q] for q in sorted(queries)},
    }


def _ranker(comparison: Comparison, label: str) -> dict[str, Any]:
    tests = {metric: comparison.test(label, metric) for metric in comparison.metrics}
    return {
        "label": label,
        "means": {
            metric: [found.mean, found.low, found.high]  # in full: rounded where they are shown
            for metric, found in comparison.intervals[label].items()
        },
        "tests": {
            metric: {
                "p": short(test.adjusted),
                "significant": test.significant,
                "better": (test.difference > 0) == comparison.maximise[metric],
                "wins": test.wins,
                "ties": test.ties,
                "losses": test.losses,
            }
            for metric, test in tests.items()
            if test is not None
        },
        "seconds": comparison.seconds[label],
        "compile_seconds": sum(run.compile_seconds for run in comparison.runs[label]),
        "bytes": comparison.sizes[label],
        "curve": _curve(comparison, label),
    }


def _curve(comparison: Comparison, label: str) -> dict[str, Any] | None:
    """Return the learning curve in as many points as the page has room for."""
    found = comparison.learning_curve(label)
    if found is None:
        return None
    length = len(found["rounds"])
    kept = np.unique(np.linspace(0, length - 1, min(length, _POINTS)).round().astype(int))
    lines: dict[str, Any] = {
        part: [short(value) for value in found[part][kept]]
        for part in ("train", "valid")
        if part in found
    }
    rounds = found["rounds"][kept].tolist()
    return {"metric": found["metric"], "rounds": rounds, "best": found["best"], **lines}


def _values(comparison: Comparison) -> dict[str, dict[str, list[float | None]]]:
    """Return the value of every query; of the headline metric alone where there are many."""
    many = len(comparison.qid) * len(comparison.rankers) * len(comparison.metrics) > _VALUES
    metrics = comparison.metrics[:1] if many else comparison.metrics
    return {
        label: {
            metric: [short(value, digits=4) for value in comparison.per_query[label][metric]]
            for metric in metrics
        }
        for label in comparison.rankers
    }


# --- data and scores -----------------------------------------------------------------------------


class _Profile:
    """The test queries of all folds, as numbers."""

    def __init__(self) -> None:
        self._lengths: list[I64] = []
        self._grades: dict[float, int] = {}
        self._one_grade = self._features = 0

    def add(self, test: RankingData) -> None:
        """Add the test part of a fold."""
        self._features = test.n_features
        self._lengths.append(test.sizes)
        for grade, count in zip(*np.unique(test.y, return_counts=True), strict=True):
            self._grades[float(grade)] = self._grades.get(float(grade), 0) + int(count)
        for lo, hi in _bounds(test):
            self._one_grade += bool(hi - lo == 0 or test.y[lo:hi].min() == test.y[lo:hi].max())

    def found(self, comparison: Comparison) -> dict[str, Any]:
        """Return the profile."""
        lengths = np.concatenate(self._lengths)
        return {
            "queries": len(lengths),
            "documents": int(lengths.sum()),
            "features": self._features,
            "folds": len(comparison.folds),
            "lengths": [int(x) for x in np.quantile(lengths, [0.0, 0.5, 1.0], method="nearest")],
            "grades": sorted(self._grades.items()),
            "one_grade": self._one_grade,
        }


class _Calibration:
    """How scores go with grades: scores in standard deviations above the mean of their query."""

    def __init__(self, comparison: Comparison) -> None:
        self._runs = comparison.runs
        self._scores: dict[str, list[F64]] = {label: [] for label in comparison.rankers}
        self._grades: list[F64] = []

    def add(self, fold: int, test: RankingData) -> None:
        """Add the test part of a fold."""
        self._grades.append(test.y)
        for label, kept in self._scores.items():
            scores = self._runs[label][fold].scores.copy()
            for lo, hi in _bounds(test):
                spread = scores[lo:hi].std() if hi > lo else 0.0
                scores[lo:hi] = (scores[lo:hi] - scores[lo:hi].mean()) / spread if spread else 0.0
            kept.append(scores)

    def of(self, label: str) -> list[list[float | None]]:
        """Return each grade with the 5, 25, 50, 75 and 95 % points of its documents' scores."""
        grades, scores = np.concatenate(self._grades), np.concatenate(self._scores[label])
        return [
            [float(grade), *(short(x) for x in np.quantile(scores[grades == grade], _QUANTILES))]
            for grade in np.unique(grades)
        ]


_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def _bounds(data: RankingData) -> Iterator[tuple[int, int]]:
    return zip(data.indptr[:-1].tolist(), data.indptr[1:].tolist(), strict=True)
