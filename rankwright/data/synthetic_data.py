"""Synthetic ranking data in the shape of the well-known sets, whose best ranker is known.

A document's features come from normal latents t, chained so that neighbours correlate and shifted
per query; they show as they are, as ratios 0..1, as heavy-tailed counts, as rare values (mostly 0)
or as one value per query. Its utility and its grade are

    u = sum_f w_f x_f + sum_k c_k x_a(k) x_b(k)                                                 (1)
    grade = number of thresholds below  sqrt(1 - noise) u + sqrt(noise) e + query_spread g      (2)

with e normal per document and g per query, w on the light-tailed features, and thresholds that
give the real set's share of each grade. Within a query nothing beats ranking by u, and without
interactions u is linear in the features.

Queries are sampled in blocks, each from a random stream of its own: a larger set begins with the
queries of a smaller one, and any number of threads gives the same bytes. `SHAPES` has the real
numbers of the well-known sets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.registry import unknown

_BLOCK_ROWS = 4_096

# --- API -------------------------------------------------------------------------------------


class Synthetic(NamedTuple):
    """Synthetic data, and the scores of the best ranker there is for it."""

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
        A `Shape`, or ``ohsumed``, ``mq2007``, ``mq2008``, ``mslr10k``, ``mslr30k`` or ``web``
        (with hosts in ``group``).
    queries
        How many queries to make instead of the shape's own number.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.synthetic("mq2008", queries=30)
    RankingData(30 queries, 501 documents, 46 features (float32), grades 0 to 2)
    """
    return synthetic_with_truth(shape, queries=queries, seed=seed, n_jobs=n_jobs).data


