"""Whether the correction of position bias helps, judged on clicks of queries that were not learned.

Two questions are asked in cross-validation over queries. Do positions explain clicks that relevance
does not? The click likelihood of `losses.DualSoftmax` on held-out queries, with and without effects
of positions, answers. Does a ranker that corrects them rank better? Its NDCG on held-out queries is
computed with relevance estimated from their clicks (`rankwright.clicks.debias`), beside that of the
same ranker with clicks as grades. The estimate rests on the same propensity, so that a wrong one
flatters the ranker that uses it: a propensity from interventions is the better judge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from rankwright.core.parameters import check_whole
from rankwright.core.types import F64
from rankwright.data.propensity import Propensity
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import k_folds
from rankwright.errors import DataError
from rankwright.losses.base import document_weight
from rankwright.losses.dual_softmax import DualSoftmax
from rankwright.metrics.evaluation import evaluate
from rankwright.rankers.base import Ranker
from rankwright.rankers.debiasing import (
    Clicks,
    click_rows,
    clicks_as_grades,
    debias,
    known_propensity,
    relevance_and_propensity,
)

_INTERVAL = 1.959963984540054  # deviations of a 95 % interval
_FEWEST_QUERIES = 20


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean over queries with its 95 % interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: F64) -> Difference:
        """Return the mean of ``values``, one for each query."""
        mean = float(values.mean())
        half = _INTERVAL * float(values.std(ddof=1)) / math.sqrt(len(values))
        return cls(mean, mean - half, mean + half)

    def __str__(self) -> str:
        return f"{self.mean:+.4f} ({self.low:+.4f} to {self.high:+.4f})"


@dataclass(frozen=True, slots=True)
class DebiasingGain:
    """What correcting position bias changes on held-out queries; ``print`` says it in sentences.

    Attributes
    ----------
    ndcg_clicks, ndcg_corrected : float
        NDCG@10 with estimated relevance, of the ranker with clicks as grades and with corrected
        ones.
    ranking : Difference
        The second less the first, over queries.
    likelihood : Difference
        What effects of positions add to the log-likelihood of a click, over queries.
    positions_matter, helps : bool
        Whether the interval of each is above 0.
    """

    ndcg_clicks: float
    ndcg_corrected: float
    ranking: Difference
    likelihood: Difference

    @property
    def positions_matter(self) -> bool:
        """Whether positions explain clicks that relevance does not."""
        return self.likelihood.low > 0.0

    @property
    def helps(self) -> bool:
        """Whether the corrected ranker ranks held-out queries better."""
        return self.ranking.low > 0.0

    def __str__(self) -> str:
        if self.helps:
            verdict = "correcting position bias helps"
        elif self.ranking.high < 0.0:
            verdict = "correcting position bias makes the ranking worse: leave it out"
        else:
            verdict = "no gain is seen: the correction adds variance, and may not be worth it"
        matter = "explain" if self.positions_matter else "are not seen to explain"
        return (
            f"Positions {matter} clicks beside relevance: log-likelihood of a click "
            f"{self.likelihood}.\n"
            f"NDCG@10 on held-out queries, by estimated relevance: {self.ndcg_clicks:.4f} from "
            f"clicks, {self.ndcg_corrected:.4f} corrected, difference {self.ranking}.\n"
            f"So {verdict}."
        )


def debiasing_gain(
    ranker: Ranker,
    clicks: Clicks,
    propensity: Propensity | str = "joint",
    *,
    folds: int = 5,
    n_jobs: int | None = None,
) -> DebiasingGain:
    """Return whether ``ranker`` gains by the correction of position bias, on held-out queries.

    Parameters
    ----------
    ranker : Ranker
        Not fitted; copies of it are.
    clicks : ClickLog with features, or RankingData with positions
    propensity : Propensity, or "joint"
        As for `Ranker.fit`; "joint" is learned on the training queries of each fold.
    folds : int, default 5
        Of the cross-validation over queries.
    """
    check_whole("folds", folds, 2)
    rows = click_rows(clicks)
    rows = rows.select(np.flatnonzero(np.bincount(rows.query_of_row(), rows.y, len(rows)) > 0.0))
    if rows.n_queries < _FEWEST_QUERIES:
        raise DataError(
            f"only {rows.n_queries} queries have clicks; at least {_FEWEST_QUERIES} are needed to "
            "see a difference."
        )
    rows = rows._replace(qid=np.arange(rows.n_queries))
    plain: list[F64] = []
    corrected: list[F64] = []
    likelihood: list[F64] = []
    for fold in k_folds(rows, folds, valid=False):
        known = known_propensity(propensity, fold.train, n_jobs=n_jobs)
        truth = debias(fold.test, known, method="ips")
        for grades, found in (
            (clicks_as_grades(fold.train), plain),
            (debias(fold.train, known), corrected),
        ):
            scores = clone(ranker).fit(grades).predict(truth)
            found.append(evaluate(truth, scores, "ndcg@10").per_query["ndcg@10"])
        likelihood.append(_gain_in_likelihood(fold.train, fold.test, n_jobs))
    first, second = np.concatenate(plain), np.concatenate(corrected)
    return DebiasingGain(
        ndcg_clicks=float(first.mean()),
        ndcg_corrected=float(second.mean()),
        ranking=Difference.of(second - first),
        likelihood=Difference.of(np.concatenate(likelihood)),
    )


def _gain_in_likelihood(train: RankingData, test: RankingData, n_jobs: int | None) -> F64:
    """Return what effects of positions add to the log-likelihood of a click, for each query."""
    assert test.position is not None
    unplaced = test._replace(position=None)
    clicked = np.bincount(test.query_of_row(), document_weight(test) * test.y, test.n_queries)
    found = []
    for rows in (train, train._replace(position=None)):
        fitted, known = relevance_and_propensity(rows, n_jobs=n_jobs)
        scores = fitted.scores(test.X, n_jobs=n_jobs)
        if rows.position is not None:
            place = np.minimum(test.position, known.n_positions)
            scores = scores + np.log(known.at(place)[0])
        bound: Any = DualSoftmax().bind(unplaced, n_jobs=n_jobs)
        bound.value(scores)
        found.append(bound.per_query / clicked)
    gain: F64 = found[1] - found[0]
    return gain
