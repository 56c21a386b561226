"""From raw parts, as they were read, to parts of whole queries.

Raw parts may cut queries: rows of one query may lie in several files, blocks or frames. A query
goes to the raw part that it appears in first, and its rows keep the order of the raw parts and of
the rows in them; queries go in order of first appearance. So what lies in which part, and in which
order, depends on the data alone.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from rankwright.core.memory import shown_size
from rankwright.core.types import I64, AnyArray
from rankwright.data.frames import AllCategories, joined_categories
from rankwright.data.ranking_data import PER_DOCUMENT, RankingData, concatenate
from rankwright.distributed.cluster import Place
from rankwright.errors import DataError

_OPTIONAL = ("query_weight", *PER_DOCUMENT)
_T = TypeVar("_T")


@dataclass(frozen=True)
class Shape:
    """What the driver has to know of a raw part.

    Parameters
    ----------
    n_features, feature_names, optional
        Width; names; and which optional arrays there are.
    qid, sizes
        Its queries in order, and their numbers of documents.
    row_bytes
        Bytes of a document, roughly.
    categories
        Of its features.
    """

    n_features: int
    feature_names: tuple[str, ...] | None
    optional: tuple[str, ...]
    qid: AnyArray
    sizes: I64
    row_bytes: float
    categories: AllCategories | None = None


@dataclass(frozen=True)
class Portion:
    """Queries of one raw part that go to one part; None: all of them."""

    raw: int
    queries: I64 | None


def shape_of(raw: RankingData | None) -> Shape | None:
    """Look at a raw part; one without rows is None."""
    if raw is None:
        return None
    optional = tuple(name for name in _OPTIONAL if getattr(raw, name) is not None)
    row_bytes = sys.getsizeof(raw) / max(1, raw.n_documents)
    names, categories = raw.feature_names, raw.categories
    return Shape(raw.n_features, names, optional, raw.qid, raw.sizes, row_bytes, categories)


def regrouped(
    place: Place,
    raws: list[Any],
    names: Sequence[str],
    *,
    n_parts: int | None,
    pad: bool = False,
) -> tuple[list[Any], list[Shape]]:
    """Return parts of whole queries and the shape of each.

    Parameters
    ----------
    raws, names
        Raw parts, held by ``place``, and what to call each in a sentence.
    n_parts
        How many parts; None: as many as there are raw parts with a query of their own.
    pad
        Whether a part with fewer features has zeros in the others, as text that leaves zeros out.
    """
    looked = place.results(place.call(shape_of, raws))
    kept = [k for k, shape in enumerate(looked) if shape is not None]
    if not kept:
        raise DataError("there are no rows in any part of the data.")
    raws, names = [raws[k] for k in kept], [names[k] for k in kept]
    shapes: list[Shape] = [looked[k] for k in kept]
    width = _agreed_width(shapes, names, pad=pad)
    as_text = len({_kind(shape.qid) for shape in shapes}) > 1
    plain = [shape.n_features == width and not as_text for shape in shapes]
    if not all(plain):
        made = place.call(_widened, raws, [width] * len(raws), [as_text] * len(raws))
        raws = [raw if same else new for raw, new, same in zip(raws, made, plain, strict=True)]
        shapes = [_reshaped(shape, width, as_text) for shape in shapes]
    categories = joined_categories([shape.categories for shape in shapes])
    if any(shape.categories != categories for shape in shapes):
        raws = place.call(_in_categories, raws, [categories] * len(raws))
        shapes = [replace(shape, categories=categories) for shape in shapes]
    plan = _plan(shapes, n_parts)
    found = [_shape_of_plan(shapes, pieces) for pieces in plan]
    check_memory(found, place.memory_limit())
    return [_part(place, raws, pieces) for pieces in plan], found


# --- on the workers --------------------------------------------------------------------------


def take(raw: RankingData, queries: I64) -> RankingData:
    """Return some queries of a raw part."""
    return raw.select(queries)


def join(*pieces: RankingData) -> RankingData:
    """Put pieces one after the other; a query that is in several has its rows in that order."""
    numbered = []
    first = 0
    for piece in pieces:
        numbered.append(replace(piece, qid=np.arange(first, first + piece.n_queries), row=None))
        first += piece.n_queries
    runs = concatenate(numbered)
    ids = np.concatenate([piece.qid for piece in pieces])
    number: dict[Any, int] = {}
    of_run = np.array([number.setdefault(query, len(number)) for query in ids.tolist()])
    order = np.argsort(of_run, kind="stable")
    together = runs.select(order)
    sizes = np.bincount(of_run, runs.sizes, len(number)).astype(np.int64)
    starts = np.unique(of_run, return_index=True)[1]
    weight = runs.query_weight
    if weight is not None:
        differs = weight != weight[starts][of_run]
        if differs.any():
            query = ids[np.flatnonzero(differs)[0]]
            raise DataError(f"query {query} has more than one query_weight in its partitions.")
        weight = weight[starts]
    return replace(
        together,
        indptr=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        qid=ids[starts],
        query_weight=weight,
    )


def _in_categories(raw: RankingData, categories: AllCategories | None) -> RankingData:
    return raw.in_categories(categories)


def _widened(raw: RankingData, width: int, as_text: bool) -> RankingData:
    if as_text:
        raw = replace(raw, qid=raw.qid.astype(str))
    return raw.with_n_features(width)


# --- planning --------------------------------------------------------------------------------


def _agreed_width(shapes: list[Shape], names: Sequence[str], *, pad: bool) -> int:
    first = shapes[0]
    for shape, name in zip(shapes, names, strict=True):
        if shape.n_features != first.n_features and not pad:
            raise DataError(
                f"{names[0]} has {first.n_features} features, but {name} has {shape.n_features}; "
                "all parts of the data must have the same."
            )
        if shape.feature_names != first.feature_names:
            odd = _first_difference(first.feature_names, shape.feature_names)
            raise DataError(f"the features of {names[0]} and {name} have different names{odd}.")
        if shape.optional != first.optional:
            what = sorted(set(shape.optional) ^ set(first.optional))[0]
            raise DataError(
                f"{names[0]} and {name} differ in whether they have {what}; all parts of the data "
                "must have it, or none."
            )
    return max(shape.n_features for shape in shapes)


def _first_difference(a: tuple[str, ...] | None, b: tuple[str, ...] | None) -> str:
    if a is None or b is None:
        return ": one has none"
    at = next(k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
    return f": column {at} is '{a[at]}' in the first and '{b[at]}' in the second"


def _plan(shapes: list[Shape], n_parts: int | None) -> list[list[Portion]]:
    """Say for each part which queries of which raw parts it has."""
    home: dict[Any, int] = {}  # the number of a query, in order of first appearance
    of_raw = []
    for shape in shapes:
        ids = shape.qid.tolist()
        of_raw.append(np.array([home.setdefault(q, len(home)) for q in ids], np.int64))
    sizes = np.zeros(len(home), np.int64)
    first = np.full(len(home), -1, np.int64)
    for raw, (numbers, shape) in enumerate(zip(of_raw, shapes, strict=True)):
        np.add.at(sizes, numbers, shape.sizes)
        fresh = numbers[first[numbers] < 0]
        first[fresh] = raw
    part_of = first if n_parts is None else even_parts(sizes, n_parts)
    part_of = np.unique(part_of, return_inverse=True)[1]
    plan: list[list[Portion]] = [[] for _ in range(int(part_of.max()) + 1)]
    for raw, numbers in enumerate(of_raw):
        goes = part_of[numbers]
        for part in np.unique(goes).tolist():
            chosen = np.flatnonzero(goes == part)
            plan[part].append(Portion(raw, None if len(chosen) == len(numbers) else chosen))
    return plan


def even_parts(sizes: I64, n_parts: int) -> I64:
    """Return for each query the part it goes to: runs of queries with about equal documents."""
    if n_parts < 1:
        raise DataError(f"the number of parts must be 1 or more, not {n_parts}.")
    before = np.cumsum(sizes) - sizes
    total = max(1, int(sizes.sum()))
    parts: I64 = np.minimum(before * n_parts // total, n_parts - 1)
    return parts


def _part(place: Place, raws: list[Any], pieces: list[Portion]) -> Any:
    if len(pieces) == 1 and pieces[0].queries is None:
        return raws[pieces[0].raw]
    taken = [
        raws[piece.raw]
        if piece.queries is None
        else place.call(take, [raws[piece.raw]], [piece.queries])[0]
        for piece in pieces
    ]
    if len(taken) == 1:
        return taken[0]
    return place.call(join, *([one] for one in taken))[0]


def _shape_of_plan(shapes: list[Shape], pieces: list[Portion]) -> Shape:
    sizes: dict[Any, int] = {}
    for query, size in _runs(shapes, pieces):
        sizes[query] = sizes.get(query, 0) + size
    like = shapes[pieces[0].raw]
    ids = np.array(list(sizes), like.qid.dtype if _kind(like.qid) != "U" else None)
    return replace(like, qid=ids, sizes=np.array(list(sizes.values()), np.int64))


def _runs(shapes: list[Shape], pieces: list[Portion]) -> list[tuple[Any, int]]:
    found: list[tuple[Any, int]] = []
    for piece in pieces:
        shape = shapes[piece.raw]
        chosen = slice(None) if piece.queries is None else piece.queries
        found += zip(shape.qid[chosen].tolist(), shape.sizes[chosen].tolist(), strict=True)
    return found


def check_memory(parts: Sequence[Shape], limit: int | None) -> None:
    """Refuse a query, or a part, that no worker can hold, and name the query."""
    if limit is None:
        return
    for part in parts:
        largest = int(np.argmax(part.sizes))
        documents = int(part.sizes[largest])
        held = shown_size(documents * part.row_bytes)
        if documents * part.row_bytes > limit:
            raise DataError(
                f"query {part.qid[largest]} has {documents} documents, about {held}, which no "
                f"worker can hold (the memory limit is {shown_size(limit)}); give workers more "
                "memory, or leave the query out."
            )
        whole = float(part.sizes.sum()) * part.row_bytes
        if whole > limit:
            raise DataError(
                f"the part that begins with query {part.qid[0]} takes about {shown_size(whole)}, "
                f"more than a worker can hold (the memory limit is {shown_size(limit)}); give more "
                "parts (n_parts=...) or workers more memory."
            )


def _reshaped(shape: Shape, width: int, as_text: bool) -> Shape:
    qid = shape.qid.astype(str) if as_text else shape.qid
    names = shape.feature_names if shape.n_features == width else None
    return replace(shape, n_features=width, feature_names=names, qid=qid)


def _kind(qid: AnyArray) -> str:
    return "i" if qid.dtype.kind in "iu" else "U" if qid.dtype.kind in "USO" else qid.dtype.kind
