"""The tie rule: scores descending, documents with equal scores in the order of the input.

All code that sorts documents uses this module. A NaN score is the lowest, and -0.0 equals 0.0.
Conventions with another tie rule pass a key: among equal scores, smaller keys are first, and
documents with equal scores and keys are in the order of the input.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwright.core.jit import kernel
from rankwright.core.kernels import copy_values, take
from rankwright.core.parallel import map_queries
from rankwright.core.team import members, owns, shared_range, team_sum, wait
from rankwright.core.types import F64, I64

_RUN = 12  # longest run for insertion
_COUNTED_RUN = 128  # longest run for counting, which the compiler vectorises
NO_KEY = np.empty(0)  # equal scores are in the order of the input
NO_KEY.flags.writeable = False  # one type for all keys, so that kernels are compiled once

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _before(s, key, i, j):
    """Return whether document i ranks above document j; False for ties."""
    if s[i] > s[j]:
        return True
    if s[i] < s[j]:
        return False
    if s[i] != s[i]:  # two NaN are tied; a NaN ranks below a number
        return s[j] != s[j] and len(key) > 0 and key[i] < key[j]
    if s[j] != s[j]:
        return True
    return len(key) > 0 and key[i] < key[j]


@kernel
def _insert_run(lo, hi, s, key, order):
    """Sort documents lo:hi into ``order[lo:hi]`` by insertion."""
    for i in range(lo, hi):
        j = i
        while j > lo and _before(s, key, i, order[j - 1]):
            order[j] = order[j - 1]
            j -= 1
        order[j] = i


@kernel
def _count_run(lo, hi, s, order):
    """Sort documents lo:hi by the number of documents above each; without NaN and key."""
    scores, places = s[lo:hi], order[lo:hi]
    for i in shared_range(0, len(scores)):
        later = scores[i + 1 :]
        before = 0
        for j in range(i):
            before += scores[j] >= scores[i]
        for j in range(len(later)):
            before += later[j] > scores[i]
        places[before] = lo + i


@kernel
def _is_plain(scores, key):
    """Return whether sorting can ignore keys and NaN, because the query has none."""
    missing = 0
    for i in shared_range(0, len(scores)):
        missing += scores[i] != scores[i]
    return len(key) == 0 and team_sum(missing) == 0


@kernel
def sort_query(lo, hi, s, key, order, spare):
    """Sort documents lo:hi into ``order[lo:hi]`` by a stable merge sort with buffer ``spare``."""
    plain = _is_plain(s[lo:hi], key)
    width = _COUNTED_RUN * members() if plain else _RUN
    if plain:
        for start in range(lo, hi, width):
            _count_run(start, min(start + width, hi), s, order)
        wait()
    if not plain or width < hi - lo:
        if owns(0):
            _merge_runs(lo, hi, s, key, plain, width, order, spare)
        wait()


@kernel
def _merge_runs(lo, hi, s, key, plain, width, order, spare):
    """Merge the runs of ``width`` documents, which are sorted if they are ``plain``."""
    if not plain:
        for start in range(lo, hi, width):
            _insert_run(start, min(start + width, hi), s, key, order)
    while width < hi - lo:
        for start in range(lo, hi, 2 * width):
            middle, end = min(start + width, hi), min(start + 2 * width, hi)
            if middle < end and _before(s, key, order[middle], order[middle - 1]):
                copy_values(order[start:middle], spare[start:middle])
                i, j, k = start, middle, start
                while i < middle:
                    if j < end and _before(s, key, order[j], spare[i]):
                        order[k] = order[j]
                        j += 1
                    else:
                        order[k] = spare[i]
                        i += 1
                    k += 1
        width *= 2


@kernel
def sort_queries(lo, hi, indptr, s, key, order, spare):
    """Write the ranking of each query to its range of ``order``."""
    for q in range(lo, hi):
        sort_query(indptr[q], indptr[q + 1], s, key, order, spare)


@kernel
def in_order_of(number, documents):
    """Return ``documents`` sorted by number, stably."""
    n = len(documents)
    lead, order, spare = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        lead[i] = -number[documents[i]]
    sort_query(0, n, lead, NO_KEY, order, spare)
    take(documents, order, spare)
    return spare


@kernel
def _select_queries(lo, hi, indptr, s, key, top, order):
    """Write the first ``top`` documents of each query to its first places, in order.

    Each document is compared with the last selected one, and most are not inserted: on lists of
    1,000 documents this is eight times as fast as sorting them.
    """
    for q in range(lo, hi):
        start = indptr[q]
        n_selected = 0
        for i in range(start, indptr[q + 1]):
            if n_selected == top:
                if not _before(s, key, i, order[start + top - 1]):
                    continue
            else:
                n_selected += 1
            j = start + n_selected - 1
            while j > start and _before(s, key, i, order[j - 1]):
                order[j] = order[j - 1]
                j -= 1
            order[j] = i


@kernel
def _limit_groups(indptr, order, group, limit, seen, kept, kept_indptr):
    """Select the first ``limit`` documents of each group of each query; ``seen`` is zero."""
    n = 0
    for q in range(len(indptr) - 1):
        for r in range(indptr[q], indptr[q + 1]):
            g = group[order[r]]
            seen[g] += 1
            if seen[g] <= limit:
                kept[n] = order[r]
                n += 1
        for r in range(indptr[q], indptr[q + 1]):
            seen[group[order[r]]] = 0
        kept_indptr[q + 1] = n
    return n


@kernel
def _limit_topics(indptr, order, topics, limit, kept, kept_indptr):
    """Select documents in order while their topics are below the limit; return their number."""
    load = np.zeros(topics.shape[1])
    n = 0
    for q in range(len(indptr) - 1):
        load[:] = 0.0
        for i in order[indptr[q] : indptr[q + 1]]:
            fits = True
            for t in range(len(load)):
                if topics[i, t] > 0.0 and load[t] + topics[i, t] > limit + 1e-9:
                    fits = False
            if fits:
                load += topics[i]
                kept[n] = i
                n += 1
        kept_indptr[q + 1] = n
    return n


# --- API -------------------------------------------------------------------------------------


def ranking(s: F64, indptr: I64, *, key: F64 | None = None, n_jobs: int | None = None) -> I64:
    """Return row numbers, best first, query after query.

    Parameters
    ----------
    s
        Scores of all documents.
    indptr
        Rows of query q are ``indptr[q]:indptr[q + 1]``.
    key
        Order of documents with equal scores, smaller first; by default the order of the rows.
    """
    order = np.empty(len(s), np.int64)
    spare = np.empty(len(s), np.int64)
    key = NO_KEY if key is None else np.ascontiguousarray(key, np.float64).view()
    key.flags.writeable = False
    map_queries(sort_queries, indptr, s, key, order, spare, n_jobs=n_jobs)
    return order


def limit_per_group(order: I64, indptr: I64, group: I64 | F64, limit: int) -> tuple[I64, I64]:
    """Return the best ``limit`` documents of each group in a ranking, and their boundaries.

    ``group`` has the number of the group of each row, from 0, or a column for each topic with the
    share of each row, so that topics can overlap.

    Documents are selected greedily in order of score. With one group per document, this is optimal
    for any metric whose discount decreases with the rank. With overlapping topics the optimum is
    NP-hard. If shares are 0 or 1, the sum of the selected scores, counted from 0, is at least 1/m
    of the largest possible sum, for documents with at most m topics.
    """
    selected = np.empty(len(order), np.int64)
    bounds = np.zeros(len(indptr), np.int64)
    if group.ndim == 2:
        n = _limit_topics(indptr, order, group, limit, selected, bounds)
        return selected[:n], bounds
    counts = np.zeros(int(group.max(initial=-1)) + 1, np.int64)
    n = _limit_groups(indptr, order, group, limit, counts, selected, bounds)
    return selected[:n], bounds


def shown(
    s: F64,
    indptr: I64,
    *,
    group: I64 | F64 | None = None,
    per_group: int | None = None,
    top: int | None = None,
    n_jobs: int | None = None,
) -> tuple[I64, I64]:
    """Return the ranking that is shown to users, and its boundaries.

    Each query has at most ``per_group`` documents of each ``group``, and at most ``top`` documents.
    """
    if per_group is None and top is not None:
        order = np.empty(len(s), np.int64)
        map_queries(_select_queries, indptr, s, NO_KEY, top, order, n_jobs=n_jobs)
        places, bounds = first_places(indptr, top)
        return order[places], bounds
    order = ranking(s, indptr, n_jobs=n_jobs)
    if per_group is not None:
        assert group is not None, "a limit per group needs groups"
        order, indptr = limit_per_group(order, indptr, group, per_group)
    if top is None:
        return order, indptr
    places, bounds = first_places(indptr, top)
    return order[places], bounds


def first_places(indptr: I64, top: int) -> tuple[I64, I64]:
    """Return the first ``top`` places of each query, and their boundaries."""
    sizes = np.minimum(np.diff(indptr), top)
    bounds = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    places = np.repeat(indptr[:-1] - bounds[:-1], sizes) + np.arange(bounds[-1])
    return places, bounds


def first_of_runs(values: F64, begin: I64) -> NDArray[np.bool_]:
    """Return whether each value is the first of a run of equal values in its query."""
    new = np.ones(len(values), bool)
    new[1:] = values[1:] != values[:-1]
    new[begin[:-1][np.diff(begin) > 0]] = True
    return new


def numbers_of_runs(values: F64, begin: I64) -> tuple[I64, I64]:
    """Return the number of the run of equal values of each row, and the first run of each query."""
    runs = np.append(0, np.cumsum(first_of_runs(values, begin)))
    of_query = runs[begin]
    number = runs[1:] - 1 - np.repeat(of_query[:-1], np.diff(begin))
    return number.astype(np.int64), of_query.astype(np.int64)
