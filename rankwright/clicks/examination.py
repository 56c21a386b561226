"""Models in which what is examined and attractive is clicked: PBM, UBM, and PBM with trust bias.

The probability of a click depends on the pair (query, document) u and a context k alone,

    PBM     P(C = 1) = alpha_u gamma_r                   k: the position r                       (1)
    UBM     P(C = 1 | clicks above) = alpha_u gamma_{r,j}
                       k: the position r, and j, that of the last click above it (0: none)       (2)
    trust   P(C = 1) = theta_u a_r + (1 - theta_u) b_r   k: the position r                       (3)

with attractiveness alpha and examination gamma [richardson2007predicting, dupret2008user]; and
relevance theta and the probabilities a_r and b_r that a relevant and an irrelevant document is
clicked at r [agarwal2019addressing], whose corrections are affine [vardasbi2020inverse]. So
impressions n and clicks c of each (u, k) say all there is to say about a log, and EM runs over
these. PBM and UBM take for each u and k, summed over the other,

    alpha:  c + (n - c) alpha (1 - gamma) / (1 - alpha gamma)    successes of n trials           (4)
    gamma:  c + (n - c) gamma (1 - alpha) / (1 - alpha gamma)    successes of n trials           (5)

and the model of trust, with rho_1 = P(relevant | click) and rho_0 = P(relevant | no click),

    theta:  c rho_1 + (n - c) rho_0                              successes of n trials           (6)
    a:      c rho_1          successes of    c rho_1 + (n - c) rho_0             trials          (7)
    b:      c (1 - rho_1)    successes of    c (1 - rho_1) + (n - c) (1 - rho_0) trials          (8)

Each pair has a parameter of its own, so pairs with a few impressions bias the parameters of
contexts, however many there are; leave them out where examination is all that is wanted.

Only products are seen in PBM and UBM: c alpha and gamma / c are as likely, and smoothing decides.
Compare examination between positions, as gamma_r / gamma_1. In the model of trust an affine change
of theta is as likely too.

Standard errors come from the information at the maximum, (n / (p (1 - p))) grad p grad p' summed
over cells, and the curvature of smoothing, inverted jointly for pairs and contexts.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from rankwright.clicks.base import HIGHEST, EMClickModel, add_at, covariance_of, roots
from rankwright.clicks.sessions import (
    CellCounter,
    Cells,
    LogParts,
    PairTable,
    Sessions,
    parts_of,
    previous_clicks,
)
from rankwright.core.jit import kernel
from rankwright.core.parallel import map_queries, map_ranges, ordered_sum, query_ranges
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.click_log import ClickLog
from rankwright.errors import DataError

MOST_UBM_POSITIONS = 60
_START_RELEVANT, _START_IRRELEVANT = 0.6, 0.1
_PAIRS_PER_BLOCK = 1 << 14

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _log_likelihood(shown, clicked, p):  # type: ignore[no-untyped-def]
    """Return the log-likelihood of a cell."""
    value = 0.0
    if clicked > 0.0:
        value += clicked * math.log(p)
    if shown > clicked:
        value += (shown - clicked) * math.log1p(-p)
    return value


@kernel
def _examination_sums(first, last, bounds, cells, alpha, gamma, attracted, examined, value):  # type: ignore[no-untyped-def]
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
                successes += c + missed * a * (1.0 - g)  # (4)
                examined[r, k] += c + missed * g * (1.0 - a)  # (5)
                value[r] += _log_likelihood(cells.shown[i], c, p)
            attracted[u] = successes


@kernel
def _trust_sums(first, last, bounds, cells, theta, a, b, relevant, at_context, value):  # type: ignore[no-untyped-def]
    """As `_examination_sums`; rows of ``at_context`` have the four sums of (7) and (8)."""
    for r in range(first, last):
        for u in range(bounds[r], bounds[r + 1]):
            t, successes = theta[u], 0.0
            for i in range(cells.indptr[u], cells.indptr[u + 1]):
                k, c = cells.context[i], cells.clicked[i]
                missed = cells.shown[i] - c
                p = t * a[k] + (1.0 - t) * b[k]
                clicked = c * t * a[k] / p if c > 0.0 else 0.0
                skipped = missed * t * (1.0 - a[k]) / (1.0 - p) if missed > 0.0 else 0.0
                successes += clicked + skipped  # (6)
                at_context[r, 0, k] += clicked  # (7)
                at_context[r, 1, k] += clicked + skipped
                at_context[r, 2, k] += c - clicked  # (8)
                at_context[r, 3, k] += cells.shown[i] - clicked - skipped
                value[r] += _log_likelihood(cells.shown[i], c, p)
            relevant[u] = successes


@kernel
def _ubm_context(position, before):  # type: ignore[no-untyped-def]
    """Return the number of a position and that of the last click above it (0: none)."""
    return position * (position - 1) // 2 + before


@kernel
def _ubm_marginals(lo, hi, indptr, position, alpha, gamma, out):  # type: ignore[no-untyped-def]
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


@kernel
def _ubm_clicks(lo, hi, indptr, position, alpha, gamma, uniform, out):  # type: ignore[no-untyped-def]
    """Write clicks that are sampled one after the other."""
    for s in range(lo, hi):
        before = 0
        for i in range(indptr[s], indptr[s + 1]):
            k = min(_ubm_context(position[i], before), len(gamma) - 1)
            out[i] = uniform[i] < alpha[i] * gamma[k]
            if out[i]:
                before = position[i]


# --- API -------------------------------------------------------------------------------------


class _CellModel(EMClickModel):
    """A model that is fitted on cells.

    Attributes
    ----------
    covariance_ : array
        Of the parameters of contexts that occur, in their order. Files do not keep it.
    """

    covariance_: F64

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

    def fit(self, log: LogParts | Sequence[ClickLog]) -> Self:
        """Fit by EM; the log is read once. See `ClickModel.fit`."""
        self._check_params()
        counter = CellCounter(self._context_of)
        for part in parts_of(log):
            counter.add(part)
        return self.fit_cells(counter.cells(), counter.table)

    def fit_cells(self, cells: Cells, pairs: PairTable) -> Self:
        """Fit by EM to impressions and clicks that were counted."""
        if not len(cells.context):
            raise DataError("the log has no impressions to fit a click model to.")
        self.pairs_ = pairs
        self._fit_cells(cells, np.zeros(int(cells.context.max()) + 1))
        return self

    def _context_of(self, log: ClickLog) -> I64:
        """Return the context of each impression: its position, from 0."""
        return log.position.astype(np.int64) - 1

    @abstractmethod
    def _fit_cells(self, cells: Cells, contexts: F64) -> None:
        """Fit to cells; ``contexts`` has a zero for each context."""

    def _over_pairs(self, step: Callable[..., None], cells: Cells, *args: Any) -> None:
        """Call a kernel for ranges of pairs."""
        bounds = query_ranges(cells.indptr)
        map_ranges(step, np.arange(len(bounds)), bounds, cells, *args, n_jobs=self.n_jobs)


class _Examination(_CellModel):
    """Attractiveness of pairs times examination of contexts."""

    of_pairs: ClassVar[tuple[str, ...]] = ("attractiveness",)
    parameter_names: ClassVar[tuple[str, ...]] = ("attractiveness", "examination")

    def _fit_cells(self, cells: Cells, contexts: F64) -> None:
        pair = cells.pair()
        trials = np.add.reduceat(cells.shown, cells.indptr[:-1])
        context_trials = add_at(contexts, cells.context, cells.shown)
        ranges = len(query_ranges(cells.indptr)) - 1

        def step(now: dict[str, F64]) -> tuple[dict[str, F64], float]:
            alpha, gamma = now["attractiveness"], now["examination"]
            attracted = np.empty(len(alpha))
            examined, value = np.zeros((ranges, len(gamma))), np.zeros(ranges)
            self._over_pairs(_examination_sums, cells, alpha, gamma, attracted, examined, value)
            then = {
                "attractiveness": self._smoothed(attracted, trials),
                "examination": self._smoothed(examined.sum(axis=0), context_trials),
            }
            return {name: np.minimum(one, HIGHEST) for name, one in then.items()}, ordered_sum(
                value
            )

        start = {
            "attractiveness": np.full(len(trials), 0.5),
            "examination": np.full(len(contexts), 0.5),
        }
        self._iterate(step, start, float(cells.shown.sum()))
        alpha, gamma = self.parameters_["attractiveness"], self.parameters_["examination"]
        attraction, examination = alpha[pair], gamma[cells.context]
        of_pair, of_context, self.covariance_ = joint_errors(
            cells,
            attraction * examination,
            examination,
            [(cells.context, attraction)],
            self._prior_information(alpha),
            self._prior_information(gamma),
        )
        self.standard_errors_ = {
            "attractiveness": of_pair,
            "examination": of_context,
        }


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

    def _sampled(self, sessions: Sessions, uniform: F64) -> AnyArray:
        out = np.empty(len(uniform), bool)
        alpha, gamma = self._at("attractiveness", sessions.pair), self._padded("examination")
        map_queries(
            _ubm_clicks,
            sessions.indptr,
            sessions.position,
            alpha,
            gamma,
            uniform,
            out,
            n_jobs=self.n_jobs,
        )
        return out


class TrustPBM(_CellModel):
    """Position-based model with trust bias: on top even irrelevant documents are clicked, (3).

    ``parameters_["relevance"]`` has a value for each pair of query and document;
    ``parameters_["click_relevant"]`` and ``["click_irrelevant"]`` for each position from the first.

    Parameters
    ----------
    smoothing, max_iter, tol, n_jobs
        As for `PBM`.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> data = rw.synthetic("mq2008", queries=50)
    >>> log = clicks.simulate(data, 41, model="trust", positions=4, swaps="all")
    >>> found = clicks.TrustPBM().fit(log).parameters_
    >>> bool(found["click_irrelevant"][0] > found["click_irrelevant"][3])
    True
    """

    name: ClassVar[str] = "trust_pbm"
    of_pairs: ClassVar[tuple[str, ...]] = ("relevance",)
    parameter_names: ClassVar[tuple[str, ...]] = (
        "relevance",
        "click_relevant",
        "click_irrelevant",
    )

    def _fit_cells(self, cells: Cells, contexts: F64) -> None:
        pair = cells.pair()
        trials = np.add.reduceat(cells.shown, cells.indptr[:-1])
        ranges = len(query_ranges(cells.indptr)) - 1

        def step(now: dict[str, F64]) -> tuple[dict[str, F64], float]:
            theta, a, b = (now[name] for name in self.parameter_names)
            relevant = np.empty(len(theta))
            sums, value = np.zeros((ranges, 4, len(a))), np.zeros(ranges)
            self._over_pairs(_trust_sums, cells, theta, a, b, relevant, sums, value)
            total = sums.sum(axis=0)
            then = {
                "relevance": self._smoothed(relevant, trials),
                "click_relevant": self._smoothed(total[0], total[1]),
                "click_irrelevant": self._smoothed(total[2], total[3]),
            }
            return {name: np.minimum(one, HIGHEST) for name, one in then.items()}, ordered_sum(
                value
            )

        start = {
            "relevance": np.full(len(trials), 0.5),
            "click_relevant": contexts + _START_RELEVANT,
            "click_irrelevant": contexts + _START_IRRELEVANT,
        }
        self._iterate(step, start, float(cells.shown.sum()))
        theta, a, b = (self.parameters_[name] for name in self.parameter_names)
        t, at_a, at_b = theta[pair], a[cells.context], b[cells.context]
        of_pair, of_context, self.covariance_ = joint_errors(
            cells,
            t * at_a + (1.0 - t) * at_b,
            at_a - at_b,
            [(cells.context, t), (cells.context + len(a), 1.0 - t)],
            self._prior_information(theta),
            self._prior_information(np.concatenate((a, b))),
        )
        self.standard_errors_ = {
            "relevance": of_pair,
            "click_relevant": of_context[: len(a)],
            "click_irrelevant": of_context[len(a) :],
        }

    def _probabilities(self, sessions: Sessions, *, conditional: bool) -> F64:  # noqa: ARG002
        theta, position = self._at("relevance", sessions.pair), sessions.position - 1
        a, b = self._at("click_relevant", position), self._at("click_irrelevant", position)
        return theta * a + (1.0 - theta) * b  # (3)


def _contexts(indptr: I64, position: AnyArray, click: AnyArray) -> I64:
    """Return the context of UBM of each impression."""
    before = np.empty(len(position), np.int64)
    previous_clicks(indptr, position, click, before)
    wide = position.astype(np.int64)
    return wide * (wide - 1) // 2 + before


def joint_errors(
    cells: Cells,
    p: F64,
    of_pair: F64,
    of_context: list[tuple[I64, F64]],
    pair_prior: F64,
    context_prior: F64,
) -> tuple[F64, F64, F64]:
    """Return standard errors of pairs and of contexts, and the covariance of those that occur.

    Parameters
    ----------
    p
        Click probability of each cell.
    of_pair
        Its derivative by the parameter of the pair.
    of_context
        Parameters of contexts of each cell, and the derivatives by these.
    pair_prior, context_prior
        Information that smoothing adds.
    """
    pair, p = cells.pair(), np.clip(p, 1e-12, 1.0 - 1e-12)
    weight = cells.shown / (p * (1.0 - p))
    used, place = np.unique(np.stack([k for k, _ in of_context]), return_inverse=True)
    parts = [(k, by) for k, (_, by) in zip(place.reshape(-1, len(p)), of_context, strict=True)]
    n_pairs = len(pair_prior)
    own = pair_prior + np.bincount(pair, weight * of_pair**2, n_pairs)
    shared, cross = np.diag(context_prior[used]), sparse.csr_array((n_pairs, len(used)))
    for k, first in parts:
        cross = cross + sparse.csr_array((weight * of_pair * first, (pair, k)), cross.shape)
        for other, second in parts:
            np.add.at(shared, (k, other), weight * first * second)
    unknown = own <= 0.0
    variance = 1.0 / np.where(unknown, 1.0, own)
    scaled = sparse.csr_array(sparse.diags_array(variance) @ cross)
    covariance = covariance_of(shared - (cross.T @ scaled).toarray())
    known = np.nan_to_num(covariance)  # a context that is not known takes no part
    for lo in range(0, n_pairs, _PAIRS_PER_BLOCK):
        block = scaled[lo : lo + _PAIRS_PER_BLOCK].toarray()
        variance[lo : lo + _PAIRS_PER_BLOCK] += (block @ known * block).sum(axis=1)
    variance[unknown] = np.nan
    of_contexts = np.where(context_prior > 0.0, context_prior, np.nan) ** -1.0  # smoothing alone
    of_contexts[used] = np.diag(covariance)
    return roots(variance), roots(of_contexts), covariance
