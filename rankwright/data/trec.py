"""TREC runs and judgments (qrels) as ranking data.

A run has lines ``qid Q0 docid rank score tag``, judgments have lines ``qid iteration docid grade``.
Read together they are ranking data with two features: ``score``, and ``rank``, which holds the
reciprocal 1/rank of the document when ordered by score (equal scores: by the run's own rank). A
negative judgment, as TREC uses for spam, is the grade 0.

Only documents of the run are there, so the ideal order that NDCG compares with is made of them
alone, where trec_eval takes all judged documents; ``missing="append"`` adds the judged documents
that the run lacks, without a score, and the judged queries it lacks.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy import sparse

from rankwright.core.types import F64
from rankwright.data.frames import column_of, ids_of_text
from rankwright.data.ranking_data import RankingData
from rankwright.data.scores import (
    RUN,
    first_rows,
    names_in_run,
    query_names,
    read_scores,
    write_run,
)
from rankwright.data.source import display_name
from rankwright.data.target import open_target
from rankwright.data.text_file import fault_at, number_at, text_lines
from rankwright.errors import DataError, UsageError, quoted

__all__ = ["Trec", "read_qrels", "read_scores", "write_qrels", "write_run"]

_QRELS = ("qid", "iteration", "docid", "grade")
_FEATURES = ("score", "rank")


class Trec:
    """TREC runs with their judgments (qrels): features ``score`` and reciprocal ``rank``."""

    extensions: ClassVar[tuple[str, ...]] = (".run", ".trec")
    holds: ClassVar[frozenset[str]] = frozenset({"doc_id", "qid", "feature_names"})

    def read(
        self,
        path: str | Path,
        *,
        qrels: str | Path | None = None,
        unjudged: str = "zero",
        missing: str = "ignore",
    ) -> RankingData:
        """Read a run and its judgments.

        Parameters
        ----------
        path
            The run.
        qrels
            The judgments; ``""`` for a run without any, whose grades are all 0.
        unjudged
            ``"zero"``: the grade of a document without judgment is 0; ``"drop"``: leave it out.
        missing
            ``"ignore"`` judged documents that are not in the run, or ``"append"`` them to their
            query with a missing score and a reciprocal rank of 0.
        """
        _one_of("unjudged", unjudged, ("zero", "drop"))
        _one_of("missing", missing, ("ignore", "append"))
        if qrels is None:
            raise UsageError(f"{path} is a run; name its judgments with qrels=FILE.")
        judged = read_qrels(qrels) if str(qrels) else {}
        qid, doc, rank, score = _read_run(path)
        if unjudged == "drop":
            kept = [at for at, key in enumerate(zip(qid, doc, strict=True)) if key in judged]
            if not kept:
                raise DataError(f"{qrels} judges no document of {path}.")
            qid, doc = [qid[at] for at in kept], [doc[at] for at in kept]
            rank, score = rank[kept], score[kept]
        if missing == "append":
            there = set(zip(qid, doc, strict=True))
            lacking = [key for key in judged if key not in there]
            qid += [query for query, _ in lacking]
            doc += [name for _, name in lacking]
            rank = np.concatenate((rank, np.full(len(lacking), np.inf)))
            score = np.concatenate((score, np.full(len(lacking), np.nan)))
        grades = [judged.get(key, 0.0) for key in zip(qid, doc, strict=True)]
        return _data_of_run(qid, doc, rank, score, grades)

    def write(
        self,
        data: RankingData,
        path: str | Path,
        *,
        feature: str | int | None = None,
        qrels: str | Path | None = None,
        tag: str = "rankwright",
    ) -> None:
        """Write a run scored by one feature, and the judgments where ``qrels`` names a file.

        Parameters
        ----------
        feature
            Name of the feature that is the score, or its number from 1; by default ``score``, or
            the only feature.
        """
        column = _score_column(data, feature)
        others = set(range(data.n_features)) - {column}
        if others and data.feature_names != _FEATURES:
            warnings.warn(
                f"a run holds one feature, its score: {len(others)} others are left out.",
                stacklevel=3,
            )
        if qrels is None:
            warnings.warn(
                "a run holds no grades: name a file for them with qrels=FILE.", stacklevel=3
            )
        else:
            write_qrels(data, qrels)
        values = data.X[:, [column]]
        dense = values.toarray() if sparse.issparse(values) else values
        write_run(data, dense[:, 0], path, tag=tag)


# --- API -------------------------------------------------------------------------------------


def write_qrels(data: RankingData, target: str | Path) -> None:
    """Write the grades as TREC judgments: whole ones as such, fractions with all their digits."""
    names, grades = names_in_run(data), data.y.tolist()
    with open_target(target) as stream:
        for q, query in enumerate(query_names(data)):
            rows = range(data.indptr[q], data.indptr[q + 1])
            lines = [f"{query} 0 {names[row]} {_grade_text(grades[row])}\n" for row in rows]
            stream.write("".join(lines).encode())


def read_qrels(path: str | Path) -> dict[tuple[str, str], float]:
    """Return (query, document) -> grade, in the order of the file; a negative grade becomes 0."""
    judged: dict[tuple[str, str], float] = {}
    for line, (query, _, doc, grade) in _rows(path, _QRELS, "a judgment"):
        if (query, doc) in judged:
            fault_at(path, line, f"document {quoted(doc)} of query {query} is judged twice")
        value = number_at(grade, path, line, "the grade")
        if not math.isfinite(value):
            fault_at(path, line, f"the grade {grade} is not finite")
        judged[query, doc] = max(0.0, value)
    return judged


# --- runs ------------------------------------------------------------------------------------


def _read_run(path: str | Path) -> tuple[list[str], list[str], F64, F64]:
    qid, doc, rank, score = [], [], [], []
    seen = set()
    for line, (query, _, name, place, value, _) in _rows(path, RUN, "a line of a run"):
        if (query, name) in seen:
            fault_at(path, line, f"document {quoted(name)} of query {query} appears twice")
        seen.add((query, name))
        qid.append(query)
        doc.append(name)
        rank.append(number_at(place, path, line, "the rank"))
        score.append(number_at(value, path, line, "the score"))
    if not qid:
        raise DataError(f"{display_name(path)} is empty; a run has lines '{' '.join(RUN)}'.")
    return qid, doc, np.array(rank), np.array(score)


def _data_of_run(
    qid: list[str], doc: list[str], rank: F64, score: F64, grades: list[float]
) -> RankingData:
    from rankwright.core.order import ranking

    data = RankingData.from_arrays(
        score.reshape(-1, 1), grades, qid=ids_of_text(qid), doc_id=ids_of_text(doc), position=rank
    )
    scores = np.array(data.X[:, 0], np.float64)
    order = ranking(scores, data.indptr, key=data.position)
    reciprocal = np.empty(data.n_documents)
    reciprocal[order] = 1.0 / (1 + np.arange(data.n_documents) - first_rows(data))
    reciprocal[np.isnan(scores)] = 0.0
    X = np.ascontiguousarray(np.stack((scores, reciprocal), axis=1))
    return replace(data, X=X, feature_names=_FEATURES, position=None)


def _score_column(data: RankingData, feature: str | int | None) -> int:
    """Return the number of the feature that is to be the score, from 0."""
    names = data.feature_names or ()
    if feature is None:
        if data.n_features != 1 and "score" not in names:
            raise UsageError(
                f"which of the {data.n_features} features is the score of the run? Name it with "
                "feature=..., a name or a number from 1."
            )
        return names.index("score") if "score" in names else 0
    return column_of(data, feature)


def _grade_text(grade: float) -> str:
    return str(int(grade)) if grade == int(grade) else repr(grade)


# --- lines -----------------------------------------------------------------------------------


def _rows(path: str | Path, columns: tuple[str, ...], what: str) -> Iterator[tuple[int, list[str]]]:
    for line, text in text_lines(path):
        cells = text.split()
        if len(cells) != len(columns):
            fault_at(path, line, f"{what} is '{' '.join(columns)}', not {len(cells)} columns")
        yield line, cells


def _one_of(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        listed = " or ".join(f"'{choice}'" for choice in choices)
        raise UsageError(f"{option} must be {listed}, not '{value}'.")
