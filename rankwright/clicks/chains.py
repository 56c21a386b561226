"""Models of a user who goes down the list: cascade, DCM, SDBN, DBN and CCM.

The user examines the first document. An examined document is clicked with probability alpha_u, its
attractiveness for the query (u is the pair of both). After a click the user is satisfied, S = 1,
with probability sigma. The next document is examined with probability

    t1 after no click;   t2 after a click, S = 0;   t3 after a click, S = 1;                     (1)

and none below one that is not examined. So with ``after_skip`` = t1 and
``after_click`` = (1 - sigma) t2 + sigma t3:

    cascade   after_skip 1       after_click 0                       [craswell2008experimental]  (2)
    DCM       after_skip 1       after_click lambda_r                [guo2009efficient]          (3)
    SDBN      after_skip 1       after_click 1 - sigma_u             [chapelle2009dynamic]       (4)
    DBN       after_skip gamma   after_click gamma (1 - sigma_u)     [chapelle2009dynamic]       (5)
    CCM       after_skip tau_1   after_click (1 - alpha_u) tau_2 + alpha_u tau_3  [guo2009click] (6)

With e_r the probability that r is examined given the clicks above (e_1 = 1), and m_r without them,

    P(C_r = 1 | clicks above) = e_r alpha_r                                                      (7)
    e_{r+1} = after_click                                          if r is clicked               (8)
              after_skip e_r (1 - alpha_r) / (1 - e_r alpha_r)     if not                        (9)
    P(C_r = 1) = m_r alpha_r,   m_{r+1} = m_r (alpha_r after_click + (1 - alpha_r) after_skip)  (10)

The first three are counted: alpha from documents down to the first click (cascade) or the last one
(DCM, SDBN; down to the end without any); lambda and sigma from clicks that are not, and are, the
last one. That takes every document below the last click for not examined, which is the maximum of
a lower bound of the likelihood for DCM and SDBN [guo2009efficient].

DBN and CCM are fitted by EM. Documents down to the last click are examined. Below it, B_r is the
probability of no click from r on if r is examined (1 behind the end of the list),

    B_r = (1 - alpha_r) (t1 B_{r+1} + 1 - t1)                                                   (11)

which gives the probabilities of S at each click and of E at each document, given all clicks. An
expected success of alpha is a click, or alpha_u where a document is not examined; of sigma, S = 1
at a click (in CCM it counts for alpha); of t, a next document that is examined.

Standard errors of DBN and CCM come from the empirical information: products of the sessions' scores
summed over sessions, jointly for the parameters of a pair and those of all pairs; products between
different pairs are left out.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from rankwright.clicks.base import (
    HIGHEST,
    ClickModel,
    EMClickModel,
    add_at,
    covariance_of,
    roots,
)
from rankwright.clicks.sessions import LogParts, PairTable, Sessions, by_query, parts_of
from rankwright.core.jit import kernel
from rankwright.core.kernels import longest
from rankwright.core.parallel import map_queries, map_ranges, ordered_sum
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.click_log import ClickLog
from rankwright.errors import DataError

_FLOOR = 1e-6
_T1, _T2, _T3 = range(3)


class _Pairs(NamedTuple):
    """Parameters that the kernels of EM take: of pairs, and the three of (1)."""

    alpha: F64
    sigma: F64
    t: F64


class _Sums(NamedTuple):
    """Expected successes: of pairs, and by range those and trials of (1), and log-likelihoods."""

    attracted: F64
    satisfied: F64
    continued: AnyArray  # (ranges, 3, 2)
    value: F64


class _Information(NamedTuple):
    """Sums of products of scores: of a pair's own, with the shared ones, and of these by range."""

    own: AnyArray  # (pairs, 3): alpha alpha, alpha sigma, sigma sigma
    cross: AnyArray  # (pairs, 2, 3)
    shared: AnyArray  # (ranges, 3, 3)


# --- kernels: probabilities ------------------------------------------------------------------


@kernel
def _conditional(lo, hi, indptr, click, alpha, after_skip, after_click, out):  # type: ignore[no-untyped-def]
    """Write click probabilities given the clicks above."""
    for s in range(lo, hi):
        e = 1.0
        for i in range(indptr[s], indptr[s + 1]):
            p = e * alpha[i]
            out[i] = p  # (7)
            if click[i]:
                e = after_click[i]  # (8)
            else:
                e = after_skip[i] * e * (1.0 - alpha[i]) / (1.0 - p) if p < 1.0 else 0.0  # (9)


