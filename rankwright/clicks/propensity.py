"""Position bias: estimate the examination of each position from clicks, by four methods.

With n impressions and c clicks of document d of query q at position k, the position-based model is
c ~ n theta_k r_qd. The examination theta is relative to the first position. ``method`` is

``"randomised"``
    For shuffled lists, so that each position showed the same documents on average:
    theta_k = click rate at k / click rate at 1.                                                (1)
``"harvest"``
    For lists of several rankers, which showed the same documents at different positions: AllPairs
    (`agarwal2019harvesting`). The documents that were shown at both positions of a pair k, l have
    the rates u_kl = sum c_k / n_k and v_kl = sum (1 - c_k / n_k). The objective
    sum over k, l of u_kl log(theta_k r_kl) + v_kl log(1 - theta_k r_kl)                        (2)
    is maximised over theta and r_kl = r_lk.
``"dual"``
    Relevance and examination are learned together by `losses.DualSoftmax` (`ai2018dual`), a convex
    problem. Relevance is the exponential of a linear function of the features. If it is not, and
    the old ranker orders documents by the part that the function misses, this part counts as an
    effect of positions. Then theta is biased, and its intervals, which measure chance only,
    covered the truth in about 70 % of simulations.
``"pbm"``
    The click model `PBM`: one relevance for each document of a query, by EM.

Intervals are jackknife intervals of the logarithm of theta over groups of queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import optimize, special, stats

from rankwright.clicks.debiasing import Clicks, click_rows, documents_of_rows, joint_propensity
from rankwright.clicks.examination import PBM
from rankwright.clicks.position_bias import Propensity
from rankwright.core.parameters import check_choice, check_whole
from rankwright.core.products import one_blas_thread
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.click_log import ClickLog
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses.base import document_weight

_LEAST = 1e-6  # examination
_EM_ITERATIONS = 2000


class _Counts(NamedTuple):
    """Impressions and clicks of documents at positions, numbered from 0.

    ``rows`` is for methods with features, ``log`` for methods that fit a click model.
    """

    query: I64
    document: I64  # of (query, document)
    position: I64
    impressions: F64
    clicks: F64
    rows: RankingData | None = None
    log: ClickLog | None = None

    def of_queries(self, mask: AnyArray) -> _Counts:
        """Return the counts of the queries that are True in ``mask``."""
        at, number = mask[self.query], np.cumsum(mask) - 1
        return _Counts(
            number[self.query[at]],
            self.document[at],
            self.position[at],
            self.impressions[at],
            self.clicks[at],
            None if self.rows is None else self.rows.select(np.flatnonzero(mask)),
            None if self.log is None else self.log.select(mask[self.log.query]),
        )


def estimate_propensity(
    clicks: Clicks, method: str = "dual", *, groups: int = 20, n_jobs: int | None = None
) -> Propensity:
    """Return the examination of each position, with 95 % intervals.

    Parameters
    ----------
    clicks : ClickLog, or RankingData with positions
        In RankingData grades are clicks or click rates, and ``sample_weight`` is the number of
        impressions. The method "dual" needs features.
    method : {"randomised", "harvest", "dual", "pbm"}, default "dual"
        "randomised" is only right for logs of shuffled lists. "harvest" and "pbm" need documents
        that were shown at several positions. "dual" needs features that queries share, and is
        biased if relevance is not log-linear in them. Prefer another method if the log allows it.
    groups : int, default 20
        Number of groups of queries for the intervals, each of which is omitted once. 0 gives no
        intervals.

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
    counts = _counts_of(clicks, features=method in WITH_FEATURES)
    if not counts.clicks.any():
        raise DataError("the log contains no click, so nothing is known about positions.")
    n_positions, n_queries = int(counts.position.max()) + 1, int(counts.query.max()) + 1
    with one_blas_thread():
        examination = METHODS[method](counts, n_positions, n_jobs)
        if groups < 2 or n_queries < 2:
            return Propensity(examination, method=method)
        group = np.arange(n_queries) % min(groups, n_queries)
        without_group = [
            METHODS[method](counts.of_queries(group != left_out), n_positions, n_jobs)
            for left_out in range(int(group.max()) + 1)
        ]
    logs = np.log(without_group)
    variance = (len(logs) - 1) * logs.var(axis=0)  # of the jackknife
    factor = np.exp(stats.norm.ppf(0.975) * np.sqrt(variance))
    return Propensity(
        examination, low=examination / factor, high=examination * factor, method=method
    )


def _counts_of(clicks: Clicks, *, features: bool) -> _Counts:
    if isinstance(clicks, ClickLog) and not features:
        used, query = np.unique(clicks.query, return_inverse=True)
        log = replace(clicks, query=query.astype(np.int32), query_ids=clicks.query_ids[used])
        counts = log.counts()
        pair = counts.query.astype(np.int64) * log.n_documents + counts.document
        return _Counts(
            counts.query.astype(np.int64),
            np.unique(pair, return_inverse=True)[1].astype(np.int64),
            counts.position.astype(np.int64) - 1,
            counts.impressions,
            counts.clicks,
            log=log,
        )
    rows = click_rows(clicks)
    rows = rows.select(np.flatnonzero(rows.sizes > 0))
    assert rows.position is not None
    Propensity(np.ones(int(np.max(rows.position)))).at(rows.position)  # checks the positions
    impressions = document_weight(rows)
    return _Counts(
        rows.query_of_row(),
        documents_of_rows(rows)[1],
        rows.position.astype(np.int64) - 1,
        impressions,
        impressions * rows.y,
        rows=rows,
    )


