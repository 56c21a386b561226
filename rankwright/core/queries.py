"""What losses and metrics ask of the queries of a range: the longest, runs of equal values, seeds.

Kernels here are called from kernels that work through queries lo:hi.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwright.core.jit import kernel
from rankwright.core.scalar import hash_step
from rankwright.core.types import F64, I64

# --- kernels ---------------------------------------------------------------------------------


@kernel
def longest(lo, hi, indptr):  # type: ignore[no-untyped-def]
    """Return the number of documents of the longest of the queries lo:hi."""
    most = 0
    for q in range(lo, hi):
        most = max(most, indptr[q + 1] - indptr[q])
    return most


@kernel
def clear(lo, hi, array):  # type: ignore[no-untyped-def]
    """Write zeros to the rows lo:hi of an array that was asked for, that is, has a length."""
    if len(array):
        for i in range(lo, hi):
            array[i] = 0.0


@kernel
def clear_query(q, indptr, value, grad, curv):  # type: ignore[no-untyped-def]
    """Write zeros for query q: all that a loss has to say where there is no order."""
    value[q] = 0.0
    clear(indptr[q], indptr[q + 1], grad)
    clear(indptr[q], indptr[q + 1], curv)


@kernel
def query_seed(random_key, q):  # type: ignore[no-untyped-def]
    """Return a hash of q and ``random_key``: seed, iteration and number of the first query."""
    sampled_in = hash_step(hash_step(np.uint64(0), random_key[0]), random_key[1])
    return hash_step(sampled_in, np.uint64(q) + random_key[2])


# --- API -------------------------------------------------------------------------------------


def first_of_runs(values: F64, begin: I64) -> NDArray[np.bool_]:
    """Return whether each value is the first of a run of equal ones in its query."""
    new = np.ones(len(values), bool)
    new[1:] = values[1:] != values[:-1]
    new[begin[:-1][np.diff(begin) > 0]] = True
    return new


def numbers_of_runs(values: F64, begin: I64) -> tuple[I64, I64]:
    """Return numbers from 0 for runs of equal values in each query, and where its runs begin."""
    runs = np.append(0, np.cumsum(first_of_runs(values, begin)))
    of_query = runs[begin]
    number = runs[1:] - 1 - np.repeat(of_query[:-1], np.diff(begin))
    return number.astype(np.int64), of_query.astype(np.int64)