@kernel
def _marginal(lo, hi, indptr, alpha, after_skip, after_click, out):  # type: ignore[no-untyped-def]
    """Write click probabilities that are not given the clicks above."""
    for s in range(lo, hi):
        m = 1.0
        for i in range(indptr[s], indptr[s + 1]):
            out[i] = m * alpha[i]
            m *= alpha[i] * after_click[i] + (1.0 - alpha[i]) * after_skip[i]  # (10)


@kernel
def _sample(lo, hi, indptr, alpha, after_skip, after_click, uniform, out):  # type: ignore[no-untyped-def]
    """Write clicks: examination is summed out, as in `_conditional`."""
    for s in range(lo, hi):
        e = 1.0
        for i in range(indptr[s], indptr[s + 1]):
            p = e * alpha[i]
            out[i] = uniform[i] < p
            if out[i]:
                e = after_click[i]
            else:
                e = after_skip[i] * e * (1.0 - alpha[i]) / (1.0 - p) if p < 1.0 else 0.0


# --- kernels: counts -------------------------------------------------------------------------


@kernel
def _count(sessions, to_first, attracted, seen, ended, ended_at):  # type: ignore[no-untyped-def]
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
def _posterior(start, end, sessions, pairs, below, attracted, satisfied, continued):  # type: ignore[no-untyped-def]
    """Write expected successes of each document of a session; return its log-likelihood.

    ``below`` is scratch for (11); ``continued`` has successes and trials of (1).
    """
    t = pairs.t
    last = start - 1
    for i in range(start, end):
        if sessions.click[i]:
            last = i
    below[end - start] = 1.0
    for i in range(end - 1, last, -1):
        alpha = pairs.alpha[sessions.pair[i]]
        below[i - start] = (1.0 - alpha) * (t[_T1] * below[i - start + 1] + 1.0 - t[_T1])  # (11)
    for kind in range(3):
        continued[kind, 0] = continued[kind, 1] = 0.0
    value = 0.0
    for i in range(start, last):  # examined, and so is the next
        alpha, sigma = pairs.alpha[sessions.pair[i]], pairs.sigma[sessions.pair[i]]
        attracted[i - start] = satisfied[i - start] = 0.0
        if sessions.click[i]:
            content, other = sigma * t[_T3], (1.0 - sigma) * t[_T2]
            s = content / (content + other)
            attracted[i - start], satisfied[i - start] = 1.0, s
            for kind, share in ((_T2, 1.0 - s), (_T3, s)):
                continued[kind, 0] += share
                continued[kind, 1] += share
            value += math.log(alpha * (content + other))
        else:
            continued[_T1, 0] += 1.0
            continued[_T1, 1] += 1.0
            value += math.log((1.0 - alpha) * t[_T1])
    e = 1.0
    if last >= start:
        alpha, sigma = pairs.alpha[sessions.pair[last]], pairs.sigma[sessions.pair[last]]
        quiet = below[last - start + 1]
        content = sigma * (t[_T3] * quiet + 1.0 - t[_T3])
        other = (1.0 - sigma) * (t[_T2] * quiet + 1.0 - t[_T2])
        s = content / (content + other)
        attracted[last - start], satisfied[last - start] = 1.0, s
        e = 0.0
        for kind, share in ((_T2, 1.0 - s), (_T3, s)):
            went_on = share * t[kind] * quiet / (t[kind] * quiet + 1.0 - t[kind])
            continued[kind, 0] += went_on
            continued[kind, 1] += share
            e += went_on
        value += math.log(alpha * (content + other))
    elif end > start:
        value += math.log(below[0])
    for i in range(last + 1, end):
        attracted[i - start] = pairs.alpha[sessions.pair[i]] * (1.0 - e)
        satisfied[i - start] = 0.0
        quiet = below[i - start + 1]
        went_on = e * t[_T1] * quiet / (t[_T1] * quiet + 1.0 - t[_T1])
        continued[_T1, 0] += went_on
        continued[_T1, 1] += e
        e = went_on
    return value


