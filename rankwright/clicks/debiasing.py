"""From clicks to data that any loss learns from: relevance, with the effect of positions removed.

Document d of a query was shown n_k times at position k and clicked c_k times. With examination
a_k and offset o_k of a `Propensity`, so that P(click at k) = a_k r + o_k, its relevance r is
estimated by inverse propensity scoring (`joachims2017unbiased`, `vardasbi2020inverse`)

    r = sum_k (c_k - n_k o_k) / a_k / sum_k n_k                                                 (1)
    r = sum_k (c_k - n_k o_k) / sum_k n_k a_k                                                   (2)

the second self-normalised: its weights are those of the least variance where clicks are rare. Both
have the expectation r, whatever was shown. With m a regression of relevance on the features, the
doubly robust estimate (`oosterhuis2023doubly`) is

    r = m + sum_k (c_k - n_k o_k - n_k a_k m) / sum_k n_k max(a_k, clip)                        (3)

which stays close to m where few looked, and is right where m is, or where examination is above
``clip``. Without clipping it is (2) itself; a document that was never shown has r = m.

The probability with which a document was shown at k, which a log may hold beside its clicks
(``ClickLog.propensity``), is in none of these: given that it was shown, clicks depend on a_k alone,
and n_k counts how often it was. Divided by that probability, rare placements would weigh more,
which leaves the expectation of (2) as it is and adds variance; in place of a_k it would be wrong.

The estimates are real-valued grades, one for each document of a query, so that any loss takes them
with any model. Losses that are linear in the grade (dual_softmax, the gradient of squared and
query_offset) then have the expectation that true relevance would give; others come close to it as
impressions grow. The weight of a document, where wanted, is its exposure sum_k n_k a_k, to which
the precision of (2) is proportional.

A loss that is relative to the best possible list of a query, as those of NDCG are, divides by the
ideal DCG of the estimates. Where no document is relevant that is small and made of noise, which
would then count as much as relevance does elsewhere. Rankers therefore weigh queries by it,

    weight of a query = ideal DCG of its estimates, times a weight that was given               (4)

so that the loss is that of DCG, which is linear in the gains of documents.

With ``unit="session"`` every list shown is a query of its own, with clicks as grades and weights

    1 / a_k where clicked;  1, or for both sides 1 / t_k, where not                             (5)
    t_k = (1 - rate_k) / (1 - rate_k / a_k)                                                     (6)

so that a pair of a clicked and another document counts 1 / (a_i t_j): pairwise debiasing as in
Unbiased LambdaMART (`hu2019unbiased`), of both sides, with t by the position-based model from the
click rate of each position. For pairwise losses: in a softmax a weight stands for copies.

Under a Plackett-Luce model a click is a choice among all documents of the list, and with weights
1 / a_k the likelihood of lists in which clicked documents come first has the expectation
sum_i r_i (log sum_j exp(s_j) - s_i): this is `losses.DualSoftmax` on the grades (1). Further
choices, among what earlier clicks left, have no such expectation.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from rankwright.core.parameters import check_choice, check_zero_or_more
from rankwright.core.types import F64, I64, AnyArray, FittedModel, Loss, Model
from rankwright.data.click_log import ClickLog, codes_of_ids
from rankwright.data.content import query_prints
from rankwright.data.propensity import Propensity
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
from rankwright.rankers.selection import Selection

METHODS = ("doubly_robust", "ips")
UNITS = ("document", "session")
_CLIP = 0.05  # the least examination divided by, chosen on validation parts
_LEAST = 1e-3  # of t in (6), which noise may bring to 0 or below

Clicks = ClickLog | RankingData
"""A log with features, or data with positions: click rates as grades, impressions as weights."""


def debias(
    clicks: Clicks,
    propensity: Propensity | Literal["joint"],
    *,
    method: str = "doubly_robust",
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
        Of RankingData grades are clicks, or click rates, and ``sample_weight`` the impressions;
        rows with the same ``doc_id`` are one document.
    propensity : Propensity, or "joint"
        How much positions are looked at; "joint" learns it from the same clicks. Probabilities in
        the log (``ClickLog.propensity``) are those of showing a document, which no estimate of
        relevance needs.
    method : {"doubly_robust", "ips"}, default "doubly_robust"
        The doubly robust estimate, with a regression on the features by trees, each half of the
        queries from the other; or inverse propensity scoring, without clipping unbiased.
    clip : float or None, default None
        The least examination that is divided by: less variance, and for "ips" some bias. None is
        0.05 for "doubly_robust" and no clipping for "ips".
    self_normalize : bool, default True
        For "ips": divide by the exposure of a document instead of its impressions.
    weighted : bool, default False
        Weigh documents by what they were divided by, on average 1, instead of all alike.
    unshown : bool, default False
        For "doubly_robust" and a log: have documents of its feature table that were never shown
        too, with the regression alone.
    unit : {"document", "session"}, default "document"
        A grade for each document of a query, or the lists as they were shown with weights for
        pairwise losses.
    both_sides : bool, default False
        With ``unit="session"``: correct documents without a click too, as Unbiased LambdaMART does.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> log = clicks.simulate(rw.synthetic("mq2008", queries=30), 41, sessions=50)
    >>> data = clicks.debias(log, clicks.Propensity.power(1.0, positions=10), method="ips")
    >>> fitted = rw.Ranker(loss="ranknet").fit(data)
    >>> data.n_queries
    30
    """
    check_choice("method", method, METHODS)
    check_choice("unit", unit, UNITS)
    rows = click_rows(clicks)
    known = known_propensity(propensity, rows, n_jobs=n_jobs)
    robust = method == "doubly_robust"
    if unit == "session":
        lists = clicks.to_ranking_data("session") if isinstance(clicks, ClickLog) else rows
        return _weighted_lists(lists, known, clip, both_sides)
    if both_sides:
        raise UsageError("both_sides is for unit='session'; relevance estimates need no sides.")
    if unshown and not (robust and isinstance(clicks, ClickLog)):
        raise UsageError("unshown=True is for method='doubly_robust' and a ClickLog.")
    documents = _Documents(rows, known, _CLIP if robust and clip is None else clip)
    if not robust:
        return documents.by_ips(self_normalize, weighted)
    shown = documents.by_regression(weighted, n_jobs)
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
    """Return click rates of documents as grades, whatever their position: without correction."""
    rows = click_rows(clicks)
    assert rows.position is not None
    highest = int(np.max(rows.position, initial=1))
    return debias(rows, Propensity(np.ones(highest)), method="ips")


