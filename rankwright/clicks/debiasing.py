"""Estimate relevance from clicks without the effect of positions, as grades for any loss.

Document d of a query was shown n_k times at position k and clicked c_k times. With the examination
a_k and the offset o_k of a `Propensity`, P(click at k) = a_k r + o_k, and

    C = sum_k (c_k - n_k o_k),       E = sum_k n_k a_k                                          (1)

are the clicks that relevance r explains and the exposure of the document. Inverse propensity
scoring estimates r without assumptions about documents (`joachims2017unbiased`,
`vardasbi2020inverse`):

    r = C / E,    or    r = sum_k (c_k - n_k o_k) / a_k / sum_k n_k                             (2)

The first is self-normalised and has less variance. Both are unbounded: one click on a document that
was shown once, at position 10, can mean a relevance of 10.

The default is the posterior mean of r, with a gamma distribution of mean m and strength kappa as
prior and a Poisson number of clicks with mean r E + O, O = sum_k n_k o_k:

    r = (kappa m + C) / (kappa + E), between 0 and the highest click rate possible              (3)

m is a regression of C / E on the features, by trees that were fitted to the other half of the
queries. With the exposure kappa, clicks count as much as the regression. It follows from the
dispersion of clicks around the regression (empirical Bayes), which is the sum of Poisson noise and
the variance m / kappa of relevance:

    1 / kappa = sum_d ((C - E m)^2 / (E m + O) - 1) / sum_d E^2 m / (E m + O)                   (4)

Documents with many impressions therefore keep their click rate, corrected for positions, and
documents with few are close to the regression. No document gets an extreme grade, for any loss:
with gains 2^r - 1, differences of pairs, or targets of a softmax.

The probability of showing a document at k (``ClickLog.propensity``) is not used: given
that a document was shown, clicks depend on a_k and relevance only, and n_k counts how often.

A loss that is relative to the best possible list of a query, such as NDCG, divides by the ideal DCG
of the estimates. If no document of a query is relevant, that is small and consists of noise.
Rankers therefore use

    weight of a query = ideal DCG of its estimates, times its given weight                      (5)

so that the loss becomes that of DCG. No query can dominate, because estimates are bounded.

With ``unit="session"`` each list that was shown is a query, with clicks as grades and weights

    1 / a_k for a clicked document;  1, or 1 / t_k with both sides, for other documents         (6)
    t_k = (1 - rate_k) / (1 - rate_k / a_k)                                                     (7)

so that a pair of a clicked document i and another document j counts 1 / (a_i t_j): pairwise
debiasing as in Unbiased LambdaMART (`hu2019unbiased`), with t from the click rate of each position
under the position-based model. Use it with pairwise losses only: in a softmax a weight means
copies of a document.

Under a Plackett-Luce model a click is a choice among all documents of the list. With weights
1 / a_k the likelihood of clicked documents first has the expectation
sum_i r_i (log sum_j exp(s_j) - s_i), which is `losses.DualSoftmax` on the grades (2).
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from rankwright.clicks.position_bias import Propensity
from rankwright.core.parameters import check_choice, check_zero_or_more
from rankwright.core.types import F64, I64, AnyArray, FittedModel, Loss
from rankwright.data.click_log import ClickLog, codes_of_ids
from rankwright.data.content import query_prints
from rankwright.data.ranking_data import RankingData, concatenate
from rankwright.errors import DataError, UsageError, quoted
from rankwright.losses.approx_ndcg import ApproxNDCG
from rankwright.losses.base import document_weight
from rankwright.losses.dual_softmax import DualSoftmax
from rankwright.losses.squared import Squared
from rankwright.metrics.base import Metric
from rankwright.metrics.base import metric as make_metric
from rankwright.metrics.ndcg import NDCG
from rankwright.models.linear import Linear
from rankwright.models.trees import Trees
from rankwright.rankers.fitting import last_model

METHODS = ("posterior", "ips")
UNITS = ("document", "session")
_STRENGTH = (1.0, 1e4)  # bounds of kappa in (4), which few clicks determine badly
_SATURATION = 5.0  # exposure that gives a document half of the maximum weight in the regression
_LOWEST_PRIOR = 0.05  # of m, relative to the mean relevance: trees may predict 0 or less
_LOWEST_UNCLICKED = 1e-3  # of t in (7), which noise may bring to 0 or below

Clicks = ClickLog | RankingData
"""A log with features, or data with positions: click rates as grades, impressions as weights."""


def debias(
    clicks: Clicks,
    propensity: Propensity | Literal["joint"],
    *,
    method: str = "posterior",
    clip: float | None = None,
    self_normalize: bool = True,
    weighted: bool = False,
    unshown: bool = False,
    unit: str = "document",
    both_sides: bool = False,
    n_jobs: int | None = None,
) -> RankingData:
    """Return data whose grades are estimates of relevance, without the effect of positions.

    Parameters
    ----------
    clicks : ClickLog with features, or RankingData with positions
        In RankingData grades are clicks or click rates, and ``sample_weight`` is the number of
        impressions; rows with the same ``doc_id`` are one document.
    propensity : Propensity, or "joint"
        Examination of each position; "joint" learns it from the same clicks. Probabilities of
        showing a document (``ClickLog.propensity``) are not needed.
    method : {"posterior", "ips"}, default "posterior"
        Posterior mean of relevance, (3): close to the click rate of documents with much exposure,
        and to a regression on the features for documents with little. Or inverse propensity
        scoring, (2), which is unbiased if the propensity is right and has no offset, and has a high
        variance. With offsets, "ips" sets negative estimates to 0, so that documents of low
        relevance are overestimated.
    clip : float or None, default None
        For "ips" and ``unit="session"``: the lowest examination to divide by. Less variance, more
        bias.
    self_normalize : bool, default True
        For "ips": divide by the exposure of a document instead of its impressions.
    weighted : bool, default False
        Weight each document by the denominator of its estimate, with a mean of 1.
    unshown : bool, default False
        For "posterior" and a log: add the documents of its feature table that were never shown,
        with the regression as their grades and a low weight. Without them, a ranker that learns
        from the first positions only may rank all other documents arbitrarily. `Ranker.fit` with
        ``propensity`` adds them, unless it optimises a metric without a loss.
    unit : {"document", "session"}, default "document"
        Return one grade for each document of a query, or the original lists with weights
        for pairwise losses.
    both_sides : bool, default False
        For ``unit="session"``: also correct documents without a click, as Unbiased LambdaMART does.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> log = clicks.simulate(rw.synthetic("mq2008", queries=30), 41, sessions=50)
    >>> data = clicks.debias(log, clicks.Propensity.power(1.0, positions=10))
    >>> fitted = rw.Ranker(loss="ranknet").fit(data)
    >>> data.n_queries, bool(data.y.max() <= 1.0)
    (30, True)
    """
    check_choice("method", method, METHODS)
    check_choice("unit", unit, UNITS)
    rows = click_rows(clicks)
    propensity = known_propensity(propensity, rows, n_jobs=n_jobs)
    if unit == "session":
        lists = clicks.to_ranking_data("session") if isinstance(clicks, ClickLog) else rows
        return _weighted_lists(lists, propensity, clip, both_sides)
    if both_sides:
        raise UsageError("both_sides=True needs unit='session'.")
    documents = _Documents(rows, propensity, clip)
    if method == "ips":
        if unshown:
            raise UsageError("unshown=True needs method='posterior', which has a regression.")
        return documents.by_ips(self_normalize, weighted)
    if clip is not None:
        raise UsageError("clip needs method='ips' or unit='session'; a posterior needs no clip.")
    if unshown and not isinstance(clicks, ClickLog):
        raise UsageError("unshown=True needs a ClickLog, whose feature table has all documents.")
    shown = documents.by_posterior(weighted, n_jobs)
    if unshown and isinstance(clicks, ClickLog):
        return _with_unshown(shown, clicks, documents, weighted, n_jobs)
    return shown


def click_rows(clicks: Clicks) -> RankingData:
    """Return clicks as a row for each document and position, with rates and impressions."""
    if isinstance(clicks, ClickLog):
        return clicks.to_ranking_data("query").present()
    if clicks.position is None:
        raise DataError(
            "the data has no positions, so their effect cannot be removed; build it with "
            "position=..., where 1 is the first, or give a ClickLog."
        )
    return clicks.present()


def clicks_as_grades(clicks: Clicks) -> RankingData:
    """Return click rates of documents as grades, without a correction for positions."""
    rows = click_rows(clicks)
    assert rows.position is not None
    highest = int(np.max(rows.position, initial=1))
    return debias(rows, Propensity(np.ones(highest)), method="ips")


def weighed_by_ideal(objective: Any, data: RankingData) -> RankingData:
    """Return data with query weights (5) if the objective is relative to the ideal DCG.

    Parameters
    ----------
    objective : Loss, or Ranker without one
        ``objective.metric`` is the metric that it optimises.
    """
    named = getattr(objective, "metric", "ndcg" if isinstance(objective, ApproxNDCG) else None)
    if named is None or (callable(named) and not isinstance(named, Metric)):
        return data
    metric = make_metric(named, label_gain=getattr(objective, "label_gain", None))
    if not isinstance(metric, NDCG):
        return data
    scale = metric.swap_form(data).scale  # 1 / ideal DCG, or 0 if all gains are 0
    ideal = np.divide(1.0, scale, out=np.zeros(len(scale)), where=scale > 0.0)
    if data.query_weight is not None:
        ideal *= data.query_weight
    return data._replace(query_weight=_mean_one(ideal))


def data_of_clicks(loss: Loss | None, clicks: ClickLog) -> RankingData:
    """Return a log as data for a ranker without a propensity, with a warning.

    A loss with ``takes_positions`` gets a row for each document and position instead.
    """
    if getattr(loss, "takes_positions", False):
        rows = click_rows(clicks)
        return rows._replace(sample_weight=_mean_one(document_weight(rows)))
    warnings.warn(
        "clicks are used as grades without a correction for their positions; pass "
        "propensity='joint' or the result of rankwright.clicks.estimate_propensity.",
        stacklevel=3,
    )
    return weighed_by_ideal(loss, clicks_as_grades(clicks))


def known_propensity(propensity: Any, clicks: Clicks, *, n_jobs: int | None = None) -> Propensity:
    """Return the propensity, learned from the clicks if it is "joint"."""
    if isinstance(propensity, Propensity):
        return propensity
    if isinstance(propensity, str) and propensity == "joint":
        return joint_propensity(clicks, n_jobs=n_jobs)
    raise UsageError(
        f"propensity must be a Propensity or 'joint', not {quoted(str(propensity)[:80])}; "
        "rankwright.clicks.estimate_propensity estimates it from a log."
    )


def joint_propensity(clicks: Clicks, *, l2: float = 1e-2, n_jobs: int | None = None) -> Propensity:
    """Return the propensity that `losses.DualSoftmax` learns together with relevance.

    Relevance is modelled as a linear function of the features, or by trees if some features are
    categorical.

    Parameters
    ----------
    clicks : ClickLog with features, or RankingData with positions
    l2 : float
        Ridge penalty of the linear function.
    """
    check_zero_or_more("l2", l2)
    rows = click_rows(clicks)
    if not rows.y.any():
        raise DataError("the log has no clicks, so no propensity can be estimated.")
    return relevance_and_propensity(rows, l2=l2, n_jobs=n_jobs)[1]


def relevance_and_propensity(
    rows: RankingData, *, l2: float = 1e-2, n_jobs: int | None = None
) -> tuple[FittedModel, Propensity]:
    """Return the model of `joint_propensity`, which scores log relevance, and the propensity.

    Rows without positions have a single position.
    """
    rows = rows._replace(sample_weight=_mean_one(document_weight(rows)))
    model = Trees() if rows.categories else Linear(l2=l2, missing="mean")
    fitted = _fit(model, DualSoftmax(), rows, n_jobs)
    if rows.position is None:
        return fitted, Propensity(np.ones(1), method="joint")
    bound: Any = DualSoftmax().bind(rows, n_jobs=n_jobs)
    bound.value(fitted.scores(rows.X, n_jobs=n_jobs))
    examination = _of_all_positions(bound.positions, bound.examination)
    return fitted, Propensity(examination, method="joint")


def _of_all_positions(positions: AnyArray, examination: F64) -> F64:
    """Return the examination of positions 1, 2, ...; interpolate positions without data."""
    places = np.asarray(positions, np.float64)
    if places[0] < 1 or (places != np.floor(places)).any():
        raise DataError("positions must be whole numbers, 1 for the first.")
    every = np.arange(1, int(places[-1]) + 1)
    log: F64 = np.interp(np.log(every), np.log(places), np.log(examination))
    relative: F64 = np.exp(log - log[0])
    return relative


def _fit(model: Trees | Linear, loss: Loss, data: RankingData, n_jobs: int | None) -> FittedModel:
    return last_model(model.rounds(loss, data, n_jobs=n_jobs))


def _mean_one(weight: F64) -> F64:
    """Return weights scaled to a mean of 1, so that penalties keep their meaning."""
    scaled: F64 = weight / weight.mean() if weight.any() else np.ones(len(weight))
    return scaled


class _Documents:
    """Clicks and exposure of each (query, document)."""

    def __init__(self, rows: RankingData, propensity: Propensity, clip: float | None) -> None:
        self.rows = rows
        assert rows.position is not None
        examination, offset = propensity.at(rows.position)
        divisor = examination if clip is None else propensity.clipped(clip).at(rows.position)[0]
        impressions = document_weight(rows)
        self.first, code = documents_of_rows(rows)
        self.query = rows.query_of_row()[self.first]
        clicks = impressions * (rows.y - offset)
        self.impressions = self._sums(code, impressions)
        self.clicks = self._sums(code, clicks)  # C of (1)
        self.exposure = self._sums(code, impressions * examination)  # E of (1)
        self.offset = self._sums(code, impressions * offset)
        self.clipped_exposure = self._sums(code, impressions * divisor)
        self.weighted_clicks = self._sums(code, clicks / divisor)
        # Click rates are at most 1, but users may pass amounts such as purchases instead.
        self.highest = max(1.0, float(rows.y.max(initial=0.0)))

    def _sums(self, code: I64, values: F64) -> F64:
        return np.bincount(code, values, len(self.first)).astype(np.float64)

    def by_ips(self, self_normalize: bool, weighted: bool) -> RankingData:
        """Return the documents with (2) as their grades."""
        if self_normalize:
            divisor = self.clipped_exposure
            return self._with(self.clicks / divisor, divisor if weighted else None)
        relevance = self.weighted_clicks / self.impressions
        return self._with(relevance, self.impressions if weighted else None)

    def by_posterior(self, weighted: bool, n_jobs: int | None) -> RankingData:
        """Return the documents with (3) as their grades."""
        prior = np.empty(len(self.first))
        half = self._half()
        for part in (half, ~half):
            prior[part] = self.predict(self.rows.X[self.first[part]], ~part, n_jobs)
        self.strength = self._strength(prior)
        total = self.strength + self.exposure
        relevance = (self.strength * prior + self.clicks) / total  # (3)
        return self._with(np.minimum(relevance, self.highest), total if weighted else None)

    def _strength(self, prior: F64) -> float:
        """Return kappa of (4)."""
        relevant = self.exposure * prior
        expected = np.maximum(relevant + self.offset, 0.5 * relevant)  # offsets can be negative
        excess = ((self.clicks - relevant) ** 2 / expected - 1.0).sum()
        lowest, highest = _STRENGTH
        if excess <= 0.0:
            return highest
        kappa = (self.exposure * relevant / expected).sum() / excess  # (4)
        return float(np.clip(kappa, lowest, highest))

    def predict(self, X: Any, fitted: Any, n_jobs: int | None) -> F64:
        """Return m of (3) for documents ``X``, from a regression on the documents ``fitted``.

        Documents weigh their exposure, up to a limit: beyond it, relevance itself varies more than
        its estimate. All documents are one list, so that queries without a click count too.
        """
        query_weight = self._query_weight()
        mean = np.average(self.clicks / self.exposure, weights=query_weight * self.exposure)
        lowest = max(_LOWEST_PRIOR * float(mean), np.finfo(np.float64).tiny)
        relevance = self.clicks[fitted] / self.exposure[fitted]
        if not len(relevance) or relevance.min() == relevance.max():
            return np.full(X.shape[0], np.clip(mean, lowest, self.highest))
        weight = query_weight * self.exposure / (1.0 + self.exposure / _SATURATION)
        data = RankingData(
            self.rows.X[self.first[fitted]],
            relevance,
            np.array([0, len(relevance)]),
            np.zeros(1, np.int64),
            sample_weight=_mean_one(weight[fitted]),
            feature_names=self.rows.feature_names,
            categories=self.rows.categories,
        )
        model = _fit(Trees(), Squared(), data, n_jobs)
        return np.clip(model.scores(X, n_jobs=n_jobs), lowest, self.highest)

    def _half(self) -> Any:
        """Return a mask of the documents in one half of the queries, independent of their order."""
        prints = query_prints(self.rows)[0]
        rank = np.empty(len(prints), np.int64)
        rank[np.argsort(prints, kind="stable")] = np.arange(len(prints))
        return rank[self.query] % 2 == 0

    def _query_weight(self) -> F64:
        weight = self.rows.query_weight
        return np.ones(len(self.first)) if weight is None else weight[self.query]

    def _with(self, relevance: F64, weight: F64 | None) -> RankingData:
        rows, sizes = self.rows, np.bincount(self.query, minlength=self.rows.n_queries)
        return RankingData(
            X=rows.X[self.first],
            y=np.maximum(relevance, 0.0),
            indptr=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            qid=rows.qid,
            query_weight=rows.query_weight,
            sample_weight=None if weight is None else _mean_one(weight),
            doc_id=None if rows.doc_id is None else rows.doc_id[self.first],
            group=None if rows.group is None else rows.group[self.first],
            feature_names=rows.feature_names,
            categories=rows.categories,
        )


def documents_of_rows(rows: RankingData) -> tuple[I64, I64]:
    """Return the first row of each (query, document), and the document number of each row.

    Without ``doc_id`` each row is a document.
    """
    if rows.doc_id is None:
        every = np.arange(rows.n_documents)
        return every, every
    name, names = codes_of_ids(rows.doc_id)
    key = rows.query_of_row() * len(names) + name
    _, first, code = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # documents in the order of the data
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return first[order].astype(np.int64), place[code.ravel()]


def _with_unshown(
    shown: RankingData, log: ClickLog, documents: _Documents, weighted: bool, n_jobs: int | None
) -> RankingData:
    """Add the documents of the feature table that were never shown."""
    table = log.features
    assert table is not None
    assert log.row is not None
    asked = np.isin(table.qid.astype(str), log.query_ids.astype(str))
    unseen = np.ones(table.n_documents, bool)
    unseen[log.row] = False
    rows = np.flatnonzero(unseen & asked[table.query_of_row()])
    if not len(rows):
        return shown
    everything = np.ones(len(documents.first), bool)
    strength = documents.strength
    if weighted:
        weight = strength / (strength + documents.exposure).mean()
    else:
        shown = shown._replace(sample_weight=np.ones(shown.n_documents))
        weight = strength / (strength + documents.exposure.mean())
    unshown = RankingData.from_arrays(
        table.X[rows],
        documents.predict(table.X[rows], everything, n_jobs),
        qid=table.qid[table.query_of_row()[rows]],
        sample_weight=np.full(len(rows), weight),
        doc_id=None if table.doc_id is None else table.doc_id[rows],
        feature_names=table.feature_names,
        categories=table.categories,
    )
    both = concatenate([shown, unshown], shared_ids=True)
    return RankingData.from_arrays(  # query by query
        both.X,
        both.y,
        qid=both.qid.astype(str)[both.query_of_row()],
        sample_weight=both.sample_weight,
        doc_id=both.doc_id,
        feature_names=both.feature_names,
        categories=both.categories,
    )


def _weighted_lists(
    lists: RankingData, propensity: Propensity, clip: float | None, both_sides: bool
) -> RankingData:
    """Return the original lists, with the weights (6)."""
    if propensity.offset is not None:
        raise UsageError("unit='session' does not support offsets; use unit='document'.")
    if not np.isin(lists.y, (0.0, 1.0)).all():
        raise DataError("unit='session' needs grades 0 and 1: 1 for a click.")
    if clip is not None:
        propensity = propensity.clipped(clip)
    assert lists.position is not None
    examination, _ = propensity.at(lists.position)
    unclicked = np.ones(lists.n_documents)  # t of (7)
    if both_sides:
        place, n = lists.position.astype(np.int64) - 1, propensity.n_positions
        weight = lists.query_weight
        impressions = np.repeat(np.ones(lists.n_queries) if weight is None else weight, lists.sizes)
        shown = np.bincount(place, impressions, n)
        clicked = np.bincount(place, impressions * lists.y, n)
        rate = clicked / np.where(shown > 0.0, shown, 1.0)
        relevant = np.minimum(rate / propensity.examination, 1.0 - _LOWEST_UNCLICKED)
        t = np.maximum((1.0 - rate) / (1.0 - relevant), _LOWEST_UNCLICKED)  # (7)
        unclicked = t[place]
    weight = 1.0 / np.where(lists.y > 0.0, examination, unclicked)  # (6)
    return lists._replace(sample_weight=weight * document_weight(lists), position=None)