@kernel
def _expect(first, last, bounds, sessions, pairs, sums):  # type: ignore[no-untyped-def]
    """Add up expected successes over the sessions of ranges first:last."""
    most = longest(bounds[first], bounds[last], sessions.indptr)
    below, attracted, satisfied = np.empty(most + 1), np.empty(most), np.empty(most)
    continued = np.empty((3, 2))
    for r in range(first, last):
        for s in range(bounds[r], bounds[r + 1]):
            start, end, w = sessions.indptr[s], sessions.indptr[s + 1], sessions.weight[s]
            value = _posterior(start, end, sessions, pairs, below, attracted, satisfied, continued)
            sums.value[r] += w * value
            for i in range(start, end):
                u = sessions.pair[i]
                sums.attracted[u] += w * attracted[i - start]
                sums.satisfied[u] += w * satisfied[i - start]
            for kind in range(3):
                sums.continued[r, kind, 0] += w * continued[kind, 0]
                sums.continued[r, kind, 1] += w * continued[kind, 1]


@kernel
def _score(successes, trials, value):  # type: ignore[no-untyped-def]
    """Return the derivative of the log-likelihood by a probability; 0 where it has none."""
    if trials <= 0.0 or value <= 0.0 or value >= 1.0:
        return 0.0
    return (successes - value * trials) / (value * (1.0 - value))


@kernel
def _inform(first, last, bounds, sessions, pairs, one_sigma, one_t, found):  # type: ignore[no-untyped-def]
    """Add up products of scores; ``one_sigma``: sigma is alpha; ``one_t``: t1 and t2 are one."""
    most = longest(bounds[first], bounds[last], sessions.indptr)
    below, attracted, satisfied = np.empty(most + 1), np.empty(most), np.empty(most)
    continued, shared = np.empty((3, 2)), np.empty(3)
    for r in range(first, last):
        for s in range(bounds[r], bounds[r + 1]):
            start, end, w = sessions.indptr[s], sessions.indptr[s + 1], sessions.weight[s]
            _posterior(start, end, sessions, pairs, below, attracted, satisfied, continued)
            if one_t:
                for k in range(2):
                    continued[_T1, k] += continued[_T2, k]
                    continued[_T2, k] = continued[_T3, k] = 0.0
            for kind in range(3):
                shared[kind] = _score(continued[kind, 0], continued[kind, 1], pairs.t[kind])
            for kind in range(3):
                for other in range(3):
                    found.shared[r, kind, other] += w * shared[kind] * shared[other]
            for i in range(start, end):
                u = sessions.pair[i]
                clicked = 1.0 if sessions.click[i] else 0.0
                content = satisfied[i - start]
                if one_sigma:
                    x = _score(attracted[i - start] + content, 1.0 + clicked, pairs.alpha[u])
                    y = 0.0
                else:
                    x = _score(attracted[i - start], 1.0, pairs.alpha[u])
                    y = _score(content, clicked, pairs.sigma[u])
                found.own[u, 0] += w * x * x
                found.own[u, 1] += w * x * y
                found.own[u, 2] += w * y * y
                for kind in range(3):
                    found.cross[u, 0, kind] += w * x * shared[kind]
                    found.cross[u, 1, kind] += w * y * shared[kind]


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

    def _sampled(self, sessions: Sessions, uniform: F64) -> AnyArray:
        out = np.empty(len(uniform), bool)
        args = (*self._chain(sessions), uniform, out)
        map_queries(_sample, sessions.indptr, *args, n_jobs=self.n_jobs)
        return out