def _relative(theta: F64, n_positions: int) -> F64:
    """Return examination relative to the first position, and above 0.

    Positions that are missing in a part of the log have the examination of the last one.
    """
    if not theta[0] > 0.0:
        raise DataError(
            "no document at position 1 was clicked, so examination cannot be relative to it; leave "
            "the first position out of the log, or collect more clicks."
        )
    relative = np.maximum(theta / theta[0], _LEAST)
    padded: F64 = np.pad(relative, (0, n_positions - len(relative)), "edge")
    return padded


# --- methods ---------------------------------------------------------------------------------


def _randomised(counts: _Counts, n_positions: int, n_jobs: int | None) -> F64:  # noqa: ARG001
    shown = np.bincount(counts.position, counts.impressions, n_positions)
    clicked = np.bincount(counts.position, counts.clicks, n_positions)
    return _relative(clicked / np.where(shown > 0.0, shown, 1.0), n_positions)  # (1)


def _harvest(counts: _Counts, n_positions: int, n_jobs: int | None) -> F64:  # noqa: ARG001
    moved = _moved_documents(counts, n_positions)
    number = np.cumsum(moved) - 1
    at = moved[counts.document] & (counts.impressions > 0.0)
    cell = number[counts.document[at]], counts.position[at]
    weight, rate = np.zeros((2, moved.sum(), n_positions))
    weight[cell] = 1.0  # shown at this position
    rate[cell] = counts.clicks[at] / counts.impressions[at]
    clicked = rate.T @ weight  # u of (2)
    not_clicked = (weight - rate).T @ weight  # v of (2)
    np.fill_diagonal(clicked, 0.0)
    np.fill_diagonal(not_clicked, 0.0)
    if not clicked.any(axis=1).all():
        position = int(np.flatnonzero(~clicked.any(axis=1))[0]) + 1
        raise DataError(
            f"no document that moved was clicked at position {position}; use method='dual'."
        )
    upper = np.triu_indices(n_positions, 1)

    def objective(x: F64) -> tuple[float, F64]:
        """Return the negative of (2) and its gradient in the logits of theta and r."""
        theta, pair = special.expit(x[:n_positions]), np.ones((n_positions, n_positions))
        pair[upper] = special.expit(x[n_positions:])
        pair.T[upper] = pair[upper]
        p = np.clip(theta[:, None] * pair, 1e-12, 1.0 - 1e-12)
        value = -(clicked * np.log(p) + not_clicked * np.log1p(-p)).sum()
        by_log = -(clicked - not_clicked * p / (1.0 - p))  # derivative in log p
        of_pair = by_log + by_log.T
        grad = [by_log.sum(axis=1) * (1.0 - theta), (of_pair * (1.0 - pair))[upper]]
        return value, np.concatenate(grad)

    start = np.zeros(n_positions + len(upper[0]))
    solution = optimize.minimize(
        objective, start, jac=True, method="L-BFGS-B", tol=1e-9, options={"maxiter": 2000}
    )
    return _relative(special.expit(solution.x[:n_positions]), n_positions)


def _dual(counts: _Counts, n_positions: int, n_jobs: int | None) -> F64:
    assert counts.rows is not None
    return _relative(joint_propensity(counts.rows, n_jobs=n_jobs).examination, n_positions)


def _pbm(counts: _Counts, n_positions: int, n_jobs: int | None) -> F64:
    if counts.log is None:
        raise UsageError("method='pbm' fits a click model to sessions: give a ClickLog.")
    _moved_documents(counts, n_positions)
    model = PBM(smoothing=_LEAST, max_iter=_EM_ITERATIONS, n_jobs=n_jobs).fit(counts.log)
    return _relative(model.parameters_["examination"], n_positions)


def _moved_documents(counts: _Counts, n_positions: int) -> AnyArray:
    """Return whether each document was shown at several positions; raise if none was."""
    shown = np.flatnonzero(counts.impressions > 0.0)
    cells = np.unique(counts.document[shown] * n_positions + counts.position[shown])
    moved = np.bincount(cells // n_positions, minlength=int(counts.document.max()) + 1) > 1
    if not moved.any():
        raise DataError(
            "no document was shown at two positions, which this method needs; use method='dual', "
            "which learns from features."
        )
    return moved


METHODS: Mapping[str, Callable[[_Counts, int, int | None], F64]] = {
    "randomised": _randomised,
    "harvest": _harvest,
    "dual": _dual,
    "pbm": _pbm,
}
WITH_FEATURES = ("dual",)
