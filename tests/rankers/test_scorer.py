"""Metrics as scorers of scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from rankwright.data.query_folds import QueryFolds
from rankwright.metrics.evaluation import evaluate
from rankwright.rankers.base import ranker
from rankwright.rankers.scorer import scorer

pytestmark = pytest.mark.usefixtures("routing")


def test_grid_search_by_a_metric(arrays):
    """The metric is computed here from the predictions of a loop that is written out."""
    X, y, qid = arrays
    folds = QueryFolds(3)
    search = GridSearchCV(
        ranker("ranksvm"), {"l2": [1e-3, 10.0]}, cv=folds, scoring=scorer("ndcg@3")
    ).fit(X, y, qid=qid)
    for number, l2 in enumerate([1e-3, 10.0]):
        values = []
        for train, test in folds.split(X, y, qid=qid):
            fitted = ranker("ranksvm", l2=l2).fit(X[train], y[train], qid=qid[train])
            s = fitted.predict(X[test])
            values.append(
                np.mean(
                    [
                        ndcg(y[test][qid[test] == q], s[qid[test] == q], 3)
                        for q in np.unique(qid[test])
                    ]
                )
            )
        assert search.cv_results_["mean_test_score"][number] == pytest.approx(np.mean(values))


def ndcg(y, s, k):
    gains, discounts = 2.0**y - 1, 1 / np.log2(np.arange(k) + 2)
    best = np.sort(gains)[::-1][:k] @ discounts
    return gains[np.argsort(-s)][:k] @ discounts / best if best > 0 else 0.0


def test_several_metrics_and_a_falling_one(arrays):
    X, y, qid = arrays
    several = scorer("ndcg@10,pair_error")
    search = GridSearchCV(
        ranker("ranksvm"), {"l2": [1e-3]}, cv=QueryFolds(3), scoring=several, refit="pair_error"
    ).fit(X, y, qid=qid)
    assert -0.5 < search.best_score_ < 0.0
    assert 0.5 < search.cv_results_["mean_test_ndcg@10"][0] <= 1.0
    fitted = search.best_estimator_
    direct = evaluate(y, fitted.predict(X), "ndcg@10,pair_error", qid=qid)
    assert several(fitted, X, y, qid=qid) == pytest.approx(
        {"ndcg@10": direct["ndcg@10"], "pair_error": -direct["pair_error"]}
    )


def test_a_scorer_takes_estimators_that_are_no_rankers(arrays):
    X, y, qid = arrays
    fitted = Ridge().fit(X, y)
    expected = evaluate(y, fitted.predict(X), "map", qid=qid)["map"]
    assert scorer("map")(fitted, X, y, qid=qid) == expected


def test_a_scorer_without_qid_or_of_no_metric_is_refused(arrays):
    X, y, qid = arrays
    fitted = ranker("ranksvm").fit(X, y, qid=qid)
    with pytest.raises(ValueError, match=r"needs the query id of each row.*QueryFolds"):
        scorer("ndcg@10")(fitted, X, y)
    with pytest.raises(ValueError, match="ndgc"):
        scorer("ndgc@10")
