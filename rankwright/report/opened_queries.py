"""Queries that can be opened in a report: their documents, ranks, and what each feature adds."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwright.comparison.result import Comparison
from rankwright.core.order import ranking
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.explanation.parts import document_parts
from rankwright.explanation.query_view import QueryView
from rankwright.persist.model_file import load_model

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
        important = [[self._names[f], short(mean[f])] for f in order if mean[f] > 0.0]
        names = {str(f): self._names[f] for f in self.main()}
        return {"kind": self._kind, "importance": important, "names": names}


def short(value: Any, *, digits: int = 5) -> float | None:
    """Return a number in as few digits as the page shows; None for one that is not finite."""
    number = float(value)
    return float(f"{number:.{digits}g}") if np.isfinite(number) else None
