"""Codes, order and digest of data that do not depend on the order of its rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankwright.core.jit import kernel
from rankwright.core.order import ranking
from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.rng import stream
from rankwright.core.types import I64, AnyArray
from rankwright.data.frames import AllCategories, categories_to_json
from rankwright.data.ranking_data import RankingData

_ROWS = 1 << 15
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio

# --- hashes ----------------------------------------------------------------------------------


@kernel
def _hash_rows(lo, hi, words, factor, total):
    """Write the sum of words times factors of each row; the product of NumPy is 3 times slower."""
    for i in range(lo, hi):
        for j in range(words.shape[1]):
            total[i] += np.uint64(words[i, j]) * factor[j]


def mix_bits(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble the bits of each word (the finaliser of splitmix64, a bijection; 0 stays 0)."""
    mixed = words ^ (words >> np.uint64(30))
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


# --- API -------------------------------------------------------------------------------------


def row_codes(data: RankingData, *, n_jobs: int | None = None) -> NDArray[np.uint64]:
    """Return a 64-bit code of the grade and features of each row.

    Zeros add nothing to the code, so sparse and dense data have the same codes.
    """
    n, d = data.X.shape
    # an odd factor for each column
    factor = mix_bits(np.arange(1, d + 1, dtype=np.uint64) * _GOLDEN) | np.uint64(1)
    X: Any = data.X
    if isinstance(X, np.ndarray):
        total = np.zeros(n, np.uint64)
        map_ranges(_hash_rows, row_ranges(n, _ROWS), _bits(X), factor, total, n_jobs=n_jobs)
    else:
        words = _bits(X.data).astype(np.uint64)
        total = sparse.csr_array((words, X.indices, X.indptr), X.shape) @ factor
    return mix_bits(data.y.view(np.uint64) ^ mix_bits(total))


def content_order(data: RankingData, *, n_jobs: int | None = None) -> tuple[I64, I64]:
    """Return rows and queries in an order that depends only on their content.

    The first array has the rows, query after query, and the second the queries in that order.
    """
    code = row_codes(data, n_jobs=n_jobs)
    key = (code >> np.uint64(11)).astype(np.float64)
    within = ranking(key, data.indptr, n_jobs=n_jobs)
    queries = np.argsort(_query_codes(data, code), kind="stable")
    return within[data.rows_of(queries)], queries


def content_sample(
    data: RankingData, count: int, *, seed: int = 0, n_jobs: int | None = None
) -> I64:
    """Return ``count`` rows, ascending, sampled by their content.

    Equal rows are sampled independently, so that shuffled rows give a sample of the same content.
    """
    code = row_codes(data, n_jobs=n_jobs)
    order = np.argsort(code, kind="stable")
    code = code[order]
    place = np.arange(len(code))
    new = np.append(True, code[1:] != code[:-1])
    time = place - np.maximum.accumulate(np.where(new, place, 0))
    factor = stream(seed, "content sample").integers(2**63, dtype=np.uint64) | np.uint64(1)
    keys = mix_bits((code + time.astype(np.uint64)) * factor)
    return np.sort(order[np.argpartition(keys, count - 1)[:count]])


def in_content_order(
    data: RankingData, *, features: bool = True, n_jobs: int | None = None
) -> tuple[I64, RankingData]:
    """Return rows in an order that depends only on their content, and the data in that order.

    The data has no names of documents, and no features if ``features`` is false.
    """
    rows, queries = content_order(data, n_jobs=n_jobs)
    if not features:
        data = data._replace(X=np.empty((data.n_documents, 0)), feature_names=None)
    return rows, data._replace(doc_id=None).in_order(rows, queries)


def content_digest(data: RankingData, *, n_jobs: int | None = None) -> str:
    """Return a digest of the queries, grades, features and weights.

    It does not depend on the order of rows and on the names of queries.
    """
    prints = query_prints(data, n_jobs=n_jobs)
    n, d = data.X.shape
    return digest_of_prints([prints], n, d, data.categories)


def query_codes(data: RankingData, *, n_jobs: int | None = None) -> NDArray[np.uint64]:
    """Return a code of each query's grades and features, for any order of its rows."""
    return _query_codes(data, row_codes(data, n_jobs=n_jobs))


def query_prints(
    data: RankingData, *, n_jobs: int | None = None
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return a code, the size and the weight of each query, from which digests are computed."""
    code = row_codes(data, n_jobs=n_jobs)
    if data.sample_weight is not None:
        code ^= data.sample_weight.view(np.uint64) * _GOLDEN
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