def synthetic_with_truth(
    shape: str | Shape,
    *,
    queries: int | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Synthetic:
    """As `synthetic`, with the utility (1) of each document, which no ranker beats.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright.data import synthetic_with_truth
    >>> made = synthetic_with_truth("mq2008", queries=20)
    >>> best = rw.evaluate(made.data, made.utility, "ndcg@10")["ndcg@10"]
    >>> bool(best > rw.evaluate(made.data, made.data.X[:, 0], "ndcg@10")["ndcg@10"])
    True
    """
    if isinstance(shape, str):
        if shape not in SHAPES:
            raise UsageError(unknown("shape", shape, SHAPES))
        shape = SHAPES[shape]
    count = shape.queries if queries is None else queries
    if count < 1:
        raise UsageError(f"the number of queries must be 1 or more, not {count}.")
    per_block = max(1, _BLOCK_ROWS * shape.queries // shape.documents)
    n_blocks = math.ceil(count / per_block)
    ends = np.concatenate(([0], np.cumsum(_lengths(shape, n_blocks * per_block, seed))))
    indptr = ends[: count + 1].astype(np.int64)
    plan, n = _sample_plan(shape, seed), int(indptr[-1])
    X = np.empty((n, shape.features), np.float32)
    y, utility = np.empty(n), np.empty(n)
    group = np.empty(n, np.int64) if shape.hosts else None

    def make(begin: int, end: int) -> None:
        for block in range(begin, end):
            rows = ends[block * per_block : (block + 1) * per_block + 1]
            rng = stream(seed, "synthetic", shape.name, "rows", block)
            _make_block(plan, rng, rows, X, y, utility, group)

    map_ranges(make, np.arange(n_blocks + 1), n_jobs=n_jobs)
    qid = np.arange(1, count + 1)
    return Synthetic(RankingData(X, y, indptr, qid, group=group), utility)


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


# --- documents: weights and thresholds of one shape and seed, then the rows ------------------

_SAMPLE_QUERIES, _SAMPLE_LENGTH = 2_000, 8  # to find the thresholds of the grades

_PLAIN, _RATIO, _COUNT, _SIZE, _RARE, _QUERY = range(6)
_KINDS = (_PLAIN, _PLAIN, _COUNT, _RATIO, _PLAIN, _RARE, _QUERY, _PLAIN, _SIZE, _RARE)
_FOLLOW = (0.0, 0.9, 0.8, 0.5, 0.0, 0.7, 0.0, 0.3, 0.6, 0.3)  # correlation with the one before
_INFORMATIVE = (_PLAIN, _RATIO, _RARE)

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _show_rows(indptr, X, level, kind, follow, fresh):  # type: ignore[no-untyped-def]
    """Turn the normals in ``X`` into features, in place; ``level`` shifts each query's latents."""
    for q in range(len(indptr) - 1):
        for i in range(indptr[q], indptr[q + 1]):
            t = X[i, 0]
            for f in range(X.shape[1]):
                t = follow[f] * t + fresh[f] * X[i, f]
                x = t + np.float32(0.5) * level[q, f]
                if kind[f] == _RATIO:
                    x = 1 / (1 + math.exp(-x))
                elif kind[f] == _COUNT:
                    x = np.floor(math.exp(np.float32(1.5) * x))
                elif kind[f] == _SIZE:
                    x = math.exp(np.float32(2) * x)
                elif kind[f] == _RARE:
                    x = max(x - 1, np.float32(0))
                elif kind[f] == _QUERY:
                    x = level[q, f]
                X[i, f] = x


@kernel
def _utility_rows(X, weight, first, second, product, utility):  # type: ignore[no-untyped-def]
    for i in range(len(X)):
        u = 0.0
        for f in range(X.shape[1]):
            u += weight[f] * X[i, f]
        for k in range(len(product)):
            u += product[k] * X[i, first[k]] * X[i, second[k]]
        utility[i] = u  # (1)


# --- blocks ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What all blocks of one shape and seed share."""

    shape: Shape
    kind: I64
    follow: AnyArray
    weight: F64
    first: I64
    second: I64
    product: F64
    thresholds: F64


def _make_block(
    plan: Plan,
    rng: np.random.Generator,
    ends: I64,
    X: AnyArray,
    y: F64,
    utility: F64,
    group: I64 | None,
) -> None:
    """Sample rows ends[0]:ends[-1] and keep those that fit into the arrays."""
    shape, start, rows = plan.shape, int(ends[0]), int(ends[-1] - ends[0])
    stop = min(int(ends[-1]), len(y))
    kept = stop - start
    u = np.empty(rows)
    _make_rows(plan, rng, ends, X, stop, u)
    v = _grade_scale(shape, rng, u, np.diff(ends))
    y[start:stop] = np.searchsorted(plan.thresholds, v[:kept], side="right")
    utility[start:stop] = u[:kept]
    if group is not None:
        hosts = (shape.hosts * rng.random(rows) ** 3).astype(np.int64)
        group[start:stop] = hosts[:kept]


def _make_rows(
    plan: Plan, rng: np.random.Generator, ends: I64, X: AnyArray, stop: int, u: F64
) -> None:
    start = ends[0]
    whole = stop == ends[-1]
    block = X[start:stop] if whole else np.empty((len(u), X.shape[1]), np.float32)
    rng.standard_normal(out=block, dtype=np.float32)
    level = rng.standard_normal((len(ends) - 1, X.shape[1]), dtype=np.float32)
    fresh = np.sqrt(1 - plan.follow**2)
    _show_rows(ends - start, block, level, plan.kind, plan.follow, fresh)
    _utility_rows(block, plan.weight, plan.first, plan.second, plan.product, u)
    if not whole:
        X[start:stop] = block[: stop - start]


def _grade_scale(shape: Shape, rng: np.random.Generator, u: F64, lengths: I64) -> F64:
    """Return what the thresholds are compared with in (2)."""
    noise = rng.standard_normal(len(u))
    richness = np.repeat(rng.standard_normal(len(lengths)), lengths)
    known = math.sqrt(1 - shape.noise) * u
    return known + math.sqrt(shape.noise) * noise + shape.query_spread * richness


# --- what all blocks share -------------------------------------------------------------------


def _sample_plan(shape: Shape, seed: int) -> Plan:
    """Sample the weights of (1) and find the thresholds of (2) on a sample of its own."""
    rng = stream(seed, "synthetic", shape.name, "plan")
    d = shape.features
    kind, follow = np.resize(_KINDS, d), np.resize(_FOLLOW, d).astype(np.float32)
    sparsity = np.where(np.isin(kind, _INFORMATIVE), 0.5, 0.0)
    weight = np.where(rng.random(d) < sparsity, rng.standard_normal(d), 0.0)
    weight[0] = weight[0] or 1.0
    share = shape.interactions
    pairs = min(d, 10) if share else 0
    first, second = rng.choice(np.flatnonzero(kind == _PLAIN), (2, pairs))
    product = rng.choice([-1.0, 1.0], pairs)
    plan = Plan(shape, kind, follow, weight, first, second, product, np.empty(0))
    linear, _ = _sample(replace(plan, product=0 * product), seed)
    weight = weight * math.sqrt(1 - share) / _deviation(linear)
    if share:
        crossed, _ = _sample(replace(plan, weight=0 * weight), seed)
        product = product * math.sqrt(share) / _deviation(crossed)
    plan = replace(plan, weight=weight, product=product)
    shares = np.cumsum(shape.grades) / np.sum(shape.grades)
    return replace(plan, thresholds=np.quantile(_sample(plan, seed)[1], shares[:-1]))


def _sample(plan: Plan, seed: int) -> tuple[F64, F64]:
    """Return the utility of many short lists, and what the thresholds are compared with."""
    shape, rng = plan.shape, stream(seed, "synthetic", plan.shape.name, "sample")
    ends = np.arange(_SAMPLE_QUERIES + 1) * _SAMPLE_LENGTH
    u = np.empty(ends[-1])
    _make_rows(plan, rng, ends, np.empty((len(u), shape.features), np.float32), len(u), u)
    return u, _grade_scale(shape, rng, u, np.diff(ends))


def _deviation(u: F64) -> float:
    """Return the deviation within the sample's lists."""
    lists = u.reshape(-1, _SAMPLE_LENGTH)
    return float(np.sqrt(np.mean((lists - lists.mean(axis=1, keepdims=True)) ** 2)))


# --- shapes: how many queries, documents and features, and how the grades fall ---------------


@dataclass(frozen=True, slots=True)
class Shape:
    """What a synthetic data set looks like.

    Parameters
    ----------
    name
        Part of the random streams' names: two shapes of different names share no numbers.
    queries, documents, features
        Totals. With another number of queries the lists are sampled as long as in the original.
    grades
        Share (or number) of documents of grade 0, 1, 2, ...
    shortest, longest, spread
        Lists are log-normally long, clipped; ``spread`` is the deviation of the logarithm.
    hosts
        Number of hosts named in ``group``; 0 for none.
    interactions
        Share of the utility's variance that is products of two features.
    noise
        Share of the variance of (2) within a query that no ranker can know.
    query_spread
        How much richer in good documents some queries are than others.
    """

    name: str
    queries: int
    documents: int
    features: int
    grades: tuple[float, ...]
    shortest: int = 1
    longest: int = 10_000
    spread: float = 0.5
    hosts: int = 0
    interactions: float = 0.3
    noise: float = 0.5
    query_spread: float = 0.5

    def __post_init__(self) -> None:
        if min(self.queries, self.documents, self.features) < 1:
            raise UsageError("a shape needs at least one query, one document and one feature.")
        if not self.shortest * self.queries <= self.documents <= self.longest * self.queries:
            raise UsageError(
                f"{self.queries} lists of {self.shortest} to {self.longest} documents cannot hold "
                f"{self.documents} in all."
            )
        if not 0 <= self.interactions < 1 or not 0 <= self.noise < 1:
            raise UsageError("interactions and noise are shares from 0 to below 1.")
        if len(self.grades) < 2 or min(self.grades) < 0:
            raise UsageError("grades needs the shares of two or more grades.")


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("ohsumed", 106, 16_140, 45, (11_303, 2_585, 2_252), 35, 320, 0.43),
        Shape("mq2007", 1_692, 69_623, 46, (51_632, 14_128, 3_863), 6, 147, 0.35, query_spread=1),
        Shape("mq2008", 784, 15_211, 46, (12_279, 2_001, 931), 5, 121, 0.73, query_spread=0.9),
        Shape(
            "mslr10k", 10_000, 1_200_192, 136, (624_263, 386_280, 159_451, 21_317, 8_881), 1, 908
        ),
        Shape(
            "mslr30k",
            31_531,
            3_771_125,
            136,
            (1_940_952, 1_225_770, 504_958, 69_010, 30_435),
            1,
            1_251,
        ),
        Shape("web", 8_180, 341_300, 136, (75, 17, 15, 2, 1), 5, 300, 0.5, hosts=10_000),
    )
}


def descriptions() -> dict[str, str]:
    """Return a line on each preset shape."""
    return {
        name: f"{s.queries:,} queries, {s.documents:,} documents, {s.features:,} features"
        f", {len(s.grades)} grades{', hosts as groups' if s.hosts else ''}"
        for name, s in SHAPES.items()
    }