class _Counted(_Chain):
    """A chain without hidden variables down to the last click."""

    to_first: ClassVar[bool] = False

    def __init__(self, *, smoothing: float = 1.0, n_jobs: int | None = None) -> None:
        self.smoothing = smoothing
        self.n_jobs = n_jobs

    def fit(self, log: LogParts | Sequence[ClickLog]) -> Self:
        """Count; the log is read once. See `ClickModel.fit`."""
        self._check_params()
        pairs = PairTable()
        of_pair, clicked, of_position = np.zeros((3, 0)), np.zeros(0), np.zeros((2, 0))
        for part in parts_of(log):
            sessions = Sessions.of(part, pairs, grow=True)
            of_pair = _widened(of_pair, len(pairs))
            of_position = _widened(of_position, part.n_positions)
            _count(sessions, self.to_first, *of_pair, of_position[0])
            weight = part.impression_weights() * part.click
            clicked = add_at(clicked, sessions.pair, weight)
            at = np.bincount(part.position - 1, weight, of_position.shape[1])
            of_position[1] += at
        self.pairs_ = pairs
        attracted, seen, ended = of_pair
        counted = {"attractiveness": (attracted, seen)}
        counted |= self._counted(ended, _widened(clicked, len(pairs)), *of_position)
        self.parameters_ = {name: self._smoothed(*counts) for name, counts in counted.items()}
        self.standard_errors_ = {
            name: self._binomial_errors(self.parameters_[name], trials)
            for name, (_, trials) in counted.items()
        }
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
    """Cascade model: the user clicks the first attractive document and leaves, (2).

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
    parameter_names: ClassVar[tuple[str, ...]] = ("attractiveness",)
    to_first: ClassVar[bool] = True

    def _after(self, sessions: Sessions, alpha: F64) -> tuple[AnyArray, AnyArray]:  # noqa: ARG002
        return np.ones(1), np.zeros(1)  # (2)

    def _probabilities(self, sessions: Sessions, *, conditional: bool) -> F64:
        found = super()._probabilities(sessions, conditional=conditional)
        return np.where(found == 0.0, _FLOOR, found) if conditional else found


class DCM(_Counted):
    """Dependent click model: after a click the user goes on, depending on the position, (3).

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
    parameter_names: ClassVar[tuple[str, ...]] = ("attractiveness", "continuation")

    def _counted(
        self,
        ended: F64,  # noqa: ARG002
        clicked: F64,  # noqa: ARG002
        ended_at: F64,
        clicked_at: F64,
    ) -> dict[str, tuple[F64, F64]]:
        return {"continuation": (clicked_at - ended_at, clicked_at)}

    def _after(self, sessions: Sessions, alpha: F64) -> tuple[AnyArray, AnyArray]:  # noqa: ARG002
        return np.ones(1), self._at("continuation", sessions.position - 1)  # (3)


