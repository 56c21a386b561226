"""Metrics of subtopics: alpha-nDCG, ERR-IA and P-IA, which reward results for every intent.

A query has subtopics (intents) t = 1, ..., T. J(i, t) is 1 if document i is relevant to subtopic t,
otherwise 0. The gain of a rank falls with the number of documents above it on the same subtopic:

    G(r) = sum_t J(r, t) (1 - alpha)^c(r, t),     c(r, t) = sum_{i < r} J(i, t)                  (1)

    alpha-nDCG@k = sum_{r = 1}^{k} G(r) / log2(r + 1)  over the same sum of the best list        (2)

    ERR-IA@k = sum_{r = 1}^{k} G(r) / r  over  sum_{r = 1}^{k} T (1 - alpha)^(r - 1) / r         (3)

    P-IA@k = (1/(k T)) sum_{r = 1}^{k} sum_t J(r, t)                                             (4)

(`clarke2008novelty`, `chapelle2011intent`, `agrawal2009diversifying`). As in TREC's program
ndeval, T counts the subtopics with a relevant document, and the best list of (2) is built greedily:
the document with the largest gain is next. Of documents with equal gains, it is the one with the
highest id, or without ids the last row. Other lists can be slightly better than the greedy one.

The ``group`` of the data, a matrix of shape (n, topics), has the subtopics of each document: it is
relevant to a subtopic if its entry is above 0 and its grade is relevant. A ``group`` with one value
per document is the subtopic of the document, and without ``group`` a query has one subtopic.
`rankwright.evaluate_run` reads the subtopics from TREC's diversity judgments.

For one subtopic, alpha G(r) is the probability that the reader of ERR stops at rank r if a relevant
document stops them with probability alpha. So the kernel of ERR computes (2) and (3), and their
means over the orders of ties. The worst and the best order of ties are by grade.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_queries
from rankwright.core.types import F64, AnyArray
from rankwright.metrics.base import Metric, number_between
from rankwright.metrics.err import stopping_sums
from rankwright.metrics.p import Precision
from rankwright.metrics.ranked import LINEAR, Judged, Ranked, tie_key

_EQUAL = 1e-12  # gains that differ by less are equal except for rounding
_MOST_TERMS = 100_000  # of the divisor of (3); all further terms are negligible

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _greedy_sums(lo, hi, indptr, covers, key, novelty, divisors, cut, out):
    """Write the sum of (2) for the greedy list of each query."""
    for q in range(lo, hi):
        start, end = indptr[q], indptr[q + 1]
        gain = np.ones(covers.shape[1])
        is_free = np.ones(end - start, np.bool_)
        out[q] = 0.0
        for r in range(min(cut[q], end - start)):
            best, place = 0.0, -1
            for i in range(start, end):
                if is_free[i - start]:
                    value = 0.0
                    for t in range(len(gain)):
                        value += gain[t] * covers[i, t]
                    is_equal = abs(value - best) < _EQUAL
                    if place < 0 or value > best + _EQUAL or (is_equal and key[i] < key[place]):
                        best, place = value, i
            is_free[place - start] = False
            out[q] += best / divisors[r]
            for t in range(len(gain)):
                if covers[place, t]:
                    gain[t] *= novelty


# --- API -------------------------------------------------------------------------------------


def covered_subtopics(judged: Judged, min_grade: float) -> AnyArray:
    """Return which subtopics each row is relevant to, a matrix of shape (n, topics)."""
    group, relevant = judged.data.group, judged.grades >= min_grade
    if group is None:
        return relevant[:, None]
    if group.ndim == 2:
        return (group > 0) & relevant[:, None]
    query, code = judged.data.query_of_row(), judged.data.group_codes()
    n_codes = int(code.max(initial=0)) + 1
    pairs, number = np.unique(query * n_codes + code, return_inverse=True)
    topic = number - np.searchsorted(pairs, query * n_codes)  # from 0 in each query
    covers = np.zeros((len(topic), int(topic.max(initial=0)) + 1), np.bool_)
    covers[np.arange(len(topic)), topic] = relevant
    return covers


def n_subtopics(judged: Judged, covers: AnyArray) -> F64:
    """Return the number of subtopics of each query that have a relevant document."""
    query, n_queries = judged.data.query_of_row(), judged.data.n_queries
    counts = np.zeros(n_queries)
    for t in range(covers.shape[1]):
        counts += np.bincount(query[covers[:, t]], minlength=n_queries) > 0
    return counts


@dataclass(frozen=True, repr=False, kw_only=True)
class NoveltyMetric(Metric):
    """A metric that sums the gains of (1), divided by a function of the rank."""

    takes_limit: ClassVar[bool] = False
    takes_subtopics: ClassVar[bool] = True

    alpha: Annotated[float, number_between(0, 1)] = 0.5

    @abstractmethod
    def divisors(self, n: int) -> F64:
        """Return the divisors of ranks 1 to n."""

    @abstractmethod
    def scale(self, judged: Judged) -> F64:
        """Return the divisor of the sum of each query."""

    def covers(self, judged: Judged) -> AnyArray:
        """Return which subtopics each row is relevant to."""
        level = self.convention.min_grade
        covers: AnyArray = judged.once(("covers", level), lambda: covered_subtopics(judged, level))
        return covers

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: D102
        judged, covers = ranked.judged, self.covers(ranked.judged)
        args = ranked.blocks(mean), self.divisors(len(ranked.order)), self.cut(judged)
        of_topic = np.empty(len(out))
        out[:] = 0.0
        for t in range(covers.shape[1]):
            stop = np.where(covers[ranked.order, t], float(self.alpha), 0.0)
            ranked.map(stopping_sums, stop, *args, of_topic)
            out += of_topic
        out /= self.alpha * judged.once(("scale", self), lambda: self.scale(judged))

    def nothing_to_find(self, judged: Judged) -> Any:  # noqa: D102
        return n_subtopics(judged, self.covers(judged)) == 0


@dataclass(frozen=True, repr=False, kw_only=True)
class AlphaNDCG(NoveltyMetric):
    """NDCG whose gains fall with each further document on the same subtopic.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> topics = [[1, 0], [1, 0], [0, 1]]
    >>> name = "alpha_ndcg@2"
    >>> round(evaluate([1, 1, 1], [3, 2, 1], name, qid=[1] * 3, group=topics)[name], 4)
    0.8066
    """

    key: ClassVar[str] = "alpha_ndcg"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)
    when_empty: ClassVar[str] = "convention"

    def divisors(self, n: int) -> F64:  # noqa: D102
        return np.log2(np.arange(2, n + 2))

    def scale(self, judged: Judged) -> F64:  # noqa: D102
        out = np.empty(judged.data.n_queries)
        key = tie_key("doc_id", judged)
        novelty, divisors = 1.0 - self.alpha, self.divisors(len(judged.grades))
        args = self.covers(judged), key, novelty, divisors, self.cut(judged), out
        map_queries(_greedy_sums, judged.data.indptr, *args, n_jobs=judged.n_jobs)  # (2)
        return out


@dataclass(frozen=True, repr=False, kw_only=True)
class ERRIA(NoveltyMetric):
    """Intent-aware expected reciprocal rank, divided by its value for ideal documents.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> topics = [[1, 0], [1, 0], [0, 1]]
    >>> name = "err_ia@2"
    >>> evaluate([1, 1, 1], [3, 2, 1], name, qid=[1] * 3, group=topics)[name]
    0.5
    """

    key: ClassVar[str] = "err_ia"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def divisors(self, n: int) -> F64:  # noqa: D102
        return np.arange(1.0, n + 1)

    def scale(self, judged: Judged) -> F64:  # noqa: D102
        cut = np.minimum(self.cut(judged), _MOST_TERMS)
        ranks = np.arange(1, int(cut.max(initial=1)) + 1)
        sums = np.cumsum((1.0 - self.alpha) ** (ranks - 1) / ranks)
        ideal: F64 = n_subtopics(judged, self.covers(judged)) * sums[np.maximum(cut, 1) - 1]  # (3)
        return ideal


@dataclass(frozen=True, repr=False, kw_only=True)
class PIA(Precision):
    """Intent-aware precision: the mean precision over subtopics.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> topics = [[1, 0], [1, 0], [0, 1]]
    >>> evaluate([1, 1, 1], [3, 2, 1], "p_ia@2", qid=[1] * 3, group=topics)["p_ia@2"]
    0.5
    """

    key: ClassVar[str] = "p_ia"
    takes_limit: ClassVar[bool] = False
    takes_subtopics: ClassVar[bool] = True

    def gain_rule(self, judged: Judged) -> tuple[int, float | F64]:  # noqa: ARG002, D102
        return LINEAR, 0.0

    def row_grades(self, judged: Judged) -> F64:  # noqa: D102
        counts: F64 = covered_subtopics(judged, self.setting("min_grade")).sum(axis=1, dtype=float)
        return counts

    def scale(self, judged: Judged) -> F64:  # noqa: D102
        covers = covered_subtopics(judged, self.setting("min_grade"))
        return self.ranks_asked(judged) * n_subtopics(judged, covers)  # (4)

    def nothing_to_find(self, judged: Judged) -> Any:  # noqa: D102
        return judged.top < self.setting("min_grade")
