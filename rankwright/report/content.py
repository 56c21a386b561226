"""What a report shows, as plain values: everything is read off a `Comparison` and its model files.

The page holds the value of every query. Documents, scores and contributions of whole queries would
make it large, so some queries can be opened: those on which rankers differ most from the baseline,
and others drawn at random, as many as fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.experiments.comparison import Comparison, Run
from rankwright.explanation.parts import document_parts
from rankwright.explanation.query_view import QueryView
from rankwright.persist.model_file import load_model

_OPENED = 100  # queries that can be opened, at most
_NUMBERS = 300_000  # contributions in the page, at most
_DOCUMENTS = 25  # of an opened query
_FEATURES = 8  # by which a ranker's scores are split; the rest is one number
_EXTREMES = 4  # queries of largest gain and loss that each ranker has opened
_POINTS = 120  # of a learning curve
_VALUES = 4_000_000  # values per query in the page, at most


def report_content(comparison: Comparison) -> dict[str, Any]:
    """Return all that the page shows, ready for JSON."""
    opened = _chosen_queries(comparison)
    profile, calibration = _Profile(), _Calibration(comparison)
    queries: dict[int, dict[str, Any]] = {}
    about = {label: _About() for label in comparison.rankers}
    first = 0
    for number, fold in enumerate(comparison.folds):
        test = fold.test
        profile.add(test)
        calibration.add(number, test)
        here = opened[(opened >= first) & (opened < first + test.n_queries)]
        if len(here) or number == 0:
            views = _opened(comparison, number, test, here - first, about)
            queries |= {int(q): view for q, view in zip(here, views, strict=True)}
        first += test.n_queries
    return {
        "name": comparison.name,
        "about": comparison.about(),
        "metrics": list(comparison.metrics),
        "maximise": dict(comparison.maximise),
        "baseline": comparison.baseline,
        "profile": profile.found(comparison),
        "rankers": [
            {**_ranker(comparison, label), **about[label].found(), "grades": calibration.of(label)}
            for label in comparison.rankers
        ],
        "failures": dict(comparison.failures),
        "qid": [str(qid) for qid in comparison.qid],
        "values": _values(comparison),
        "opened": {str(q): queries[q] for q in sorted(queries)},
    }


def _ranker(comparison: Comparison, label: str) -> dict[str, Any]:
    tests = {metric: comparison.test(label, metric) for metric in comparison.metrics}
    return {
        "label": label,
        "means": {
            metric: [_short(x) for x in (found.mean, found.low, found.high)]
            for metric, found in comparison.intervals[label].items()
        },
        "tests": {
            metric: {
                "p": _short(test.adjusted),
                "beyond": test.significant,
                "better": (test.difference > 0) == comparison.maximise[metric],
                "wins": test.wins,
                "ties": test.ties,
                "losses": test.losses,
            }
            for metric, test in tests.items()
            if test is not None
        },
        "seconds": _short(comparison.seconds[label]),
        "bytes": comparison.sizes[label],
        "curve": _curve(comparison.runs[label]),
    }


def _curve(runs: tuple[Run, ...]) -> dict[str, Any] | None:
    """Return train and valid by round, averaged over the folds as far as all of them go."""
    runs = tuple(run for run in runs if any(name.startswith("valid ") for name in run.curve))
    if not runs:  # no valid data, or nothing was learnt
        return None
    names = [name for name in runs[0].curve if name.startswith("valid ")]
    metric = names[0].removeprefix("valid ")
    length = min(len(run.curve[names[0]]) for run in runs)
    rounds = np.unique(np.linspace(0, length - 1, min(length, _POINTS)).round().astype(int))
    lines = {
        part: [_short(np.mean([run.curve[f"{part} {metric}"][t] for run in runs])) for t in rounds]
        for part in ("train", "valid")
        if f"{part} {metric}" in runs[0].curve
    }
    best = [run.best_iteration for run in runs]
    return {"metric": metric, "rounds": (rounds + 1).tolist(), "best": best, **lines}


def _values(comparison: Comparison) -> dict[str, dict[str, list[float | None]]]:
    """Return the value of every query; of the headline metric alone where there are many."""
    many = len(comparison.qid) * len(comparison.rankers) * len(comparison.metrics) > _VALUES
    metrics = comparison.metrics[:1] if many else comparison.metrics
    return {
        label: {
            metric: [_short(value, digits=4) for value in comparison.per_query[label][metric]]
            for metric in metrics
        }
        for label in comparison.rankers
    }


# --- queries that can be opened ----------------------------------------------------------------


def _chosen_queries(comparison: Comparison) -> I64:
    """Return queries to open: the largest differences from the baseline, then some at random."""
    metric, count = comparison.metrics[0], len(comparison.qid)
    per_query = comparison.per_query
    cells = len(comparison.rankers) * _DOCUMENTS * (_FEATURES + 1)
    limit = max(1, min(_OPENED, _NUMBERS // cells, count))
    chosen: dict[int, None] = {}
    for label in comparison.rankers:
        change = np.nan_to_num(per_query[label][metric] - per_query[comparison.baseline][metric])
        order = np.argsort(change, kind="stable")
        chosen |= dict.fromkeys([*order[:_EXTREMES].tolist(), *order[-_EXTREMES:].tolist()])
    chosen |= dict.fromkeys(stream(0, "report", "queries").permutation(count).tolist())
    return np.sort(np.array(list(chosen)[:limit], np.int64))


def _opened(
    comparison: Comparison, fold: int, test: RankingData, queries: I64, about: dict[str, _About]
) -> list[dict[str, Any]]:
    """Return the documents of ``queries`` with ranks, scores and contributions of each ranker."""
    shown = [_documents(comparison, fold, test, int(q)) for q in queries]
    found = [_query(test, int(q), rows) for q, rows in zip(queries, shown, strict=True)]
    for label in comparison.rankers:
        run = comparison.runs[label][fold]
        fitted = load_model(run.model)
        about[label].note(fitted)
        for entry, q, rows in zip(found, queries, shown, strict=True):
            begin, end = test.indptr[q], test.indptr[q + 1]
            scores = run.scores[begin:end]
            ranks = np.empty(len(scores), np.int64)
            ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
            entry["ranks"][label] = ranks[rows].tolist()
            parts = _parts(fitted, test, int(q), rows)
            if parts is not None:
                about[label].add(parts)
                entry["parts"][label] = parts
    for entry, rows, q in zip(found, shown, queries, strict=True):
        _shorten(entry, about, test, int(q), rows)
    return found


def _documents(comparison: Comparison, fold: int, test: RankingData, query: int) -> I64:
    """Return the documents to show: the best of every ranker, as many as fit."""
    begin, end = test.indptr[query], test.indptr[query + 1]
    best = np.full(end - begin, end - begin, np.int64)
    for label in comparison.rankers:
        order = np.argsort(-comparison.runs[label][fold].scores[begin:end], kind="stable")
        best[order] = np.minimum(best[order], np.arange(len(order)))
    return np.sort(np.argsort(best, kind="stable")[:_DOCUMENTS])


def _query(test: RankingData, query: int, rows: I64) -> dict[str, Any]:
    begin = test.indptr[query]
    names = rows + 1 if test.doc_id is None else test.doc_id[begin + rows]
    return {
        "documents": [str(name) for name in names],
        "grades": test.y[begin + rows].tolist(),
        "length": int(test.indptr[query + 1] - begin),
        "ranks": {},
        "parts": {},
        "features": {},
    }


def _parts(fitted: Any, test: RankingData, query: int, rows: I64) -> F64 | None:
    """Return the contributions of the documents, None where the model has none."""
    try:
        view = QueryView.at(fitted, test, query)
        if hasattr(fitted.model_, "contributions_of"):
            return document_parts(view)[rows]
        parts: F64 = fitted.model_.contributions(view.X[rows])
    except UsageError:
        return None
    return parts


def _shorten(
    entry: dict[str, Any], about: dict[str, _About], test: RankingData, query: int, rows: I64
) -> None:
    """Replace contributions by those of each ranker's main features and the rest of the score."""
    at = test.indptr[query] + rows
    used: set[int] = set()
    for label, parts in entry["parts"].items():
        main = about[label].main()
        used.update(main.tolist())
        rest = parts.sum(axis=1) - parts[:, main].sum(axis=1)
        both = np.column_stack([parts[:, main], rest])
        entry["parts"][label] = {
            "by": main.tolist(),
            "values": [[_short(x) for x in row] for row in both],
        }
    for column in sorted(used):
        values = test.X[at][:, [column]]
        dense = values if isinstance(values, np.ndarray) else values.toarray()
        entry["features"][str(column)] = [_short(x) for x in dense.ravel()]