def weighed_by_ideal(objective: Any, data: RankingData) -> RankingData:
    """Return data whose queries weigh (4), where the objective is relative to the ideal DCG.

    Parameters
    ----------
    objective : Loss, or Ranker without one
        With ``metric``, which it optimises.
    """
    named = getattr(objective, "metric", "ndcg" if isinstance(objective, ApproxNDCG) else None)
    if named is None or (callable(named) and not isinstance(named, Metric)):
        return data
    metric = make_metric(named, label_gain=getattr(objective, "label_gain", None))
    if not isinstance(metric, NDCG):
        return data
    scale = metric.swap_form(data).scale  # one over the ideal, 0 where nothing can be earned
    ideal = np.divide(1.0, scale, out=np.zeros(len(scale)), where=scale > 0.0)
    if data.query_weight is not None:
        ideal *= data.query_weight
    return data._replace(query_weight=_mean_one(ideal))


def data_of_clicks(loss: Loss | None, clicks: ClickLog) -> RankingData:
    """Return a log as data for a ranker that was given no propensity, with a warning.

    A loss with ``takes_positions`` is given a row for each document and position instead.
    """
    if getattr(loss, "takes_positions", False):
        rows = click_rows(clicks)
        return rows._replace(sample_weight=_mean_one(document_weight(rows)))
    warnings.warn(
        "clicks are taken as grades, whatever the position they were made at; give "
        "propensity='joint', or one that rankwright.clicks.estimate_propensity returns.",
        stacklevel=3,
    )
    return weighed_by_ideal(loss, clicks_as_grades(clicks))


def known_propensity(propensity: Any, clicks: Clicks, *, n_jobs: int | None = None) -> Propensity:
    """Return a propensity as it is, and "joint" as what is learned from the clicks."""
    if isinstance(propensity, Propensity):
        return propensity
    if isinstance(propensity, str) and propensity == "joint":
        return joint_propensity(clicks, n_jobs=n_jobs)
    raise UsageError(
        f"propensity is a Propensity, or 'joint', not {quoted(str(propensity)[:80])}; it is how "
        "much users look at each position, which rankwright.clicks.estimate_propensity estimates."
    )


