"""What data holds, whatever the order of its rows: a code per row, a fixed order, a digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankwright.core.jit import kernel
from rankwright.core.order import ranking
from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.rng import stream
from rankwright.core.types import I64, AnyArray
from rankwright.data.frames import AllCategories, categories_to_json
from rankwright.data.ranking_data import RankingData

_ROWS = 1 << 15

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _mix(word):  # type: ignore[no-untyped-def]
    """Scatter the bits of a word (the finaliser of splitmix64)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@kernel
def _factors(lo, hi, out):  # type: ignore[no-untyped-def]
    """Write an odd factor of its own for each column."""
    for j in range(lo, hi):
        out[j] = _mix(np.uint64(j + 1) * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)


@kernel
def _hash_dense(lo, hi, words, factor, code):  # type: ignore[no-untyped-def]
    for i in range(lo, hi):
        total = np.uint64(0)  # a zero adds nothing, so sparse data have the same code
        for j in range(words.shape[1]):
            total += np.uint64(words[i, j]) * factor[j]
        code[i] = _mix(code[i] ^ _mix(total))


@kernel
def _hash_sparse(lo, hi, indptr, indices, words, factor, code):  # type: ignore[no-untyped-def]
    for i in range(lo, hi):
        total = np.uint64(0)
        for k in range(indptr[i], indptr[i + 1]):
            total += np.uint64(words[k]) * factor[indices[k]]
        code[i] = _mix(code[i] ^ _mix(total))


@kernel
def _random_keys(lo, hi, code, time, factor, out):  # type: ignore[no-untyped-def]
    """Write a number for each row, another one each time that its code has come before."""
    for i in range(lo, hi):
        out[i] = _mix((code[i] + np.uint64(time[i])) * factor)


# --- API -------------------------------------------------------------------------------------


def row_codes(data: RankingData, *, n_jobs: int | None = None) -> NDArray[np.uint64]:
    """Return a 64-bit code of each row's grade and features."""
    code = data.y.view(np.uint64).copy()
    X = data.X
    factor = np.empty(X.shape[1], np.uint64)
    _factors(0, len(factor), factor)
    if isinstance(X, np.ndarray):
        kernel, arrays = _hash_dense, [_bits(X)]
    else:
        kernel, arrays = _hash_sparse, [X.indptr, X.indices, _bits(X.data)]
    map_ranges(kernel, row_ranges(len(code), _ROWS), *arrays, factor, code, n_jobs=n_jobs)
    return code


def content_order(data: RankingData, *, n_jobs: int | None = None) -> tuple[I64, I64]:
    """Return rows and queries in an order that depends on what they hold alone.

    The first array lists the rows, query after query; the second the queries in that order.
    """
    code = row_codes(data, n_jobs=n_jobs)
    key = (code >> np.uint64(11)).astype(np.float64)
    within = ranking(key, data.indptr, n_jobs=n_jobs)
    queries = np.argsort(_query_codes(data, code), kind="stable")
    return within[data.rows_of(queries)], queries


def content_sample(
    data: RankingData, count: int, *, seed: int = 0, n_jobs: int | None = None
) -> I64:
    """Return ``count`` rows, ascending, sampled by their content alone.

    Equal rows are sampled one by one, so that shuffled rows give a sample of the same content.
    """
    code = row_codes(data, n_jobs=n_jobs)
    order = np.argsort(code, kind="stable")
    code = code[order]
    place = np.arange(len(code))
    new = np.append(True, code[1:] != code[:-1])
    time = place - np.maximum.accumulate(np.where(new, place, 0))
    factor = stream(seed, "content sample").integers(2**63, dtype=np.uint64) | np.uint64(1)
    bounds = row_ranges(len(code), _ROWS)
    map_ranges(_random_keys, bounds, code, time, factor, keys := np.empty_like(code))
    return np.sort(order[np.argpartition(keys, count - 1)[:count]])


def in_content_order(
    data: RankingData, *, features: bool = True, n_jobs: int | None = None
) -> tuple[I64, RankingData]:
    """Return rows in an order that depends on what they hold alone, and the data in that order.

    Names of documents are left out, and the features too where they are not needed.
    """
    rows, queries = content_order(data, n_jobs=n_jobs)
    if not features:
        data = data._replace(X=np.empty((data.n_documents, 0)), feature_names=None)
    return rows, data._replace(doc_id=None).in_order(rows, queries)


def content_digest(data: RankingData, *, n_jobs: int | None = None) -> str:
    """Return a digest of the queries, grades, features and weights.

    Shuffled rows and renamed queries leave it as it is; anything else changes it.
    """
    prints = query_prints(data, n_jobs=n_jobs)
    n, d = data.X.shape
    return digest_of_prints([prints], n, d, data.categories)


def query_codes(data: RankingData, *, n_jobs: int | None = None) -> NDArray[np.uint64]:
    """Return a code of each query's grades and features, whatever the order of its rows."""
    return _query_codes(data, row_codes(data, n_jobs=n_jobs))


def query_prints(
    data: RankingData, *, n_jobs: int | None = None
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return a code, the size and the weight of each query: what a digest is made of."""
    code = row_codes(data, n_jobs=n_jobs)
    if data.sample_weight is not None:
        code ^= data.sample_weight.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    sizes = np.diff(data.indptr)
    weight = np.ones(len(sizes)) if data.query_weight is None else data.query_weight
    return _query_codes(data, code), sizes, weight


def digest_of_prints(
    prints: Sequence[tuple[AnyArray, AnyArray, AnyArray]],
    n_documents: int,
    n_features: int,
    categories: AllCategories | None = None,
) -> str:
    """Return the digest of data whose parts have these `query_prints`."""
    columns = [np.concatenate(column) for column in zip(*prints, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    digest = hashlib.sha256(f"{n_documents} x {n_features}".encode())
    if categories:
        digest.update(json.dumps(categories_to_json(categories), sort_keys=True).encode())
    for column in columns:
        digest.update(np.ascontiguousarray(column[order]).tobytes())
    return digest.hexdigest()


def _query_codes(data: RankingData, code: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the sum of the codes of each query's rows."""
    filled = np.diff(data.indptr) > 0
    sums = np.zeros(len(filled), np.uint64)
    if filled.any():
        sums[filled] = np.add.reduceat(code, data.indptr[:-1][filled])
    return sums


def _bits(values: AnyArray) -> AnyArray:
    return values.view(np.uint32 if values.dtype == np.float32 else np.uint64)
