"""Metrics as scorers of scikit-learn: ``GridSearchCV(ranker, grid, scoring=scorer("ndcg@10"))``."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from rankwright.errors import UsageError
from rankwright.metrics.base import AnyMetrics, named_metrics
from rankwright.metrics.convention import Convention
from rankwright.metrics.evaluation import evaluate
from rankwright.rankers.base import Ranker
from rankwright.rankers.data_checks import warn_of_cut_queries
from rankwright.rankers.inputs import Layout, how_to_route_qid, ranking_data


def scorer(metrics: AnyMetrics, *, convention: str | Convention = "standard") -> Scorer:
    """Return a scorer for scikit-learn's cross-validation and searches.

    It takes the query ids by metadata routing, as rankers do::

        sklearn.set_config(enable_metadata_routing=True)
        search = GridSearchCV(ranker, grid, cv=QueryFolds(5), scoring=scorer("ndcg@10"))
        search.fit(X, y, qid=qid)

    Parameters
    ----------
    metrics : str, Metric, callable, an iterable of them, or a mapping from names to them
        As for `rankwright.evaluate`. One metric gives a number; several give a dict, which
        scikit-learn takes as several metrics (a search then needs ``refit="ndcg@10"``).
    convention : str or Convention
        Convention that metrics follow.

    Returns
    -------
    Scorer
        Called as ``scorer(estimator, X, y, qid=qid)`` with anything that predicts. Higher is
        better: a metric that falls as rankings improve, such as ``pair_error``, is negated.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> qid = data.qid[data.query_of_row()]
    >>> ranker = rw.MEMR().fit(data.X, data.y, qid=qid)
    >>> rw.scorer("ndcg@10")(ranker, data.X, data.y, qid=qid) > 0.6
    True
    """
    named_metrics(metrics, convention=convention)  # raises for unknown names
    return Scorer(metrics, convention=convention)


class Scorer(BaseEstimator):  # type: ignore[misc]
    """Function of an estimator, X, y and qid that returns metrics; made by `scorer`."""

    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    def __init__(self, metrics: Any, *, convention: Any = "standard") -> None:
        self.metrics = metrics
        self.convention = convention

    def score(self, estimator: Any, X: Any, y: Any, *, qid: Any = None) -> float | dict[str, float]:
        """Return the metric of the predictions for X, or several metrics by name."""
        if qid is None:
            raise UsageError(f"this scorer needs the query id of each row; {how_to_route_qid()}")
        metrics = named_metrics(self.metrics, convention=self.convention)
        if isinstance(estimator, Ranker):
            data = ranking_data(X, y, qid, like=Layout.of(estimator))
            warn_of_cut_queries(estimator, data)
            values = evaluate(data, estimator.predict(data), metrics, convention=self.convention)
        else:
            scores = estimator.predict(X)
            values = evaluate(y, scores, metrics, qid=qid, convention=self.convention)
        signed = {
            name: value if metrics[name].maximise else -value for name, value in values.items()
        }
        return next(iter(signed.values())) if len(signed) == 1 else signed

    __call__ = score
