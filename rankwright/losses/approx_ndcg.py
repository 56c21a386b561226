"""What NDCG loses when ranks are counted softly (ApproxNDCG).

The rank of a document is one more than the number of documents above it. Counted by a logistic
function of the difference in score at ``temperature`` T, it is smooth (`qin2010general`):

    r_i = 1 + sum_{j != i} 1 / (1 + exp((s_i - s_j) / T))                                       (1)
    L(s) = 1 - sum_i (2^g_i - 1) d(r_i) / IDCG,     d(r) = 1 / log2(1 + r)                      (2)

As T goes to 0, (2) tends to 1 - NDCG; a larger T sees documents further apart. NDCG is that of the
whole list. The **curvature** is the sum of the sizes of the gradients of a document's pairs, over
T: a bound on the diagonal of the Hessian, since d is convex and the logistic function bends by no
more than its gradient. No Newton step is longer than T.

On the CPU, a list of 2,048 documents or more is summed up by `losses.score_sums`, in O(n) and to
1e-13 of the same, unless its scores over T are a thousand apart; shorter ones in O(n x documents of
positive gain).

**Weights**: ranks are held by whole documents; one of weight 0 is left out, any other counts like
the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.jit import inline_kernel, kernel, quick_kernel
from rankwright.core.kernels import clear_query, longest, sigmoid
from rankwright.core.parameters import Part, Positive, check_parameters
from rankwright.core.team import new_floats, owns, shared_range, team_max, team_sum, wait
from rankwright.core.types import I64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.gain_lists import gain_lists
from rankwright.losses.old_base import KernelLoss
from rankwright.losses.score_sums import (
    LONG,
    NODES,
    add_all,
    count_cells,
    make_coefficients,
    new_cells,
    new_values,
    node_gap,
)

_FAR = 600.0  # within, exponentials relative to the largest do not underflow
_LOG_2 = math.log(2.0)

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(lo, hi, indptr, s, lists, temperature, scratch, weight, value, grad, curv):
    most = longest(lo, hi, lists.begin)
    room = new_floats(scratch, lo, 0, 5 * most)
    for q in range(lo, hi):
        clear_query(q, indptr, value, grad, curv)
        if weight[q] == 0.0:
            continue
        row = lists.row[lists.begin[q] : lists.begin[q + 1]]
        gain = lists.gain[lists.begin[q] : lists.begin[q + 1]]
        n = len(row)
        x, mass, above = room[:n], room[most : most + n], room[2 * most : 2 * most + n]
        gradient, curvature = room[3 * most : 3 * most + n], room[4 * most : 4 * most + n]
        top, low = -np.inf, np.inf
        for i in shared_range(0, n):
            x[i], gradient[i], curvature[i] = s[row[i]] / temperature, 0.0, 0.0
            top, low = _higher(x[i], top), -_higher(-x[i], -low)
        top, low = team_max(top), -team_max(-low)
        near = top - low < _FAR
        if near:
            for i in shared_range(0, n):
                mass[i] = math.exp(x[i] - top)
        wait()
        total = lists.best[q]
        for i in range(n):
            if gain[i] == 0.0:
                continue
            rank = 1.0 + _count_above(i, x, mass, near, above)  # (1)
            width = math.log(1.0 + rank)
            total -= gain[i] * _LOG_2 / width  # (2)
            if len(grad):
                pull = gain[i] * _LOG_2 / ((1.0 + rank) * width * width)
                _add_gradients(i, pull, above, gradient, curvature)
        value[q] = weight[q] * total
        if len(grad):
            for i in shared_range(0, n):
                grad[row[i]] = weight[q] * gradient[i] / temperature
        if len(curv):
            for i in shared_range(0, n):
                curv[row[i]] = weight[q] * curvature[i] / (temperature * temperature)


@inline_kernel
def _higher(x, top):
    """Return the higher of the two, or NaN where one is."""
    return x if x > top or x != x else top


@quick_kernel
def _count_above(i, x, mass, near, above):
    """Write how far each document is above i, from 0 to 1, and return the sum."""
    if near:
        for j in shared_range(0, len(x)):
            above[j] = mass[j] / (mass[j] + mass[i])
    else:
        for j in shared_range(0, len(x)):
            above[j] = sigmoid(x[j] - x[i])
    if owns(i):
        above[i] = 0.0
    total = 0.0
    for j in shared_range(0, len(x)):
        total += above[j]
    return team_sum(total)


@quick_kernel
def _add_gradients(i, pull, above, gradient, curvature):
    own = 0.0
    for j in shared_range(0, len(above)):
        step = pull * above[j] * (1.0 - above[j])
        gradient[j] += step
        curvature[j] += step
        own += step
    own = team_sum(own)
    if owns(i):
        gradient[i] -= own
        curvature[i] += own


# --- kernels for long lists ------------------------------------------------------------------


@kernel
def _any_queries(lo, hi, indptr, s, lists, temperature, scratch, weight, value, grad, curv):
    begin = lo
    for q in range(lo, hi):
        if lists.begin[q + 1] - lists.begin[q] >= LONG and weight[q] > 0.0:
            _queries(begin, q, indptr, s, lists, temperature, scratch, weight, value, grad, curv)
            begin = q
            if _long_query(q, indptr, s, lists, temperature, weight, value, grad, curv):
                begin = q + 1
    _queries(begin, hi, indptr, s, lists, temperature, scratch, weight, value, grad, curv)


@kernel
def _long_query(q, indptr, s, lists, temperature, weight, value, grad, curv):
    """Do as `_queries`, by cells of scores; return whether that is quicker."""
    row = lists.row[lists.begin[q] : lists.begin[q + 1]]
    gain = lists.gain[lists.begin[q] : lists.begin[q + 1]]
    n, ranked = len(row), 0
    x, ones = np.empty(n), np.ones(n)
    for i in range(n):
        x[i] = (s[row[i]] - s[row[0]]) / temperature  # a common level would cost digits
        ranked += gain[i] > 0.0
    count = count_cells(x, np.array([0, n]), float(n) * ranked, 3)
    if count == 0:
        return False
    clear_query(q, indptr, value, grad, curv)
    cells, A = new_cells(x, count), new_values(count)
    above, pull, total = np.zeros(n), np.zeros(n), lists.best[q]
    _set_function(False, A)
    add_all(x, ones, A, cells, above)
    for i in range(n):
        if gain[i] > 0.0:
            rank = 0.5 + above[i]  # (1): a document is not above itself, not even by a half
            width = math.log(1.0 + rank)
            total -= gain[i] * _LOG_2 / width  # (2)
            pull[i] = gain[i] * _LOG_2 / ((1.0 + rank) * width * width)
    value[q] = weight[q] * total
    if len(grad):
        own, others = np.zeros(n), np.zeros(n)
        _set_function(True, A)
        add_all(x, ones, A, cells, own)
        add_all(x, pull, A, cells, others)
        for i in range(n):
            down = pull[i] * max(own[i] - 0.25, 0.0)  # without itself, as is the other one
            up = max(others[i] - 0.25 * pull[i], 0.0)
            grad[row[i]] = weight[q] * (up - down) / temperature
            if len(curv):
                curv[row[i]] = weight[q] * (up + down) / (temperature * temperature)
    return True


@kernel
def _set_function(bent, A):
    """Set the logistic function, or its derivative."""
    far = len(A) // 2
    for k in range(len(A)):
        for a in range(NODES):
            for b in range(NODES):
                gap = node_gap(k - far, a, b)
                A[k, a, b] = sigmoid(gap) * (sigmoid(-gap) if bent else 1.0)
    make_coefficients(A)


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class ApproxNDCG(Part):
    """What NDCG loses when ranks are counted softly.

    Parameters
    ----------
    temperature : float
        Difference in score at which one document is mostly above another.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.ApproxNDCG(temperature=0.5), model="linear")
    Ranker(loss=ApproxNDCG(temperature=0.5))
    """

    temperature: Positive = 0.1

    traits: ClassVar[Traits] = Traits()

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_parameters(self)
        args = (gain_lists("approx_ndcg", "ndcg", data), float(self.temperature))
        long = bool(data.sizes.max(initial=0) >= LONG)
        return KernelLoss(
            _queries,
            data,
            *args,
            curvature=True,
            scratch=_floats,
            team=True,
            cpu_kernel=_any_queries if long else None,
            n_jobs=n_jobs,
        )


def _floats(sizes: I64, _lanes: int) -> I64:
    return 5 * sizes
