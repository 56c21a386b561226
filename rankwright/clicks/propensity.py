"""Position bias from clicks: how much users look at each position, by four kinds of evidence.

With n impressions and c clicks of document d of query q at position k, the position-based model
says c ~ n theta_k r_qd. Examination theta is relative to the first position. ``method`` is

``"randomised"``
    Lists were shuffled, so that each position saw the same documents on average:
    theta_k = rate of clicks at k, over that at 1.                                              (1)
``"harvest"``
    Several rankers showed the same documents at different positions: AllPairs
    (`agarwal2019harvesting`). For each pair k, l the documents seen at both give rates
    u_kl = sum c_k / w_k and v_kl = sum (1 - c_k / w_k); maximised over theta and r_kl = r_lk is
    sum over k, l of u_kl log(theta_k r_kl) + v_kl log(1 - theta_k r_kl).                       (2)
``"dual"``
    Relevance and positions learned together by `losses.DualSoftmax` (`ai2018dual`), a convex
    problem. Relevance is an exponential of a linear function of the features. If it is not, and the
    old ranker orders documents by the part that the function misses, that part is counted as an
    effect of positions: theta is biased, and its intervals, which measure chance only, covered the
    truth in about 70 % of such simulations.
``"pbm"``
    The click model `PBM`: a free relevance for each document of a query, by EM.

Intervals are those of the logarithm of theta by the jackknife over groups of queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special

from rankwright.clicks.debiasing import Clicks, click_rows, documents_of_rows, joint_propensity
from rankwright.clicks.examination import PBM
from rankwright.clicks.position_bias import Propensity
from rankwright.core.parameters import check_choice, check_whole
from rankwright.core.products import one_blas_thread
from rankwright.core.types import F64, I64
from rankwright.data.click_log import ClickLog
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses.base import document_weight

_LEAST = 1e-6  # of an examination
_ITERATIONS = 2000  # of EM
_INTERVAL = 1.959963984540054  # deviations of a 95 % interval


class _Counts(NamedTuple):
    """Impressions and clicks of documents at positions, numbered from 0."""

    query: I64
    document: I64  # of (query, document)
    position: I64
    impressions: F64
    clicks: F64
    rows: RankingData | None = None  # with features, for methods that ask for them
    log: ClickLog | None = None

    def of_queries(self, kept: Any) -> _Counts:
        """Return the counts of the queries that are True in ``kept``."""
        at, number = kept[self.query], np.cumsum(kept) - 1
        return _Counts(
            number[self.query[at]],
            self.document[at],
            self.position[at],
            self.impressions[at],
            self.clicks[at],
            None if self.rows is None else self.rows.select(np.flatnonzero(kept)),
            None if self.log is None else self.log.select(kept[self.log.query]),
        )


def estimate_propensity(
    clicks: Clicks,
    method: str = "dual",
    *,
    groups: int = 20,
    n_jobs: int | None = None,
) -> Propensity:
    """Return how much users look at each position, with 95 % intervals.

    Parameters
    ----------
    clicks : ClickLog, or RankingData with positions
        Of RankingData grades are clicks, or click rates, and ``sample_weight`` the impressions.
        Method "dual" needs features.
    method : {"randomised", "harvest", "dual", "pbm"}, default "dual"
        "randomised" is right for logs of shuffled lists only; "harvest" and "pbm" need documents
        that were shown at several positions; "dual" finds position bias from features that queries
        share, and is biased if relevance is not log-linear in the features. Prefer the others if
        the log allows them.
    groups : int, default 20
        Groups of queries for the intervals, each left out once; 0 gives none.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> data = rw.synthetic("mq2008", queries=100)
    >>> log = clicks.simulate(data, 41, eta=1.0, positions=4, swaps="all")
    >>> clicks.estimate_propensity(log, "randomised").examination.round(1)  # 1, 1/2, 1/3, 1/4
    array([1. , 0.5, 0.3, 0.2])
    """
    check_choice("method", method, METHODS)
    check_whole("groups", groups, 0)
    counts = _counts(clicks, features=method in WITH_FEATURES)
    if not counts.clicks.any():
        raise DataError("there is no click in the log, so nothing is known of positions.")
    n_positions, n_queries = int(counts.position.max()) + 1, int(counts.query.max()) + 1
    with one_blas_thread():
        examination = METHODS[method](counts, n_positions, n_jobs=n_jobs)
        if groups < 2 or n_queries < 2:
            return Propensity(examination, method=method)
        group = np.arange(n_queries) % min(groups, n_queries)
        without = [
            METHODS[method](counts.of_queries(group != left), n_positions, n_jobs=n_jobs)
            for left in range(int(group.max()) + 1)
        ]
    low, high = _jackknife(examination, np.array(without))
    return Propensity(examination, low=low, high=high, method=method)


def _counts(clicks: Clicks, *, features: bool) -> _Counts:
    if isinstance(clicks, ClickLog) and not features:
        clicks = _with_queries_in_use(clicks)
        found = clicks.counts()
        pair = found.query.astype(np.int64) * clicks.n_documents + found.document
        return _Counts(
            found.query.astype(np.int64),
            np.unique(pair, return_inverse=True)[1].astype(np.int64),
            found.position.astype(np.int64) - 1,
            found.impressions,
            found.clicks,
            log=clicks,
        )
    rows = click_rows(clicks)
    rows = rows.select(np.flatnonzero(rows.sizes > 0))
    assert rows.position is not None
    Propensity(np.ones(int(np.max(rows.position)))).at(rows.position)  # which checks them
    impressions = document_weight(rows)
    return _Counts(
        rows.query_of_row(),
        documents_of_rows(rows)[1],
        rows.position.astype(np.int64) - 1,
        impressions,
        impressions * rows.y,
        rows=rows,
    )


def _with_queries_in_use(log: ClickLog) -> ClickLog:
    """Return the log with numbers for those queries alone that it has sessions of."""
    used, query = np.unique(log.query, return_inverse=True)
    return replace(log, query=query.astype(np.int32), query_ids=log.query_ids[used])


def _jackknife(found: F64, without: F64) -> tuple[F64, F64]:
    """Return the interval of each examination, from estimates with one group left out each."""
    logs = np.log(without)
    n = len(logs)
    deviation = np.sqrt((n - 1) / n * ((logs - logs.mean(axis=0)) ** 2).sum(axis=0))
    return found * np.exp(-_INTERVAL * deviation), found * np.exp(_INTERVAL * deviation)


def _relative(theta: F64) -> F64:
    """Return examination relative to the first position, and above 0."""
    if not theta[0] > 0.0:
        raise DataError(
            "no document at position 1 was clicked, so nothing is relative to it; leave the first "
            "position out of the log, or collect more clicks."
        )
    relative: F64 = np.maximum(theta / theta[0], _LEAST)
    return relative


# --- shuffled lists and documents that moved -------------------------------------------------


def _randomised(counts: _Counts, n_positions: int, **_options: Any) -> F64:
    shown = np.bincount(counts.position, counts.impressions, n_positions)
    clicked = np.bincount(counts.position, counts.clicks, n_positions)
    return _relative(clicked / np.where(shown > 0.0, shown, 1.0))  # (1)


def _table(counts: _Counts, n_positions: int) -> tuple[F64, Any]:
    """Return clicks per impression and whether seen, by document and position, of those moved."""
    n = int(counts.document.max()) + 1
    seen = np.zeros((n, n_positions), bool)
    seen[counts.document, counts.position] = counts.impressions > 0.0
    moved = np.flatnonzero(seen.sum(axis=1) > 1)
    if not len(moved):
        raise DataError(
            "no document was shown at two positions, which this method needs; use method='dual', "
            "which learns from features."
        )
    shown, rate = np.zeros((n, n_positions)), np.zeros((n, n_positions))
    shown[counts.document, counts.position] = counts.impressions
    rate[counts.document, counts.position] = counts.clicks
    rate /= np.where(seen, shown, 1.0)
    return rate[moved], seen[moved]


def _harvest(counts: _Counts, n_positions: int, **_options: Any) -> F64:
    rate, seen = _table(counts, n_positions)
    weight = seen.astype(np.float64)
    clicked = (rate * weight).T @ weight  # u_kl: documents seen at both, their rate at k
    not_clicked = ((1.0 - rate) * weight).T @ weight
    np.fill_diagonal(clicked, 0.0)
    np.fill_diagonal(not_clicked, 0.0)
    if not clicked.any(axis=1).all():
        at = int(np.flatnonzero(~clicked.any(axis=1))[0]) + 1
        raise DataError(f"no document that moved was clicked at position {at}; use method='dual'.")
    upper = np.triu_indices(n_positions, 1)

    def objective(x: F64) -> tuple[float, F64]:
        """Return the negative of (2) and its gradient in logits of theta and r."""
        theta, pair = _logistic(x[:n_positions]), np.ones((n_positions, n_positions))
        pair[upper] = _logistic(x[n_positions:])
        pair.T[upper] = pair[upper]
        p = np.clip(theta[:, None] * pair, 1e-12, 1.0 - 1e-12)
        value = -(clicked * np.log(p) + not_clicked * np.log1p(-p)).sum()
        by_log = -(clicked - not_clicked * p / (1.0 - p))  # derivative in log p
        of_pair = by_log + by_log.T
        grad = [by_log.sum(axis=1) * (1.0 - theta), (of_pair * (1.0 - pair))[upper]]
        return value, np.concatenate(grad)

    start = np.zeros(n_positions + len(upper[0]))
    end = optimize.minimize(objective, start, jac=True, method="L-BFGS-B", tol=1e-9,
                            options={"maxiter": 2000})  # fmt: skip
    return _relative(_logistic(end.x[:n_positions]))


# --- relevance and positions together ---------------------------------------------------------


def _dual(counts: _Counts, n_positions: int, *, n_jobs: int | None = None) -> F64:
    assert counts.rows is not None
    found = joint_propensity(counts.rows, n_jobs=n_jobs).examination
    examination: F64 = np.maximum(_padded(found, n_positions), _LEAST)
    return examination


def _padded(theta: F64, n_positions: int) -> F64:
    """Return the examination of more positions, that of the last where there is none."""
    return np.concatenate((theta, np.full(n_positions - len(theta), theta[-1])))


def _pbm(counts: _Counts, n_positions: int, *, n_jobs: int | None = None) -> F64:
    if counts.log is None:
        raise UsageError("method='pbm' fits a click model to sessions: give a ClickLog.")
    _table(counts, n_positions)  # which refuses a log that cannot say
    model = PBM(smoothing=_LEAST, max_iter=_ITERATIONS, n_jobs=n_jobs).fit(counts.log)
    return _relative(_padded(model.parameters_["examination"], n_positions))


def _logistic(x: F64) -> F64:
    found: F64 = special.expit(x)
    return found


METHODS: Mapping[str, Callable[..., F64]] = {
    "randomised": _randomised,
    "harvest": _harvest,
    "dual": _dual,
    "pbm": _pbm,
}
WITH_FEATURES = ("dual",)
