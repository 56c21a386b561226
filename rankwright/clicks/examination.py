"""PBM and UBM: attractive documents are clicked if they are examined.

The probability of a click depends only on the pair (query, document) u and a context k,

    PBM     P(C = 1) = alpha_u gamma_r                   k: the position r                       (1)
    UBM     P(C = 1 | clicks above) = alpha_u gamma_{r,j}
                       k: the position r, and j, that of the last click above it (0: none)       (2)

with attractiveness alpha and examination gamma [richardson2007predicting, dupret2008user].
Therefore the impressions n and clicks c of each cell (u, k) are sufficient statistics of a log, and
EM uses only these. For each u and k, summed over the other index, an iteration computes

    alpha:  c + (n - c) alpha (1 - gamma) / (1 - alpha gamma)    successes of n trials           (3)
    gamma:  c + (n - c) gamma (1 - alpha) / (1 - alpha gamma)    successes of n trials           (4)

Each pair has a parameter. Pairs with few impressions bias the parameters of contexts, however
many pairs there are; remove them if only examination is of interest.

The likelihood depends only on products: c alpha and gamma / c are equally likely, and smoothing
decides between them. Compare the examination of positions as gamma_r / gamma_1.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from rankwright.clicks.base import EMClickModel
from rankwright.clicks.pairs import PairTable, check_log, sums_of
from rankwright.core.jit import kernel
from rankwright.core.parallel import map_queries
from rankwright.core.types import F64, I64
from rankwright.data.click_log import ClickLog
from rankwright.errors import DataError

_MOST_UBM_POSITIONS = 60


@kernel
def _ubm_marginals(lo, hi, indptr, position, alpha, gamma, out):
    """Write click probabilities that are not given the clicks above, by the last click."""
    for s in range(lo, hi):
        start, end = indptr[s], indptr[s + 1]
        last = np.zeros(end - start + 1)  # P(the last click is at impression j - 1; 0: none)
        last[0] = 1.0
        for i in range(start, end):
            total = 0.0
            first = position[i] * (position[i] - 1) // 2
            for j in range(i - start + 1):
                context = first if j == 0 else first + position[start + j - 1]
                p = alpha[i] * gamma[min(context, len(gamma) - 1)]
                total += last[j] * p
                last[j] *= 1.0 - p
            last[i - start + 1] = total
            out[i] = total


class _Examination(EMClickModel):
    """Attractiveness of pairs times examination of contexts, fitted to cells."""

    of_pairs: ClassVar[tuple[str, ...]] = ("attractiveness",)

    def fit(self, log: ClickLog) -> Self:
        """Fit the model by EM."""
        self._check_params()
        check_log(log)
        contexts = self._contexts(log)
        n_contexts = int(contexts.max(initial=-1)) + 1
        self.pairs_, pairs = PairTable.of(log)
        cells, cell = np.unique(pairs * n_contexts + contexts, return_inverse=True)
        pair, context = np.divmod(cells, max(n_contexts, 1))
        weight = log.impression_weights()
        shown = sums_of(cell, weight, len(cells))
        clicked = sums_of(cell, weight * log.click, len(cells))
        missed = shown - clicked
        shown_of_pair, shown_in_context = sums_of(pair, shown), sums_of(context, shown)

        def step(now: dict[str, F64]) -> tuple[dict[str, F64], float]:
            alpha, gamma = now["attractiveness"][pair], now["examination"][context]
            p = alpha * gamma
            unseen = missed / (1.0 - p)
            attracted = clicked + unseen * alpha * (1.0 - gamma)  # (3)
            examined = clicked + unseen * gamma * (1.0 - alpha)  # (4)
            value = clicked @ np.log(np.maximum(p, 1e-300)) + missed @ np.log1p(-p)
            new = {
                "attractiveness": self._smoothed(sums_of(pair, attracted), shown_of_pair),
                "examination": self._smoothed(sums_of(context, examined), shown_in_context),
            }
            return new, float(value)

        sizes = {"attractiveness": self.pairs_.n_pairs, "examination": n_contexts}
        self._maximise(step, sizes, float(shown.sum()))
        return self

    def _contexts(self, log: ClickLog) -> I64:
        """Return the context of each impression: its position, from 0."""
        return log.position.astype(np.int64) - 1


class PBM(_Examination):
    """Position-based model: attractive documents are clicked if they are examined, (1).

    ``parameters_["attractiveness"]`` has a value for each pair of query and document,
    ``parameters_["examination"]`` for each position from the first.

    Parameters
    ----------
    smoothing : float
        Number of successes, and of failures, added to the expected ones.
    max_iter : int
        Maximum number of EM iterations.
    tol : float
        EM stops if no parameter changes by more than this.
    n_jobs : int or None
        Threads for probabilities; None uses all CPUs. The result does not depend on it.

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

    def _probabilities(self, log: ClickLog, pair: I64, *, conditional: bool) -> F64:  # noqa: ARG002
        examination = self._at("examination", self._contexts(log))
        return self._at("attractiveness", pair) * examination  # (1)


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

    def fit(self, log: ClickLog) -> Self:
        """Fit the model by EM."""
        check_log(log)
        if log.n_positions > _MOST_UBM_POSITIONS:
            raise DataError(
                f"the log has the position {log.n_positions}; UBM has a parameter for each pair of "
                f"positions, up to {_MOST_UBM_POSITIONS}. Remove lower positions, or use PBM."
            )
        return super().fit(log)

    def examination(self, position: int, last_click: int = 0) -> float:
        """Return the examination at a position after a click at another position (0: none)."""
        self._check_fitted()
        if not 0 <= last_click < position:
            raise DataError(f"the last click, {last_click}, must be above position {position}.")
        context = position * (position - 1) // 2 + last_click
        return float(self._at("examination", np.array([context]))[0])

    def _contexts(self, log: ClickLog) -> I64:
        """Return the number of each impression's position and of the last click above it."""
        clicked = np.where(log.click, np.arange(log.n_impressions), -1)
        last = np.maximum.accumulate(np.append(-1, clicked))[:-1]
        in_session = last >= np.repeat(log.indptr[:-1], log.sizes)
        position = log.position.astype(np.int64)
        return position * (position - 1) // 2 + np.where(in_session, position[last], 0)

    def _probabilities(self, log: ClickLog, pair: I64, *, conditional: bool) -> F64:
        alpha = self._at("attractiveness", pair)
        if conditional:
            return alpha * self._at("examination", self._contexts(log))  # (2)
        out = np.empty(len(alpha))
        gamma = np.append(self.parameters_["examination"], 0.5)  # the last: unknown contexts
        map_queries(_ubm_marginals, log.indptr, log.position, alpha, gamma, out, n_jobs=self.n_jobs)
        return out
