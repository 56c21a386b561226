"""Made-up ranking data in the shape of the well-known sets, whose best ranker is known.

A document's features come from normal latents t, chained so that neighbours correlate and shifted
per query; they show as they are, as ratios 0..1, as heavy-tailed counts, as rare values (mostly 0)
or as one value per query. Its utility and its grade are

    u = sum_f w_f x_f + sum_k c_k x_a(k) x_b(k)                                                 (1)
    grade = number of thresholds below  sqrt(1 - noise) u + sqrt(noise) e + query_spread g      (2)

with e normal per document and g per query, w on the light-tailed features, and thresholds that
give the real set's share of each grade. Within a query nothing beats ranking by u, and without
interactions u is linear in the features.

Queries are drawn in blocks from named random streams: a larger set begins with the queries of a
smaller one, and any number of threads gives the same bytes. What a `Shape` says is in
`rankwright.data.shapes`, how the documents are drawn in `rankwright.data.synthetic_rows`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankwright.core.parallel import map_ranges
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.data.shapes import SHAPES, Shape
from rankwright.data.synthetic_rows import Plan, draw_plan, empty_matrix, make_block, rows_stream
from rankwright.errors import UsageError
from rankwright.registry import unknown

_BLOCK_ROWS = 4_096
_PART_ROWS = 8 * _BLOCK_ROWS

# --- API -------------------------------------------------------------------------------------


class Synthetic(NamedTuple):
    """Made-up data, and the scores of the best ranker there is for it."""

    data: RankingData
    utility: F64


def synthetic(
    shape: str | Shape,
    *,
    queries: int | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
) -> RankingData:
    """Generate synthetic data of a given shape.

    Parameters
    ----------
    shape
        A `Shape`, or ``ohsumed``, ``mq2007``, ``mq2008``, ``mslr10k``, ``mslr30k``, ``web`` (with
        hosts in ``group``) or ``rcv1`` (sparse; each of 101 topics is a query).
    queries
        How many queries to make instead of the shape's own number.
    """
    return synthetic_with_truth(shape, queries=queries, seed=seed, n_jobs=n_jobs).data


def synthetic_with_truth(
    shape: str | Shape,
    *,
    queries: int | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Synthetic:
    """As `synthetic`, with the utility (1) of each document, which no ranker beats."""
    drawn = _Drawing.of(shape, queries, seed)
    return drawn.queries(0, drawn.count, n_jobs=n_jobs)


def synthetic_parts(
    shape: str | Shape,
    *,
    first: int = 0,
    queries: int | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Iterator[RankingData]:
    """Generate synthetic data of a given shape part by part, so that it may be larger than memory.

    Together the parts are what `synthetic` makes. ``first`` leaves out that many queries, which may
    be those of a training set: the rest is ruled by the same utility.
    """
    if first < 0:
        raise UsageError(f"the number of queries to leave out must be 0 or more, not {first}.")
    drawn = _Drawing.of(shape, None if queries is None else first + queries, seed)
    if first >= drawn.count:
        raise UsageError(f"there are {drawn.count} queries: leave out fewer than {first}.")
    per_part = drawn.per_block * max(1, _PART_ROWS // _BLOCK_ROWS)
    for lo in range(first, drawn.count, per_part):
        yield drawn.queries(lo, min(lo + per_part, drawn.count), n_jobs=n_jobs).data


@dataclass(frozen=True, slots=True, eq=False)
class _Drawing:
    """What is drawn before any document: the plan, and the lengths of all lists, in blocks."""

    shape: Shape
    seed: int
    plan: Plan
    count: int
    per_block: int
    indptr: I64

    @classmethod
    def of(cls, shape: str | Shape, queries: int | None, seed: int) -> _Drawing:
        if isinstance(shape, str):
            if shape not in SHAPES:
                raise UsageError(unknown("shape", shape, SHAPES))
            shape = SHAPES[shape]
        count = shape.queries if queries is None else queries
        if count < 1:
            raise UsageError(f"the number of queries must be 1 or more, not {count}.")
        per_block = max(1, _BLOCK_ROWS * shape.queries // shape.documents)
        lengths = _lengths(shape, math.ceil(count / per_block) * per_block, seed)
        indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        return cls(shape, seed, draw_plan(shape, seed), count, per_block, indptr)

    def queries(self, lo: int, hi: int, *, n_jobs: int | None) -> Synthetic:
        """Draw the blocks that hold queries lo to hi, and keep these queries."""
        shape, per_block = self.shape, self.per_block
        first, last = lo // per_block, math.ceil(hi / per_block)
        start = self.indptr[first * per_block]
        ends = self.indptr[first * per_block : last * per_block + 1] - start
        indptr = self.indptr[lo : hi + 1] - start
        n = int(indptr[-1])
        y, utility = np.empty(n), np.empty(n)
        group = np.empty(n, np.int64) if shape.hosts else None
        X = empty_matrix(shape, self.seed, ends[::per_block], n, first_block=first)

        def make(begin: int, end: int) -> None:
            for block in range(begin, end):
                rows = ends[block * per_block : (block + 1) * per_block + 1]
                rng = rows_stream(shape, self.seed, first + block)
                make_block(self.plan, rng, rows, X, y, utility, group)

        map_ranges(make, np.arange(last - first + 1), n_jobs=n_jobs)
        skip = int(indptr[0])
        data = RankingData(
            X[skip:] if skip else X,
            y[skip:],
            indptr - skip,
            np.arange(lo + 1, hi + 1),
            group=None if group is None else group[skip:],
        )
        return Synthetic(data, utility[skip:])


# --- lengths of the lists --------------------------------------------------------------------


def _lengths(shape: Shape, count: int, seed: int) -> I64:
    """Return the lengths of the first ``count`` lists; every ``shape.queries`` add up exactly."""
    rounds = range(math.ceil(count / shape.queries))
    return np.concatenate([_round_of_lengths(shape, seed, r) for r in rounds])[:count]


def _round_of_lengths(shape: Shape, seed: int, number: int) -> I64:
    rng = stream(seed, "synthetic", shape.name, "lengths", number)
    raw = np.exp(shape.spread * rng.standard_normal(shape.queries))
    low, high = 0.0, shape.longest / raw.min()
    for _ in range(100):
        middle = (low + high) / 2
        lengths = np.clip(np.rint(middle * raw), shape.shortest, shape.longest)
        low, high = (middle, high) if lengths.sum() <= shape.documents else (low, middle)
    lengths = np.clip(np.rint(low * raw), shape.shortest, shape.longest).astype(np.int64)
    order = rng.permutation(shape.queries)
    while (short := shape.documents - int(lengths.sum())) > 0:
        open_lists = order[lengths[order] < shape.longest]
        lengths[open_lists[:short]] += 1
    return lengths
