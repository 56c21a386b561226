"""`Ranking`: the documents of each query, best first, as returned by `Ranker.rank`.

A ranking contains the caller's row numbers, so ``frame.iloc[ranking.order]`` is the ranked frame.

Rankings are written as TREC runs, tables or one score per line. Scores are read from TREC runs,
RankLib's three columns or one score per line. TREC files contain no blanks in names: a document has
its id with underscores instead of blanks, or its number in the query (from 0) if it has no id.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise, starmap
from os import PathLike
from pathlib import Path
from typing import IO, Any, ClassVar, Literal

import numpy as np

from rankwright.core.dtypes import as_float_vector, as_groups
from rankwright.core.order import first_places, shown
from rankwright.core.parallel import query_ranges
from rankwright.core.parameters import check_whole
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.frames import frame_of_columns
from rankwright.data.ranking_data import ByQuery, RankingData
from rankwright.data.streams import (
    decoded,
    error_at,
    number_at,
    open_bytes,
    open_target,
    plain_suffix,
)
from rankwright.errors import DataError, UsageError, brief, counted, quoted
from rankwright.registry import EXTENSIONS, resolve, unknown

RUN = ("qid", "Q0", "docid", "rank", "score", "tag")
"""Columns of a TREC run."""
TABLES = ("csv", "tsv", "parquet", "arrow")
RANKING_FORMATS = ("trec", *TABLES, "scores")
"""Formats of a written ranking: a TREC run, a table, or one score per line."""


@dataclass(frozen=True, slots=True, eq=False)
class RankedQuery:
    """The documents of one query, best first.

    Attributes
    ----------
    qid
        The caller's query id.
    rows : (n,) int64
        The caller's row numbers.
    scores : (n,) float64
        From the highest to the lowest.
    doc_id : (n,) array or None

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.synthetic("mq2008", queries=20)
    >>> ranking = rw.IntervalRank().fit(data).rank(data)
    >>> best = ranking[data.qid[0]]
    >>> bool(best.scores[0] >= best.scores[-1])
    True
    """

    qid: Any
    rows: I64
    scores: F64
    doc_id: AnyArray | None = None

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class Ranking(ByQuery[RankedQuery]):
    """The documents of each query, best first.

    ``ranking[qid]`` is the `RankedQuery` with that id, ``len(ranking)`` the number of queries, and
    iteration yields one query after the other. NumPy converts a ranking to its ``order``, as in
    ``y[ranking]``.

    Attributes
    ----------
    order : (m,) int64
        Row numbers of the caller's X, best first, query after query. For `RankingData` they refer
        to the original arrays, frame or file (``RankingData.row``).
    indptr : (Q + 1,) int64
        The documents of query q are ``order[indptr[q]:indptr[q + 1]]``.
    scores : (m,) float64
        The score of each document of ``order``.
    qid : (Q,) array
        The caller's query ids, of any type.
    doc_id : (m,) array or None
        The id of each document of ``order``; None if the data has no ids.
    place : (m,) int64
        The position of each document of ``order`` in its query before ranking, from 0.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranking = rw.MEMR().fit(data).rank(data, top=3)
    >>> len(ranking), len(ranking.order)
    (8, 24)
    """

    instead_of_slices: ClassVar[str] = "the row numbers are in its order"

    order: I64
    indptr: I64
    scores: F64
    qid: AnyArray
    doc_id: AnyArray | None
    place: I64

    @classmethod
    def of(
        cls,
        data: RankingData,
        scores: Any,
        *,
        group: Any = None,
        per_group: int | None = None,
        top: int | None = None,
        n_jobs: int | None = None,
    ) -> Ranking:
        """Rank the documents of ``data`` by ``scores``; equal scores keep the order of the rows.

        Parameters
        ----------
        scores : array-like (n,)
            The score of each row of ``data``; NaN ranks last.
        group : array-like (n,) or (n, topics)
            Diversity group (host, topic) of each row of ``data``; by default ``data.group``.
        per_group : int
            Keep at most this many documents of each group in a query.
        top : int
            Keep at most this many documents of each query.
        """
        check_limits(top=top, per_group=per_group)
        s = as_float_vector(scores, "scores", data.n_documents)
        if group is not None:
            data = data._replace(group=as_groups(group, "group", data.n_documents))
        rows, indptr = shown(
            s,
            data.indptr,
            group=None if per_group is None else data.group_shares(),
            per_group=per_group,
            top=top,
            n_jobs=n_jobs,
        )
        return cls(
            order=rows if data.row is None else data.row[rows],
            indptr=indptr,
            scores=s[rows],
            qid=data.qid,
            doc_id=None if data.doc_id is None else data.doc_id[rows],
            place=rows - np.repeat(data.indptr[:-1], np.diff(indptr)),
        )

    @classmethod
    def joined(cls, parts: Sequence[Ranking], first_rows: Sequence[int]) -> Ranking:
        """Concatenate rankings; ``first_rows`` are added to the row numbers of each part."""
        sizes = [np.diff(part.indptr) for part in parts]
        doc_ids = [part.doc_id for part in parts if part.doc_id is not None]
        return cls(
            order=np.concatenate(
                [part.order + first for part, first in zip(parts, first_rows, strict=True)]
            ),
            indptr=np.concatenate(([0], np.cumsum(np.concatenate(sizes)))).astype(np.int64),
            scores=np.concatenate([part.scores for part in parts]),
            qid=np.concatenate([part.qid for part in parts]),
            doc_id=np.concatenate(doc_ids) if len(doc_ids) == len(parts) else None,
            place=np.concatenate([part.place for part in parts]),
        )

    def top(self, k: int) -> Ranking:
        """Return the first ``k`` documents of each query."""
        check_limits(k=k)
        places, indptr = first_places(self.indptr, k)
        return replace(
            self,
            order=self.order[places],
            indptr=indptr,
            scores=self.scores[places],
            doc_id=None if self.doc_id is None else self.doc_id[places],
            place=self.place[places],
        )

    # --- other forms -------------------------------------------------------------------------

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return a frame with a row for each document, best first, query after query.

        The columns are ``qid``, ``row``, ``rank`` (from 1), ``score``, and ``doc_id`` if the data
        has document ids.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}
        """
        return frame_of_columns(self.columns(), backend)

    def columns(self) -> dict[str, AnyArray]:
        """Return the columns of `to_frame` by name."""
        columns: dict[str, AnyArray] = {
            "qid": np.repeat(self.qid, np.diff(self.indptr)),
            "row": self.order,
            "rank": numbers_in_query(self.indptr) + 1,
            "score": self.scores,
        }
        if self.doc_id is not None:
            columns["doc_id"] = self.doc_id
        return columns

    def to_trec(
        self, target: str | PathLike[str] | IO[Any] | None = None, *, tag: str = "rankwright"
    ) -> str | None:
        """Return the ranking as a TREC run, or write it.

        Lines are ``qid Q0 docid rank score tag`` with all digits of the score. Blanks in document
        ids become underscores; a document without an id has its number in the query, from 0.

        Parameters
        ----------
        target : path or file, optional
            The output, compressed according to its suffix; ``"-"`` is standard output. If None,
            the text is returned.
        tag : str
            The name of the run, in the last column.
        """
        texts = self.run_texts(tag=tag)
        if target is None:
            return "".join(texts)
        is_file = hasattr(target, "write")
        is_text = is_file and not isinstance(target, io.RawIOBase | io.BufferedIOBase)
        opened: Any = nullcontext(target) if is_file else open_target(str(target))
        with opened as stream:
            for text in texts:
                stream.write(text if is_text else text.encode())
        return None

    def run_texts(self, *, tag: str = "rankwright") -> Iterator[str]:
        """Return the lines of a TREC run in blocks of queries; raise errors before the first."""
        queries = np.array(query_names(self.qid), object)
        ranks = numbers_in_query(self.indptr) + 1
        tag = "_".join(str(tag).split()) or "rankwright"
        blocks = list(pairwise(query_ranges(self.indptr).tolist()))
        if self.doc_id is not None:
            for lo, hi in blocks:
                document_names(self, self.place, lo, hi)

        def text(lo: int, hi: int) -> str:
            rows = slice(int(self.indptr[lo]), int(self.indptr[hi]))
            columns = (
                np.repeat(queries[lo:hi], np.diff(self.indptr[lo : hi + 1])).tolist(),
                document_names(self, self.place, lo, hi),
                ranks[rows].tolist(),
                self.scores[rows].tolist(),
            )
            return "".join(
                f"{query} Q0 {name} {rank} {score!r} {tag}\n"
                for query, name, rank, score in zip(*columns, strict=True)
            )

        return starmap(text, blocks)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.array(self.order, dtype, copy=copy)

    def __repr__(self) -> str:
        return f"Ranking({counted(len(self.qid), 'query')}, {counted(len(self.order), 'document')})"

    def _query(self, number: int) -> RankedQuery:
        rows = slice(int(self.indptr[number]), int(self.indptr[number + 1]))
        doc_id = None if self.doc_id is None else self.doc_id[rows]
        return RankedQuery(self._id(number), self.order[rows], self.scores[rows], doc_id)