class SDBN(_Counted):
    """Simplified DBN: a user who is not satisfied always goes on, (4).

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
    parameter_names: ClassVar[tuple[str, ...]] = ("attractiveness", "satisfaction")

    def _counted(
        self,
        ended: F64,
        clicked: F64,
        ended_at: F64,  # noqa: ARG002
        clicked_at: F64,  # noqa: ARG002
    ) -> dict[str, tuple[F64, F64]]:
        return {"satisfaction": (ended, clicked)}

    def _after(self, sessions: Sessions, alpha: F64) -> tuple[AnyArray, AnyArray]:  # noqa: ARG002
        return np.ones(1), 1.0 - self._at("satisfaction", sessions.pair)  # (4)


class _Hidden(EMClickModel, _Chain):
    """A chain that is fitted by EM."""

    one_sigma: ClassVar[bool]
    """Whether satisfaction is attractiveness."""
    one_t: ClassVar[bool]
    """Whether t1 and t2 of (1) are one parameter."""

    def __init__(
        self,
        *,
        smoothing: float = 1.0,
        max_iter: int = 200,
        tol: float = 1e-5,
        n_jobs: int | None = None,
    ) -> None:
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs

    @abstractmethod
    def _pairs(self, now: dict[str, F64]) -> _Pairs:
        """Return parameters as the kernels take them."""

    @abstractmethod
    def _maximised(self, sums: _Sums, shown: F64, clicked: F64) -> dict[str, F64]:
        """Return new parameters from expected successes."""

    def fit(self, log: LogParts | Sequence[ClickLog]) -> Self:
        """Fit by EM; a log in a file is read once in each iteration. See `ClickModel.fit`."""
        self._check_params()
        pairs, shown, clicked = PairTable(), np.zeros(0), np.zeros(0)
        in_memory = isinstance(log, ClickLog | Sequence)
        parts = list(_Prepared(log, pairs)) if in_memory else _Prepared(log, pairs)
        for sessions, _ in parts:
            weight = np.repeat(sessions.weight, np.diff(sessions.indptr))
            shown = add_at(shown, sessions.pair, weight)
            clicked = add_at(clicked, sessions.pair, weight * sessions.click)
        if not len(pairs):
            raise DataError("the log has no impressions to fit a click model to.")
        self.pairs_ = pairs

        def step(now: dict[str, F64]) -> tuple[dict[str, F64], float]:
            sums, value = self._expected(parts, now)
            return self._maximised(sums, shown, clicked), value

        start = {
            name: np.full(len(pairs) if name in self.of_pairs else 1, 0.5)
            for name in self.parameter_names
        }
        self._iterate(step, start, float(shown.sum()))
        self.standard_errors_ = self._errors(parts)
        return self

    def _expected(
        self, parts: Iterable[tuple[Sessions, I64]], now: dict[str, F64]
    ) -> tuple[_Sums, float]:
        """Return expected successes over a log, and its log-likelihood."""
        n, pairs = len(now["attractiveness"]), self._pairs(now)
        attracted, satisfied, continued, value = np.zeros(n), np.zeros(n), np.zeros((3, 2)), 0.0
        for sessions, bounds in parts:
            ranges = len(bounds) - 1
            rows = _Sums(attracted, satisfied, np.zeros((ranges, 3, 2)), np.zeros(ranges))
            args = (bounds, sessions, pairs, rows)
            map_ranges(_expect, np.arange(ranges + 1), *args, n_jobs=self.n_jobs)
            continued += rows.continued.sum(axis=0)
            value += ordered_sum(rows.value)
        return _Sums(attracted, satisfied, continued, np.array([value])), value

    def _errors(self, parts: Iterable[tuple[Sessions, I64]]) -> dict[str, F64]:
        """Return standard errors from the empirical information."""
        pairs = self._pairs(self.parameters_)
        n = len(pairs.alpha)
        own, cross, shared = np.zeros((n, 3)), np.zeros((n, 2, 3)), np.zeros((3, 3))
        for sessions, bounds in parts:
            found = _Information(own, cross, np.zeros((len(bounds) - 1, 3, 3)))
            args = (bounds, sessions, pairs, self.one_sigma, self.one_t, found)
            map_ranges(_inform, np.arange(len(bounds)), *args, n_jobs=self.n_jobs)
            shared += found.shared.sum(axis=0)
        m = len(self.of_all)
        prior = [float(self._prior_information(self.parameters_[name])[0]) for name in self.of_all]
        blocks = np.empty((n, 2, 2))
        blocks[:, 0, 0] = own[:, 0] + self._prior_information(pairs.alpha)
        blocks[:, 1, 1] = own[:, 2] + self._prior_information(pairs.sigma)
        blocks[:, 0, 1] = blocks[:, 1, 0] = own[:, 1]
        inverse, unknown = _inverse_2x2(blocks)
        scaled = inverse @ cross[:, :, :m]
        reduced = shared[:m, :m] + np.diag(prior)
        covariance = covariance_of(reduced - np.einsum("uik,uil->kl", cross[:, :, :m], scaled))
        known = np.nan_to_num(covariance)  # what is not known takes no part
        variance = np.einsum("uii->ui", inverse)
        variance = variance + np.einsum("uik,kl,uil->ui", scaled, known, scaled)
        variance[unknown] = np.nan
        errors = dict(zip(self.of_pairs, roots(variance).T, strict=False))
        return errors | {
            name: roots(covariance[k, k : k + 1]) for k, name in enumerate(self.of_all)
        }


class _Prepared:
    """The parts of a log as kernels take them, equal sessions once; made anew each time."""

    def __init__(self, log: LogParts | Sequence[ClickLog], pairs: PairTable) -> None:
        self.log, self.pairs = log, pairs

    def __iter__(self) -> Iterator[tuple[Sessions, I64]]:
        for part in parts_of(self.log):
            merged, bounds = by_query(part.merged())
            yield Sessions.of(merged, self.pairs, grow=True), bounds


class DBN(_Hidden):
    """Dynamic Bayesian network: a user who is not satisfied goes on with probability gamma, (5).

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
    parameter_names: ClassVar[tuple[str, ...]] = (
        "attractiveness",
        "satisfaction",
        "continuation",
    )
    of_all: ClassVar[tuple[str, ...]] = ("continuation",)
    one_sigma: ClassVar[bool] = False
    one_t: ClassVar[bool] = True

    def _pairs(self, now: dict[str, F64]) -> _Pairs:
        gamma = float(now["continuation"][0])
        return _Pairs(now["attractiveness"], now["satisfaction"], np.array([gamma, gamma, 0.0]))

    def _maximised(self, sums: _Sums, shown: F64, clicked: F64) -> dict[str, F64]:
        successes, trials = sums.continued[_T1] + sums.continued[_T2]
        found = {
            "attractiveness": self._smoothed(sums.attracted, shown),
            "satisfaction": self._smoothed(sums.satisfied, clicked),
            "continuation": self._smoothed(np.array([successes]), np.array([trials])),
        }
        return {name: np.minimum(one, HIGHEST) for name, one in found.items()}

    def _after(self, sessions: Sessions, alpha: F64) -> tuple[AnyArray, AnyArray]:  # noqa: ARG002
        gamma = self.parameters_["continuation"]
        return gamma, gamma * (1.0 - self._at("satisfaction", sessions.pair))  # (5)


