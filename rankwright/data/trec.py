"""TREC runs and judgments (qrels), read from files, mappings and frames.

A run has lines ``qid Q0 docid rank score tag``, judgments have lines ``qid iteration docid grade``.
As in trec_eval, blank lines and comments (lines that begin with ``#``) are skipped, and text after
the tag of a run is ignored. `read_run` and `read_qrels` return them as ``{qid: {docid: score or
grade}}``, ids as text; `judge_run` puts both side by side in arrays, with what was retrieved and
what was judged, for `rankwright.evaluate_run`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64, AnyArray
from rankwright.data.frames import (
    USUAL_NAMES,
    columns_of_frame,
    frame_columns,
    match_columns,
)
from rankwright.data.ranking_data import RankingData
from rankwright.data.rankings import (
    RUN,
    names_in_run,
    query_names,
    read_scores,
    write_run,
)
from rankwright.data.streams import (
    display_name,
    error_at,
    number_at,
    open_target,
    plain_suffix,
    text_lines,
)
from rankwright.data.tables import Table
from rankwright.errors import DataError, UsageError, brief, counted, quoted
from rankwright.registry import EXTENSIONS

__all__ = [
    "JudgedRun",
    "judge_run",
    "read_qrels",
    "read_run",
    "read_scores",
    "write_qrels",
    "write_run",
]

ByDocument = dict[str, dict[str, float]]
"""From query id to document id to the score of a run or the grade of judgments."""

NOT_JUDGED = "has no judgments"
NOT_RETRIEVED = "is not in the run"

_QRELS = ("qid", "iteration", "docid", "grade")
COLUMNS = {
    "qid": (*USUAL_NAMES["qid"], "q_id", "query-id", "topic", "topic_id", "query text"),
    "doc_id": (*USUAL_NAMES["doc_id"], "docno", "corpus-id", "corpus_id", "document", "doc id"),
    "score": ("score", "sim"),
    "grade": (*USUAL_NAMES["label"], "qrel", "judgment", "rating"),
}
"""Names of columns in the tables of other tools, beside the usual ones."""


# --- API -------------------------------------------------------------------------------------


def read_run(run: Any, *, allow_empty: bool = False) -> ByDocument:
    """Return the scores of a run, ``{qid: {docid: score}}``, in the order they come in.

    Parameters
    ----------
    run : path, mapping or frame
        A TREC run (``qid Q0 docid rank score tag``; its ranks are not looked at), plain or
        compressed, ``"-"`` for standard input; a table in a file (csv, tsv, Parquet, Arrow) or a
        pandas or polars frame or an Arrow table, with the columns ``qid``, ``doc_id`` and
        ``score`` or what other tools call them; or a mapping from query ids to documents to scores.
    allow_empty : bool
        Return an empty mapping for a run without any line, instead of raising an error.
    """
    return _by_document(run, "run", "score", allow_empty)


def read_qrels(qrels: Any, *, allow_empty: bool = False) -> ByDocument:
    """Return judgments, ``{qid: {docid: grade}}``, in the order they come in.

    Parameters
    ----------
    qrels : path, mapping or frame
        TREC judgments (``qid iteration docid grade``), or any of what `read_run` takes, with grades
        for scores. A negative grade says that a document has not been judged, or is spam.
    allow_empty : bool
        Return an empty mapping for judgments without any line, instead of raising an error.
    """
    return _by_document(qrels, "qrels", "grade", allow_empty)


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRun:
    """A run beside its judgments: for each query, every document that either of them has.

    Attributes
    ----------
    data : RankingData
        Grades, query and document ids; retrieved documents come first in each query. A document
        without a judgment has the grade 0.
    scores : (n,) float64
        In the order of ``data``; minus infinity where the run does not have the document.
    retrieved, judged : (n,) bool
        Whether the run, and whether the judgments have the document.
    left_out : dict
        The queries that are not there, each with the reason.
    """

    data: RankingData
    scores: F64
    retrieved: AnyArray
    judged: AnyArray
    left_out: dict[str, str] = field(default_factory=dict)


def judge_run(run: Any, qrels: Any, *, complete: bool = False) -> JudgedRun:
    """Put a run beside its judgments.

    Queries come in the order of the run. Those without judgments are left out, and so are those
    that the run does not have, unless ``complete``: then they come last, with nothing retrieved.

    Parameters
    ----------
    run, qrels
        As `read_run` and `read_qrels` take them.
    complete : bool
        Keep every query that has judgments. The run and the judgments may then be empty.

    Warns
    -----
    UserWarning
        If the run and the judgments have no document of a query in common.
    """
    found = read_run(run, allow_empty=complete)
    judgments = read_qrels(qrels, allow_empty=complete)
    grades = {query: documents for query, documents in judgments.items() if documents}
    left_out = {query: NOT_JUDGED for query in found if query not in grades}
    queries = [query for query in found if query in grades]
    lacking = [query for query in grades if query not in found]
    if complete:
        queries += lacking
    else:
        left_out |= dict.fromkeys(lacking, NOT_RETRIEVED)
    if not queries and not complete:
        raise DataError(
            f"the run and the judgments have no query in common: the run has {_some(found)}, the "
            f"judgments {_some(grades)}."
        )
    if not any(found.get(query, {}).keys() & grades[query].keys() for query in queries):
        warnings.warn(_nothing_in_common(found, grades), stacklevel=3)
    qid: list[str] = []
    doc: list[str] = []
    y: list[float] = []
    scores: list[float] = []
    for query in queries:
        listed, known = found.get(query, {}), grades[query]
        documents = [*listed, *(name for name in known if name not in listed)]
        qid += [query] * len(documents)
        doc += documents
        y += [known.get(name, -1.0) for name in documents]
        scores += [listed.get(name, math.nan) for name in documents]
    values, grade = np.array(scores), np.array(y)
    retrieved = ~np.isnan(values)
    X = np.zeros((len(doc), 1), np.float32)  # a run has no features
    if doc:
        data = RankingData.from_arrays(X, np.maximum(grade, 0.0), qid=qid, doc_id=doc)
    else:
        data = RankingData(X, grade, np.zeros(1, np.int64), np.array([], str))
    return JudgedRun(data, np.where(retrieved, values, -np.inf), retrieved, grade >= 0, left_out)


def _nothing_in_common(run: ByDocument, grades: ByDocument) -> str:
    """Return the warning that no document of a run is judged, with an example of each side."""
    if not grades:
        return "the judgments are empty, so metrics are means over no query (NaN)."
    if not any(run.values()):
        return f"the run is empty: nothing is retrieved for {counted(len(grades), 'query')}."
    shared = [query for query in run if query in grades and run[query]]
    if not shared:
        return (
            "the run and the judgments have no query in common, so every judged query counts as "
            f"nothing retrieved: the run has {_some(run)}, the judgments {_some(grades)}."
        )
    query = shared[0]
    return (
        "no document of the run is judged, so none counts as relevant: for query "
        f"{quoted(query)} the run has documents such as {quoted(next(iter(run[query])))}, the "
        f"judgments such as {quoted(next(iter(grades[query])))}; check that both use the same ids."
    )


def write_qrels(data: RankingData, target: str | Path) -> None:
    """Write the grades as TREC judgments: whole ones as such, fractions with all their digits."""
    names, grades = names_in_run(data), data.y.tolist()
    with open_target(target) as stream:
        for q, query in enumerate(query_names(data)):
            rows = range(data.indptr[q], data.indptr[q + 1])
            lines = [f"{query} 0 {names[row]} {_grade_text(grades[row])}\n" for row in rows]
            stream.write("".join(lines).encode())


# --- runs and judgments ------------------------------------------------------------------------


def _by_document(given: Any, what: str, value: str, allow_empty: bool) -> ByDocument:
    """Return the scores or grades of a file, a mapping or a frame by query and document."""
    if isinstance(given, str | PathLike):
        source = display_name(str(given))
        advice = f"{what} lines are '{_line(RUN if what == 'run' else _QRELS)}'"
        found = _of_file(str(given), what, value)
    elif isinstance(given, Mapping):
        source, advice = what, f"give a mapping {{qid: {{docid: {value}}}}}"
        found = _of_mapping(given, what, value)
    else:
        names = frame_columns(given)
        if names is None:
            raise UsageError(
                f"{what} is {_called(given)}; give a file, a mapping {{qid: {{docid: {value}}}}}, "
                f"or a frame with the columns qid, doc_id and {value}."
            )
        source, advice = f"the {what}", f"give a frame with a row for each {value}"
        column = columns_of_frame(given)
        roles = _roles(names, value)
        found = _of_columns({role: column(name) for role, name in roles.items()}, value, source)
    if not found and not allow_empty:
        raise DataError(f"{source} is empty; {advice}.")
    return found


def _of_file(path: str, what: str, value: str) -> ByDocument:
    table = table_format(path)
    if table is not None:
        columns = table.read_columns(path, lambda names: _roles(names, value))
        return _of_columns(columns, value, display_name(path))
    found: ByDocument = {}
    for line, cells, number in _lines_of_run(path) if what == "run" else _lines_of_qrels(path):
        if not _sound(number, value):
            error_at(path, line, f"the {value} {number} {_unsound(value)}")
        found.setdefault(cells[0], {})[cells[2]] = number
    return found


def table_format(path: str) -> Table | None:
    """Return the reader of a table with named columns, None for lines of TREC."""
    suffix = plain_suffix(path)
    kinds = ("parquet", "arrow", "csv", "tsv")
    kind = next((kind for kind in kinds if suffix in EXTENSIONS[kind]), None)
    if kind == "tsv":  # qrels of MS MARCO are lines with tabs
        _, first = next(iter(text_lines(path)), (0, ""))
        if not any(name in COLUMNS["qid"] for name in first.lower().split("\t")):
            return None
    return None if kind is None else Table(kind)


def _of_mapping(given: Mapping[Any, Any], what: str, value: str) -> ByDocument:
    found: ByDocument = {}
    for query, documents in given.items():
        if not isinstance(documents, Mapping):
            raise UsageError(
                f"query {brief(query)} of the {what} is {_called(documents)}; give a mapping from "
                f"documents to {value}s."
            )
        found[str(query)] = {
            str(doc): _number(number, value, query, doc) for doc, number in documents.items()
        }
        if len(found[str(query)]) < len(documents):
            raise DataError(f"{what} has two documents of query {brief(query)} that read the same.")
    if len(found) < len(given):
        raise DataError(f"{what} has two query ids that read the same, such as 1 and '1'.")
    return found


def _of_columns(columns: Mapping[str, AnyArray], value: str, source: str) -> ByDocument:
    found: ByDocument = {}
    rows = zip(*(columns[role].tolist() for role in ("qid", "doc_id", value)), strict=True)
    for row, (query, doc, number) in enumerate(rows):
        for what, name in (("query", query), ("document", doc)):
            if name is None or name == "" or name != name:
                raise DataError(f"{source}: the {what} id is missing at row {row}.")
        of_query = found.setdefault(str(query), {})
        if str(doc) in of_query:
            raise DataError(
                f"{source}: document {quoted(str(doc))} of query {query} appears twice, the "
                f"second time at row {row}."
            )
        of_query[str(doc)] = _number(number, value, query, doc)
    return found


def _roles(names: Sequence[str], value: str) -> dict[str, str]:
    """Return role -> column; judgments may call their grade a score."""
    roles = ("qid", "doc_id", value)
    usual = {role: COLUMNS[role] for role in roles}
    if value == "grade":
        usual["grade"] = (*COLUMNS["grade"], *COLUMNS["score"])
    return match_columns(names, usual, required=roles)


def _number(number: Any, value: str, query: Any, doc: Any) -> float:
    where = f"the {value} of document {quoted(str(doc))} of query {query}"
    try:
        read = float("x" if isinstance(number, str | bytes) else number)
    except (TypeError, ValueError):
        raise DataError(f"{where} is {brief(number)}, where a number is expected.") from None
    if not _sound(read, value):
        raise DataError(f"{where} is {read}: it {_unsound(value)}.")
    return read


def _sound(number: float, value: str) -> bool:
    return not math.isnan(number) if value == "score" else math.isfinite(number)


def _unsound(value: str) -> str:
    return "cannot be ranked" if value == "score" else "is not finite"


def _called(given: Any) -> str:
    return "None" if given is None else f"of type {type(given).__name__}"


def _some(queries: Iterable[str]) -> str:
    listed = list(queries)
    return ", ".join(listed[:3]) + (", ..." if len(listed) > 3 else "")


def _grade_text(grade: float) -> str:
    return str(int(grade)) if grade == int(grade) else repr(grade)


# --- lines -----------------------------------------------------------------------------------


Lines = Iterator[tuple[int, list[str], float]]
"""The number of each line, its cells, and the score or the grade in it."""


def _lines_of_run(path: str | Path) -> Lines:
    return _rows(path, RUN, "score", "a line of a run", "appears twice")


def _lines_of_qrels(path: str | Path) -> Lines:
    return _rows(path, _QRELS, "grade", "a judgment", "is judged twice")


def _line(columns: tuple[str, ...]) -> str:
    return " ".join(columns)


def _rows(path: str | Path, columns: tuple[str, ...], value: str, what: str, twice: str) -> Lines:
    seen: dict[str, set[str]] = {}
    at, called = columns.index(value), f"the {value}"
    for line, text in text_lines(path):
        cells = text.split()
        if cells[0].startswith("#"):
            continue
        if columns is RUN:
            cells = cells[: len(RUN)]
        if len(cells) != len(columns):
            error_at(path, line, f"{what} is '{_line(columns)}', not {len(cells)} columns")
        query, doc = cells[0], cells[2]
        of_query = seen.setdefault(query, set())
        if doc in of_query:
            error_at(path, line, f"document {quoted(doc)} of query {query} {twice}")
        of_query.add(doc)
        yield line, cells, number_at(cells[at], path, line, called)