def check_limits(**limits: int | None) -> None:
    """Raise if a limit on the length of a ranking is not an integer from 1."""
    for name, limit in limits.items():
        if limit is not None:
            if isinstance(limit, bool) or not isinstance(limit, int | np.integer):
                raise UsageError(f"{name} must be a whole number, not {limit!r}.")
            check_whole(name, limit, 1)


def numbers_in_query(indptr: I64) -> I64:
    """Return the number of each row in its query, from 0."""
    return np.arange(indptr[-1]) - np.repeat(indptr[:-1], np.diff(indptr))


# --- names in TREC files -----------------------------------------------------------------------


def query_names(qid: AnyArray) -> list[str]:
    """Return query ids as text; raise if TREC files cannot contain one."""
    names = [str(query) for query in qid.tolist()]
    for name in names:
        if len(name.split()) != 1:
            raise DataError(
                f"the query id {brief(name)} has a blank in it, which TREC files cannot hold."
            )
        if name.startswith("#"):
            raise DataError(
                f"the query id {name!r} begins with '#', which marks a comment in TREC files."
            )
    return names


def document_names(
    source: RankingData | Ranking, places: I64, lo: int = 0, hi: int | None = None
) -> list[str]:
    """Return a name without blanks for each document of queries lo to hi.

    The name is the id of the document, or its place if it has no id. Raise if two documents of a
    query have the same name.
    """
    ends = source.indptr[lo : len(source) + 1 if hi is None else hi + 1]
    rows = slice(int(ends[0]), int(ends[-1]))
    if source.doc_id is None:
        return [str(place) for place in places[rows].tolist()]
    documents = zip(map(str, source.doc_id[rows].tolist()), places[rows].tolist(), strict=True)
    names = ["_".join(doc_id.split()) or str(place) for doc_id, place in documents]
    if len(set(names)) == len(names):
        return names
    for query, (start, end) in enumerate(pairwise((ends - ends[0]).tolist()), lo):
        if len(set(names[start:end])) < end - start:
            name = Counter(names[start:end]).most_common(1)[0][0]
            raise DataError(
                f"query {source.qid[query]} has two documents named {quoted(name)}, which TREC "
                "files cannot tell apart; give them different doc ids."
            )
    return names


