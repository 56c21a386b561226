"""Whether the correction of position bias helps, judged on clicks of queries that were not learned.

Two questions are asked in cross-validation over queries. Do positions explain clicks that relevance
does not? The click likelihood of `losses.DualSoftmax` on held-out queries, with and without effects
of positions, answers. Does a ranker that corrects them rank better? Its NDCG on held-out queries is
computed with relevance estimated from their clicks (`rankwright.clicks.debias`), beside that of the
same ranker with clicks as grades.

The judge is doubly robust: clicks where users looked, a regression where few did, fitted to other
held-out queries and never to those that were learned. The cross-validation is repeated with other
partitions, and the difference of a query is its mean over them: what a partition and a fit add by
chance is averaged out, and intervals are over queries as before. The estimate rests on the same
propensity as the ranker, so that a wrong one flatters the ranker that uses it: a propensity from
interventions is the better judge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from rankwright.clicks.debiasing import (
    Clicks,
    click_rows,
    debias,
    known_propensity,
    relevance_and_propensity,
)
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

_INTERVAL = 1.959963984540054  # deviations of a 95 % interval
_FEWEST_QUERIES = 20
_CLIP = 0.3  # of the judge, by how often a gain was seen on simulated clicks where there was one


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

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> log = clicks.simulate(rw.synthetic("mq2008", queries=30), 41, sessions=20)
    >>> found = clicks.debiasing_gain(rw.Ranker(loss="dual_softmax"), log, folds=2, repeats=1)
    >>> bool(found.ranking.low < found.ndcg_corrected - found.ndcg_clicks < found.ranking.high)
    True
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

    @property
    def verdict(self) -> str:
        """What it comes to, as a part of a sentence."""
        if self.helps:
            return "correcting position bias helps"
        if self.ranking.high < 0.0:
            return "correcting position bias makes the ranking worse: leave it out"
        return "no gain is seen: the correction adds variance, and may not be worth it"

    def __str__(self) -> str:
        matter = "explain" if self.positions_matter else "are not seen to explain"
        return (
            f"Positions {matter} clicks beside relevance: log-likelihood of a click "
            f"{self.likelihood}.\n"
            f"NDCG@10 on held-out queries, by estimated relevance: {self.ndcg_clicks:.4f} from "
            f"clicks, {self.ndcg_corrected:.4f} corrected, difference {self.ranking}.\n"
            f"So {self.verdict}."
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
    repeats : int, default 3
        How often it is done, each time with another partition of the queries.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> log = clicks.simulate(rw.synthetic("mq2008", queries=60), 41, sessions=50)
    >>> found = clicks.debiasing_gain(rw.Ranker(loss="dual_softmax"), log, folds=2, repeats=1)
    >>> found.positions_matter
    True
    """
    check_whole("folds", folds, 2)
    check_whole("repeats", repeats, 1)
    rows = click_rows(clicks)
    rows = rows.select(np.flatnonzero(np.bincount(rows.query_of_row(), rows.y, len(rows)) > 0.0))
    if rows.n_queries < _FEWEST_QUERIES:
        raise DataError(
            f"only {rows.n_queries} queries have clicks; at least {_FEWEST_QUERIES} are needed to "
            "see a difference."
        )
    rows = rows._replace(qid=np.arange(rows.n_queries))
    assert rows.position is not None
    plain, corrected, likelihood = np.zeros((3, rows.n_queries))
    for repeat in range(repeats):
        for fold in k_folds(rows, folds, valid=False, seed=repeat):
            known = known_propensity(propensity, fold.train, n_jobs=n_jobs)
            known = _reaching(known, int(rows.position.max()))
            evenly = Propensity(np.ones(known.n_positions))
            truth, here = debias(fold.test, known, clip=_CLIP, n_jobs=n_jobs), fold.test.qid
            for taken, found in ((evenly, plain), (known, corrected)):
                scores = clone(ranker).fit(fold.train, propensity=taken).predict(truth)
                found[here] += evaluate(truth, scores, "ndcg@10").per_query["ndcg@10"] / repeats
            if repeat == 0:  # a convex problem, which partitions hardly change
                likelihood[here] = _gain_in_likelihood(fold.train, fold.test, n_jobs)
    return DebiasingGain(
        ndcg_clicks=float(plain.mean()),
        ndcg_corrected=float(corrected.mean()),
        ranking=Difference.of(corrected - plain),
        likelihood=Difference.of(likelihood),
    )


def _reaching(known: Propensity, positions: int) -> Propensity:
    """Return a propensity of so many positions: those that no training query had as the last."""
    more = positions - known.n_positions
    if more <= 0 or known.method != "joint":
        return known
    return Propensity(np.pad(known.examination, (0, more), "edge"), method=known.method)


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
