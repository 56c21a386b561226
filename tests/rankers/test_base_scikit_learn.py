"""Rankers in scikit-learn's own tools: qid is routed to fit and score, and queries stay whole."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from rankwright.data.query_folds import QueryFolds
from rankwright.data.ranking_data import RankingData
from rankwright.rankers.base import ranker
from rankwright.rankers.scorer import scorer

pytestmark = pytest.mark.usefixtures("routing")


def routed(qid):
    return {"qid": qid, "groups": qid}


def by_hand(made, arrays, folds=3):
    X, y, qid = arrays
    values = []
    for train, test in GroupKFold(folds).split(X, y, qid):
        assert not set(qid[train]) & set(qid[test])
        fitted = made.fit(X[train], y[train], qid=qid[train])
        values.append(fitted.score(X[test], y[test], qid=qid[test]))
    return values


@pytest.mark.parametrize("name", ["ranksvm", "gbdt"])
def test_cross_validate_is_the_loop_written_out(name, arrays):
    X, y, qid = arrays
    made = ranker(name)
    found = cross_validate(made, X, y, cv=GroupKFold(3), params=routed(qid))
    assert found["test_score"].tolist() == by_hand(made, arrays)
    alone = cross_val_score(made, X, y, cv=GroupKFold(3), params=routed(qid))
    assert alone.tolist() == found["test_score"].tolist()


def test_grid_search_chooses_as_the_loop_does(arrays):
    X, y, qid = arrays
    grid = {"l2": [1e-3, 1e3], "pairs": ["uniform", "query"]}
    search = GridSearchCV(ranker("ranksvm"), grid, cv=GroupKFold(3), error_score="raise")
    search.fit(X, y, qid=qid, groups=qid)
    means = [
        np.mean(by_hand(ranker("ranksvm", **setting), arrays))
        for setting in search.cv_results_["params"]
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], means, rtol=1e-12)
    assert search.best_params_ == search.cv_results_["params"][int(np.argmax(means))]
    assert search.score(X, y, qid=qid) == search.best_estimator_.score(X, y, qid=qid)
    assert search.predict(X).shape == y.shape


def test_randomised_search_takes_qid_too(arrays):
    X, y, qid = arrays
    search = RandomizedSearchCV(
        ranker("ranksvm"), {"l2": [1e-3, 1.0, 1e3]}, n_iter=2, cv=GroupKFold(3), random_state=0
    )
    search.fit(X, y, qid=qid, groups=qid)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_pipeline_passes_qid_to_its_ranker(arrays):
    X, y, qid = arrays
    pipeline = make_pipeline(StandardScaler(), ranker("ranksvm"))
    pipeline.fit(X, y, qid=qid)
    scaled = StandardScaler().fit_transform(X)
    alone = ranker("ranksvm").fit(scaled, y, qid=qid)
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(scaled))
    assert pipeline.score(X, y, qid=qid) == alone.score(scaled, y, qid=qid)


def test_grid_search_over_a_pipeline_under_cross_validation(arrays):
    X, y, qid = arrays
    pipeline = make_pipeline(StandardScaler(), ranker("ranksvm"))
    search = GridSearchCV(pipeline, {"ranksvm__l2": [1e-3, 1e3]}, cv=GroupKFold(3))
    nested = cross_validate(search, X, y, cv=GroupKFold(3), params=routed(qid), error_score="raise")
    assert np.isfinite(nested["test_score"]).all()


def test_the_score_is_the_metric_over_queries(arrays):
    X, y, qid = arrays
    fitted = ranker("ranksvm", metric="map").fit(X, y, qid=qid)
    data = RankingData.from_arrays(X, y, qid=qid)
    assert fitted.score(X, y, qid=qid) == fitted.score(data)


def test_weights_of_documents_are_refused_where_there_is_none_to_use_them(arrays):
    X, y, qid = arrays
    fitted = ranker("ranksvm").fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="leave sample_weight out"):
        fitted.score(X, y, qid=qid, sample_weight=np.ones(len(y)))


@pytest.mark.parametrize(
    ("name", "parameters", "takes"),
    [
        ("gbdt", {}, True),
        ("rankboost", {}, True),
        ("random_forest", {}, True),
        ("ranksvm", {}, False),
        ("ranksvm", {"missing": "mean"}, True),
        ("ranknet", {}, False),
        ("prank", {}, False),
        ("prank", {"missing": "zero"}, True),
        ("rankgp", {}, False),
        ("cofirank", {}, False),
    ],
)
def test_the_tags_say_whether_missing_values_are_taken(name, parameters, takes):
    assert get_tags(ranker(name, **parameters)).input_tags.allow_nan == takes


def test_without_routing_the_error_names_the_setting_and_what_needs_none(arrays):
    """With routing off scikit-learn passes qid to fit alone, and none to score."""
    X, y, qid = arrays
    with config_context(enable_metadata_routing=False):
        with pytest.raises(ValueError, match="score needs qid") as found:
            cross_val_score(ranker("ranksvm"), X, y, params={"qid": qid}, error_score="raise")
        assert "sklearn.set_config(enable_metadata_routing=True)" in str(found.value)
        assert "QueryFolds" in str(found.value)
        assert "rankwright.cross_validate(" in str(found.value)
        with pytest.warns(UserWarning, match=r"no qid was given.*set_config.*QueryFolds"):
            cross_val_score(ranker("ranksvm"), X, y)


@pytest.mark.parametrize("scoring", [None, scorer("ndcg@10")])
def test_folds_that_cut_queries_are_warned_of(arrays, scoring):
    X, y, qid = arrays
    with pytest.warns(UserWarning, match=r"18 of 18 queries that are scored.*QueryFolds"):
        cross_val_score(ranker("ranksvm"), X, y, cv=3, params={"qid": qid}, scoring=scoring)


def test_scores_on_the_training_data_are_no_cut_queries(arrays):
    X, y, qid = arrays
    folds = {"cv": QueryFolds(3), "params": {"qid": qid}, "return_train_score": True}
    found = cross_validate(ranker("ranksvm"), X, y, **folds)
    assert np.isfinite(found["train_score"]).all()