def names_in_run(data: RankingData) -> list[tuple[str, str]]:
    """Return the names of query and document in TREC files for each row."""
    queries = np.repeat(np.array(query_names(data.qid), object), data.sizes).tolist()
    return list(zip(queries, document_names(data, numbers_in_query(data.indptr)), strict=True))


# --- writing -----------------------------------------------------------------------------------


def ranking_format(target: str | Path, to: str | None = None) -> str:
    """Return ``to``, or the format of `RANKING_FORMATS` for the suffix; by default a TREC run."""
    if to is not None:
        if to not in RANKING_FORMATS:
            raise UsageError(unknown("format of a ranking", to, RANKING_FORMATS))
        return to
    suffix = plain_suffix(target)
    if suffix in (".score", ".scores"):
        return "scores"
    return next((name for name in TABLES if suffix in EXTENSIONS[name]), "trec")


@contextmanager
def open_ranking(
    target: str | Path,
    *,
    to: str = "trec",
    per_group: int | None = None,
    top: int | None = None,
    tag: str = "rankwright",
) -> Iterator[Callable[[RankingData, Any], None]]:
    """Open a file and yield ``append(data, scores)``, which ranks and writes a part of the data.

    Parameters
    ----------
    target
        The output; ``"-"`` is standard output.
    to
        One of `RANKING_FORMATS`. Tables have the columns of `Ranking.to_frame`, with rows counted
        over all parts. ``scores`` has all rows in the caller's order, without limits.
    per_group, top
        As for `Ranking.of`.
    tag
        As for `Ranking.to_trec`.
    """
    table = resolve("formats", to).table if to in TABLES else None
    opened: Any = open_target(target) if table is None else table.open_columns(target)
    first_row = 0
    with opened as output:

        def append(data: RankingData, scores: Any) -> None:
            nonlocal first_row
            if to == "scores":
                values = data.in_caller_order(np.asarray(scores, np.float64)).tolist()
                output.write("".join(f"{value!r}\n" for value in values).encode())
                return
            ranking = Ranking.of(data, scores, per_group=per_group, top=top)
            if to == "trec":
                for text in ranking.run_texts(tag=tag):
                    output.write(text.encode())
            else:
                columns = ranking.columns()
                output.write({**columns, "row": columns["row"] + first_row})
                first_row += data.n_documents

        yield append


