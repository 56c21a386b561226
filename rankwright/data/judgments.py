"""Judgment lists of search teams: grades of documents, and the texts of queries.

The content determines the kind of list:

- lines ``grade qid:1 # document``, as exported by Quepid for learning to rank and written by
  hello-ltr, which adds the texts of queries in lines ``# qid:1: text`` (``text*2`` gives the query
  the weight 2);
- TREC judgments;
- tables with columns of query, document and rating, such as Quepid's export of a case. Exports of
  Quepid's books have a column of ratings for each judge; the grade is then their mean. Rows without
  a document or a rating, which Quepid writes for documents that are not rated yet, are skipped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Real
from os import PathLike
from typing import Any

import numpy as np

from rankwright.core.types import AnyArray
from rankwright.data.frames import match_columns
from rankwright.data.streams import display_name, error_at, number_at, text_lines
from rankwright.data.trec import COLUMNS, ByDocument, is_missing, read_qrels, table_columns
from rankwright.errors import DataError, UsageError, brief, quoted

_HEADER = re.compile(r"#\s*qid:\s*(\S+?):\s+(.*?)(?:\*(\d+))?\s*$")
_LINE = re.compile(r"(\S+)\s+qid:(\S+)\s[^#]*#\s*(\S+)")
_IDS = ("qid", "doc_id")
_SUBTOPIC = ("subtopic", "subtopic_id", "intent", "iteration")
BySubtopic = dict[str, dict[str, dict[str, float]]]
"""Query id -> document id -> subtopic -> grade."""


@dataclass(frozen=True, slots=True)
class Judgments:
    """Grades by query and document, with the texts and weights of queries.

    Attributes
    ----------
    grades : dict
        ``{query id: {document id: grade}}``, all ids as text.
    ids : dict
        Text of a query -> ids of the queries with this text.
    weights : dict
        Weights of queries that are not 1.
    """

    grades: ByDocument
    ids: dict[str, list[str]] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)

    def find(self, name: str) -> str | None:
        """Return the id of the query with this id or else this text; None if it is not judged."""
        if name in self.grades:
            return name
        ids = self.ids.get(name.strip(), [])
        if len(ids) > 1:
            raise DataError(
                f"the queries {' and '.join(ids)} of the judgments have the same text "
                f"{quoted(name)}; give their ids in the log."
            )
        return ids[0] if ids else None


def read_judgments(judgments: Any) -> Judgments:
    """Read a judgment list.

    Parameters
    ----------
    judgments : path, mapping or frame
        A file with lines ``grade qid:1 # document``, TREC judgments or a table (csv, tsv, Parquet,
        Arrow), plain or compressed; a mapping ``{query: {document: grade}}``; or a pandas, polars
        or Arrow frame. Negative grades, which mark spam in TREC judgments, become 0.
    """
    if isinstance(judgments, Judgments):
        return judgments
    is_file = isinstance(judgments, str | PathLike)
    columns = table_columns(judgments, _match_judges)
    if columns is not None:
        name = display_name(str(judgments)) if is_file else "the judgments"
        result = Judgments(_grades_of_columns(columns, name))
    elif is_file and _is_list(str(judgments)):
        result = _of_list(str(judgments))
    else:
        result = Judgments(read_qrels(judgments))
    for documents in result.grades.values():
        for doc, grade in documents.items():
            documents[doc] = max(0.0, grade)
    return result


def read_subtopics(qrels: Any) -> BySubtopic:
    """Return judgments by subtopic, ``{qid: {docid: {subtopic: grade}}}``.

    Parameters
    ----------
    qrels : path, mapping or frame
        TREC's diversity judgments, lines ``qid subtopic docid grade``; a table in a file or a frame
        with the columns ``qid``, ``subtopic``, ``doc_id`` and ``grade``; or a mapping as returned.
        In a mapping ``{qid: {docid: grade}}`` all documents have one subtopic.
    """
    roles = {role: COLUMNS[role] for role in _IDS}
    roles |= {"subtopic": _SUBTOPIC, "grade": COLUMNS["grade"]}
    columns = table_columns(qrels, lambda names: match_columns(names, roles, required=roles))
    rows: Iterable[tuple[Any, ...]]
    if columns is not None:
        rows = zip(*(columns[role].tolist() for role in roles), strict=True)
    elif isinstance(qrels, str | PathLike):
        rows = _subtopic_lines(str(qrels))
    else:
        rows = _rows_of_mapping(qrels)
    judgments: BySubtopic = {}
    for query, doc, subtopic, grade in rows:
        place = (
            f"the grade of document {quoted(_text(doc))} of query {quoted(_text(query))} for "
            f"subtopic {quoted(_text(subtopic))}"
        )
        if not isinstance(grade, Real) or not math.isfinite(grade):
            raise DataError(f"{place} is {brief(grade)}, which is not a finite number.")
        grades = judgments.setdefault(_text(query), {}).setdefault(_text(doc), {})
        if grades.setdefault(_text(subtopic), float(grade)) != grade:
            raise DataError(f"{place} is given twice, with different values.")
    return judgments


def _rows_of_mapping(judgments: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yield the query, document, subtopic and grade of each judgment."""
    if not isinstance(judgments, Mapping):
        read_qrels(judgments)  # raises an error that lists the kinds of judgments
    for query, documents in judgments.items():
        if not isinstance(documents, Mapping):
            raise UsageError(
                f"the judgments of query {brief(query)} must be a mapping from documents to grades "
                "by subtopic."
            )
        for doc, grades in documents.items():
            by_subtopic = grades if isinstance(grades, Mapping) else {"0": grades}
            for subtopic, grade in by_subtopic.items():
                yield query, doc, subtopic, grade


