"""What the formats share: data in parts of whole queries, and what a format cannot hold."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, quoted

PER_DOCUMENT = ("sample_weight", "doc_id", "group", "position")
"""The optional arrays with one value per document."""

EVERYTHING = frozenset(
    {*PER_DOCUMENT, "query_weight", "feature_names", "categories", "qid", "empty queries"}
)
"""All that a format may say it ``holds`` besides features, grades and query boundaries."""

_TEXT_HOLDS = frozenset({"doc_id", "qid"})
_CELLS_PER_PART = 1 << 23
_FEWEST_ROWS_PER_PART = 1 << 10


class PartsDifferError(DataError):
    """Parts of one file do not fit together, so that it has to be read as a whole."""


class DistinctQueries:
    """Watches the parts of data go by; each query may be in one of them, once."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def add(self, part: RankingData) -> None:
        """Refuse a part with a query that was there before."""
        for query in part.qid.tolist():
            if query in self.seen:
                raise PartsDifferError(
                    f"query {query} appears twice; give the two lists different ids."
                )
            self.seen.add(query)


@dataclass(frozen=True, slots=True)
class Converted:
    """What was written, and where."""

    source: str
    target: str
    queries: int
    documents: int
    features: int


def parts_of(data: RankingData, *, rows: int | None = None) -> Iterator[RankingData]:
    """Yield ``data`` in parts of whole queries, as views, of about ``rows`` documents each."""
    if rows is None:
        rows = max(_FEWEST_ROWS_PER_PART, _CELLS_PER_PART // max(1, data.n_features))
    lo = 0
    while lo < data.n_queries:
        end = np.searchsorted(data.indptr, data.indptr[lo] + rows, side="right") - 1
        hi = max(lo + 1, int(end))
        yield consecutive(data, lo, hi)
        lo = hi


def consecutive(data: RankingData, lo: int, hi: int) -> RankingData:
    """Return queries lo to hi, as views of the arrays of ``data``."""
    rows = slice(int(data.indptr[lo]), int(data.indptr[hi]))
    cut = {name: getattr(data, name) for name in PER_DOCUMENT}
    return replace(
        data,
        X=data.X[rows],
        y=data.y[rows],
        indptr=data.indptr[lo : hi + 1] - data.indptr[lo],
        qid=data.qid[lo:hi],
        query_weight=None if data.query_weight is None else data.query_weight[lo:hi],
        row=None,
        **{name: None if values is None else values[rows] for name, values in cut.items()},
    )


def warn_of_loss(data: RankingData, name: str, chosen: Any) -> None:
    """Warn of the parts of ``data`` that format ``name`` cannot hold.

    Categories are refused there: their codes alone would be taken for numbers.
    """
    holds = getattr(chosen, "holds", _TEXT_HOLDS)
    if data.categories and "categories" not in holds:
        named = ", ".join(quoted(feature) for feature in data.categories)
        raise DataError(
            f"format '{name}' cannot hold categories ({named}); write parquet, arrow, csv or a "
            f"store, or leave them out with drop={list(data.categories)}."
        )
    optional = (*PER_DOCUMENT, "query_weight", "feature_names")
    lost = [part for part in optional if part not in holds and getattr(data, part) is not None]
    if "qid" not in holds and data.qid.tolist() != list(range(data.n_queries)):
        lost.append("qid")
    if "empty queries" not in holds and (data.sizes == 0).any():
        lost.append(f"the {int((data.sizes == 0).sum())} queries without documents")
    if lost:
        warnings.warn(f"format '{name}' cannot hold {', '.join(lost)}: left out.", stacklevel=3)


def write_parts(
    parts: Iterator[RankingData],
    source: str | Path,
    target: str | Path,
    to_name: str,
    writer: Any,
    options: dict[str, Any],
) -> Converted:
    """Write data that come part by part in the format ``to_name``; warn of what it cannot hold."""
    queries = documents = features = 0
    with writer.open_writer(target, **options) as out:
        for part in parts:
            if not queries:
                warn_of_loss(part, to_name, writer)
            out.append(part)
            queries += part.n_queries
            documents += part.n_documents
            features = part.n_features
    return Converted(str(source), str(target), queries, documents, features)
