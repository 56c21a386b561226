"""Synthetic ranking data with the sizes of well-known data sets and a known best ranker.

Features are functions of normal variables t, which are shifted per query and correlated between
neighbouring features. They are t itself, ratios from 0 to 1, heavy-tailed counts, rare values
(mostly 0), or one value per query. The utility and the grade of a document are

    u = sum_f w_f x_f + sum_k c_k x_a(k) x_b(k)                                                 (1)
    grade = number of thresholds below  sqrt(1 - noise) u + sqrt(noise) e + query_spread g      (2)

with e normal per document and g per query, weights w of the light-tailed features, and thresholds
that give each grade its share in the real data set. Within a query the ranking by u is the best,
and without interactions u is linear in the features.

Queries are sampled in blocks, each from its own random stream. Therefore a larger data set begins
with the queries of a smaller one, and any number of threads gives the same bytes. `SHAPES` has the
sizes of the real data sets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
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
    """Synthetic data and the scores of the best ranker."""

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
        Number of queries; by default the number of the shape.

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
    """As `synthetic`, with the utility (1) of each document, the scores of the best ranker.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright.data import synthetic_with_truth
    >>> data, utility = synthetic_with_truth("mq2008", queries=20)
    >>> best = rw.evaluate(data, utility, "ndcg@10")["ndcg@10"]
    >>> bool(best > rw.evaluate(data, data.X[:, 0], "ndcg@10")["ndcg@10"])
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
    n_rounds = math.ceil(n_blocks * per_block / shape.queries)
    lengths = np.concatenate([_lengths(shape, seed, number) for number in range(n_rounds)])
    ends = np.concatenate(([0], np.cumsum(lengths[: n_blocks * per_block])))
    plan, rows = _sample_plan(shape, seed), int(ends[-1])
    X = np.empty((rows, shape.features), np.float32)
    y, utility = np.empty(rows), np.empty(rows)
    group = np.empty(rows, np.int64) if shape.hosts else None

    def sample_blocks(first: int, last: int) -> None:
        for block in range(first, last):
            bounds = ends[block * per_block : (block + 1) * per_block + 1]
            rows_of_block = slice(int(bounds[0]), int(bounds[-1]))
            rng = stream(seed, "synthetic", shape.name, "rows", block)
            latent = _sample_rows(
                plan, rng, bounds - bounds[0], X[rows_of_block], utility[rows_of_block]
            )
            y[rows_of_block] = np.searchsorted(plan.thresholds, latent, side="right")
            if group is not None:
                group[rows_of_block] = shape.hosts * rng.random(len(latent)) ** 3

    map_ranges(sample_blocks, np.arange(n_blocks + 1), n_jobs=n_jobs)
    indptr = ends[: count + 1].astype(np.int64)
    n = int(indptr[-1])  # the last block may have more queries
    qid, group = np.arange(1, count + 1), None if group is None else group[:n]
    return Synthetic(RankingData(X[:n], y[:n], indptr, qid, group=group), utility[:n])


# --- lengths of the lists --------------------------------------------------------------------


def _lengths(shape: Shape, seed: int, number: int) -> I64:
    """Return the lengths of the lists of round ``number``, which add up to ``documents``."""
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

_SAMPLE_QUERIES, _SAMPLE_LENGTH = 2_000, 8  # of the sample that determines the thresholds

_PLAIN, _RATIO, _COUNT, _SIZE, _RARE, _QUERY = range(6)
_KINDS = (_PLAIN, _PLAIN, _COUNT, _RATIO, _PLAIN, _RARE, _QUERY, _PLAIN, _SIZE, _RARE)
# correlation of a feature with the previous one
_FOLLOW = (0.0, 0.9, 0.8, 0.5, 0.0, 0.7, 0.0, 0.3, 0.6, 0.3)
_INFORMATIVE = (_PLAIN, _RATIO, _RARE)

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _show_rows(indptr, X, level, kind, follow, fresh):
    """Turn the normal variables in ``X`` into features; ``level`` is the shift of each query."""
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
def _utility_rows(X, weight, first, second, product, utility):
    for i in range(len(X)):
        u = 0.0
        for f in range(X.shape[1]):
            u += weight[f] * X[i, f]
        for k in range(len(product)):
            u += product[k] * X[i, first[k]] * X[i, second[k]]
        utility[i] = u  # (1)


