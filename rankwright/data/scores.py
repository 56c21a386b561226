"""Scores of documents in files: one per line, RankLib's three columns, a TREC run, or a table.

In a run a document is called by its doc id, blanks made underscores, or else by its number in the
query from 0; a query by its id. The same names are written and looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.data.rankings import Ranking, document_names, run_names
from rankwright.data.source import open_bytes, plain_suffix
from rankwright.data.target import open_target
from rankwright.data.text_file import decoded, fault_at, number_at
from rankwright.errors import DataError, UsageError, quoted
from rankwright.registry import resolve, unknown

Lines = list[tuple[int, str]]
"""Lines of a file, each with its number."""

RUN = ("qid", "Q0", "docid", "rank", "score", "tag")
"""The columns of a TREC run."""

_TABLES = ("csv", "tsv", "parquet", "arrow")
RANKING_FORMATS = ("trec", *_TABLES, "scores")
"""What a ranking can be written as: a TREC run, a table, or a score per line."""


def write_run(
    data: RankingData,
    scores: Any,
    target: str | Path,
    *,
    per_group: int | None = None,
    top: int | None = None,
    tag: str = "rankwright",
) -> None:
    """Write the documents of each query, best first, as a TREC run; ``"-"`` is standard output.

    Equal scores are in the order of `rankwright.core.order`; scores have all their digits. A
    document without a name is called by its number in the query, from 0. With ``per_group`` at
    most that many documents of each of ``data.group`` are written per query, with ``top`` that many
    in all.
    """
    made = run_texts(data, scores, per_group=per_group, top=top, tag=tag)
    with open_target(target) as stream:
        for text in made:
            stream.write(text)


def run_texts(
    data: RankingData,
    scores: Any,
    *,
    per_group: int | None = None,
    top: int | None = None,
    tag: str = "rankwright",
) -> Iterator[bytes]:
    """Return what `write_run` writes, query after query; errors are raised at once."""
    ranking = Ranking.of(data, scores, per_group=per_group, top=top)
    return (text.encode() for text in ranking.run_texts(tag=tag))


def ranking_format(target: str | Path, to: str | None = None) -> str:
    """Return what a ranking is written as, of `RANKING_FORMATS`: ``to``, or what the suffix says.

    Text of any other suffix, and standard output, is a TREC run.
    """
    if to is not None:
        if to not in RANKING_FORMATS:
            raise UsageError(unknown("format of a ranking", to, RANKING_FORMATS))
        return to
    suffix = plain_suffix(target)
    if suffix in (".score", ".scores"):
        return "scores"
    tables = {name: resolve("formats", name) for name in _TABLES}
    return next((name for name, kind in tables.items() if suffix in kind.extensions), "trec")


def write_ranking(
    data: RankingData,
    scores: Any,
    target: str | Path,
    *,
    to: str = "trec",
    per_group: int | None = None,
    top: int | None = None,
    tag: str = "rankwright",
) -> None:
    """Write documents and their scores as one of `RANKING_FORMATS`; ``"-"`` is standard output.

    A table has the columns of `Ranking.to_frame`, best documents first; ``scores`` are one per line
    in the order of the rows that ``data`` came from. The other options are those of `write_run`.
    """
    if to == "trec":
        write_run(data, scores, target, per_group=per_group, top=top, tag=tag)
    elif to == "scores":
        if per_group is not None or top is not None:
            raise UsageError("a file of scores has every row; leave out the limit, or write a run.")
        values = data.in_caller_order(np.asarray(scores, np.float64)).tolist()
        with open_target(target) as stream:
            stream.write("".join(f"{value!r}\n" for value in values).encode())
    else:
        ranking = Ranking.of(data, scores, per_group=per_group, top=top)
        resolve("formats", to)().write_columns(ranking.columns(), target)


def read_scores(path: str | Path, data: RankingData) -> F64:
    """Return the scores in a file, in the row order of ``data``.

    The file has one score per line, in the order of the rows that ``data`` came from; or RankLib's
    ``qid document-number score``, numbers counting from 0 in each query; or is a TREC run, matched
    by query and document name. Every document must have exactly one score.
    """
    with open_bytes(path) as stream:
        text = decoded(stream.read(), path).replace("\r\n", "\n").rstrip()
    every = list(enumerate(text.split("\n"), 1))
    lines = [(line, text) for line, text in every if text.strip()]
    if not lines:
        raise DataError(f"{path} is empty; a score for each document is expected.")
    first, text = lines[0]
    width = len(_split(text))
    if width == 1:
        return _scores_by_line(path, every, data)  # a blank line is a score that is missing
    if width == 3:
        return _scores_by_number(path, lines, data)
    if width == len(RUN):
        return _scores_by_name(path, lines, data)
    raise DataError(
        f"{path}, line {first} has {width} columns; scores are one per line, 'qid number score' "
        "(RankLib) or 'qid Q0 docid rank score tag' (TREC)."
    )


# --- names -----------------------------------------------------------------------------------


def query_names(data: RankingData) -> list[str]:
    """Return the query ids as text; one with a blank is refused."""
    return run_names(data.qid)


def names_in_run(data: RankingData) -> list[str]:
    """Return a name without blanks for each document, different from others of its query."""
    return [name for q in range(data.n_queries) for name in _names_of_query(data, q)]


def _names_of_query(data: RankingData, q: int) -> list[str]:
    first, last = int(data.indptr[q]), int(data.indptr[q + 1])
    doc_id = None if data.doc_id is None else data.doc_id[first:last]
    return document_names(doc_id, range(last - first), data.qid[q])


def first_rows(data: RankingData) -> I64:
    """Return for each row the first row of its query."""
    return np.repeat(data.indptr[:-1], data.sizes)


# --- three kinds of files ---------------------------------------------------------------------


def _scores_by_line(path: str | Path, lines: Lines, data: RankingData) -> F64:
    if len(lines) != data.n_documents:
        raise DataError(
            f"{path} has {len(lines)} lines for {data.n_documents} documents; one score for each, "
            "in the order of the data file, is expected."
        )
    scores = np.array([number_at(text.strip(), path, line, "the score") for line, text in lines])
    return scores if data.row is None else scores[data.row]


def _scores_by_number(path: str | Path, lines: Lines, data: RankingData) -> F64:
    """Match RankLib's numbers, which start anew with each run of lines of one query.

    So where the rows of a query lay apart in the data, only the order of lines tells which is
    which.
    """
    rows = np.arange(data.n_documents)
    queries = {str(query): q for q, query in enumerate(data.qid.tolist())}
    query_of_row = data.query_of_row()
    if data.row is not None:
        rows[data.row] = np.arange(data.n_documents)
    given = _Given(path, data)
    for place, (line, (query, number, value)) in enumerate(_cells(path, lines, 3)):
        if query not in queries:
            fault_at(path, line, f"query {query} is not in the data")
        q = queries[query]
        if not number.isdecimal():
            fault_at(path, line, f"the document number {quoted(number)} is not a whole number")
        if data.row is None:
            if int(number) >= data.sizes[q]:
                fault_at(path, line, f"query {query} has no document {number}, counted from 0")
            row = int(data.indptr[q]) + int(number)
        else:
            row = int(rows[min(place, len(rows) - 1)])
            if query_of_row[row] != q:
                fault_at(path, line, f"query {query} is not that of the same line of the data")
        given.put(row, value, line)
    return given.complete()


def _scores_by_name(path: str | Path, lines: Lines, data: RankingData) -> F64:
    names, queries = names_in_run(data), query_names(data)
    row_of = {
        (query, names[row]): row
        for q, query in enumerate(queries)
        for row in range(data.indptr[q], data.indptr[q + 1])
    }
    known, given = set(queries), _Given(path, data)
    for line, (query, _, doc, _, value, _) in _cells(path, lines, len(RUN)):
        if query not in known:
            fault_at(path, line, f"query {query} is not in the data")
        if (query, doc) not in row_of:
            fault_at(path, line, f"document {quoted(doc)} of query {query} is not in the data")
        given.put(row_of[query, doc], value, line)
    return given.complete()


class _Given:
    """Scores as they are found; each document gets exactly one."""

    def __init__(self, path: str | Path, data: RankingData) -> None:
        self.path, self.data = path, data
        self.scores = np.zeros(data.n_documents)
        self.found = np.zeros(data.n_documents, bool)

    def put(self, row: int, value: str, line: int) -> None:
        if self.found[row]:
            fault_at(self.path, line, f"{self._called(row)} has a score already")
        self.scores[row] = number_at(value, self.path, line, "the score")
        self.found[row] = True

    def complete(self) -> F64:
        if not self.found.all():
            row = int(np.flatnonzero(~self.found)[0])
            raise DataError(f"{self.path} has no score for {self._called(row)}.")
        return self.scores

    def _called(self, row: int) -> str:
        q = int(np.searchsorted(self.data.indptr, row, side="right")) - 1
        number = row - int(self.data.indptr[q])
        name = "" if self.data.doc_id is None else f" ({quoted(self.data.doc_id[row])})"
        return f"document {number}{name} of query {self.data.qid[q]}"


# --- lines -----------------------------------------------------------------------------------


def _cells(path: str | Path, lines: Lines, width: int) -> Iterator[tuple[int, list[str]]]:
    for line, text in lines:
        cells = _split(text)
        if len(cells) != width:
            fault_at(
                path, line, f"it has {len(cells)} columns, where line {lines[0][0]} has {width}"
            )
        yield line, cells


def _split(text: str) -> list[str]:
    """Cut a line at its tabs, as RankLib writes them, or else at blanks."""
    by_tab = text.split("\t")
    return [cell.strip() for cell in by_tab] if len(by_tab) == 3 else text.split()