def joint_propensity(clicks: Clicks, *, l2: float = 1e-2, n_jobs: int | None = None) -> Propensity:
    """Return the propensity that is learned together with relevance, by `losses.DualSoftmax`.

    Relevance is a linear function of the features, or trees where some are categories.

    Parameters
    ----------
    clicks : ClickLog with features, or RankingData with positions
    l2 : float
        Ridge penalty of the linear function.
    """
    check_zero_or_more("l2", l2)
    rows = click_rows(clicks)
    if not rows.y.any():
        raise DataError("there is no click in the log, so nothing is known of positions.")
    return relevance_and_propensity(rows, l2=l2, n_jobs=n_jobs)[1]


def relevance_and_propensity(
    rows: RankingData, *, l2: float = 1e-2, n_jobs: int | None = None
) -> tuple[FittedModel, Propensity]:
    """Return the fitted model of `joint_propensity`, whose scores are logarithms, beside it.

    Of rows without positions the propensity is that of a single one.
    """
    rows = rows._replace(sample_weight=_mean_one(document_weight(rows)))
    model: Model = Trees() if rows.categories else Linear(l2=l2, missing="mean")
    fitted = _fit(model, DualSoftmax(), rows, n_jobs)
    if rows.position is None:
        return fitted, Propensity(np.ones(1), method="joint")
    bound: Any = DualSoftmax().bind(rows, n_jobs=n_jobs)
    bound.value(fitted.scores(rows.X, n_jobs=n_jobs))
    examination = _of_all_positions(bound.positions, bound.examination)
    return fitted, Propensity(examination, method="joint")


def _of_all_positions(positions: AnyArray, examination: F64) -> F64:
    """Return the examination of 1, 2, ...; of positions without data, that between neighbours."""
    places = np.asarray(positions, np.float64)
    if places[0] < 1 or (places != np.floor(places)).any():
        raise DataError("positions must be whole numbers, 1 for the first.")
    every = np.arange(1, int(places[-1]) + 1)
    log: F64 = np.interp(np.log(every), np.log(places), np.log(examination))
    relative: F64 = np.exp(log - log[0])
    return relative


def _fit(model: Model, loss: Loss, data: RankingData, n_jobs: int | None) -> FittedModel:
    callback = Selection(
        metric="ndcg@10", convention="standard", train=data, valid=None, n_jobs=n_jobs
    )
    return model.fit(loss, data, callback=callback, n_jobs=n_jobs)


def _mean_one(weight: F64) -> F64:
    """Return weights with the mean 1, so that penalties mean what they do without them."""
    scaled: F64 = weight / weight.mean() if weight.any() else np.ones(len(weight))
    return scaled


class _Documents:
    """Clicks of each (query, document), and how much it was looked at."""

    def __init__(self, rows: RankingData, propensity: Propensity, clip: float | None) -> None:
        self.rows, self.clip = rows, clip
        assert rows.position is not None
        examination, offset = propensity.at(rows.position)
        divided = examination if clip is None else propensity.clipped(clip).at(rows.position)[0]
        impressions = document_weight(rows)
        self.first, code = documents_of_rows(rows)
        self.query = rows.query_of_row()[self.first]
        excess = impressions * (rows.y - offset)
        self.impressions = self._sums(code, impressions)
        self.excess = self._sums(code, excess)
        self.exposure = self._sums(code, impressions * examination)
        self.divided = self._sums(code, impressions * divided)
        self.scored = self._sums(code, excess / divided)

    def _sums(self, code: I64, values: F64) -> F64:
        return np.bincount(code, values, len(self.first)).astype(np.float64)

    def by_ips(self, self_normalize: bool, weighted: bool) -> RankingData:
        """Return the documents with (1) or (2) as their grades."""
        if self_normalize:
            return self._with(self.excess / self.divided, self.divided if weighted else None)  # (2)
        relevance = self.scored / self.impressions  # (1)
        return self._with(relevance, self.impressions if weighted else None)

    def by_regression(self, weighted: bool, n_jobs: int | None) -> RankingData:
        """Return the documents with (3) as their grades."""
        predicted = np.empty(len(self.first))
        half = self._half()
        for own in (half, ~half):
            predicted[own] = self.predict(self.rows.X[self.first[own]], ~own, n_jobs)
        error = (self.excess - self.exposure * predicted) / self.divided
        return self._with(predicted + error, self.divided if weighted else None)  # (3)

    def predict(self, X: Any, fitted: Any, n_jobs: int | None) -> F64:
        """Return m of (3) for documents ``X``, from a regression on those that are ``fitted``.

        It is on (2) without clipping, weighted by exposure, and over all documents as one list:
        those of queries without a click count too.
        """
        relevance, weight = self.excess / self.exposure, self._query_weight() * self.exposure
        y, w = relevance[fitted], weight[fitted]
        if not len(y) or y.min() == y.max():
            return np.full(X.shape[0], max(0.0, float(np.average(relevance, weights=weight))))
        data = RankingData(
            self.rows.X[self.first[fitted]],
            y,
            np.array([0, len(y)]),
            np.zeros(1, np.int64),
            sample_weight=_mean_one(w),
            feature_names=self.rows.feature_names,
            categories=self.rows.categories,
        )
        found = _fit(Trees(), Squared(), data, n_jobs)
        return np.maximum(found.scores(X, n_jobs=n_jobs), 0.0)

    def _half(self) -> Any:
        """Return which documents are in one half of the queries, whatever their order."""
        prints = query_prints(self.rows)[0]
        place = np.empty(len(prints), np.int64)
        place[np.argsort(prints, kind="stable")] = np.arange(len(prints))
        return place[self.query] % 2 == 0

    def _query_weight(self) -> F64:
        given = self.rows.query_weight
        return np.ones(len(self.first)) if given is None else given[self.query]

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
    """Return the first row of each (query, document), and the number of each row's document.

    Rows without ``doc_id`` are documents of their own.
    """
    if rows.doc_id is None:
        every = np.arange(rows.n_documents)
        return every, every
    name, names = codes_of_ids(rows.doc_id)
    key = rows.query_of_row() * len(names) + name
    _, first, code = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # as they come in the data
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return first[order].astype(np.int64), place[code.ravel()]


