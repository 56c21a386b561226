"""Position bias from clicks: how much users look at each position, by five kinds of evidence.

With n impressions and c clicks of document d of query q at position k, the position-based model
says c ~ n theta_k r_qd. Examination theta is relative to the first position. ``method`` is

``"randomised"``
    Lists were shuffled, so that each position saw the same documents on average:
    theta_k = rate of clicks at k, over that at 1.                                              (1)
``"swaps"``
    The document at position 1 changed places with another at random (`joachims2017unbiased`):
    with w the impressions of a document at a position, and sums over documents seen at both,
    theta_k = sum c_k / w_k over sum c_1 / w_1.                                                 (2)
``"harvest"``
    Several rankers showed the same documents at different positions: AllPairs
    (`agarwal2019harvesting`). For each pair k, l the documents seen at both give rates
    u_kl = sum c_k / w_k and v_kl = sum (1 - c_k / w_k); maximised over theta and r_kl = r_lk is
    sum over k, l of u_kl log(theta_k r_kl) + v_kl log(1 - theta_k r_kl).                       (3)
``"em"``
    Regression-EM (`wang2018position`): relevance is a logistic regression on the features. Given
    a click both examination and relevance are 1, given none
    P(examined) = theta (1 - r) / (1 - theta r) and P(relevant) = r (1 - theta) / (1 - theta r);
    theta_k becomes the mean of the first at k, and r is fitted to the second, in turns.        (4)
``"dual"``
    Relevance and positions learned together by `losses.DualSoftmax` (`ai2018dual`): convex.
``"pbm"``
    The click model `PBM`: a free relevance for each document of a query, by EM.
``"affine"``
    Trust bias (`vardasbi2020inverse`): P(click at k) = a_k r + o_k, by least squares in turns: a
    regression of relevance on the features given a and o, fitted on other queries, and a line
    through the click rates of each position against it. Relative to the first position, where
    a = 1 and o = 0.                                                                            (5)

Intervals are those of the logarithm of theta by the jackknife over groups of queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special

from rankwright.clicks.examination import PBM
from rankwright.core.parameters import check_choice, check_whole
from rankwright.core.products import one_blas_thread
from rankwright.core.types import F64, I64
from rankwright.data.click_log import ClickLog
from rankwright.data.propensity import Propensity
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.figures import add_legend, import_matplotlib, line_style, new_axes
from rankwright.losses.base import document_weight
from rankwright.rankers.debiasing import Clicks, click_rows, documents_of_rows, joint_propensity

_LEAST = 1e-6  # of an examination
_ROUNDS, _TOLERANCE = 200, 1e-4  # of EM
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
        Methods "em", "dual" and "affine" need features.
    method : {"randomised", "swaps", "harvest", "em", "dual", "pbm", "affine"}, default "dual"
        "randomised" and "swaps" are right for logs of such interventions alone; "harvest" and
        "pbm" need documents that were shown at several positions; "em", "dual" and "affine" find
        position bias from features that queries share.
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
        found = METHODS[method](counts, n_positions, n_jobs=n_jobs)
        if groups < 2 or n_queries < 2:
            return Propensity(found.examination, found.offset, method=method)
        group = np.arange(n_queries) % min(groups, n_queries)
        without = [
            METHODS[method](counts.of_queries(group != left), n_positions, n_jobs=n_jobs)
            for left in range(int(group.max()) + 1)
        ]
    low, high = _jackknife(found.examination, np.array([one.examination for one in without]))
    return Propensity(found.examination, found.offset, low, high, method=method)


class _Estimate(NamedTuple):
    examination: F64
    offset: F64 | None = None


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


# --- interventions ---------------------------------------------------------------------------


def _randomised(counts: _Counts, n_positions: int, **_options: Any) -> _Estimate:
    shown = np.bincount(counts.position, counts.impressions, n_positions)
    clicked = np.bincount(counts.position, counts.clicks, n_positions)
    return _Estimate(_relative(clicked / np.where(shown > 0.0, shown, 1.0)))  # (1)


def _table(counts: _Counts, n_positions: int) -> tuple[F64, F64, Any]:
    """Return clicks per impression and whether seen, by document and position, of those moved."""
    n = int(counts.document.max()) + 1
    seen = np.zeros((n, n_positions), bool)
    seen[counts.document, counts.position] = counts.impressions > 0.0
    moved = np.flatnonzero(seen.sum(axis=1) > 1)
    if not len(moved):
        raise DataError(
            "no document was shown at two positions, which this method needs; use method='dual' or "
            "'em', which learn from features."
        )
    shown, rate = np.zeros((n, n_positions)), np.zeros((n, n_positions))
    shown[counts.document, counts.position] = counts.impressions
    rate[counts.document, counts.position] = counts.clicks
    rate /= np.where(seen, shown, 1.0)
    return rate[moved], shown[moved], seen[moved]


def _swaps(counts: _Counts, n_positions: int, **_options: Any) -> _Estimate:
    rate, _shown, seen = _table(counts, n_positions)
    both = seen & seen[:, :1]
    first = (rate[:, :1] * both).sum(axis=0)
    missing = np.flatnonzero(first <= 0.0)
    if len(missing):
        raise DataError(
            f"no document was seen, and clicked, at both positions 1 and {missing[0] + 1}; "
            "method='swaps' needs swaps of the first with every other position."
        )
    return _Estimate(_relative((rate * both).sum(axis=0) / first))  # (2)


def _harvest(counts: _Counts, n_positions: int, **_options: Any) -> _Estimate:
    rate, _shown, seen = _table(counts, n_positions)
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
        """Return the negative of (3) and its gradient in logits of theta and r."""
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
    return _Estimate(_relative(_logistic(end.x[:n_positions])))


# --- relevance beside positions --------------------------------------------------------------


def _dual(counts: _Counts, n_positions: int, *, n_jobs: int | None = None) -> _Estimate:
    assert counts.rows is not None
    found = joint_propensity(counts.rows, n_jobs=n_jobs).examination
    return _Estimate(np.maximum(_padded(found, n_positions), _LEAST))


def _padded(theta: F64, n_positions: int) -> F64:
    """Return the examination of more positions, that of the last where there is none."""
    return np.concatenate((theta, np.full(n_positions - len(theta), theta[-1])))


def _em(counts: _Counts, n_positions: int, **_options: Any) -> _Estimate:
    X = np.column_stack([_standardised(counts), np.ones(len(counts.query))])
    penalty = np.append(np.full(X.shape[1] - 1, 1.0), _LEAST)  # as scikit-learn's C=1
    w = np.zeros(X.shape[1])

    def relevance(expected: F64) -> F64:
        """Take a Newton step of the logistic regression, which raises the likelihood too."""
        n, r = counts.impressions, _logistic(X @ w)
        curvature = (X * np.maximum(n * r * (1.0 - r), _LEAST)[:, None]).T @ X + np.diag(penalty)
        w[:] += np.linalg.solve(curvature, X.T @ (expected - n * r) - penalty * w)
        return _logistic(X @ w)

    return _Estimate(_relative(_expectation_maximisation(counts, n_positions, relevance)))


def _pbm(counts: _Counts, n_positions: int, *, n_jobs: int | None = None) -> _Estimate:
    if counts.log is None:
        raise UsageError("method='pbm' fits a click model to sessions: give a ClickLog.")
    _table(counts, n_positions)  # which refuses a log that cannot say
    model = PBM(smoothing=_LEAST, max_iter=10 * _ROUNDS, n_jobs=n_jobs).fit(counts.log)
    return _Estimate(_relative(_padded(model.parameters_["examination"], n_positions)))


def _expectation_maximisation(
    counts: _Counts, n_positions: int, relevance: Callable[[F64], F64]
) -> F64:
    """Return theta of (4); ``relevance`` fits r to expected numbers of relevant impressions."""
    place, n, c = counts.position, counts.impressions, counts.clicks
    shown = np.bincount(place, n, n_positions)
    theta = np.bincount(place, c, n_positions) / np.where(shown > 0.0, shown, 1.0)
    theta = np.maximum(theta / theta.max(), _LEAST)
    r = np.full(len(place), 0.5)
    for _ in range(_ROUNDS):
        unclicked = np.maximum(1.0 - theta[place] * r, 1e-12)
        examined = c + (n - c) * theta[place] * (1.0 - r) / unclicked  # (4)
        relevant = c + (n - c) * r * (1.0 - theta[place]) / unclicked
        before = theta
        theta = np.bincount(place, examined, n_positions) / np.where(shown > 0.0, shown, 1.0)
        theta = np.clip(theta, _LEAST, 1.0 - 1e-9)
        r = np.clip(relevance(relevant), 1e-9, 1.0 - 1e-9)
        if np.abs(np.log(theta / before)).max() < _TOLERANCE:
            break
    return theta


def _standardised(counts: _Counts) -> F64:
    """Return the features within queries, with unit deviation; missing ones at their mean."""
    assert counts.rows is not None
    X = counts.rows.X
    dense = np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), np.float64)
    mean = np.nanmean(np.where(np.isnan(dense).all(axis=0), 0.0, dense), axis=0)
    dense = np.where(np.isnan(dense), mean, dense) - mean
    deviation = dense.std(axis=0)
    scaled: F64 = dense / np.where(deviation > 0.0, deviation, 1.0)
    return scaled


def _affine(counts: _Counts, n_positions: int, **_options: Any) -> _Estimate:
    """Return (5)."""
    X = np.column_stack([_standardised(counts), np.ones(len(counts.query))])
    place, n = counts.position, counts.impressions
    rate = counts.clicks / np.where(n > 0.0, n, 1.0)
    half = counts.query % 2
    a, o = _randomised(counts, n_positions).examination, np.zeros(n_positions)
    for _ in range(_ROUNDS):
        target, weight = (rate - o[place]) / a[place], n * a[place]
        r = np.empty(len(rate))
        for own in (0, 1):
            other = half != own if (half != own).any() else half == own
            r[half == own] = X[half == own] @ _ridge(X[other], target[other], weight[other])
        before = a
        a, o = _lines(r, rate, n, place, n_positions)
        if np.abs(a - before).max() < _TOLERANCE:
            break
    return _Estimate(np.maximum(a, _LEAST), o)


def _ridge(X: F64, y: F64, weight: F64) -> F64:
    moments: F64 = (X * weight[:, None]).T @ X
    moments[np.diag_indices(len(moments) - 1)] += 1e-3 * weight.sum()
    found: F64 = np.linalg.lstsq(moments, X.T @ (weight * y), rcond=None)[0].astype(np.float64)
    return found


def _lines(r: F64, rate: F64, n: F64, place: I64, n_positions: int) -> tuple[F64, F64]:
    """Return slope and intercept of click rates against relevance, relative to position 1."""
    shown = np.maximum(np.bincount(place, n, n_positions), 1e-12)
    mean_r = np.bincount(place, n * r, n_positions) / shown
    mean_c = np.bincount(place, n * rate, n_positions) / shown
    spread = np.bincount(place, n * (r - mean_r[place]) ** 2, n_positions)
    slope = np.bincount(place, n * (r - mean_r[place]) * rate, n_positions)
    slope = np.maximum(slope / np.where(spread > 0.0, spread, 1.0), _LEAST)
    intercept = mean_c - slope * mean_r
    a = slope / slope[0]
    return a, intercept - a * intercept[0]


def _logistic(x: F64) -> F64:
    found: F64 = special.expit(x)
    return found


METHODS: Mapping[str, Callable[..., _Estimate]] = {
    "randomised": _randomised,
    "swaps": _swaps,
    "harvest": _harvest,
    "em": _em,
    "dual": _dual,
    "pbm": _pbm,
    "affine": _affine,
}
WITH_FEATURES = ("em", "dual", "affine")


# --- plot ------------------------------------------------------------------------------------


def plot_propensities(propensities: Mapping[str, Propensity], *, ax: Any = None) -> Any:
    """Draw examination by position of several estimates, with their intervals; return the Axes.

    Parameters
    ----------
    propensities : mapping from names to Propensity
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Examples
    --------
    >>> from rankwright import clicks
    >>> known = clicks.Propensity.power(1.0, positions=10)
    >>> other = clicks.Propensity.power(2.0, positions=10)
    >>> ax = clicks.plot_propensities({"1/k": known, "1/k^2": other})
    >>> ax.figure.savefig("position-bias.svg")
    """
    if not propensities:
        raise UsageError("there is nothing to draw; give propensities={'name': propensity}.")
    import_matplotlib()
    ax = new_axes(ax)
    for number, (name, one) in enumerate(propensities.items()):
        place, style = np.arange(1, one.n_positions + 1), line_style(number)
        ax.plot(place, one.examination, label=name, **style)
        if one.low is not None and one.high is not None:
            shade = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
            ax.fill_between(place, one.low, one.high, **shade)
    ax.set_xlabel("position")
    ax.set_ylabel("examination, relative to the first")
    ax.set_yscale("log")
    ax.xaxis.get_major_locator().set_params(integer=True)
    add_legend(ax)
    return ax
