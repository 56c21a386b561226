"""Bound on a ranking metric: the worst order that scores nearly as well as the ideal one (DORM).

For a metric that is a sum over ranks, <a, b>, and falling weights c by rank (`le2007dorm`),

    L(s) = max over orders pi of  sum_i s_i (c_pi(i) - cref_i)  +  <a, b(ideal)> - <a, b(pi)>   (1)

where pi(i) is the rank of document i in pi, and cref_i is c at its rank in the reference order, by
falling grade: (27) of the paper. L is at least the loss of the metric in the order of the scores.
It is piecewise linear, with gradient c_pi(i) - cref_i at the worst order pi, which
`losses.position_orders` finds. Documents of equal score, gain and group share the mean gradient.

**Tied grades** leave the reference open, and results depend on it. ``ties="mean"``: tied documents
share the mean of their c, which is the mean of (1) over tied orders. ``"file"``: by row, as
printed. ``"score"``: by score, and equal scores share the mean. L is then the minimum of (1) over
tied orders, M(s) - N(s) with convex M and N,

    M(s) = max over pi of sum_i s_i c_pi(i) + <a, b(ideal)> - <a, b(pi)>,
    N(s) = max over reference orders of sum_i s_i c_ref(i)                                      (2)

`BoundDifference` has both parts, for solvers that replace N by its tangent in every round.

c_i = (i + 1)^-d for ``decay=d``, 1/log(i + 2) for "log", 1/log(log(i + 2)) for "loglog", i from 1,
and c = a for "metric". The reciprocal rank is a sum over ranks only if one document is relevant; if
there are several, (1) is solved for its true value.

``per_group=k``: orders have at most k documents of a group in the ranks that count, as the
reference does, and c is 0 beyond (section 5.1). If topics overlap, orders have a weight of at most
k of each topic, and as many documents as these limits allow. `losses.topic_search` then finds the
reference, the best such order by grades, once, and the worst one for each gradient.

``cost``: a function from the grades of a query, best first, to the cost C_ij of document i at rank
j, instead of a metric (section 3.4). The reference is the cheapest order, and C(pi) - C(reference)
replaces the loss of the metric.

**Weights**: documents have whole ranks. Documents of weight 0 are left out; all other weights count
alike. **Curvature**: L has none. The range of c replaces it, so that no step of boosting exceeds 1.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any, Literal

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.kernels import take
from rankwright.core.parameters import Count
from rankwright.core.types import F64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.assignment import by_assignment
from rankwright.losses.base import BoundKernel, KernelLoss
from rankwright.losses.position_lists import (
    CLASSES,
    FIRST,
    SORT,
    Lists,
    Topics,
    lists_of_metric,
    lists_with_costs,
    reference_weights,
    references,
    write_reference,
)
from rankwright.losses.position_orders import (
    by_classes,
    by_first_relevant,
    by_groups,
    by_seats,
    by_sort,
    mean_over_equals,
    metric_costs,
    sort_ranks_of_ties,
    sorted_documents,
    sorted_prices,
)
from rankwright.losses.topic_search import best_order
from rankwright.metrics.base import AnyMetric

# --- kernels ---------------------------------------------------------------------------------
#
# Of groups, topics and costs, two or three are None, and Numba leaves out the code for them.


@kernel
def _position_svm(queries, indptr, s, lists, groups, topics, costs, value, grad, curv):
    for q in queries:
        lo, hi = indptr[q], indptr[q + 1]
        scores, kind, gradient = s[lo:hi], lists.kind[lo:hi], grad[lo:hi]
        gain, a, c, cref = lists.gain[lo:hi], lists.a[lo:hi], lists.c[lo:hi], lists.cref[lo:hi]
        order = sorted_documents(scores, kind)
        n = len(order)
        centre = 0.0
        for i in range(n):
            centre += scores[i]
        centre /= n
        v, b = np.empty(n), np.empty(n)
        for k in range(n):
            v[k], b[k] = scores[order[k]] - centre, gain[order[k]]
        lost, lowest = lists.best[q], c[-1]
        if costs is not None:
            matrix = costs.matrix[costs.begin[q] : costs.begin[q + 1]].reshape((n, n))
            position = _costliest_order(matrix, order, v, c)
            for k in range(n):
                lost += matrix[order[k], position[k]]
        else:
            if topics is not None:
                lowest = 0.0  # of documents without a rank
                position = _in_order(topics.position[lo:hi], order)
            elif groups is not None:
                lowest = 0.0
                group = _in_order(groups.group[lo:hi], order)
                position = _order_within_groups(groups.limit, group, v, b, lists.cut[q], a, c)
            else:
                position = _order_without_limits(q, order, kind, v, b, lists, a, c)
            lost -= _metric(lists.method[q] == FIRST, position, a, b, lost)
        value[q] = lost
        worth = b  # reuses the memory: c at the rank of each document
        for k in range(n):
            worth[k] = c[position[k]] if position[k] >= 0 else 0.0
        mean_over_equals(order, scores, kind, worth, gradient)
        if lists.by_score:
            write_reference(lo, hi, lists.cut[q], order, scores, lists, groups, cref)
        for k in range(n):
            i = order[k]
            gradient[i] -= cref[i]
            value[q] += gradient[i] * v[k]  # (1)
            curv[lo + i] = c[0] - lowest


@kernel
def _in_order(values, order):
    """Return the values of the documents ``order``."""
    ordered = np.empty(len(order), np.int64)
    take(values, order, ordered)
    return ordered


@kernel
def _order_without_limits(q, order, kind, v, b, lists, a, c):
    """Return the ranks of the sorted documents ``order`` in the worst order."""
    method, cut = lists.method[q], lists.cut[q]
    if method == SORT:
        return by_sort(v, b)
    if method == FIRST:
        position = by_first_relevant(v, b, cut, lists.best[q], c)
    elif method == CLASSES:
        position = by_classes(v, b, _in_order(kind, order), cut, a, c)
    else:
        position = by_assignment(metric_costs(v, b, a, c, len(v)), sorted_prices(v, c))
    sort_ranks_of_ties(v, position)
    return position


@kernel
def _order_within_groups(limit, group, v, b, cut, a, c):
    """Return the ranks of sorted documents in the worst order, -1 for documents without a rank."""
    if limit == 1:
        return by_groups(v, b, group, cut, a, c)
    return by_seats(v, b, group, limit, cut, a, c)


@kernel
def _costliest_order(matrix, order, v, c):
    """Return the ranks of the sorted documents ``order`` in the worst order."""
    n = len(v)
    cost = np.empty((n, n))
    for k in range(n):
        for j in range(n):
            cost[k, j] = -matrix[order[k], j] - c[j] * v[k]
    return by_assignment(cost, sorted_prices(v, c))


@kernel
def _metric(is_reciprocal, position, a, b, best):
    """Return the metric of an order, ``best`` times the weight of the first gain if reciprocal."""
    total, first = 0.0, len(a)
    for k in range(len(b)):
        if position[k] >= 0:
            total += a[position[k]] * b[k]
            first = min(first, position[k]) if b[k] > 0.0 else first
    if is_reciprocal:
        return best * a[first] if first < len(a) else 0.0
    return total


# --- bound losses ----------------------------------------------------------------------------


class BoundOrders(BoundKernel):
    """The loss on one data set."""

    score_limit = 1e150
    """Beyond it, the search for the worst order fails, because it adds costs."""

    def _call(self, kernel: Callable[..., None], lo: int, hi: int, *args: Any) -> None:
        """Find the worst orders under topics, then call the kernel."""
        lists, _, topics, _ = self.terms
        if topics is not None and kernel is _position_svm:
            for q in np.flatnonzero(self.weight[lo:hi]) + lo:
                at = slice(self.layout.indptr[q], self.layout.indptr[q + 1])
                _find_order(args[0][at], at, int(lists.cut[q]), lists, topics)
        super()._call(kernel, lo, hi, *args)


class BoundDifference(BoundOrders):
    """The loss on one data set as the difference (2) of its convex parts, for ``ties="score"``."""

    def convex_part(self, s: F64, out: F64) -> float:
        """Write the gradient of M to ``out`` and return M."""
        value = self.grad(s, out)
        concave = np.empty_like(out)
        value += self.concave_part(s, concave)
        out += concave
        return value

    def concave_part(self, s: F64, out: F64) -> float:
        """Write the gradient of N to ``out`` and return N."""
        part = copy(self)
        part._run = references
        return part.grad(s, out)


def _find_order(s: F64, at: slice, top: int, lists: Lists, topics: Topics) -> None:
    """Write the ranks of the documents of a query in the worst order under topics."""
    order = np.lexsort((lists.kind[at], -s))
    v, b, a, c = (s - s.mean())[order], lists.gain[at][order], lists.a[at], lists.c[at]
    worth = np.outer(v, c[:top]) - np.outer(b, a[:top])
    ones = np.ones(len(s), np.int64)
    ranked = best_order(worth, ones, topics.shares[at][order], topics.limit)
    position = topics.position[at]
    position[:] = -1
    position[order[ranked]] = np.arange(top)


# --- API -------------------------------------------------------------------------------------


def _check_decay(name: str, value: Any) -> None:
    """Raise unless ``value`` is the name of a decay or a finite number above 0."""
    named = isinstance(value, str) and value in ("log", "loglog", "metric")
    if not named and not (isinstance(value, Real) and 0.0 < float(value) < np.inf):
        raise UsageError(f"{name} must be a number above 0, log, loglog or metric, not {value!r}.")


@dataclass(frozen=True, slots=True, repr=False)
class PositionSVM(KernelLoss):
    """A convex bound on the loss of a ranking metric, tight if the documents are in order.

    Parameters
    ----------
    metric : str or Metric
        The metric: ndcg, dcg, p, wta, eru or another sum over ranks, or mrr; with a cut-off as in
        ``ndcg@10``, under the standard convention. ``wta(modified=true)`` is the paper's mWTA.
    decay : float, "log", "loglog" or "metric"
        Weights by rank: (i + 1)^-decay; slower with the names; "metric" uses the metric's weights.
    ties : "score", "mean" or "file"
        Order of equal grades in the reference: by score, the mean over all orders, or by row.
    per_group : int or None
        Maximum number of documents of each group (host, topic) in the ranks that count; topics may
        overlap.
    cost : callable or None
        ``cost(grades)``, grades best first, returns the cost of each document at each rank, instead
        of a metric.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.PositionSVM(metric="mrr"), model="linear")
    Ranker(loss=PositionSVM(metric='mrr'))
    """

    metric: AnyMetric = "ndcg@10"
    decay: Annotated[float | str, _check_decay] = 1.0
    ties: Literal["score", "mean", "file"] = "mean"
    per_group: Count | None = None
    cost: Callable[[F64], Any] | None = None

    run = staticmethod(_position_svm)

    @property
    def traits(self) -> Traits:
        """Properties of the loss with these parameters."""
        return Traits(smooth=False, convex=self.ties != "score")

    @property
    def bound_class(self) -> type[BoundKernel]:
        """Class of the loss on a data set."""
        return BoundDifference if self.ties == "score" else BoundOrders

    def check(self) -> None:
        """Raise for a limit per group together with costs."""
        if self.per_group is not None and self.cost is not None:
            raise UsageError("per_group and cost cannot be combined. Leave one of the two out.")

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return `Lists`, `Groups` or None, `Topics` or None, and `Costs` or None."""
        if self.cost is None:
            terms = lists_of_metric(self.metric, self.decay, self.per_group, data)
        else:
            terms = lists_with_costs(self.cost, self.decay, data)
        s = np.zeros(data.n_documents)
        if self.ties == "file":
            s -= np.arange(data.n_documents)
        cref = reference_weights(s, data, terms)
        return terms[0]._replace(by_score=self.ties == "score", cref=cref), *terms[1:]
