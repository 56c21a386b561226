"""Models of a user who goes down the list: cascade, DCM, SDBN and DBN.

The user examines the first document. An examined document is clicked with probability alpha_u, its
attractiveness for the query (u is the pair of both). After a click the user is satisfied, S = 1,
with probability sigma. The next document is examined with probability ``after_skip`` if there was
no click and ``after_click`` if there was one, and none below one that is not examined:

    cascade   after_skip 1       after_click 0                       [craswell2008experimental]  (1)
    DCM       after_skip 1       after_click lambda_r                [guo2009efficient]          (2)
    SDBN      after_skip 1       after_click 1 - sigma_u             [chapelle2009dynamic]       (3)
    DBN       after_skip gamma   after_click gamma (1 - sigma_u)     [chapelle2009dynamic]       (4)

With e_r the probability that r is examined given the clicks above (e_1 = 1), and m_r without them,

    P(C_r = 1 | clicks above) = e_r alpha_r                                                      (5)
    e_{r+1} = after_click                                          if r is clicked               (6)
              after_skip e_r (1 - alpha_r) / (1 - e_r alpha_r)     if not                        (7)
    P(C_r = 1) = m_r alpha_r,   m_{r+1} = m_r (alpha_r after_click + (1 - alpha_r) after_skip)   (8)

The first three are counted: alpha from documents down to the first click (cascade) or the last one
(DCM, SDBN; down to the end without any); lambda and sigma from clicks that are not, and are, the
last one. That takes every document below the last click for not examined, which is the maximum of
a lower bound of the likelihood for DCM and SDBN [guo2009efficient].

DBN is fitted by EM. Documents down to the last click are examined. Below it, B_r is the probability
of no click from r on if r is examined (1 behind the end of the list),

    B_r = (1 - alpha_r) (gamma B_{r+1} + 1 - gamma)                                              (9)

which gives the probabilities of S at the last click and of E at each document, given all clicks. An
expected success of alpha is a click, or alpha_u where a document is not examined; of sigma, S = 1
at a click; of gamma, a next document that is examined, after a document without a click or a click
with S = 0.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from rankwright.clicks.base import HIGHEST, ClickModel, EMClickModel
from rankwright.clicks.sessions import PairTable, Sessions, by_query, check_log, sums_of
from rankwright.core.jit import kernel
from rankwright.core.kernels import longest
from rankwright.core.parallel import map_queries, map_ranges, ordered_sum
from rankwright.core.types import F64, AnyArray
from rankwright.data.click_log import ClickLog
from rankwright.errors import DataError

_FLOOR = 1e-6


class _Parameters(NamedTuple):
    """Parameters of DBN as its kernels take them."""

    alpha: F64
    sigma: F64
    gamma: float


class _Sums(NamedTuple):
    """Expected successes of pairs; successes and trials of gamma and log-likelihoods by range."""

    attracted: F64
    satisfied: F64
    continued: AnyArray  # (ranges, 2)
    value: F64


# --- kernels: probabilities ------------------------------------------------------------------


@kernel
def _conditional(lo, hi, indptr, click, alpha, after_skip, after_click, out):
    """Write click probabilities given the clicks above."""
    for s in range(lo, hi):
        e = 1.0
        for i in range(indptr[s], indptr[s + 1]):
            p = e * alpha[i]
            out[i] = p  # (5)
            if click[i]:
                e = after_click[i]  # (6)
            else:
                e = after_skip[i] * e * (1.0 - alpha[i]) / (1.0 - p) if p < 1.0 else 0.0  # (7)


@kernel
def _marginal(lo, hi, indptr, alpha, after_skip, after_click, out):
    """Write click probabilities that are not given the clicks above."""
    for s in range(lo, hi):
        m = 1.0
        for i in range(indptr[s], indptr[s + 1]):
            out[i] = m * alpha[i]
            m *= alpha[i] * after_click[i] + (1.0 - alpha[i]) * after_skip[i]  # (8)


# --- kernels: counts -------------------------------------------------------------------------


@kernel
def _count(sessions, to_first, attracted, seen, ended, ended_at):
    """Add up clicks and documents down to the first or the last click, and last clicks."""
    for s in range(len(sessions.indptr) - 1):
        start, end, w = sessions.indptr[s], sessions.indptr[s + 1], sessions.weight[s]
        stop = end  # one behind the last document that counts
        for i in range(start, end):
            if sessions.click[i]:
                stop = i + 1
                if to_first:
                    break
        for i in range(start, stop):
            u = sessions.pair[i]
            seen[u] += w
            if sessions.click[i]:
                attracted[u] += w
                if i + 1 == stop:
                    ended[u] += w
                    ended_at[sessions.position[i] - 1] += w


# --- kernels: expectations -------------------------------------------------------------------


@kernel
def _posterior(start, end, sessions, now, below, attracted, satisfied, continued):
    """Write expected successes of each document of a session; return its log-likelihood.

    ``below`` is scratch for (9); ``continued`` has successes and trials of gamma.
    """
    gamma = now.gamma
    last = start - 1
    for i in range(start, end):
        if sessions.click[i]:
            last = i
    below[end - start] = 1.0
    for i in range(end - 1, last, -1):
        alpha = now.alpha[sessions.pair[i]]
        below[i - start] = (1.0 - alpha) * (gamma * below[i - start + 1] + 1.0 - gamma)  # (9)
    continued[0] = continued[1] = 0.0
    value = 0.0
    for i in range(start, last):  # examined, and so is the next
        alpha, sigma = now.alpha[sessions.pair[i]], now.sigma[sessions.pair[i]]
        attracted[i - start] = satisfied[i - start] = 0.0
        continued[0] += 1.0
        continued[1] += 1.0
        if sessions.click[i]:
            attracted[i - start] = 1.0
            value += math.log(alpha * (1.0 - sigma) * gamma)
        else:
            value += math.log((1.0 - alpha) * gamma)
    e = 1.0
    if last >= start:
        alpha, sigma = now.alpha[sessions.pair[last]], now.sigma[sessions.pair[last]]
        quiet = gamma * below[last - start + 1]
        other = (1.0 - sigma) * (quiet + 1.0 - gamma)
        s = sigma / (sigma + other)
        attracted[last - start], satisfied[last - start] = 1.0, s
        e = (1.0 - s) * quiet / (quiet + 1.0 - gamma)
        continued[0] += e
        continued[1] += 1.0 - s
        value += math.log(alpha * (sigma + other))
    elif end > start:
        value += math.log(below[0])
    for i in range(last + 1, end):
        attracted[i - start] = now.alpha[sessions.pair[i]] * (1.0 - e)
        satisfied[i - start] = 0.0
        quiet = gamma * below[i - start + 1]
        continued[1] += e
        e *= quiet / (quiet + 1.0 - gamma)
        continued[0] += e
    return value


@kernel
def _expect(first, last, bounds, sessions, now, sums):
    """Add up expected successes over the sessions of ranges first:last."""
    most = longest(bounds[first], bounds[last], sessions.indptr)
    below, attracted, satisfied = np.empty(most + 1), np.empty(most), np.empty(most)
    continued = np.empty(2)
    for r in range(first, last):
        for s in range(bounds[r], bounds[r + 1]):
            start, end, w = sessions.indptr[s], sessions.indptr[s + 1], sessions.weight[s]
            value = _posterior(start, end, sessions, now, below, attracted, satisfied, continued)
            sums.value[r] += w * value
            for i in range(start, end):
                u = sessions.pair[i]
                sums.attracted[u] += w * attracted[i - start]
                sums.satisfied[u] += w * satisfied[i - start]
            sums.continued[r, 0] += w * continued[0]
            sums.continued[r, 1] += w * continued[1]


# --- API -------------------------------------------------------------------------------------


class _Chain(ClickModel):
    """A model of a user who goes down the list."""

    @abstractmethod
    def _after(self, sessions: Sessions, alpha: F64) -> tuple[AnyArray, AnyArray]:
        """Return ``after_skip`` and ``after_click`` of each impression."""

    def _chain(self, sessions: Sessions) -> tuple[F64, F64, F64]:
        alpha = self._at("attractiveness", sessions.pair)
        skip, click = self._after(sessions, alpha)
        return alpha, np.broadcast_to(skip, alpha.shape), np.broadcast_to(click, alpha.shape)

    def _probabilities(self, sessions: Sessions, *, conditional: bool) -> F64:
        chain, out = self._chain(sessions), np.empty(len(sessions.pair))
        if conditional:
            args: tuple[Any, ...] = (sessions.click, *chain, out)
            map_queries(_conditional, sessions.indptr, *args, n_jobs=self.n_jobs)
        else:
            map_queries(_marginal, sessions.indptr, *chain, out, n_jobs=self.n_jobs)
        return out


class _Counted(_Chain):
    """A chain without hidden variables down to the last click."""

    to_first: ClassVar[bool] = False

    def __init__(self, *, smoothing: float = 1.0, n_jobs: int | None = None) -> None:
        self.smoothing = smoothing
        self.n_jobs = n_jobs

    def fit(self, log: ClickLog) -> Self:
        """Count; see `ClickModel.fit`."""
        self._check_params()
        check_log(log)
        self.pairs_, pair = PairTable.of(log)
        sessions, n = Sessions.of(log, pair), self.pairs_.n_pairs
        attracted, seen, ended = np.zeros((3, n))
        ended_at = np.zeros(log.n_positions)
        _count(sessions, self.to_first, attracted, seen, ended, ended_at)
        weight = log.impression_weights() * log.click
        clicked = sums_of(pair, weight, n)
        clicked_at = sums_of(log.position - 1, weight, log.n_positions)
        counted = {"attractiveness": (attracted, seen)}
        counted |= self._counted(ended, clicked, ended_at, clicked_at)
        self.parameters_ = {name: self._smoothed(*counts) for name, counts in counted.items()}
        return self

    def _counted(
        self,
        ended: F64,  # noqa: ARG002
        clicked: F64,  # noqa: ARG002
        ended_at: F64,  # noqa: ARG002
        clicked_at: F64,  # noqa: ARG002
    ) -> dict[str, tuple[F64, F64]]:
        """Return successes and trials of further parameters, from last clicks and all clicks."""
        return {}


class Cascade(_Counted):
    """Cascade model: the user clicks the first attractive document and leaves, (1).

    ``parameters_["attractiveness"]`` has a value for each pair of query and document. A click below
    another has probability 0 here; 1e-6 is taken, so that a log with one has a likelihood.

    Parameters
    ----------
    smoothing : float
        Observations of either kind that are added to those counted.
    n_jobs : int or None
        Threads for probabilities; None is all CPUs. The result is the same for any number.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays([7, 7], list("abab"), [1, 0, 0, 1], session_sizes=[2, 2])
    >>> model = clicks.Cascade(smoothing=0).fit(log)
    >>> model.to_frame()[["document", "attractiveness"]]  # the first user never saw b
      document  attractiveness
    0        a             0.5
    1        b             1.0
    """

    name: ClassVar[str] = "cascade"
    of_pairs: ClassVar[tuple[str, ...]] = ("attractiveness",)
    to_first: ClassVar[bool] = True

    def _after(self, sessions: Sessions, alpha: F64) -> tuple[AnyArray, AnyArray]:  # noqa: ARG002
        return np.ones(1), np.zeros(1)  # (1)

    def _probabilities(self, sessions: Sessions, *, conditional: bool) -> F64:
        found = super()._probabilities(sessions, conditional=conditional)
        return np.where(found == 0.0, _FLOOR, found) if conditional else found


class DCM(_Counted):
    """Dependent click model: after a click the user goes on, depending on the position, (2).

    ``parameters_["attractiveness"]`` has a value for each pair of query and document,
    ``parameters_["continuation"]`` for each position from the first.

    Parameters
    ----------
    smoothing, n_jobs
        As for `Cascade`.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays([7, 7], list("abab"), [1, 1, 1, 0], session_sizes=[2, 2])
    >>> model = clicks.DCM(smoothing=0).fit(log)
    >>> float(model.parameters_["continuation"][0])  # after a click at the first position
    0.5
    """

    name: ClassVar[str] = "dcm"
    of_pairs: ClassVar[tuple[str, ...]] = ("attractiveness",)

    def _counted(
        self,
        ended: F64,  # noqa: ARG002
        clicked: F64,  # noqa: ARG002
        ended_at: F64,
        clicked_at: F64,
    ) -> dict[str, tuple[F64, F64]]:
        return {"continuation": (clicked_at - ended_at, clicked_at)}

    def _after(self, sessions: Sessions, alpha: F64) -> tuple[AnyArray, AnyArray]:  # noqa: ARG002
        return np.ones(1), self._at("continuation", sessions.position - 1)  # (2)


class SDBN(_Counted):
    """Simplified DBN: a user who is not satisfied always goes on, (3).

    ``parameters_["attractiveness"]`` and ``parameters_["satisfaction"]`` have a value for each pair
    of query and document; their product is the relevance that the model sees.

    Parameters
    ----------
    smoothing, n_jobs
        As for `Cascade`.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays([7, 7], list("abab"), [1, 1, 1, 0], session_sizes=[2, 2])
    >>> model = clicks.SDBN(smoothing=0).fit(log)
    >>> model.to_frame()[["document", "attractiveness", "satisfaction"]]
      document  attractiveness  satisfaction
    0        a             1.0           0.5
    1        b             1.0           1.0
    """

    name: ClassVar[str] = "sdbn"
    of_pairs: ClassVar[tuple[str, ...]] = ("attractiveness", "satisfaction")

    def _counted(
        self,
        ended: F64,
        clicked: F64,
        ended_at: F64,  # noqa: ARG002
        clicked_at: F64,  # noqa: ARG002
    ) -> dict[str, tuple[F64, F64]]:
        return {"satisfaction": (ended, clicked)}

    def _after(self, sessions: Sessions, alpha: F64) -> tuple[AnyArray, AnyArray]:  # noqa: ARG002
        return np.ones(1), 1.0 - self._at("satisfaction", sessions.pair)  # (3)


class DBN(EMClickModel, _Chain):
    """Dynamic Bayesian network: a user who is not satisfied goes on with probability gamma, (4).

    ``parameters_["attractiveness"]`` and ``parameters_["satisfaction"]`` have a value for each pair
    of query and document, ``parameters_["continuation"]`` has one, gamma.

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
    >>> data = rw.synthetic("mq2008", queries=20)
    >>> log = clicks.simulate(data, 41, model="dbn", continuation=0.8, swaps="all")
    >>> clicks.DBN().fit(log).parameters_["continuation"].round(1)
    array([0.8])
    """

    name: ClassVar[str] = "dbn"
    of_pairs: ClassVar[tuple[str, ...]] = ("attractiveness", "satisfaction")

    def fit(self, log: ClickLog) -> Self:
        """Fit by EM; see `ClickModel.fit`."""
        self._check_params()
        check_log(log)
        if not log.n_impressions:
            raise DataError("the log has no impressions to fit a click model to.")
        merged, bounds = by_query(log.merged())  # equal sessions once
        self.pairs_, pair = PairTable.of(merged)
        sessions, n = Sessions.of(merged, pair), self.pairs_.n_pairs
        weight = merged.impression_weights()
        shown = sums_of(pair, weight, n)
        clicked = sums_of(pair, weight * merged.click, n)
        ranges = len(bounds) - 1

        def step(now: dict[str, F64]) -> tuple[dict[str, F64], float]:
            known = _Parameters(
                now["attractiveness"], now["satisfaction"], float(now["continuation"][0])
            )
            sums = _Sums(np.zeros(n), np.zeros(n), np.zeros((ranges, 2)), np.zeros(ranges))
            map_ranges(
                _expect, np.arange(ranges + 1), bounds, sessions, known, sums, n_jobs=self.n_jobs
            )
            successes, trials = sums.continued.sum(axis=0)
            then = {
                "attractiveness": self._smoothed(sums.attracted, shown),
                "satisfaction": self._smoothed(sums.satisfied, clicked),
                "continuation": self._smoothed(np.array([successes]), np.array([trials])),
            }
            return {name: np.minimum(one, HIGHEST) for name, one in then.items()}, ordered_sum(
                sums.value
            )

        start = {
            "attractiveness": np.full(n, 0.5),
            "satisfaction": np.full(n, 0.5),
            "continuation": np.full(1, 0.5),
        }
        self._iterate(step, start, float(shown.sum()))
        return self

    def _after(self, sessions: Sessions, alpha: F64) -> tuple[AnyArray, AnyArray]:  # noqa: ARG002
        gamma = self.parameters_["continuation"]
        return gamma, gamma * (1.0 - self._at("satisfaction", sessions.pair))  # (4)
