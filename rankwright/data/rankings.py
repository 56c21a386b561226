"""`Ranking`: the documents of each query, best first, as `Ranker.rank` returns them.

A ranking holds the caller's row numbers, so ``frame.iloc[ranking.order]`` is the frame ranked.

In files scores are one per line, RankLib's three columns, a TREC run, or a table. In a run a
document is called by its doc id, blanks made underscores, or else by its number in the query from
0; a query by its id. The same names are written and looked for.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import IO, Any, ClassVar, Literal

import numpy as np

from rankwright.core.dtypes import as_float_vector, as_groups
from rankwright.core.order import first_places, shown
from rankwright.core.parallel import query_ranges
from rankwright.core.parameters import LARGEST_WHOLE
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
from rankwright.registry import resolve, unknown


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
    iterating yields one query after the other. Where NumPy expects an array, as in
    ``y[ranking]``, a ranking stands for its ``order``.

    Attributes
    ----------
    order : (m,) int64
        Row numbers of the caller's X, best first, query after query. For `RankingData` these are
        the rows of the arrays, frame or file that it was made from (``RankingData.row``).
    indptr : (Q + 1,) int64
        The documents of query q are ``order[indptr[q]:indptr[q + 1]]``.
    scores : (m,) float64
        The score of each document of ``order``.
    qid : (Q,) array
        The caller's query ids, of any type.
    doc_id : (m,) array or None
        The id of each document of ``order``, where the data has ids.
    place : (m,) int64
        The place of each document of ``order`` in its query before ranking, from 0.

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
        """Rank the documents of ``data`` by ``scores``; equal scores keep the order of rows.

        Parameters
        ----------
        scores : array-like (n,)
            One for each row of ``data``, in its order; NaN ranks last.
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
        """Return the queries of all ``parts``, whose rows are counted from ``first_rows``."""
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

        The columns are ``qid``, ``row``, ``rank`` (from 1), ``score``, and ``doc_id`` where known.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}
        """
        return frame_of_columns(self.columns(), backend)

    def columns(self) -> dict[str, AnyArray]:
        """Return the columns of `to_frame` by their names."""
        sizes = np.diff(self.indptr)
        columns: dict[str, AnyArray] = {
            "qid": np.repeat(self.qid, sizes),
            "row": self.order,
            "rank": np.arange(len(self.order)) - np.repeat(self.indptr[:-1], sizes) + 1,
            "score": self.scores,
        }
        if self.doc_id is not None:
            columns["doc_id"] = self.doc_id
        return columns

    def to_trec(
        self, target: str | PathLike[str] | IO[Any] | None = None, *, tag: str = "rankwright"
    ) -> str | None:
        """Return the ranking as a TREC run, or write it.

        Lines are ``qid Q0 docid rank score tag``; scores have all their digits. A document is
        called by its doc id, blanks made underscores, or else by its place in the query, from 0.

        Parameters
        ----------
        target : path or file, optional
            Where to write it, compressed as the suffix says; ``"-"`` is standard output. Without
            it the text is returned.
        tag : str
            The name of the run, in the last column.
        """
        texts = self.run_texts(tag=tag)
        if target is None:
            return "".join(texts)
        if hasattr(target, "write"):
            binary = isinstance(target, io.RawIOBase | io.BufferedIOBase)
            for text in texts:
                target.write(text.encode() if binary else text)
            return None
        with open_target(str(target)) as stream:
            for text in texts:
                stream.write(text.encode())
        return None

    def run_texts(self, *, tag: str = "rankwright") -> Iterator[str]:
        """Return the lines of a TREC run, some queries at a time; errors are raised at once."""
        queries = run_names(self.qid)
        tag = "_".join(str(tag).split()) or "rankwright"
        blocks = list(pairwise(query_ranges(self.indptr).tolist()))
        if self.doc_id is not None:
            for lo, hi in blocks:
                self._document_names(lo, hi)

        def text(block: tuple[int, int]) -> str:
            lo, hi = block
            rows = slice(int(self.indptr[lo]), int(self.indptr[hi]))
            sizes = np.diff(self.indptr[lo : hi + 1])
            first = np.repeat(self.indptr[lo:hi], sizes)
            called = [queries[q] for q in np.repeat(np.arange(lo, hi), sizes).tolist()]
            ranks = (np.arange(rows.start, rows.stop) - first + 1).tolist()
            names, scores = self._document_names(lo, hi), self.scores[rows].tolist()
            return "".join(
                f"{query} Q0 {name} {rank} {score!r} {tag}\n"
                for query, name, rank, score in zip(called, names, ranks, scores, strict=True)
            )

        return map(text, blocks)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.array(self.order, dtype, copy=copy)

    def __repr__(self) -> str:
        return f"Ranking({counted(len(self.qid), 'query')}, {counted(len(self.order), 'document')})"

    def _query(self, number: int) -> RankedQuery:
        here = slice(int(self.indptr[number]), int(self.indptr[number + 1]))
        doc_id = None if self.doc_id is None else self.doc_id[here]
        return RankedQuery(self._id(number), self.order[here], self.scores[here], doc_id)

    def _document_names(self, lo: int, hi: int) -> list[str]:
        """Return the names of the documents of queries lo to hi."""
        rows = slice(int(self.indptr[lo]), int(self.indptr[hi]))
        doc_id = None if self.doc_id is None else self.doc_id[rows]
        names = names_without_blanks(doc_id, self.place[rows].tolist())
        if doc_id is not None and len(set(names)) < len(names):  # else no query has two of a name
            for q in range(lo, hi):
                first, last = self.indptr[q : q + 2].tolist()
                refuse_same_names(names[first - rows.start : last - rows.start], self.qid[q])
        return names


# --- names in TREC runs ------------------------------------------------------------------------


def run_names(qid: AnyArray) -> list[str]:
    """Return query ids as text; one with a blank is refused."""
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


def document_names(doc_id: AnyArray | None, places: Sequence[int], query: Any) -> list[str]:
    """Return a name without blanks for each document of a query, different from all others.

    A document without an id is called by its place in the query, from 0.
    """
    names = names_without_blanks(doc_id, places)
    if doc_id is not None:
        refuse_same_names(names, query)
    return names


def names_without_blanks(doc_id: AnyArray | None, places: Sequence[int]) -> list[str]:
    """Return a name without blanks for each document: its id, or its place where it has none."""
    if doc_id is None:
        return [str(place) for place in places]
    given = map(str, doc_id.tolist())
    return ["_".join(name.split()) or str(k) for name, k in zip(given, places, strict=True)]


def refuse_same_names(names: list[str], query: Any) -> None:
    """Refuse two documents of a query with one name."""
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise DataError(
            f"query {query} has two documents named {quoted(twice)}, which TREC files cannot "
            "tell apart; give them different doc ids."
        )


def check_limits(**limits: int | None) -> None:
    """Refuse limits on the length of a ranking that are not whole numbers from 1."""
    for name, limit in limits.items():
        if limit is None:
            continue
        if isinstance(limit, bool) or not isinstance(limit, int | np.integer):
            raise UsageError(f"{name} must be a whole number, not {limit!r}.")
        if limit < 1:
            raise UsageError(f"{name} must be 1 or more, not {limit}.")
        if limit > LARGEST_WHOLE:
            raise UsageError(f"{name} must be {LARGEST_WHOLE} or less; leave it out for no limit.")


# --- rankings and scores in files ------------------------------------------------------------

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
    write_ranking(data, scores, target, per_group=per_group, top=top, tag=tag)


def run_texts(
    data: RankingData,
    scores: Any,
    *,
    per_group: int | None = None,
    top: int | None = None,
    tag: str = "rankwright",
) -> Iterator[bytes]:
    """Return what `write_run` writes, some queries at a time; errors are raised at once."""
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
    with open_ranking(target, to=to, per_group=per_group, top=top, tag=tag) as append:
        append(data, scores)


@contextmanager
def open_ranking(
    target: str | Path,
    *,
    to: str = "trec",
    per_group: int | None = None,
    top: int | None = None,
    tag: str = "rankwright",
) -> Iterator[Callable[[RankingData, Any], None]]:
    """Open a file for a ranking whose documents come part by part, each of whole queries.

    Yields what takes a part and its scores. The options are those of `write_ranking`; rows are
    counted over all parts.
    """
    rows = 0
    if to in _TABLES:
        with resolve("formats", to).table.open_columns(target) as sink:

            def append_columns(data: RankingData, scores: Any) -> None:
                nonlocal rows
                columns = Ranking.of(data, scores, per_group=per_group, top=top).columns()
                sink.write({**columns, "row": columns["row"] + rows})
                rows += data.n_documents

            yield append_columns
        return
    if to == "scores" and (per_group is not None or top is not None):
        raise UsageError("a file of scores has every row; leave out the limit, or write a run.")

    def texts(data: RankingData, scores: Any) -> Iterator[bytes]:
        if to == "trec":
            return run_texts(data, scores, per_group=per_group, top=top, tag=tag)
        values = data.in_caller_order(np.asarray(scores, np.float64)).tolist()
        return iter(["".join(f"{value!r}\n" for value in values).encode()])

    with open_target(target) as stream:

        def append_text(data: RankingData, scores: Any) -> None:
            for text in texts(data, scores):
                stream.write(text)

        yield append_text


def read_scores(path: str | Path, data: RankingData) -> F64:
    """Return the scores in a file, in the row order of ``data``.

    The file has one score per line, in the order of the rows that ``data`` came from; or RankLib's
    ``qid document-number score``, numbers counting from 0 in each query; or is a TREC run, matched
    by query and document name. Every document must have exactly one score.
    """
    with open_bytes(path) as stream:
        text = decoded(stream.read(), path).replace("\r\n", "\n").rstrip()
    every = list(enumerate(text.split("\n"), 1))
    lines = [(line, text) for line, text in every if text.strip() and not _is_comment(text)]
    if not lines:
        raise DataError(f"{path} is empty; a score for each document is expected.")
    first, text = lines[0]
    width = len(_split(text))
    if width == 1:
        return _scores_by_line(path, every, data)  # a blank line is a score that is missing
    if width == 3:
        return _scores_by_number(path, lines, data)
    if width >= len(RUN):
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

    So where the rows of a query lay apart in the data, only the order of lines says which is
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
            error_at(path, line, f"query {query} is not in the data")
        q = queries[query]
        if not number.isdecimal():
            error_at(path, line, f"the document number {quoted(number)} is not a whole number")
        if data.row is None:
            if int(number) >= data.sizes[q]:
                error_at(path, line, f"query {query} has no document {number}, counted from 0")
            row = int(data.indptr[q]) + int(number)
        else:
            row = int(rows[min(place, len(rows) - 1)])
            if query_of_row[row] != q:
                error_at(path, line, f"query {query} is not that of the same line of the data")
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
            error_at(path, line, f"query {query} is not in the data")
        if (query, doc) not in row_of:
            error_at(path, line, f"document {quoted(doc)} of query {query} is not in the data")
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
            error_at(self.path, line, f"{self._called(row)} has a score already")
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
        if width == len(RUN):
            cells = cells[:width]  # trec_eval ignores text after the tag too
        if len(cells) != width:
            error_at(
                path, line, f"it has {len(cells)} columns, where line {lines[0][0]} has {width}"
            )
        yield line, cells


def _is_comment(text: str) -> bool:
    return text.lstrip().startswith("#")


def _split(text: str) -> list[str]:
    """Cut a line at its tabs, as RankLib writes them, or else at blanks."""
    by_tab = text.split("\t")
    return [cell.strip() for cell in by_tab] if len(by_tab) == 3 else text.split()
