"""Models of a user who scans the list from the top: cascade, DCM, SDBN and DBN.

The user examines the first document. An examined document is clicked with the probability alpha_u,
its attractiveness for the query (u is the pair of both). After a click the user is satisfied,
S = 1, with the probability sigma. The next document is examined with the probability ``after_skip``
after a skip and ``after_click`` after a click. Nothing is examined below a document that is not
examined.

    cascade   after_skip 1       after_click 0                       [craswell2008experimental]  (1)
    DCM       after_skip 1       after_click lambda_r                [guo2009efficient]          (2)
    SDBN      after_skip 1       after_click 1 - sigma_u             [chapelle2009dynamic]       (3)
    DBN       after_skip gamma   after_click gamma (1 - sigma_u)     [chapelle2009dynamic]       (4)

With e_r the probability that r is examined given the clicks above (e_1 = 1), and m_r without them,

    P(C_r = 1 | clicks above) = e_r alpha_r                                                      (5)
    e_{r+1} = after_click                                          if r is clicked               (6)
              after_skip e_r (1 - alpha_r) / (1 - e_r alpha_r)     if not                        (7)
    P(C_r = 1) = m_r alpha_r,   m_{r+1} = m_r (alpha_r after_click + (1 - alpha_r) after_skip)   (8)

The first three are fitted by counting: alpha from documents down to the first click (cascade) or
the last one (DCM, SDBN), or down to the end without clicks; lambda from clicks that are not the
last one, sigma from clicks that are. Documents below the last click count as not examined, which
maximises a lower bound of the likelihood of DCM and SDBN [guo2009efficient].

DBN is fitted by EM. Documents down to the last click are examined. Below it, B_r is the probability
of no click from r on if r is examined (1 behind the end of the list),

    B_r = (1 - alpha_r) (gamma B_{r+1} + 1 - gamma)                                              (9)

From B follow the probabilities, given all clicks, of S at the last click and of the examination of
each document. The expected successes of alpha are clicks, and alpha_u for documents that are not
examined; of sigma S = 1 at clicks; of gamma an examined next document, after a document without a
click or a click with S = 0.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from rankwright.clicks.base import ClickModel, EMClickModel
from rankwright.clicks.pairs import PairTable, check_log, sums_of
from rankwright.core.jit import kernel
from rankwright.core.parallel import map_queries
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.click_log import ClickLog

_LOWEST_CLICK = 1e-6  # probability of a click below another one in the cascade model

# --- kernels ------------------------------------------------------------------


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


@kernel
def _expect(indptr, pair, click, weight, alpha, sigma, gamma, below, attracted, satisfied, went_on):
    """Add up expected successes of all sessions; return the log-likelihood.

    ``below`` is scratch for B of (9). ``went_on`` has successes and trials of gamma.
    """
    value = 0.0
    for s in range(len(weight)):
        start, end, w = indptr[s], indptr[s + 1], weight[s]
        last = start - 1
        for i in range(start, end):
            if click[i]:
                last = i
        below[end - start] = 1.0
        for i in range(end - 1, last, -1):
            further = gamma * below[i - start + 1] + 1.0 - gamma
            below[i - start] = (1.0 - alpha[pair[i]]) * further  # (9)
        for i in range(start, last):  # examined, and so is the next
            u = pair[i]
            went_on[0] += w
            went_on[1] += w
            if click[i]:
                attracted[u] += w
                value += w * math.log(alpha[u] * (1.0 - sigma[u]) * gamma)
            else:
                value += w * math.log((1.0 - alpha[u]) * gamma)
        e = 1.0  # P(examined | all clicks)
        if last >= start:
            u = pair[last]
            quiet = gamma * below[last - start + 1]
            unsatisfied = (1.0 - sigma[u]) * (quiet + 1.0 - gamma)
            left = sigma[u] / (sigma[u] + unsatisfied)  # P(S = 1 | all clicks)
            e = (1.0 - left) * quiet / (quiet + 1.0 - gamma)
            attracted[u] += w
            satisfied[u] += w * left
            went_on[0] += w * e
            went_on[1] += w * (1.0 - left)
            value += w * math.log(alpha[u] * (sigma[u] + unsatisfied))
        elif end > start:
            value += w * math.log(below[0])
        for i in range(last + 1, end):
            quiet = gamma * below[i - start + 1]
            attracted[pair[i]] += w * alpha[pair[i]] * (1.0 - e)
            went_on[1] += w * e
            e *= quiet / (quiet + 1.0 - gamma)
            went_on[0] += w * e
    return value


# --- API -------------------------------------------------------------------------------------


class _Chain(ClickModel):
    """A model of a user who scans the list from the top."""

    @abstractmethod
    def _after(self, log: ClickLog, pair: I64) -> tuple[AnyArray, AnyArray]:
        """Return ``after_skip`` and ``after_click``: a number, or one of each impression."""

    def _probabilities(self, log: ClickLog, pair: I64, *, conditional: bool) -> F64:
        alpha, out = self._at("attractiveness", pair), np.empty(len(pair))
        chain = alpha, *(np.broadcast_to(after, alpha.shape) for after in self._after(log, pair))
        if conditional:
            args: tuple[Any, ...] = (log.click, *chain, out)
            map_queries(_conditional, log.indptr, *args, n_jobs=self.n_jobs)
        else:
            map_queries(_marginal, log.indptr, *chain, out, n_jobs=self.n_jobs)
        return out


class _Counted(_Chain):
    """A chain without hidden variables down to the last click."""

    def __init__(self, *, smoothing: float = 1.0, n_jobs: int | None = None) -> None:
        self.smoothing = smoothing
        self.n_jobs = n_jobs

    def fit(self, log: ClickLog) -> Self:
        """Fit the model by counting."""
        self._check_params()
        check_log(log)
        self.pairs_, pair = PairTable.of(log)
        clicked = np.flatnonzero(log.click)
        last = log.indptr[1:] - 1  # the last examined impression
        # Of repeated indices the last one is assigned.
        at = clicked[::-1] if isinstance(self, Cascade) else clicked
        last[log.session_of_impression()[at]] = at
        last = np.repeat(last, log.sizes)
        place = np.arange(log.n_impressions)
        weight = log.impression_weights()
        examined = weight * (place <= last)
        self.parameters_ = {
            "attractiveness": self._ratio(pair, examined * log.click, examined),
            **self._of_clicks(log, pair, weight * log.click, place == last),
        }
        return self

    def _of_clicks(self, log: ClickLog, pair: I64, clicked: F64, last: AnyArray) -> dict[str, F64]:  # noqa: ARG002
        """Return further parameters from the weights of clicks; ``last`` marks last clicks."""
        return {}


class Cascade(_Counted):
    """Cascade model: the user clicks the first attractive document and leaves, (1).

    ``parameters_["attractiveness"]`` has a value for each pair of query and document. The model
    gives probability 0 to a click below another one; 1e-6 is used instead, so that the likelihood
    of a log with several clicks is not 0.

    Parameters
    ----------
    smoothing : float
        Number of successes, and of failures, added to the counts.
    n_jobs : int or None
        Threads for probabilities; None uses all CPUs. The result does not depend on it.

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

    def _after(self, log: ClickLog, pair: I64) -> tuple[AnyArray, AnyArray]:  # noqa: ARG002
        return np.ones(1), np.zeros(1)  # (1)

    def _probabilities(self, log: ClickLog, pair: I64, *, conditional: bool) -> F64:
        p = super()._probabilities(log, pair, conditional=conditional)
        return np.where(p == 0.0, _LOWEST_CLICK, p) if conditional else p


