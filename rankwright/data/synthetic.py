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
from typing import NamedTuple

import numpy as np

from rankwright.core.parallel import map_ranges
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.data.shapes import SHAPES, Shape
from rankwright.data.synthetic_rows import draw_plan, empty_matrix, make_block, rows_stream
from rankwright.errors import UsageError
from rankwright.registry import unknown

_BLOCK_ROWS = 4_096

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
    n_threads: int | None = None,
) -> RankingData:
    """Make up data of a given shape.

    Parameters
    ----------
    shape
        A `Shape`, or ``ohsumed``, ``mq2007``, ``mq2008``, ``mslr10k``, ``mslr30k``, ``web`` (with
        hosts in ``group``) or ``rcv1`` (sparse; each of 101 topics is a query).
    queries
        How many queries to make instead of the shape's own number.
    """
    return synthetic_with_truth(shape, queries=queries, seed=seed, n_threads=n_threads).data


def synthetic_with_truth(
    shape: str | Shape,
    *,
    queries: int | None = None,
    seed: int = 0,
    n_threads: int | None = None,
) -> Synthetic:
    """As `synthetic`, with the utility (1) of each document, which no ranker beats."""
    if isinstance(shape, str):
        if shape not in SHAPES:
            raise UsageError(unknown("shape", shape, SHAPES))
        shape = SHAPES[shape]
    count = shape.queries if queries is None else queries
    if count < 1:
        raise UsageError(f"the number of queries must be 1 or more, not {count}.")
    plan = draw_plan(shape, seed)
    per_block = max(1, _BLOCK_ROWS * shape.queries // shape.documents)
    blocks = math.ceil(count / per_block)
    lengths = _lengths(shape, blocks * per_block, seed)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    n = int(indptr[count])
    y, utility = np.empty(n), np.empty(n)
    group = np.empty(n, np.int64) if shape.hosts else None
    X = empty_matrix(shape, seed, indptr[::per_block], n)

    def make(lo: int, hi: int) -> None:
        for block in range(lo, hi):
            ends = indptr[block * per_block : (block + 1) * per_block + 1]
            make_block(plan, rows_stream(shape, seed, block), ends, X, y, utility, group)

    map_ranges(make, np.arange(blocks + 1), n_threads=n_threads)
    data = RankingData(X, y, indptr[: count + 1].copy(), np.arange(1, count + 1), group=group)
    return Synthetic(data, utility)


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