class CCM(_Hidden):
    """Click chain model: three continuations, and satisfaction as likely as a click, (6).

    ``parameters_["attractiveness"]`` has a value for each pair of query and document;
    ``parameters_["continuation_skip"]``, ``["continuation_unsatisfied"]`` and
    ``["continuation_satisfied"]`` have one: tau_1, tau_2 and tau_3.

    Parameters
    ----------
    smoothing, max_iter, tol, n_jobs
        As for `DBN`.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> data = rw.synthetic("mq2008", queries=20)
    >>> log = clicks.simulate(data, 41, model="cascade", swaps="all")
    >>> found = clicks.CCM().fit(log).parameters_
    >>> bool(found["continuation_satisfied"] < found["continuation_skip"])
    True
    """

    name: ClassVar[str] = "ccm"
    of_pairs: ClassVar[tuple[str, ...]] = ("attractiveness",)
    parameter_names: ClassVar[tuple[str, ...]] = (
        "attractiveness",
        "continuation_skip",
        "continuation_unsatisfied",
        "continuation_satisfied",
    )
    of_all: ClassVar[tuple[str, ...]] = parameter_names[1:]
    one_sigma: ClassVar[bool] = True
    one_t: ClassVar[bool] = False

    def _pairs(self, now: dict[str, F64]) -> _Pairs:
        t = np.concatenate([now[name] for name in self.parameter_names[1:]])
        return _Pairs(now["attractiveness"], now["attractiveness"], t)

    def _maximised(self, sums: _Sums, shown: F64, clicked: F64) -> dict[str, F64]:
        attracted = self._smoothed(sums.attracted + sums.satisfied, shown + clicked)
        found = {"attractiveness": attracted}
        for name, (successes, trials) in zip(self.parameter_names[1:], sums.continued, strict=True):
            found[name] = self._smoothed(np.array([successes]), np.array([trials]))
        return {name: np.minimum(one, HIGHEST) for name, one in found.items()}

    def _after(self, sessions: Sessions, alpha: F64) -> tuple[AnyArray, AnyArray]:  # noqa: ARG002
        skip, other, content = (self.parameters_[name] for name in self.parameter_names[1:])
        return skip, (1.0 - alpha) * other + alpha * content  # (6)


def _widened(sums: F64, length: int) -> F64:
    """Return sums with zeros behind them, up to a length, as an array of its own."""
    wide = np.zeros((*sums.shape[:-1], max(length, sums.shape[-1])))
    wide[..., : sums.shape[-1]] = sums
    return wide


def _inverse_2x2(blocks: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the inverse of each block, and which parameters it says nothing about."""
    unknown = np.einsum("uii->ui", blocks) <= 0.0
    a, d = np.where(unknown, 1.0, np.einsum("uii->ui", blocks)).T
    b = np.where(unknown.any(axis=1), 0.0, blocks[:, 0, 1])
    singular = a * d <= b * b
    unknown |= singular[:, None]
    b = np.where(singular, 0.0, b)
    determinant = a * d - b * b
    flipped = np.stack((np.stack((d, -b), 1), np.stack((-b, a), 1)), 1)
    return flipped / determinant[:, None, None], unknown
