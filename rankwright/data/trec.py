"""TREC runs and judgments (qrels), read from files, mappings and frames.

A run has lines ``qid Q0 docid rank score tag``, judgments have lines ``qid iteration docid grade``.
As in trec_eval, blank lines and comments (lines that begin with ``#``) are skipped, and text after
the tag of a run is ignored. `read_run` and `read_qrels` return ``{qid: {docid: score or grade}}``
with ids as text. `judge_run` joins a run and its judgments in arrays for
`rankwright.evaluate_run`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64, AnyArray
from rankwright.data.formats import format_named
from rankwright.data.frames import USUAL_NAMES, columns_of_frame, frame_columns, match_columns
from rankwright.data.ranking_data import RankingData
from rankwright.data.rankings import RUN, TABLES, names_in_run
from rankwright.data.streams import (
    display_name,
    error_at,
    number_at,
    open_target,
    plain_suffix,
    text_lines,
)
from rankwright.errors import DataError, UsageError, brief, counted, quoted
from rankwright.registry import EXTENSIONS

ByDocument = dict[str, dict[str, float]]
"""Query id -> document id -> score of a run or grade of judgments."""

NOT_JUDGED = "has no judgments"
NOT_RETRIEVED = "is not in the run"

_SCORES = ("score", "sim")
COLUMNS = {
    "qid": (*USUAL_NAMES["qid"], "q_id", "query-id", "topic", "topic_id", "query text"),
    "doc_id": (*USUAL_NAMES["doc_id"], "docno", "corpus-id", "corpus_id", "document", "doc id"),
    "grade": (*USUAL_NAMES["label"], "qrel", "judgment", "rating"),
}
"""Role -> usual names of columns in tables, including the names in files of other tools."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """Runs or judgments; ``value`` is the column of the number."""

    name: str
    value: str
    line: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]]


_IDS = {role: COLUMNS[role] for role in ("qid", "doc_id")}
_RUN = _Kind("run", "score", RUN, {**_IDS, "score": _SCORES})
_QRELS = _Kind(
    "qrels",
    "grade",
    ("qid", "iteration", "docid", "grade"),
    {**_IDS, "grade": (*COLUMNS["grade"], *_SCORES)},
)


# --- API -------------------------------------------------------------------------------------


def read_run(run: Any, *, allow_empty: bool = False) -> ByDocument:
    """Return the scores of a run, ``{qid: {docid: score}}``, in the order of the run.

    Parameters
    ----------
    run : path, mapping or frame
        A TREC run (``qid Q0 docid rank score tag``; the rank is ignored), plain or compressed,
        ``"-"`` for standard input; a table in a file (csv, tsv, Parquet, Arrow), a pandas or polars
        frame or an Arrow table with the columns ``qid``, ``doc_id`` and ``score`` or the names that
        other tools use; or a mapping from query ids to documents to scores.
    allow_empty : bool
        Return an empty mapping for an empty run instead of raising an error.
    """
    return _read(run, _RUN, allow_empty)


def read_qrels(qrels: Any, *, allow_empty: bool = False) -> ByDocument:
    """Return judgments, ``{qid: {docid: grade}}``, in the order of the judgments.

    Parameters
    ----------
    qrels : path, mapping or frame
        TREC judgments (``qid iteration docid grade``), or a table, frame or mapping as for
        `read_run`, with grades instead of scores. A negative grade marks a document as not judged
        or as spam.
    allow_empty : bool
        Return an empty mapping for empty judgments instead of raising an error.
    """
    return _read(qrels, _QRELS, allow_empty)


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRun:
    """A run with its judgments: all documents of each query in either.

    Attributes
    ----------
    data : RankingData
        Grades, query and document ids. Retrieved documents precede the other documents of a query.
        Documents without a judgment have the grade 0.
    scores : (n,) float64
        The score of each row of ``data``; minus infinity for documents that were not retrieved.
    retrieved, judged : (n,) bool
        Whether the document is in the run, and whether it has a judgment.
    left_out : dict
        The queries that are not in ``data``, each with the reason.
    """

    data: RankingData
    scores: F64
    retrieved: AnyArray
    judged: AnyArray
    left_out: dict[str, str] = field(default_factory=dict)


def judge_run(run: Any, qrels: Any, *, complete: bool = False) -> JudgedRun:
    """Join a run with its judgments.

    Queries are in the order of the run. Queries without judgments are left out. Queries that are
    not in the run are left out too, unless ``complete``: they are then last, with no document
    retrieved.

    Parameters
    ----------
    run, qrels
        As for `read_run` and `read_qrels`.
    complete : bool
        Include all queries that have judgments. The run and the judgments may then be empty.

    Warns
    -----
    UserWarning
        If no document of the run is judged.
    """
    scores = read_run(run, allow_empty=complete)
    judgments = read_qrels(qrels, allow_empty=complete)
    grades = {query: documents for query, documents in judgments.items() if documents}
    left_out = {query: NOT_JUDGED for query in scores if query not in grades}
    queries = [query for query in scores if query in grades]
    not_retrieved = [query for query in grades if query not in scores]
    if complete:
        queries += not_retrieved
    else:
        left_out |= dict.fromkeys(not_retrieved, NOT_RETRIEVED)
        if not queries:
            raise DataError(f"{_no_common_query(scores, grades)}.")
    if not any(scores.get(query, {}).keys() & grades[query].keys() for query in queries):
        warnings.warn(_no_common_document(scores, grades), stacklevel=3)
    qid: list[str] = []
    doc_id: list[str] = []
    grade: list[float] = []
    score: list[float] = []
    for query in queries:
        score_of, grade_of = scores.get(query, {}), grades[query]
        documents = [*score_of, *(doc for doc in grade_of if doc not in score_of)]
        qid += [query] * len(documents)
        doc_id += documents
        grade += [grade_of.get(doc, -1.0) for doc in documents]
        score += [score_of.get(doc, math.nan) for doc in documents]
    y, values = np.array(grade), np.array(score)
    retrieved = ~np.isnan(values)
    X = np.zeros((len(doc_id), 1), np.float32)  # a run has no features
    if doc_id:
        data = RankingData.from_arrays(X, np.maximum(y, 0.0), qid=qid, doc_id=doc_id)
    else:
        data = RankingData(X, y, np.zeros(1, np.int64), np.array([], str))
    return JudgedRun(data, np.where(retrieved, values, -np.inf), retrieved, y >= 0, left_out)


def write_qrels(data: RankingData, target: str | Path) -> None:
    """Write the grades as TREC judgments: integers without a point, fractions with all digits."""
    rows = zip(names_in_run(data), data.y.tolist(), strict=True)
    text = "".join(
        f"{query} 0 {doc} {int(grade) if grade.is_integer() else repr(grade)}\n"
        for (query, doc), grade in rows
    )
    with open_target(target) as stream:
        stream.write(text.encode())


# --- runs without judgments --------------------------------------------------------------------


def _no_common_document(run: ByDocument, grades: ByDocument) -> str:
    """Return the warning that no document of a run is judged, with an example of each."""
    if not grades:
        return "the judgments are empty, so metrics are means over no query (NaN)."
    if not any(run.values()):
        return f"the run is empty: nothing is retrieved for {counted(len(grades), 'query')}."
    query = next((query for query in run if query in grades and run[query]), None)
    if query is None:
        return f"{_no_common_query(run, grades)}; each judged query counts as nothing retrieved."
    return (
        "no document of the run is judged, so none counts as relevant: for query "
        f"{quoted(query)} the run has documents such as {quoted(next(iter(run[query])))}, the "
        f"judgments such as {quoted(next(iter(grades[query])))}; check that both use the same ids."
    )


def _no_common_query(run: ByDocument, grades: ByDocument) -> str:
    return (
        f"the run and the judgments have no query in common: the run has {_first(run)}, the "
        f"judgments {_first(grades)}"
    )


def _first(queries: Iterable[str]) -> str:
    names = list(queries)
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


# --- readers -----------------------------------------------------------------------------------


def _read(source: Any, kind: _Kind, allow_empty: bool) -> ByDocument:
    """Return the scores or grades of a file, a mapping or a frame by query and document."""
    is_file = isinstance(source, str | PathLike)
    name = display_name(str(source)) if is_file else f"the {kind.name}"
    advice = (
        f"give a file with lines '{' '.join(kind.line)}', a mapping {{qid: {{docid: "
        f"{kind.value}}}}}, or a frame with the columns qid, doc_id and {kind.value}."
    )
    columns = table_columns(
        source, lambda names: match_columns(names, kind.columns, required=kind.columns)
    )
    if columns is not None:
        numbers = _collected(_rows_of_columns(columns, kind, name), kind)
    elif is_file:
        numbers = _collected(_rows_of_lines(str(source), kind), kind)
    elif isinstance(source, Mapping):
        numbers = _of_mapping(source, kind)
    else:
        raise UsageError(f"{name} is {_type_of(source)}; {advice}")
    if not numbers and not allow_empty:
        raise DataError(f"{name} is empty; {advice}")
    return numbers


def table_columns(
    source: Any, match: Callable[[list[str]], dict[str, str]]
) -> dict[str, AnyArray] | None:
    """Return role -> values of a table in a file or a frame, None for anything else.

    ``match`` returns role -> column for the names of the columns.
    """
    if isinstance(source, str | PathLike):
        path = str(source)
        suffix = plain_suffix(path)
        form = next((form for form in TABLES if suffix in EXTENSIONS[form]), None)
        if form == "tsv":  # qrels of MS MARCO have tabs but no names of columns
            _, header = next(iter(text_lines(path)), (0, ""))
            if not any(name in COLUMNS["qid"] for name in header.lower().split("\t")):
                return None
        return None if form is None else format_named(form).table.read_columns(path, match)
    names = None if isinstance(source, Mapping) else frame_columns(source)
    if names is None:
        return None
    column = columns_of_frame(source)
    return {role: column(name) for role, name in match(names).items()}


_Row = tuple[str, str, str, Any]  # place in the source, query id, document id, score or grade


def _collected(rows: Iterable[_Row], kind: _Kind) -> ByDocument:
    numbers: ByDocument = {}
    for place, query, doc, value in rows:
        documents = numbers.setdefault(query, {})
        if doc in documents:
            raise DataError(f"{place}: document {quoted(doc)} of query {query} appears twice.")
        documents[doc] = _number(value, kind, place)
    return numbers


def _rows_of_lines(path: str, kind: _Kind) -> Iterator[_Row]:
    column, name = kind.line.index(kind.value), display_name(path)
    for line, text in text_lines(path):
        cells = text.split()
        if cells[0].startswith("#"):
            continue
        if kind is _RUN:
            cells = cells[: len(RUN)]
        if len(cells) != len(kind.line):
            expected = " ".join(kind.line)
            error_at(path, line, f"lines are '{expected}', not {len(cells)} columns")
        number = number_at(cells[column], path, line, f"the {kind.value}")
        yield f"{name}, line {line}", cells[0], cells[2], number


def _rows_of_columns(columns: Mapping[str, AnyArray], kind: _Kind, name: str) -> Iterator[_Row]:
    rows = zip(*(columns[role].tolist() for role in kind.columns), strict=True)
    for row, (query, doc, number) in enumerate(rows):
        place = f"{name}, row {row}"
        for role, value in (("query", query), ("document", doc)):
            if is_missing(value):
                raise DataError(f"{place}: the {role} id is missing.")
        yield place, str(query), str(doc), number


def _of_mapping(mapping: Mapping[Any, Any], kind: _Kind) -> ByDocument:
    numbers: ByDocument = {}
    for query, documents in mapping.items():
        place = f"the {kind.name}, query {brief(query)}"
        if not isinstance(documents, Mapping):
            raise UsageError(
                f"{place} is {_type_of(documents)}; give a mapping from documents to {kind.value}s."
            )
        values = {
            str(doc): _number(value, kind, f"{place}, document {quoted(doc)}")
            for doc, value in documents.items()
        }
        if str(query) in numbers or len(values) < len(documents):
            raise DataError(f"{place}: two ids have the same text, such as 1 and '1'.")
        numbers[str(query)] = values
    return numbers


def is_missing(value: Any) -> bool:
    """Return whether a cell of a table is empty: None, NaN or an empty text."""
    return value is None or value == "" or value != value


def _number(value: Any, kind: _Kind, place: str) -> float:
    """Return a score that is not NaN or a finite grade; errors begin with its place."""
    number = math.nan
    if not isinstance(value, str | bytes):
        with suppress(TypeError, ValueError):
            number = float(value)
    if math.isnan(number):
        raise DataError(f"{place}: the {kind.value} {brief(value)} is not a number.")
    if kind is _QRELS and math.isinf(number):
        raise DataError(f"{place}: the {kind.value} {brief(value)} is not finite.")
    return number


def _type_of(value: Any) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
