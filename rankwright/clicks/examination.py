"""Models in which what is examined and attractive is clicked: PBM and UBM.

The probability of a click depends only on the pair (query, document) u and a context k,

    PBM     P(C = 1) = alpha_u gamma_r                   k: the position r                       (1)
    UBM     P(C = 1 | clicks above) = alpha_u gamma_{r,j}
                       k: the position r, and j, that of the last click above it (0: none)       (2)

with attractiveness alpha and examination gamma [richardson2007predicting, dupret2008user]. So the
impressions n and clicks c of each (u, k) are sufficient statistics of a log, and EM runs over
these. It takes for each u and k, summed over the other,

    alpha:  c + (n - c) alpha (1 - gamma) / (1 - alpha gamma)    successes of n trials           (3)
    gamma:  c + (n - c) gamma (1 - alpha) / (1 - alpha gamma)    successes of n trials           (4)

Each pair has a parameter of its own, so pairs with a few impressions bias the parameters of
contexts, however many there are; leave them out where examination is all that is wanted.

Only products are seen: c alpha and gamma / c are as likely, and smoothing decides. Compare
examination between positions, as gamma_r / gamma_1.
"""

from __future__ import annotations

import math
from typing import ClassVar, Self

import numpy as np

from rankwright.clicks.base import HIGHEST, EMClickModel
from rankwright.clicks.sessions import (
    Cells,
    PairTable,
    Sessions,
    check_log,
    previous_clicks,
    sums_of,
)
from rankwright.core.jit import inline_kernel, kernel
from rankwright.core.parallel import map_queries, map_ranges, ordered_sum, query_ranges
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.click_log import ClickLog
from rankwright.errors import DataError

MOST_UBM_POSITIONS = 60

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _log_likelihood(shown, clicked, p):
    """Return the log-likelihood of a cell."""
    value = 0.0
    if clicked > 0.0:
        value += clicked * math.log(p)
    if shown > clicked:
        value += (shown - clicked) * math.log1p(-p)
    return value


@kernel
def _examination_sums(first, last, bounds, cells, alpha, gamma, attracted, examined, value):
    """Add up expected successes for the pairs of ranges first:last, with a row for each range."""
    for r in range(first, last):
        for u in range(bounds[r], bounds[r + 1]):
            a, successes = alpha[u], 0.0
            for i in range(cells.indptr[u], cells.indptr[u + 1]):
                k, c, missed = cells.context[i], cells.clicked[i], 0.0
                g = gamma[k]
                p = a * g
                if cells.shown[i] > c:
                    missed = (cells.shown[i] - c) / (1.0 - p)
                successes += c + missed * a * (1.0 - g)  # (3)
                examined[r, k] += c + missed * g * (1.0 - a)  # (4)
                value[r] += _log_likelihood(cells.shown[i], c, p)
            attracted[u] = successes


@inline_kernel
def _ubm_context(position, before):
    """Return the number of a position and that of the last click above it (0: none)."""
    return position * (position - 1) // 2 + before


@kernel
def _ubm_marginals(lo, hi, indptr, position, alpha, gamma, out):
    """Write click probabilities that are not given the clicks above, by where the last one was."""
    for s in range(lo, hi):
        start, end = indptr[s], indptr[s + 1]
        last = np.zeros(end - start + 1)  # P(the last click is at impression j - 1; 0: none)
        last[0] = 1.0
        for i in range(start, end):
            total = 0.0
            for j in range(i - start + 1):
                before = 0 if j == 0 else position[start + j - 1]
                k = min(_ubm_context(position[i], before), len(gamma) - 1)
                p = alpha[i] * gamma[k]
                total += last[j] * p
                last[j] *= 1.0 - p
            last[i - start + 1] = total
            out[i] = total


# --- API -------------------------------------------------------------------------------------