class _About:
    """What a ranker goes by: its size in its own terms, and its features by mean contribution."""

    def __init__(self) -> None:
        self._sum: F64 | None = None
        self._count = 0
        self._kind = ""
        self._names: list[str] = []
        self._main: I64 | None = None

    def note(self, fitted: Any) -> None:
        """Take note of the model, the first time."""
        if self._kind:
            return
        model = fitted.model_
        names = getattr(fitted, "feature_names_in_", np.arange(1, fitted.n_features_in_ + 1))
        self._names = [str(name) for name in names]
        self._kind = f"{fitted.model} model"
        if hasattr(model, "coef"):
            used = int(np.count_nonzero(model.coef))
            self._kind = f"{used:,} of {len(model.coef):,} weights"
        elif hasattr(model, "n_trees"):
            self._kind = f"{model.n_trees:,} trees"

    def add(self, parts: F64) -> None:
        """Add the documents of a query."""
        size = np.abs(parts[:, :-1] - parts[:, :-1].mean(axis=0)).sum(axis=0)
        self._sum = size if self._sum is None else self._sum + size
        self._count += len(parts)

    def main(self) -> I64:
        """Return the features that scores are split by: those that matter most at first sight."""
        if self._main is None:
            assert self._sum is not None
            self._main = np.argsort(-self._sum, kind="stable")[:_FEATURES]
        return self._main

    def found(self) -> dict[str, Any]:
        """Return the kind of model, and up to twenty features by mean absolute contribution."""
        if self._sum is None:
            return {"kind": self._kind, "importance": [], "names": {}}
        mean = self._sum / max(1, self._count)
        order = np.argsort(-mean, kind="stable")[:20]
        important = [[self._names[f], _short(mean[f])] for f in order if mean[f] > 0.0]
        names = {str(f): self._names[f] for f in self.main()}
        return {"kind": self._kind, "importance": important, "names": names}


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
            [float(grade), *(_short(x) for x in np.quantile(scores[grades == grade], _QUANTILES))]
            for grade in np.unique(grades)
        ]


_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def _bounds(data: RankingData) -> Iterator[tuple[int, int]]:
    return zip(data.indptr[:-1].tolist(), data.indptr[1:].tolist(), strict=True)


def _short(value: Any, *, digits: int = 5) -> float | None:
    """Return a number in as few digits as the page shows; None for one that is not finite."""
    number = float(value)
    return float(f"{number:.{digits}g}") if np.isfinite(number) else None
