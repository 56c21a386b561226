"""Grades in the order of the scores, computed once for all metrics of an evaluation.

`Judged` has everything that depends only on the grades: the best possible list and the number of
relevant documents. `Ranked` is one ranking. Both store the grades of one query after the other,
best rank first.

A **tie block** is a sequence of ranks with equal scores. Metrics that average over the orders of
ties get ``ends``: for each rank the end of its block. ``max_per_group`` keeps the best few
documents of each group. It shortens a list by the same number of documents for any scores.

A **run** retrieves only some documents of a query. The ranked list then has the retrieved
documents, and the best possible list all documents: ``indptr`` and ``sizes`` describe the ranked
lists, ``best_indptr`` and ``best_sizes`` the best lists. Otherwise the two are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.order import limit_per_group, ranking
from rankwright.core.parallel import map_queries
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError

LINEAR, EXP2, BINARY, ABOVE = range(4)
SAMPLED_ORDERS = 100  # of ties, if the mean over all orders has no closed form

# --- kernels ---------------------------------------------------------------------------------


@kernel
def gain_of(grade, kind, level):
    """Return the gain of a document: g; 2^g - 1; 1 if g >= level; or max(g - level, 0)."""
    if kind == LINEAR:
        return grade
    if kind == BINARY:
        return 1.0 if grade >= level else 0.0
    if kind == ABOVE:
        return max(grade - level, 0.0)
    if grade < 63.0 and np.int64(grade) == grade:
        return np.float64((1 << np.int64(grade)) - 1)
    return 2.0**grade - 1.0


@kernel
def weighted_sums(lo, hi, indptr, g, ends, kind, level, weights, cut, out):
    """Add up weight times gain over the ranks of each query, in order; ties share their gains."""
    for q in range(lo, hi):
        start, last = indptr[q], min(indptr[q] + cut[q], indptr[q + 1])
        total = 0.0
        r = start
        while r < last:
            end = ends[r] if len(ends) else r + 1
            if end == r + 1:
                total += weights[r - start] * gain_of(g[r], kind, level[q])
            else:
                gains = 0.0
                for i in range(r, end):
                    gains += gain_of(g[i], kind, level[q])
                for i in range(r, min(end, last)):
                    total += weights[i - start] * (gains / (end - r))
            r = end
        out[q] = total


@kernel
def _gains(lo, hi, indptr, grades, kind, level, out):
    for q in range(lo, hi):
        for r in range(indptr[q], indptr[q + 1]):
            out[r] = gain_of(grades[r], kind, level[q])


@kernel
def first_relevant(r, last, g, ends, min_grade):
    """Return the begin and end of the first tie block with relevant documents, and their number.

    The search starts at rank ``r``. Without a relevant document before ``last``, the block is empty
    at ``last``.
    """
    while r < last:
        end = ends[r] if len(ends) else r + 1
        relevant = 0
        for i in range(r, end):
            relevant += g[i] >= min_grade
        if relevant:
            return r, end, relevant
        r = end
    return last, last, 0


@kernel
def find_ties(lo, hi, indptr, grades, s, order, ends, tied, matter):
    """Write the end of each rank's tie block, and whether scores of a query, and grades, are tied.

    ``tied``: two documents have equal scores. ``matter``: two such documents differ in grade.
    """
    for q in range(lo, hi):
        tied[q] = matter[q] = False
        end, score_below = indptr[q + 1], np.nan
        for r in range(indptr[q + 1] - 1, indptr[q] - 1, -1):
            score = s[order[r]]
            if score == score_below:
                tied[q] = True
                matter[q] |= grades[r] != grades[r + 1]
            else:
                end = r + 1
            ends[r], score_below = end, score


# --- API -------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def rank_weights(rule: str, n: int) -> F64:
    """Return the weights of ranks 1 to n under a rule of `Convention.discount`."""
    # RankLib's expression, so that results are equal to the last digit.
    log2 = [math.log(rank) / math.log(2) for rank in range(1, n + 2)]
    if rule == "log2":
        table = [1 / log2[rank] for rank in range(1, n + 1)]
    elif rule == "letor":
        table = [1 / log2[rank - 1] if rank > 2 else 1.0 for rank in range(1, n + 1)]
    else:
        table = [1 / rank for rank in range(1, n + 1)]
    weights = np.array(table, np.float64)
    weights.setflags(write=False)
    return weights


class Judged:
    """The grades of one data set and the best possible list.

    Parameters
    ----------
    data
    integer_grades
        Cut grades to whole numbers.
    max_per_group
        Maximum number of documents of each group of a query.
    gains
        The gain of each grade from 0, which replaces the grade.
    weighted_gains
        Replace each grade by its gain of this kind times the weight of the document.
    float32_scores
        Compare scores in single precision.
    retrieved, judged : (n,) bool, optional
        Whether a run retrieved each row of ``data``, and whether it has a judgment; by default
        all rows.
    """

    def __init__(
        self,
        data: RankingData,
        *,
        integer_grades: bool = False,
        max_per_group: int | None = None,
        gains: tuple[float, ...] | None = None,
        weighted_gains: int | None = None,
        float32_scores: bool = False,
        retrieved: AnyArray | None = None,
        judged: AnyArray | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.data = data
        self.float32_scores = float32_scores
        self.retrieved = retrieved
        self.judged = judged
        self.grades: F64 = np.trunc(data.y) if integer_grades else data.y
        if gains is not None:
            self.grades = _gains_of_grades(self.grades, gains)
        self.unweighted = self.grades
        if weighted_gains is not None and data.sample_weight is not None:
            self.unweighted = np.empty(len(data.y))
            kind, levels = weighted_gains, np.zeros(data.n_queries)
            map_queries(
                _gains, data.indptr, self.grades, kind, levels, self.unweighted, n_jobs=n_jobs
            )
            self.grades = self.unweighted * data.sample_weight
        self.keeps_grades = gains is None and weighted_gains is None and max_per_group is None
        self.max_per_group = max_per_group
        self.n_jobs = n_jobs
        self._group = None if max_per_group is None else data.group_codes()
        self._kept: dict[Hashable, Any] = {}

    def once(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return ``compute()``, computed once for each ``key``."""
        if key not in self._kept:
            self._kept[key] = compute()
        return self._kept[key]

    def listed(self, order: I64) -> tuple[I64, I64]:
        """Return the retrieved documents of a ranking under the limit per group, and boundaries."""
        if self.retrieved is None:
            return self._limited(order, self.data.indptr)
        is_listed = self.retrieved[order]
        indptr = np.append(0, np.cumsum(_counts(is_listed, self.data.indptr)))
        return self._limited(order[is_listed], indptr)

    def _limited(self, order: I64, indptr: I64) -> tuple[I64, I64]:
        if self._group is None or self.max_per_group is None:
            return order, indptr
        return limit_per_group(order, indptr, self._group, self.max_per_group)

    @cached_property
    def ideal(self) -> F64:
        """Grades of the best list under the limit per group, query after query."""
        y, indptr = self.grades, self.data.indptr
        return y[self._limited(ranking(y, indptr, n_jobs=self.n_jobs), indptr)[0]]

    @cached_property
    def indptr(self) -> I64:
        """Boundaries of the ranked lists."""
        if self._group is None and self.retrieved is None:
            return self.data.indptr
        return self.listed(np.arange(len(self.grades)))[1]

    @cached_property
    def sizes(self) -> I64:
        """Length of each ranked list."""
        return np.diff(self.indptr)

    @cached_property
    def best_indptr(self) -> I64:
        """Boundaries of the best lists."""
        if self.retrieved is None:
            return self.indptr
        return self._limited(np.arange(len(self.grades)), self.data.indptr)[1]

    @cached_property
    def best_sizes(self) -> I64:
        """Length of each best list."""
        return np.diff(self.best_indptr)

    @cached_property
    def top(self) -> F64:
        """Highest grade of each query; -inf without documents."""
        return self._edge(self.best_indptr[:-1])

    @cached_property
    def bottom(self) -> F64:
        """Lowest grade in the best list of each query; -inf without documents."""
        return self._edge(self.best_indptr[1:] - 1)

    def _edge(self, ranks: I64) -> F64:
        out = np.full(len(ranks), -np.inf)
        filled = self.best_sizes > 0
        out[filled] = self.ideal[ranks[filled]]
        return out

    def relevant(self, min_grade: float) -> F64:
        """Return R, the number of relevant documents in the best list of each query."""

        def count() -> F64:
            return _counts(self.ideal >= min_grade, self.best_indptr).astype(np.float64)

        counts: F64 = self.once(("relevant", min_grade), count)
        return counts

    def ideal_of_ranks(self) -> F64:
        """Return the grades of the best lists, each cut to the length of the ranked one."""
        if self.retrieved is None:
            return self.ideal
        shift = np.repeat(self.best_indptr[:-1] - self.indptr[:-1], self.sizes)
        return self.ideal[np.arange(len(shift)) + shift]

    def other_judged(self, min_grade: float) -> F64:
        """Return the number of documents of each query that are judged and not relevant."""
        if self.judged is None:
            return self.best_sizes - self.relevant(min_grade)
        mask = self.judged & (self.grades < min_grade)
        return _counts(mask, self.data.indptr).astype(np.float64)

    def gains(self, grades: F64, kind: int, level: float | F64) -> F64:
        """Return the gains of documents with these grades, in ranked lists of all queries."""
        levels = np.full(len(self.indptr) - 1, level, np.float64)
        out = np.empty(len(grades))
        self.map(_gains, grades, kind, levels, out)
        return out

    def mean_weights(self, relevance: F64) -> F64:
        """Return the mean weight of each query's documents, weighted by relevance.

        It is 0 if all weights are 0, and NaN if no document with a weight is relevant.
        """
        weight, query = self.data.sample_weight, self.data.query_of_row()
        assert weight is not None, "the convention uses weights only if there are any"
        n_queries = self.data.n_queries
        relevance = np.where(weight > 0, relevance, 0.0)
        total = np.bincount(query, relevance, n_queries)
        sums = np.bincount(query, relevance * weight, n_queries)
        means = np.divide(sums, total, out=np.full(n_queries, np.nan), where=total > 0)
        return np.where(np.bincount(query, weight, n_queries) > 0, means, 0.0)

    def map(self, function: Callable[..., None], *args: Any) -> None:
        """Call a kernel for the ranked lists of all queries."""
        map_queries(function, self.indptr, *args, n_jobs=self.n_jobs)

    def map_best(self, function: Callable[..., None], *args: Any) -> None:
        """Call a kernel for the best lists of all queries."""
        map_queries(function, self.best_indptr, *args, n_jobs=self.n_jobs)