class _Examination(EMClickModel):
    """Attractiveness of pairs times examination of contexts, fitted on cells."""

    of_pairs: ClassVar[tuple[str, ...]] = ("attractiveness",)

    def fit(self, log: ClickLog) -> Self:
        """Fit by EM; see `ClickModel.fit`."""
        self._check_params()
        check_log(log)
        if not log.n_impressions:
            raise DataError("the log has no impressions to fit a click model to.")
        context = self._context_of(log)
        self.pairs_, pair = PairTable.of(log)
        cells = Cells.of(log, pair, self.pairs_.n_pairs, context)
        trials = np.add.reduceat(cells.shown, cells.indptr[:-1])
        context_trials = sums_of(cells.context, cells.shown)
        bounds = query_ranges(cells.indptr)
        ranges = len(bounds) - 1

        def step(now: dict[str, F64]) -> tuple[dict[str, F64], float]:
            alpha, gamma = now["attractiveness"], now["examination"]
            attracted = np.empty(len(alpha))
            examined, value = np.zeros((ranges, len(gamma))), np.zeros(ranges)
            map_ranges(
                _examination_sums,
                np.arange(ranges + 1),
                bounds,
                cells,
                alpha,
                gamma,
                attracted,
                examined,
                value,
                n_jobs=self.n_jobs,
            )
            then = {
                "attractiveness": self._smoothed(attracted, trials),
                "examination": self._smoothed(examined.sum(axis=0), context_trials),
            }
            return {name: np.minimum(one, HIGHEST) for name, one in then.items()}, ordered_sum(
                value
            )

        start = {
            "attractiveness": np.full(len(trials), 0.5),
            "examination": np.full(len(context_trials), 0.5),
        }
        self._iterate(step, start, float(cells.shown.sum()))
        return self

    def _context_of(self, log: ClickLog) -> I64:
        """Return the context of each impression: its position, from 0."""
        return log.position.astype(np.int64) - 1


class PBM(_Examination):
    """Position-based model: attractive documents are clicked where they are examined, (1).

    ``parameters_["attractiveness"]`` has a value for each pair of query and document,
    ``parameters_["examination"]`` for each position from the first.

    Parameters
    ----------
    smoothing : float
        Observations of either kind that are added to those expected.
    max_iter : int
        The most iterations of EM.
    tol : float
        The change of a parameter below which it stops.
    n_jobs : int or None
        Threads; None is all CPUs. The result is the same for any number.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> data = rw.synthetic("mq2008", queries=50)
    >>> log = clicks.simulate(data, 41, eta=1.0, positions=4, swaps="all")
    >>> examination = clicks.PBM().fit(log).parameters_["examination"]
    >>> (examination / examination[0]).round(1)  # 1, 1/2, 1/3, 1/4
    array([1. , 0.5, 0.3, 0.2])
    """

    name: ClassVar[str] = "pbm"

    def _probabilities(self, sessions: Sessions, *, conditional: bool) -> F64:  # noqa: ARG002
        examination = self._at("examination", sessions.position - 1)
        return self._at("attractiveness", sessions.pair) * examination  # (1)


class UBM(_Examination):
    """User browsing model: examination depends on the position and on the click before it, (2).

    ``parameters_["attractiveness"]`` has a value for each pair of query and document.
    ``parameters_["examination"]`` has one for each position r and last click j < r (0: none), at
    ``r (r - 1) / 2 + j``; `examination` returns it.

    Parameters
    ----------
    smoothing, max_iter, tol, n_jobs
        As for `PBM`.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> log = clicks.simulate(rw.synthetic("mq2008", queries=50), 41, positions=4, swaps="all")
    >>> model = clicks.UBM().fit(log)
    >>> round(model.examination(2, 1), 1)  # of position 2 after a click on 1
    0.5
    """

    name: ClassVar[str] = "ubm"

    def examination(self, position: int, last_click: int = 0) -> float:
        """Return the examination at a position after a click at another (0: none)."""
        self._check_fitted()
        if not 0 <= last_click < position:
            raise DataError(f"the last click, {last_click}, must be above position {position}.")
        return float(self._at("examination", np.array([_ubm_context(position, last_click)]))[0])

    def _context_of(self, log: ClickLog) -> I64:
        if log.n_positions > MOST_UBM_POSITIONS:
            raise DataError(
                f"the log has the position {log.n_positions}; UBM has a number for each pair of "
                f"positions, up to {MOST_UBM_POSITIONS}. Leave out what is below, or take PBM."
            )
        return _contexts(log.indptr, log.position, log.click)

    def _probabilities(self, sessions: Sessions, *, conditional: bool) -> F64:
        alpha = self._at("attractiveness", sessions.pair)
        if conditional:
            context = _contexts(sessions.indptr, sessions.position, sessions.click)
            return alpha * self._at("examination", context)  # (2)
        out = np.empty(len(alpha))
        gamma = self._padded("examination")
        map_queries(
            _ubm_marginals,
            sessions.indptr,
            sessions.position,
            alpha,
            gamma,
            out,
            n_jobs=self.n_jobs,
        )
        return out


def _contexts(indptr: I64, position: AnyArray, click: AnyArray) -> I64:
    """Return the context of UBM of each impression."""
    before = np.empty(len(position), np.int64)
    previous_clicks(indptr, position, click, before)
    wide = position.astype(np.int64)
    return wide * (wide - 1) // 2 + before