# --- reading scores ----------------------------------------------------------------------------

Lines = list[tuple[int, str]]
"""The number and the text of each line of a file."""


def read_scores(path: str | Path, data: RankingData) -> F64:
    """Return the scores in a file, in the row order of ``data``.

    The file has one score per line, in the order of the caller's rows; or RankLib's columns
    ``qid document-number score`` with numbers from 0 in each query; or it is a TREC run, matched by
    query and document name. Every document must have exactly one score.
    """
    with open_bytes(path) as stream:
        content = decoded(stream.read(), path).replace("\r\n", "\n").rstrip()
    all_lines = list(enumerate(content.split("\n"), 1))
    lines = [(line, text) for line, text in all_lines if text.strip() and not _is_comment(text)]
    if not lines:
        raise DataError(f"{path} is empty; a score for each document is expected.")
    width = len(_split(lines[0][1]))
    if width == 1:
        return _scores_by_line(path, all_lines, data)  # a blank line is a missing score
    if width != 3 and width < len(RUN):
        raise DataError(
            f"{path}, line {lines[0][0]} has {width} columns; scores are one per line, 'qid number "
            "score' (RankLib) or 'qid Q0 docid rank score tag' (TREC)."
        )
    scores, has_score = np.zeros(data.n_documents), np.zeros(data.n_documents, bool)
    for line, row, score in _scores_by_document(path, lines, data, is_run=width >= len(RUN)):
        if has_score[row]:
            error_at(path, line, f"{_document(data, row)} has a score already")
        scores[row] = number_at(score, path, line, "the score")
        has_score[row] = True
    if not has_score.all():
        raise DataError(f"{path} has no score for {_document(data, int(has_score.argmin()))}.")
    return scores


def _scores_by_line(path: str | Path, lines: Lines, data: RankingData) -> F64:
    if len(lines) != data.n_documents:
        raise DataError(
            f"{path} has {len(lines)} lines for {data.n_documents} documents; one score for each, "
            "in the order of the data file, is expected."
        )
    scores = np.array([number_at(text.strip(), path, line, "the score") for line, text in lines])
    return scores if data.row is None else scores[data.row]


def _scores_by_document(
    path: str | Path, lines: Lines, data: RankingData, *, is_run: bool
) -> Iterator[tuple[int, int, str]]:
    """Yield the number of each line, the row of its document and its score.

    RankLib starts numbering again at each block of lines of the same query. If the rows of a query
    are apart in the data, numbers are therefore ambiguous, and the order of the lines decides.
    """
    width = len(RUN) if is_run else 3
    row_of = {names: row for row, names in enumerate(names_in_run(data))} if is_run else {}
    query_numbers = {str(query): q for q, query in enumerate(data.qid.tolist())}
    query_of_row, sizes = data.query_of_row(), data.sizes
    rows = None if data.row is None else np.argsort(data.row)
    for place, (line, text) in enumerate(lines):
        cells = _split(text)
        if is_run:
            cells = cells[:width]  # trec_eval ignores text after the tag too
        if len(cells) != width:
            error_at(path, line, f"it has {len(cells)} columns, but line {lines[0][0]} has {width}")
        query, doc, score = (cells[0], cells[2], cells[4]) if is_run else cells
        q = query_numbers.get(query)
        if q is None:
            error_at(path, line, f"query {query} is not in the data")
        if is_run:
            row = row_of.get((query, doc))
        elif rows is not None:
            row = int(rows[min(place, len(rows) - 1)])
            if query_of_row[row] != q:
                error_at(path, line, f"the same line of the data is not of query {query}")
        elif doc.isdecimal() and int(doc) < sizes[q]:
            row = int(data.indptr[q]) + int(doc)
        else:
            row = None
        if row is None:
            hint = "" if is_run else "; documents are numbered from 0"
            error_at(
                path, line, f"document {quoted(doc)} of query {query} is not in the data{hint}"
            )
        yield line, row, score


def _is_comment(text: str) -> bool:
    return text.lstrip().startswith("#")


def _split(text: str) -> list[str]:
    """Split a line at tabs if there are two, as RankLib writes them, otherwise at blanks."""
    cells = text.split("\t")
    return [cell.strip() for cell in cells] if len(cells) == 3 else text.split()


def _document(data: RankingData, row: int) -> str:
    """Describe the document of a row for messages."""
    q = int(np.searchsorted(data.indptr, row, side="right")) - 1
    name = "" if data.doc_id is None else f" ({quoted(data.doc_id[row])})"
    return f"document {row - int(data.indptr[q])}{name} of query {data.qid[q]}"
