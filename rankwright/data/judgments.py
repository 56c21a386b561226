"""Judgment lists as search teams keep them: grades of documents, and the texts of queries.

Read by what they hold: a list of lines ``grade qid:1 # document``, with the texts of queries in
lines ``# qid:1: text`` above it, as hello-ltr writes it (``text*2`` is a query of weight 2) and
Quepid exports it for learning to rank; TREC judgments; and tables with the columns of query,
document and rating, such as Quepid's exports of a case. A table of Quepid's books has a column of
ratings for each judge instead: the grade is the mean of those that are given. A row without
document or rating, which Quepid writes for what is not rated yet, is no judgment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from rankwright.core.types import AnyArray
from rankwright.data.frames import columns_of_frame, frame_columns, match_columns
from rankwright.data.streams import display_name, error_at, number_at, text_lines
from rankwright.data.trec import COLUMNS, ByDocument, read_qrels, table_format
from rankwright.errors import DataError, quoted

_HEADER = re.compile(r"#\s*qid:\s*(\S+?):\s+(.*?)(?:\*(\d+))?\s*$")
_LINE = re.compile(r"(\S+)\s+qid:(\S+)\s[^#]*#\s*(\S+)")
_IDS = ("qid", "doc_id")


@dataclass(frozen=True, slots=True)
class Judgments:
    """Grades by query and document, and what is known of the queries.

    Attributes
    ----------
    grades : dict
        ``{query id: {document id: grade}}``, all ids as text.
    ids : dict
        From the text of a query to the ids that have it.
    weights : dict
        Weights of queries that are not 1.
    """

    grades: ByDocument
    ids: dict[str, list[str]] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)

    def find(self, name: str) -> str | None:
        """Return the id of the query with this id, or else with this text; None: not judged."""
        if name in self.grades:
            return name
        found = self.ids.get(name.strip(), [])
        if len(found) > 1:
            raise DataError(
                f"the queries {' and '.join(found)} of the judgments have the same text "
                f"{quoted(name)}; give their ids in the log."
            )
        return found[0] if found else None


def read_judgments(judgments: Any) -> Judgments:
    """Read a judgment list.

    Parameters
    ----------
    judgments : path, mapping or frame
        A file with lines ``grade qid:1 # document``, TREC judgments or a table (csv, tsv, Parquet,
        Arrow), plain or compressed; a mapping ``{query: {document: grade}}``; or a pandas, polars
        or Arrow frame. A negative grade, as TREC uses for spam, is the grade 0.
    """
    if isinstance(judgments, Judgments):
        return judgments
    if isinstance(judgments, Mapping):
        return _not_negative(Judgments(read_qrels(judgments)))
    if not isinstance(judgments, str | PathLike):
        names = frame_columns(judgments)
        if names is None:
            return _not_negative(Judgments(read_qrels(judgments)))  # which says what it takes
        column = columns_of_frame(judgments)
        roles = _roles(names)
        columns = {role: column(name) for role, name in roles.items()}
        return _not_negative(_of_columns(columns, "the judgments"))
    path = str(judgments)
    table = table_format(path)
    if table is not None:
        return _not_negative(_of_columns(table.read_columns(path, _roles), display_name(path)))
    first = next((text for _, text in text_lines(path) if not text.startswith("#")), "")
    found = _of_list(path) if "qid:" in first else Judgments(read_qrels(path))
    return _not_negative(found)


def _not_negative(found: Judgments) -> Judgments:
    for documents in found.grades.values():
        for doc, grade in documents.items():
            if grade < 0:
                documents[doc] = 0.0
    return found


# --- lists of lines ----------------------------------------------------------------------------


def _of_list(path: str) -> Judgments:
    found = Judgments({})
    for line, text in text_lines(path):
        if text.startswith("#"):
            header = _HEADER.match(text)
            if header is not None:
                query, said, weight = header.groups()
                found.ids.setdefault(said.strip(), []).append(query)
                if weight is not None and int(weight) != 1:
                    found.weights[query] = float(weight)
            continue
        parts = _LINE.match(text)
        if parts is None:
            error_at(path, line, "a judgment is 'grade qid:QUERY # DOCUMENT'")
        query, doc = parts[2], parts[3].removesuffix(";")  # Quepid has written: # doc; "text"
        grade = number_at(parts[1], path, line, "the grade")
        if not math.isfinite(grade):
            error_at(path, line, f"the grade {grade} is not finite")
        documents = found.grades.setdefault(query, {})
        if documents.setdefault(doc, grade) != grade:
            error_at(path, line, f"document {quoted(doc)} of query {query} is judged twice")
    return found


# --- tables ------------------------------------------------------------------------------------


def _roles(names: list[str]) -> dict[str, str]:
    """Return role -> column: query, document, and the rating or one column for each judge."""
    usual = {role: COLUMNS[role] for role in (*_IDS, "grade")}
    roles = match_columns(names, usual, required=_IDS if len(names) > len(_IDS) else usual)
    if "grade" in roles:
        return roles
    judges = [name for name in names if name not in roles.values()]
    return {**roles, **{f"judge {name}": name for name in judges}}


def _of_columns(columns: Mapping[str, AnyArray], source: str) -> Judgments:
    ratings = [name for name in columns if name not in _IDS]
    values = np.stack([_ratings(columns[name], name, source) for name in ratings])
    given = ~np.isnan(values)
    means = np.where(given, values, 0.0).sum(axis=0) / np.maximum(1, given.sum(axis=0))
    grades: ByDocument = {}
    rows = zip(*(columns[role].tolist() for role in _IDS), given.any(axis=0), means, strict=True)
    for row, (query, doc, rated, grade) in enumerate(rows):
        if _is_empty(query):
            raise DataError(f"{source}: the query is missing at row {row}.")
        if _is_empty(doc) or not rated:
            continue
        documents = grades.setdefault(_text(query), {})
        if documents.setdefault(_text(doc), float(grade)) != grade:
            raise DataError(
                f"{source}: document {quoted(_text(doc))} of query {quoted(_text(query))} is "
                f"judged twice, the second time at row {row}."
            )
    if not grades:
        raise DataError(f"{source}: no row has a query, a document and a rating.")
    return Judgments(grades)


def _ratings(column: AnyArray, name: str, source: str) -> AnyArray:
    """Return ratings as numbers, NaN where there is none."""
    found = np.empty(len(column))
    for row, value in enumerate(column.tolist()):
        try:
            found[row] = math.nan if _is_empty(value) else float(value)
        except (TypeError, ValueError):
            raise DataError(
                f"{source}: the column {quoted(name.removeprefix('judge '))} has {quoted(value)} "
                f"at row {row}, where a rating is expected."
            ) from None
        if math.isinf(found[row]):
            raise DataError(f"{source}: the rating at row {row} is not finite.")
    return found


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or value != value


def _text(value: Any) -> str:
    """Return an id as text: pandas makes floats of whole numbers where one is missing."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
