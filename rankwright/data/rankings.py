"""`Ranking`: the documents of each query, best first, as `Ranker.rank` returns them.

A ranking holds the caller's row numbers, so ``frame.iloc[ranking.order]`` is the frame ranked.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import IO, Any, ClassVar, Literal

import numpy as np

from rankwright.core.dtypes import as_float_vector, as_groups
from rankwright.core.order import first_places, shown
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.queries import ByQuery
from rankwright.data.ranking_data import RankingData
from rankwright.data.target import open_target
from rankwright.errors import DataError, UsageError, quoted


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
            data = replace(data, group=as_groups(group, "group", data.n_documents))
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
        from rankwright.data.frames import frame_of_columns

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
        """Return the lines of a TREC run, query after query; errors are raised at once."""
        queries = run_names(self.qid)
        tag = "_".join(str(tag).split()) or "rankwright"
        if self.doc_id is not None:
            for q in range(len(queries)):
                self._document_names(q)

        def text(q: int) -> str:
            ranked = zip(self._document_names(q), self._query(q).scores.tolist(), strict=True)
            return "".join(
                f"{queries[q]} Q0 {name} {rank} {score!r} {tag}\n"
                for rank, (name, score) in enumerate(ranked, 1)
            )

        return map(text, range(len(queries)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.array(self.order, dtype, copy=copy)

    def __repr__(self) -> str:
        return f"Ranking({len(self.qid)} queries, {len(self.order)} documents)"

    def _query(self, number: int) -> RankedQuery:
        here = slice(int(self.indptr[number]), int(self.indptr[number + 1]))
        doc_id = None if self.doc_id is None else self.doc_id[here]
        return RankedQuery(self._id(number), self.order[here], self.scores[here], doc_id)

    def _document_names(self, q: int) -> list[str]:
        here = slice(int(self.indptr[q]), int(self.indptr[q + 1]))
        doc_id = None if self.doc_id is None else self.doc_id[here]
        return document_names(doc_id, self.place[here].tolist(), self.qid[q])


# --- names in TREC runs ------------------------------------------------------------------------


def run_names(qid: AnyArray) -> list[str]:
    """Return query ids as text; one with a blank is refused."""
    names = [str(query) for query in qid.tolist()]
    for name in names:
        if len(name.split()) != 1:
            raise DataError(
                f"the query id {name!r} has a blank in it, which TREC files cannot hold."
            )
    return names


def document_names(doc_id: AnyArray | None, places: Sequence[int], query: Any) -> list[str]:
    """Return a name without blanks for each document of a query, different from all others.

    A document without an id is called by its place in the query, from 0.
    """
    numbers = [str(place) for place in places]
    if doc_id is None:
        return numbers
    given = map(str, doc_id.tolist())
    names = ["_".join(name.split()) or number for name, number in zip(given, numbers, strict=True)]
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise DataError(
            f"query {query} has two documents named {quoted(twice)}, which TREC files cannot "
            "tell apart; give them different doc ids."
        )
    return names


def check_limits(**limits: int | None) -> None:
    """Refuse limits on the length of a ranking that are not whole numbers from 1."""
    for name, limit in limits.items():
        if limit is None:
            continue
        if isinstance(limit, bool) or not isinstance(limit, int | np.integer):
            raise UsageError(f"{name} must be a whole number, not {limit!r}.")
        if limit < 1:
            raise UsageError(f"{name} must be 1 or more, not {limit}.")
