"""A comparison as one HTML page that needs nothing else: `write_report`.

The page holds the value of every query. Documents, scores and contributions of whole queries would
make it large, so some queries can be opened: those on which rankers differ most from the baseline,
and others chosen at random, as many as fit. Everything is read off a `Comparison` and its model
files; the template, style and script are in ``templates/``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.comparison.pages import write_page
from rankwright.comparison.result import Comparison, PairedTest
from rankwright.comparison.tables import CORRECTIONS, difference
from rankwright.comparison.tables import about as sentence_of
from rankwright.core.order import ranking
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import RankwrightError, UsageError, counted
from rankwright.explanation.query import QueryView, document_parts
from rankwright.metrics.base import metric as parse_metric
from rankwright.metrics.significance import Interval
from rankwright.persist.model_file import load_model


def write_report(comparison: Comparison, path: str | Path, *, title: str | None = None) -> None:
    """Write a comparison as one HTML page that needs nothing else, whole or not at all.

    It has the table with intervals and tests, every query's value, learning curves, time and size,
    feature importance, and an explorer of queries.
    """
    content = report_content(comparison)
    write_page(
        path,
        "rankwright.comparison",
        "report",
        title=title or f"{len(comparison.rankers)} rankers on {comparison.name}",
        content=content,
        json=_in_script(content),
    )


def _in_script(content: object) -> str:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


# --- what the page shows, as plain values ------------------------------------------------------


_POINTS = 120  # of a learning curve
_VALUES = 4_000_000  # values per query in the page, at most


def report_content(comparison: Comparison) -> dict[str, Any]:
    """Return all that the page shows, ready for JSON."""
    opened = chosen_queries(comparison)
    profile, calibration = _Profile(), _Calibration(comparison)
    queries: dict[int, dict[str, Any]] = {}
    about = {label: About() for label in comparison.rankers}
    for number, fold in enumerate(comparison.folds):
        test = fold.test
        place = {qid: at for at, qid in enumerate(test.qid.tolist())}
        first = comparison.fold_of_query == number  # a query is shown as its first fold tests it
        profile.add(test.select(np.array([place[qid] for qid in comparison.qid[first]], np.int64)))
        calibration.add(number, test)
        here = opened[first[opened]]
        if len(here) or number == 0:
            inside = np.array([place[qid] for qid in comparison.qid[here]], np.int64)
            views = opened_queries(comparison, number, test, inside, about)
            queries |= {int(q): view for q, view in zip(here, views, strict=True)}
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
            metric: [
                _finite(x) for x in (found.mean, found.low, found.high)
            ]  # in full: rounded where they are shown
            for metric, found in comparison.intervals[label].items()
        },
        "tests": {
            metric: {
                "difference": difference(comparison, label, metric),
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
    """How scores relate to grades: scores in standard deviations above the mean of their query."""

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


# --- queries that can be opened ----------------------------------------------------------------
# Their documents, ranks, and what each feature adds.


_OPENED = 100  # queries that can be opened, at most
_NUMBERS = 300_000  # contributions in the page, at most
_DOCUMENTS = 25  # of an opened query
_FEATURES = 8  # by which a ranker's scores are split; the rest is one number
_EXTREMES = 4  # queries of largest gain and loss that each ranker has opened


def chosen_queries(comparison: Comparison) -> I64:
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


def opened_queries(
    comparison: Comparison, fold: int, test: RankingData, queries: I64, about: dict[str, About]
) -> list[dict[str, Any]]:
    """Return the documents of ``queries`` with ranks, scores and contributions of each ranker."""
    shown = [_documents(comparison, fold, test, int(q)) for q in queries]
    found = [_query(test, int(q), rows) for q, rows in zip(queries, shown, strict=True)]
    kinds = {entry.label: entry.ranker for entry in comparison.entries}
    for label in comparison.rankers:
        run = comparison.runs[label][fold]
        fitted = None if run.model is None else load_model(run.model)
        if fitted is None:
            about[label].note_kind(kinds[label])
        else:
            about[label].note(fitted)
        for entry, q, rows in zip(found, queries, shown, strict=True):
            begin, end = test.indptr[q], test.indptr[q + 1]
            order = _best_first(run.scores[begin:end])
            ranks = np.empty(len(order), np.int64)
            ranks[order] = np.arange(1, len(order) + 1)
            entry["ranks"][label] = ranks[rows].tolist()
            parts = None if fitted is None else _parts(fitted, test, int(q), rows)
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
        order = _best_first(comparison.runs[label][fold].scores[begin:end])
        best[order] = np.minimum(best[order], np.arange(len(order)))
    return np.sort(np.argsort(best, kind="stable")[:_DOCUMENTS])


def _best_first(scores: F64) -> I64:
    return ranking(scores, np.array([0, len(scores)]))


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
            return document_parts(fitted, view.data)[rows]
        parts: F64 = fitted.model_.contributions(view.X[rows])
    except UsageError:
        return None
    return parts


def _shorten(
    entry: dict[str, Any], about: dict[str, About], test: RankingData, query: int, rows: I64
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
            "values": [[short(x) for x in row] for row in both],
        }
    for column in sorted(used):
        values = test.X[at][:, [column]]
        dense = values if isinstance(values, np.ndarray) else values.toarray()
        own = (test.categories or {}).get((test.feature_names or {column: ""})[column])
        shown = dense.ravel() if own is None else own.column(dense.ravel())
        entry["features"][str(column)] = [
            short(x) if own is None else None if x is None else str(x) for x in shown
        ]


class About:
    """Feature importance of a ranker: its size in its own terms, features by mean contribution."""

    def __init__(self) -> None:
        self._sum: F64 | None = None
        self._count = 0
        self._kind = ""
        self._names: list[str] = []
        self._main: I64 | None = None

    def note_kind(self, kind: str) -> None:
        """Take note of what an entry without a model file is."""
        self._kind = kind

    def note(self, fitted: Any) -> None:
        """Take note of the model, the first time."""
        if self._kind:
            return
        model = fitted.model_
        names = getattr(fitted, "feature_names_in_", np.arange(1, fitted.n_features_in_ + 1))
        self._names = [str(name) for name in names]
        self._kind = f"{fitted.model_name} model"
        if hasattr(model, "coef"):
            used = int(np.count_nonzero(model.coef))
            self._kind = f"{used:,} of {len(model.coef):,} weights"
        elif hasattr(model, "n_trees"):
            is_rules = getattr(model, "is_rules", False)
            self._kind = counted(model.n_trees, "rule" if is_rules else "tree")

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
        important = [[self._names[f], short(mean[f])] for f in order if mean[f] > 0.0]
        names = {str(f): self._names[f] for f in self.main()}
        return {"kind": self._kind, "importance": important, "names": names}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def short(value: Any, *, digits: int = 5) -> float | None:
    """Return a number in as few digits as the page shows; None for one that is not finite."""
    number = float(value)
    return float(f"{number:.{digits}g}") if np.isfinite(number) else None


# --- conclusion --------------------------------------------------------------------------------
# The first two sentences: which ranker is best, how sure that is, and what to do.


def conclusion(comparison: Comparison) -> tuple[str, str]:
    """Return what the headline metric says of the rankers, and what to do about it.

    Every figure is one of the comparison's own. Only its tests are called significant or not, so
    two rankers of which none is the baseline are never said to differ.
    """
    metric = comparison.metrics[0]
    means = {label: comparison.intervals[label][metric].mean for label in comparison.rankers}
    known = {label: mean for label, mean in means.items() if not math.isnan(mean)}
    if not known:
        return (
            f"No test query has a value of {metric}, so the rankers cannot be compared by it.",
            "Check the grades of the test data, or choose another metric.",
        )
    sign = 1 if comparison.maximise[metric] else -1
    order = sorted(known, key=lambda label: -sign * known[label])  # of equals the first listed
    best = order[0]
    if len(order) == 1:
        return _alone(comparison, best)
    if best == comparison.baseline:
        return _baseline_is_best(comparison, order)
    return _against_baseline(comparison, best, order)


def _alone(comparison: Comparison, label: str) -> tuple[str, str]:
    found = comparison.intervals[label][comparison.metrics[0]]
    return (
        f"{label} reaches {comparison.metrics[0]} {found.mean:.4f} on {comparison.name} "
        f"({_interval(found)}{_queries(comparison)}).",
        "There is no other ranker to compare it with; add a simple one, such as "
        "linear_regression, to see how much it gains.",
    )


def _against_baseline(comparison: Comparison, best: str, order: list[str]) -> tuple[str, str]:
    metric, baseline = comparison.metrics[0], comparison.baseline
    test = comparison.test(best, metric)
    if baseline not in order or test is None:
        first = f"{best} is best on {comparison.name} by {metric} ({_mean(comparison, best)})"
        return (
            f"{first}, but it was not tested against {baseline}.",
            f"Compare it with a baseline before using {best}.",
        )
    shown = (
        f"on {comparison.name}: {metric} {_mean(comparison, best)} against "
        f"{_mean(comparison, baseline)} of the baseline {baseline}"
    )
    if test.significant:
        first = f"{best} is best {shown}, a statistically significant difference "
        return (
            f"{first}({_p(test)}, {_queries(comparison)}).",
            f"Use {best}{_next_best(comparison, order)}.",
        )
    return (
        f"{best} is first {shown}, but the difference is not statistically significant "
        f"({_p(test)}, {_queries(comparison)}).",
        f"Keep {baseline} or choose by cost{_cost(comparison, best, baseline)}, and compare on "
        "more queries to decide.",
    )


def _baseline_is_best(comparison: Comparison, order: list[str]) -> tuple[str, str]:
    metric, best, second = comparison.metrics[0], order[0], order[1]
    test = comparison.test(second, metric)
    first = (
        f"The baseline {best} is best on {comparison.name}: {metric} {_mean(comparison, best)} "
        f"against {_mean(comparison, second)} of {second}, the next best"
    )
    if test is None:
        return f"{first}; this difference was not tested.", f"Keep {best}."
    if test.significant:
        return (
            f"{first}, a statistically significant difference ({_p(test)}, "
            f"{_queries(comparison)}).",
            f"Keep {best}; none of the other rankers improves on it.",
        )
    return (
        f"{first}, but this difference is not statistically significant ({_p(test)}, "
        f"{_queries(comparison)}).",
        f"Keep {best} unless {second} is cheaper to run{_cost(comparison, second, best)}, and "
        "compare on more queries to decide.",
    )


# --- parts of sentences --------------------------------------------------------------------------


def _mean(comparison: Comparison, label: str) -> str:
    return f"{comparison.intervals[label][comparison.metrics[0]].mean:.4f}"


def _p(test: PairedTest) -> str:
    return "p < 0.001" if test.adjusted < 0.001 else f"p = {test.adjusted:.3f}"


def _interval(found: Interval) -> str:
    if math.isnan(found.low):
        return ""
    return f"{found.level:.0%} interval {found.low:.4f} to {found.high:.4f}, "


def _queries(comparison: Comparison) -> str:
    """Return the number of queries that the headline metric is over."""
    metric = comparison.metrics[0]
    most = max(comparison.n_queries(label, metric) for label in comparison.rankers)
    return counted(most, "test query", "test queries")


def _cost(comparison: Comparison, label: str, other: str) -> str:
    """Return how long the two train, where that differs enough to matter."""
    own, others = comparison.seconds[label], comparison.seconds[other]
    if own is None or others is None or min(own, others) <= 0 or 0.5 <= own / others <= 2:
        return ""
    return f" ({label} trains in {_seconds(own)}, {other} in {_seconds(others)})"


def _next_best(comparison: Comparison, order: list[str]) -> str:
    """Return the cost of the best, and the second, of which the tests say nothing, if it is new."""
    best, second = order[:2]
    if second == comparison.baseline:
        return _cost(comparison, best, second)
    own, others = comparison.seconds[best], comparison.seconds[second]
    trains = "" if own is None else f", which trains in {_seconds(own)}"
    about = _mean(comparison, second) + ("" if others is None else f", {_seconds(others)}")
    test = comparison.test(best, comparison.metrics[0], against=second)
    if test is None:
        compared = "was not tested against it"
    elif test.significant:
        compared = f"is significantly worse ({_p(test)})"
    else:
        compared = f"is not significantly worse ({_p(test)})"
    return f"{trains}; the next best, {second} ({about}), {compared}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:,.0f} s"


# --- metrics in a sentence ---------------------------------------------------------------------
# For readers who are new to ranking.


# {first} is "the first 10 documents", or "the whole list" where there is no cut-off.
PLAIN = {
    "alpha_ndcg": "How well {first} cover all subtopics, compared to the best possible order",
    "auc": "How often a relevant document is ranked above one that is not, over all such pairs",
    "best": "The highest grade in {first}",
    "bpref": "How rarely documents that are not relevant are ranked above relevant ones",
    "coverage_error": "Number of documents down to the last relevant one",
    "dcg": "Sum of the gains of {first}, with less weight further down the list",
    "domination_error": "Share of documents with a worse document ranked above them",
    "err": "How early a reader who goes down the list is likely to find a satisfying document",
    "err_ia": "How early a reader is likely to find a relevant document, averaged over subtopics",
    "eru": "Expected utility of the list to a reader who is less likely to look further down",
    "f1": "Balance (harmonic mean) of precision and recall in {first}",
    "gm_map": "Geometric mean of average precision over queries, which weighs poor queries more",
    "hit": "Share of queries with a relevant document in {first}",
    "iprec": "The highest precision from a level of recall on, or its mean over eleven levels",
    "judged": "Share of {first} that have a judgment",
    "kendall": "Agreement between the order by score and the order by grade: 1 is the same order, "
    "-1 the reverse",
    "map": "Precision at the rank of each relevant document, averaged: all relevant documents "
    "first gives 1",
    "mrr": "One over the rank of the first relevant document: 1 if it comes first, 1/2 if second",
    "ndcg": "How close the order of {first} is to the best possible one, where higher grades "
    "and higher ranks count more: 1 is perfect",
    "num_rel": "Number of relevant documents",
    "num_rel_ret": "Number of relevant documents in {first}",
    "num_ret": "Number of retrieved documents",
    "p": "Share of relevant documents in {first}",
    "p_ia": "Share of {first} that are relevant to a subtopic, averaged over subtopics",
    "pair_error": "Share of pairs of documents with different grades that are in the wrong order",
    "rbp": "Rate at which a reader who goes on to the next document with probability p finds "
    "relevant ones",
    "recall": "Share of all relevant documents that are in {first}",
    "rprec": "Share of relevant documents among the first R, where R is the number of relevant "
    "documents",
    "wta": "Share of queries whose first document is one of the best",
}


def explain_metric(name: str, *, maximise: bool) -> str:
    """Return what the metric called ``name`` means, and whether more is better.

    A metric of another package is explained by the first line of its docstring.
    """
    try:
        found = parse_metric(name)
    except RankwrightError:  # a name that the caller gave to a function
        found = None
    if found is None:
        text = f"{name}, a metric of your own"
    elif found.key in PLAIN:
        documents = "document" if found.k == 1 else f"{found.k} documents"
        first = "the whole list" if found.k is None else f"the first {documents}"
        text = PLAIN[found.key].format(first=first)
    else:
        text = (type(found).__doc__ or name).strip().splitlines()[0].rstrip(".")
    return f"{text}. {'Higher' if maximise else 'Lower'} is better."