class DCM(_Counted):
    """Dependent click model: the user continues after a click, depending on the position, (2).

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

    def _of_clicks(self, log: ClickLog, pair: I64, clicked: F64, last: AnyArray) -> dict[str, F64]:  # noqa: ARG002
        return {"continuation": self._ratio(log.position - 1, clicked * ~last, clicked)}

    def _after(self, log: ClickLog, pair: I64) -> tuple[AnyArray, AnyArray]:  # noqa: ARG002
        return np.ones(1), self._at("continuation", log.position - 1)  # (2)


class SDBN(_Counted):
    """Simplified DBN: a user who is not satisfied always continues, (3).

    ``parameters_["attractiveness"]`` and ``parameters_["satisfaction"]`` have a value for each pair
    of query and document; their product is the relevance in this model.

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

    def _of_clicks(self, log: ClickLog, pair: I64, clicked: F64, last: AnyArray) -> dict[str, F64]:  # noqa: ARG002
        return {"satisfaction": self._ratio(pair, clicked * last, clicked)}

    def _after(self, log: ClickLog, pair: I64) -> tuple[AnyArray, AnyArray]:  # noqa: ARG002
        return np.ones(1), 1.0 - self._at("satisfaction", pair)  # (3)


class DBN(EMClickModel, _Chain):
    """Dynamic Bayesian network: unsatisfied users continue with probability gamma, (4).

    ``parameters_["attractiveness"]`` and ``parameters_["satisfaction"]`` have a value for each pair
    of query and document, ``parameters_["continuation"]`` has one, gamma.

    Parameters
    ----------
    smoothing : float
        Number of successes, and of failures, added to the expected ones.
    max_iter : int
        Maximum number of EM iterations.
    tol : float
        EM stops if no parameter changes by more than this.
    n_jobs : int or None
        Threads; None uses all CPUs. The result does not depend on it.

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
        """Fit the model by EM."""
        self._check_params()
        check_log(log)
        merged = log.merged()  # equal sessions once
        self.pairs_, pair = PairTable.of(merged)
        weight = merged.impression_weights()
        shown, clicked = sums_of(pair, weight), sums_of(pair, weight * merged.click)
        sessions = merged.indptr, pair, merged.click, merged.weight
        below = np.empty(int(merged.sizes.max(initial=0)) + 1)
        n = self.pairs_.n_pairs

        def step(now: dict[str, F64]) -> tuple[dict[str, F64], float]:
            alpha, sigma = now["attractiveness"], now["satisfaction"]
            (gamma,) = now["continuation"].tolist()
            attracted, satisfied, went_on = np.zeros(n), np.zeros(n), np.zeros(2)
            value = _expect(*sessions, alpha, sigma, gamma, below, attracted, satisfied, went_on)
            new = {
                "attractiveness": self._smoothed(attracted, shown),
                "satisfaction": self._smoothed(satisfied, clicked),
                "continuation": self._smoothed(went_on[:1], went_on[1:]),
            }
            return new, value

        sizes = {"attractiveness": n, "satisfaction": n, "continuation": 1}
        self._maximise(step, sizes, float(weight.sum()))
        return self

    def _after(self, log: ClickLog, pair: I64) -> tuple[AnyArray, AnyArray]:  # noqa: ARG002
        gamma = self.parameters_["continuation"]
        return gamma, gamma * (1.0 - self._at("satisfaction", pair))  # (4)