def _counts(mask: AnyArray, indptr: I64) -> I64:
    """Return the number of rows of each query in the mask."""
    counts: I64 = np.diff(np.append(0, np.cumsum(mask))[indptr])
    return counts


def _gains_of_grades(grades: F64, gains: tuple[float, ...]) -> F64:
    """Return the gain of each document, or name the first grade that has none."""
    has_gain = (grades == np.trunc(grades)) & (grades < len(gains))
    if not has_gain.all():
        grade = grades[int(np.argmin(has_gain))]
        raise DataError(
            f"grade {grade:g} has no gain: there are {len(gains)} gains, for the whole grades 0 to "
            f"{len(gains) - 1}."
        )
    return np.array(gains, np.float64)[grades.astype(np.int64)]


class Ranked:
    """One ranking of judged documents.

    Parameters
    ----------
    judged
    s
        Scores of the data's rows.
    ties
        Order of equal scores, as in `Convention.ties`; "mean" keeps file order.
        An array sorts them by its values, ascending.
    strict
        Do not treat equal scores as ties.
    """

    def __init__(self, judged: Judged, s: F64, ties: str | F64, *, strict: bool = False) -> None:
        self.judged = judged
        if judged.float32_scores:
            with np.errstate(over="ignore"):  # beyond its range all are infinite, as in C
                s = s.astype(np.float32).astype(np.float64)
        self._s = s
        self._strict = strict
        key = tie_key(ties, judged) if isinstance(ties, str) else ties
        order = ranking(s, judged.data.indptr, key=key, n_jobs=judged.n_jobs)
        self.order = judged.listed(order)[0]
        self.indptr = judged.indptr
        self.grades: F64 = judged.grades[self.order]

    @property
    def scores(self) -> F64:
        """Scores of the data's rows."""
        return self._s

    @property
    def ends(self) -> I64:
        """End of the tie block of each rank."""
        return np.arange(1, len(self.order) + 1) if self._strict else self._ties[0]

    def blocks(self, mean: bool) -> I64:
        """Return ``ends`` for a mean over tied orders if scores are tied, else an empty array."""
        return self.ends if mean and self._ties[1].any() else np.empty(0, np.int64)

    def sampled_orders(self) -> Iterator[Ranked]:
        """Yield rankings with their ties in `SAMPLED_ORDERS` sampled orders; one without ties.

        The orders depend only on the places of documents in their query, not on the number of
        threads or on other queries.
        """
        indptr = self.judged.data.indptr
        scores = self._s[ranking(self._s, indptr, n_jobs=self.judged.n_jobs)]
        tied = scores[1:] == scores[:-1]
        tied[indptr[1:-1][(indptr[1:-1] > 0) & (indptr[1:-1] < len(scores))] - 1] = False
        sizes = np.diff(indptr)
        place = np.arange(len(scores)) - np.repeat(indptr[:-1], sizes)
        for number in range(SAMPLED_ORDERS if tied.any() else 1):
            key = stream(0, "ties", number).random(int(sizes.max(initial=0)))[place]
            yield Ranked(self.judged, self._s, key, strict=True)

    def map(self, function: Callable[..., None], *args: Any) -> None:
        """Call a kernel for all queries."""
        self.judged.map(function, *args)

    def tied_queries(self) -> int:
        """Return how many queries have documents of different grades with equal scores."""
        return int(self._ties[2].sum())

    @cached_property
    def _ties(self) -> tuple[I64, AnyArray, AnyArray]:
        ends = np.empty(len(self.order), np.int64)
        tied, matter = np.empty((2, len(self.indptr) - 1), np.bool_)
        self.map(find_ties, self.grades, self._s, self.order, ends, tied, matter)
        return ends, tied, matter


def tie_key(ties: str, judged: Judged) -> F64 | None:
    """Return the ascending sort key of equal scores under a rule of `Convention.ties`."""
    if ties == "worst":
        return judged.grades
    if ties == "best":
        return -judged.grades
    if ties == "doc_id" and judged.data.doc_id is not None:
        names = np.unique(judged.data.doc_id.astype(str), return_inverse=True)[1]
        return -names.astype(np.float64)
    if ties in ("reverse", "doc_id"):
        return -np.arange(len(judged.grades), dtype=np.float64)
    return None