# --- blocks ----------------------------------------------------------------------------------


class Plan(NamedTuple):
    """Weights of (1) and thresholds of (2) for a shape and a seed."""

    shape: Shape
    kind: I64
    follow: AnyArray
    weight: F64
    first: I64
    second: I64
    product: F64
    thresholds: F64


def _sample_rows(plan: Plan, rng: np.random.Generator, ends: I64, X: AnyArray, u: F64) -> F64:
    """Sample the features and utilities of lists; return the value that (2) compares."""
    shape, lists = plan.shape, len(ends) - 1
    rng.standard_normal(out=X, dtype=np.float32)
    level = rng.standard_normal((lists, X.shape[1]), dtype=np.float32)
    fresh = np.sqrt(1 - plan.follow**2)
    _show_rows(ends, X, level, plan.kind, plan.follow, fresh)
    _utility_rows(X, plan.weight, plan.first, plan.second, plan.product, u)
    noise = rng.standard_normal(len(u))
    query_level = np.repeat(rng.standard_normal(lists), np.diff(ends))
    latent: F64 = math.sqrt(1 - shape.noise) * u + math.sqrt(shape.noise) * noise
    return latent + shape.query_spread * query_level


def _sample_plan(shape: Shape, seed: int) -> Plan:
    """Sample the weights of (1) and determine the thresholds of (2) on a separate sample."""
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
    linear, _ = _sample(plan._replace(product=0 * product), seed)
    weight = weight * math.sqrt(1 - share) / _deviation(linear)
    if share:
        crossed, _ = _sample(plan._replace(weight=0 * weight), seed)
        product = product * math.sqrt(share) / _deviation(crossed)
    plan = plan._replace(weight=weight, product=product)
    shares = np.cumsum(shape.grades) / np.sum(shape.grades)
    return plan._replace(thresholds=np.quantile(_sample(plan, seed)[1], shares[:-1]))


def _sample(plan: Plan, seed: int) -> tuple[F64, F64]:
    """Return the utilities of many short lists, and the values that (2) compares."""
    rng = stream(seed, "synthetic", plan.shape.name, "sample")
    ends = np.arange(_SAMPLE_QUERIES + 1) * _SAMPLE_LENGTH
    X = np.empty((ends[-1], plan.shape.features), np.float32)
    utility = np.empty(ends[-1])
    return utility, _sample_rows(plan, rng, ends, X, utility)


def _deviation(u: F64) -> float:
    """Return the standard deviation within the lists of the sample."""
    lists = u.reshape(-1, _SAMPLE_LENGTH)
    return float(np.sqrt(np.mean((lists - lists.mean(axis=1, keepdims=True)) ** 2)))


# --- shapes ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes and distributions of a synthetic data set.

    Parameters
    ----------
    name
        Part of the names of random streams, so that shapes of different names are independent.
    queries, documents, features
        Totals. With another number of queries, the lengths of lists have the same distribution.
    grades
        Share (or number) of documents of grade 0, 1, 2, ...
    shortest, longest, spread
        Lengths of lists are log-normal and clipped; ``spread`` is the deviation of the logarithm.
    hosts
        Number of hosts in ``group``; 0 means no groups.
    interactions
        Share of products of two features in the variance of the utility.
    noise
        Share of the noise e in the variance of (2) within a query.
    query_spread
        Standard deviation of g, by which queries differ in their number of good documents.
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


_MSLR10K = (624_263, 386_280, 159_451, 21_317, 8_881)
_MSLR30K = (1_940_952, 1_225_770, 504_958, 69_010, 30_435)
SHAPES = {
    shape.name: shape
    for shape in (
        Shape("ohsumed", 106, 16_140, 45, (11_303, 2_585, 2_252), 35, 320, 0.43),
        Shape("mq2007", 1_692, 69_623, 46, (51_632, 14_128, 3_863), 6, 147, 0.35, query_spread=1),
        Shape("mq2008", 784, 15_211, 46, (12_279, 2_001, 931), 5, 121, 0.73, query_spread=0.9),
        Shape("mslr10k", 10_000, 1_200_192, 136, _MSLR10K, 1, 908),
        Shape("mslr30k", 31_531, 3_771_125, 136, _MSLR30K, 1, 1_251),
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