def _subtopic_lines(path: str) -> Iterator[tuple[str, str, str, float]]:
    for line, text in text_lines(path):
        cells = text.split()
        if cells[0].startswith("#"):
            continue
        if len(cells) != 4:
            error_at(path, line, "lines are 'qid subtopic docid grade'")
        query, subtopic, doc, grade = cells
        yield query, doc, subtopic, number_at(grade, path, line, "the grade")


# --- lists of lines ----------------------------------------------------------------------------


def _is_list(path: str) -> bool:
    first = next((text for _, text in text_lines(path) if not text.startswith("#")), "")
    return "qid:" in first


def _of_list(path: str) -> Judgments:
    judgments = Judgments({})
    for line, text in text_lines(path):
        if text.startswith("#"):
            header = _HEADER.match(text)
            if header is not None:
                query, query_text, weight = header.groups()
                judgments.ids.setdefault(query_text.strip(), []).append(query)
                if weight is not None and int(weight) != 1:
                    judgments.weights[query] = float(weight)
            continue
        parts = _LINE.match(text)
        if parts is None:
            error_at(path, line, "a judgment is 'grade qid:QUERY # DOCUMENT'")
        query, doc = parts[2], parts[3].removesuffix(";")  # Quepid has written: # doc; "text"
        grade = number_at(parts[1], path, line, "the grade")
        if not math.isfinite(grade):
            error_at(path, line, f"the grade {grade} is not finite")
        documents = judgments.grades.setdefault(query, {})
        if documents.setdefault(doc, grade) != grade:
            error_at(path, line, f"document {quoted(doc)} of query {query} has two grades")
    return judgments


# --- tables ------------------------------------------------------------------------------------


def _match_judges(names: list[str]) -> dict[str, str]:
    """Return role -> column: query, document, and the rating or one column for each judge."""
    roles = match_columns(names, COLUMNS, required=_IDS if len(names) > len(_IDS) else COLUMNS)
    if "grade" in roles:
        return roles
    judges = [name for name in names if name not in roles.values()]
    return {**roles, **{f"judge {name}": name for name in judges}}


def _grades_of_columns(columns: Mapping[str, AnyArray], name: str) -> ByDocument:
    ratings = np.stack(
        [_ratings(values, role, name) for role, values in columns.items() if role not in _IDS]
    )
    is_rated = ~np.isnan(ratings)
    means = np.where(is_rated, ratings, 0.0).sum(axis=0) / np.maximum(1, is_rated.sum(axis=0))
    grades: ByDocument = {}
    queries, docs = (columns[role].tolist() for role in _IDS)
    rows = zip(queries, docs, is_rated.any(axis=0), means.tolist(), strict=True)
    for row, (query, doc, has_grade, grade) in enumerate(rows):
        if is_missing(query):
            raise DataError(f"{name}: the query is missing at row {row}.")
        if is_missing(doc) or not has_grade:
            continue
        documents = grades.setdefault(_text(query), {})
        if documents.setdefault(_text(doc), grade) != grade:
            raise DataError(
                f"{name}: document {quoted(_text(doc))} of query {quoted(_text(query))} has two "
                f"grades, the second at row {row}."
            )
    if not grades:
        raise DataError(f"{name}: no row has a query, a document and a rating.")
    return grades


def _ratings(values: AnyArray, role: str, name: str) -> AnyArray:
    """Return a column of ratings as numbers, NaN if there is no rating."""
    ratings = np.empty(len(values))
    for row, value in enumerate(values.tolist()):
        try:
            ratings[row] = math.nan if is_missing(value) else float(value)
        except (TypeError, ValueError):
            raise DataError(
                f"{name}: the column {quoted(role.removeprefix('judge '))} has {quoted(value)} "
                f"at row {row}, which is not a number."
            ) from None
        if math.isinf(ratings[row]):
            raise DataError(f"{name}: the rating at row {row} is not finite.")
    return ratings


def _text(value: Any) -> str:
    """Return an id as text; pandas converts integers to floats in a column with missing values."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
