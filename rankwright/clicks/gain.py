"""Decide from clicks on held-out queries whether correcting position bias helps.

Two questions are answered by cross-validation over queries.

Do positions explain clicks that relevance does not? The click likelihood of `losses.DualSoftmax` on
held-out queries is compared with and without effects of positions.

Does a ranker rank better if the bias is corrected with the given propensity? The ranker is fitted
twice, with corrected relevance (`rankwright.clicks.debias`) and with click rates as grades. Its
scores s are judged by the likelihood of the clicks on held-out queries under

    P(click falls on document i) ~ n_i exp(beta_1 z_i - beta_2 log(rank_i) + b_k(i))            (1)

with n_i the impressions at position k(i), z the standardised scores and rank_i the rank of s_i in
the query. beta >= 0 and the effects b of positions maximise the likelihood, separately for both
rankers. The judge therefore does not use the propensity that it judges: scores that repeat the
effect of positions gain nothing from it, and scores that correct a bias that does not exist lose.
If a log does not distinguish relevance from position, both have the same likelihood, and the
verdict is that the log cannot decide.

Differences are per click, with intervals of a ratio of sums over queries. The
cross-validation is repeated with other partitions, and the difference of a query is its mean over
the repetitions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, stats
from sklearn.base import clone

from rankwright.clicks.debiasing import (
    Clicks,
    click_rows,
    clicks_as_grades,
    known_propensity,
    relevance_and_propensity,
    weighed_by_ideal,
)
from rankwright.clicks.position_bias import Propensity
from rankwright.core.parameters import check_whole
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import k_folds
from rankwright.errors import DataError
from rankwright.losses.base import document_weight
from rankwright.losses.dual_softmax import DualSoftmax
from rankwright.rankers.base import Ranker

_FEWEST_QUERIES = 20
_RIDGE = 1e-4  # on beta of (1), which keeps it finite if scores separate clicks perfectly


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean per click with its 95 % interval over queries."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: F64, clicks: F64) -> Difference:
        """Return the sum of ``values`` per click, both with one element for each query."""
        n, total = len(values), clicks.sum()
        mean = float(values.sum() / total)
        variance = ((values - mean * clicks) ** 2).sum() * n / (n - 1)
        half = float(stats.t.ppf(0.975, n - 1)) * math.sqrt(variance) / float(total)
        return cls(mean, mean - half, mean + half)

    def __str__(self) -> str:
        return f"{self.mean:+.4f} ({self.low:+.4f} to {self.high:+.4f})"


@dataclass(frozen=True, slots=True)
class DebiasingGain:
    """Effect of correcting position bias on held-out queries; ``print`` shows it in sentences.

    Attributes
    ----------
    ranking : Difference
        Log-likelihood per click of the corrected ranker minus that of the ranker with clicks as
        grades, both with free effects of positions.
    likelihood : Difference
        Log-likelihood per click that effects of positions add to relevance.
    helps, hurts : bool
        Whether the interval of ``ranking`` is above or below 0. If neither is, the log cannot
        decide.
    positions_matter : bool
        Whether the interval of ``likelihood`` is above 0.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> log = clicks.simulate(rw.synthetic("mq2008", queries=30), 41, sessions=20)
    >>> gain = clicks.debiasing_gain(rw.Ranker(loss="dual_softmax"), log, folds=2, repeats=1)
    >>> gain.ranking.low < gain.ranking.mean < gain.ranking.high
    True
    """

    ranking: Difference
    likelihood: Difference

    @property
    def positions_matter(self) -> bool:
        """Whether positions explain clicks that relevance does not."""
        return self.likelihood.low > 0.0

    @property
    def helps(self) -> bool:
        """Whether the corrected ranker explains held-out clicks better."""
        return self.ranking.low > 0.0

    @property
    def hurts(self) -> bool:
        """Whether the corrected ranker explains held-out clicks worse."""
        return self.ranking.high < 0.0

    @property
    def verdict(self) -> str:
        """The conclusion as a sentence."""
        if self.helps:
            return "Correcting position bias with this propensity helps."
        if self.hurts:
            return (
                "Correcting position bias with this propensity makes the ranking worse: do not use "
                "it."
            )
        return "This log cannot decide whether the correction helps: collect more clicks."

    def __str__(self) -> str:
        likelihood = f"log-likelihood per click {self.likelihood}"
        positions = (
            f"Positions are not seen to explain clicks that the features do not: {likelihood}."
        )
        if self.positions_matter:
            positions = (
                "Positions explain clicks that the features do not (position bias, or an old "
                f"ranker that knows more than the features): {likelihood}."
            )
        return (
            f"{positions}\n"
            "Corrected ranker minus ranker with clicks as grades, log-likelihood per click on "
            f"held-out queries: {self.ranking}.\n"
            f"{self.verdict}"
        )


def debiasing_gain(
    ranker: Ranker,
    clicks: Clicks,
    propensity: Propensity | str = "joint",
    *,
    folds: int = 5,
    repeats: int = 3,
    n_jobs: int | None = None,
) -> DebiasingGain:
    """Return whether ``ranker`` gains from correcting position bias, on held-out queries.

    Parameters
    ----------
    ranker : Ranker
        Copies of it are fitted.
    clicks : ClickLog with features, or RankingData with positions
    propensity : Propensity, or "joint"
        The propensity to judge, as for `Ranker.fit`; "joint" is learned on the training queries of
        each fold.
    folds : int, default 5
        Folds of the cross-validation over queries.
    repeats : int, default 3
        Number of cross-validations, each with another partition of the queries.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> log = clicks.simulate(rw.synthetic("mq2008", queries=60), 41, sessions=50)
    >>> gain = clicks.debiasing_gain(rw.Ranker(loss="dual_softmax"), log, folds=2, repeats=1)
    >>> gain.positions_matter
    True
    """
    check_whole("folds", folds, 2)
    check_whole("repeats", repeats, 1)
    rows = click_rows(clicks)
    clicked: F64 = np.bincount(
        rows.query_of_row(), document_weight(rows) * rows.y, rows.n_queries
    ).astype(np.float64)
    rows, clicked = rows.select(np.flatnonzero(clicked > 0.0)), clicked[clicked > 0.0]
    if rows.n_queries < _FEWEST_QUERIES:
        raise DataError(
            f"only {rows.n_queries} queries have clicks; at least {_FEWEST_QUERIES} are needed to "
            "see a difference."
        )
    rows = rows._replace(qid=np.arange(rows.n_queries))
    assert rows.position is not None
    highest = int(rows.position.max())
    ranking, likelihood = np.zeros((2, rows.n_queries))
    for repeat in range(repeats):
        plain_terms, corrected_terms = np.empty((2, rows.n_documents, 2))  # of (1)
        for fold in k_folds(rows, folds, valid=False, seed=repeat):
            at = np.isin(rows.query_of_row(), fold.test.qid)
            plain = _fit_to_rates(ranker, fold.train)
            plain_terms[at] = _score_terms(plain.predict(fold.test), fold.test)
            judged = known_propensity(propensity, fold.train, n_jobs=n_jobs)
            corrected = clone(ranker).fit(fold.train, propensity=_with_positions(judged, highest))
            corrected_terms[at] = _score_terms(corrected.predict(fold.test), fold.test)
            if repeat == 0:  # a convex problem, which partitions hardly change
                likelihood[fold.test.qid] = _gain_of_positions(fold.train, fold.test, n_jobs)
        ranking += _log_likelihood(corrected_terms, rows, n_jobs) / repeats
        ranking -= _log_likelihood(plain_terms, rows, n_jobs) / repeats
    return DebiasingGain(
        ranking=Difference.of(ranking, clicked), likelihood=Difference.of(likelihood, clicked)
    )


def _fit_to_rates(ranker: Ranker, rows: RankingData) -> Ranker:
    """Return a copy of the ranker that was fitted to click rates as grades."""
    copy: Ranker = clone(ranker)
    objective = copy.make_loss() if copy.has_loss else copy
    return copy.fit(weighed_by_ideal(objective, clicks_as_grades(rows)))


def _with_positions(propensity: Propensity, positions: int) -> Propensity:
    """Extend a learned propensity to positions that only held-out queries reach."""
    more = positions - propensity.n_positions
    if more <= 0 or propensity.method != "joint":
        return propensity
    examination = np.pad(propensity.examination, (0, more), "edge")
    return Propensity(examination, method=propensity.method)


def _score_terms(scores: F64, rows: RankingData) -> F64:
    """Return z and -log(rank) of (1) for each row."""
    query = rows.query_of_row()
    mean = np.bincount(query, scores, rows.n_queries) / np.maximum(rows.sizes, 1)
    centred = scores - mean[query]
    spread = float(centred.std())
    rank = np.concatenate([stats.rankdata(-part) for part in np.split(scores, rows.indptr[1:-1])])
    return np.column_stack((centred / spread if spread > 0.0 else centred, -np.log(rank)))


def _log_likelihood(terms: F64, rows: RankingData, n_jobs: int | None) -> F64:
    """Return the log-likelihood of the clicks of each query under (1), at the best beta and b."""
    bound: Any = DualSoftmax().bind(rows, n_jobs=n_jobs)
    clicks = float((document_weight(rows) * rows.y).sum())
    gradient = np.empty(rows.n_documents)

    def objective(beta: F64) -> tuple[float, F64]:
        scores = terms @ beta
        value = bound.value(scores) / clicks + _RIDGE / 2 * float(beta @ beta)
        bound.grad(scores, gradient)
        return value, terms.T @ gradient / clicks + _RIDGE * beta

    best = optimize.minimize(
        objective, np.array([0.5, 0.1]), jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * 2
    )
    bound.value(terms @ best.x)
    log_likelihood: F64 = -bound.per_query
    return log_likelihood


def _gain_of_positions(train: RankingData, test: RankingData, n_jobs: int | None) -> F64:
    """Return the log-likelihood of the clicks of each query that effects of positions add."""
    assert test.position is not None
    log_likelihoods = []
    for rows in (train._replace(position=None), train):
        fitted, propensity = relevance_and_propensity(rows, n_jobs=n_jobs)
        scores = fitted.scores(test.X, n_jobs=n_jobs)
        if rows.position is not None:
            position = np.minimum(test.position, propensity.n_positions)
            scores = scores + np.log(propensity.at(position)[0])
        bound: Any = DualSoftmax().bind(test._replace(position=None), n_jobs=n_jobs)
        bound.value(scores)
        log_likelihoods.append(-bound.per_query)
    gain: F64 = log_likelihoods[1] - log_likelihoods[0]
    return gain