def _with_unshown(
    shown: RankingData, log: ClickLog, documents: _Documents, weighted: bool, n_jobs: int | None
) -> RankingData:
    """Return the documents with those of the feature table that were shown to no user."""
    table = log.features
    assert table is not None
    assert log.row is not None
    asked = np.isin(table.qid.astype(str), log.query_ids.astype(str))
    unseen = np.ones(table.n_documents, bool)
    unseen[log.row] = False
    rows = np.flatnonzero(unseen & asked[table.query_of_row()])
    if not len(rows):
        return shown
    every = np.ones(len(documents.first), bool)
    rest = RankingData.from_arrays(
        table.X[rows],
        documents.predict(table.X[rows], every, n_jobs),
        qid=table.qid[table.query_of_row()[rows]],
        doc_id=None if table.doc_id is None else table.doc_id[rows],
        feature_names=table.feature_names,
        categories=table.categories,
    )
    if weighted and shown.sample_weight is not None:
        clip = float(documents.clip or 0.0)
        light = clip * documents.impressions.mean() / documents.divided.mean()
        rest = rest._replace(sample_weight=np.full(rest.n_documents, light))
    return _joined(shown, rest)


def _joined(shown: RankingData, rest: RankingData) -> RankingData:
    """Return the documents of both, query by query."""
    both = concatenate([shown, rest], shared_ids=True)
    return RankingData.from_arrays(
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
    """Return lists as they were shown, with the weights (5)."""
    if propensity.offset is not None:
        raise UsageError("unit='session' knows no trust bias; use unit='document'.")
    if not np.isin(lists.y, (0.0, 1.0)).all():
        raise DataError("unit='session' needs grades 0 and 1: whether a document was clicked.")
    known = propensity if clip is None else propensity.clipped(clip)
    assert lists.position is not None
    examination, _ = known.at(lists.position)
    impressions = np.repeat(
        np.ones(lists.n_queries) if lists.query_weight is None else lists.query_weight, lists.sizes
    )
    without = np.ones(known.n_positions)
    if both_sides:
        place = lists.position.astype(np.int64) - 1
        shown = np.bincount(place, impressions, known.n_positions)
        clicked = np.bincount(place, impressions * lists.y, known.n_positions)
        rate = clicked / np.where(shown > 0.0, shown, 1.0)
        relevant = np.minimum(rate / known.examination, 1.0 - _LEAST)
        without = np.maximum((1.0 - rate) / (1.0 - relevant), _LEAST)  # (6)
    side = without[lists.position.astype(np.int64) - 1]
    weight = np.where(lists.y > 0.0, 1.0 / examination, 1.0 / side)  # (5)
    return lists._replace(sample_weight=weight * document_weight(lists), position=None)
