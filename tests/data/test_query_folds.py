"""QueryFolds in scikit-learn's tools: queries stay whole, one qid serves all."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from small_data import small_data

from rankwright.data.query_folds import QueryFolds
from rankwright.errors import DataError, UsageError
from rankwright.rankers.base import ranker


def queries_of(folds, qid, **how):
    """The queries that each fold tests on."""
    parts = folds.split(np.zeros(len(qid)), groups=qid, **how)
    return [set(np.asarray(qid)[test].tolist()) for _, test in parts]


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=60),
    st.integers(2, 5),
    st.booleans(),
    st.integers(0, 3),
)
def test_every_query_is_tested_once_and_never_trained_on_in_its_fold(qid, k, shuffle, seed):
    qid = np.array(qid)
    folds = QueryFolds(k, shuffle=shuffle, random_state=seed)
    n_queries = len(np.unique(qid))
    if n_queries < k:
        with pytest.raises(DataError, match=f"{n_queries} queries cannot be cut into {k} folds"):
            folds.split(qid, groups=qid)
        return
    parts = list(folds.split(qid, groups=qid))
    assert len(parts) == k == folds.get_n_splits()
    assert sorted(np.concatenate([test for _, test in parts])) == list(range(len(qid)))
    sizes = []
    for train, test in parts:
        assert sorted([*train, *test]) == list(range(len(qid)))
        assert not set(qid[train]) & set(qid[test])
        sizes.append(len(set(qid[test])))
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    "qid",
    [
        np.repeat([30, 4, 17, 8, 9, 1, 12], 3),
        np.repeat(["u", "x", "a", "b", "z", "k", "m"], 3),
        np.repeat(np.array([3, "x", 2.5, "b", "n", (1, 2), 9], object), 3),
        pd.Series(pd.Categorical(list("uxabzkm") * 3)),
    ],
)
@pytest.mark.parametrize("shuffle", [True, False])
def test_the_order_of_rows_does_not_matter(qid, shuffle):
    folds = QueryFolds(3, shuffle=shuffle, random_state=5)
    mixed = np.random.default_rng(0).permutation(len(qid))
    assert queries_of(folds, qid) == queries_of(folds, np.asarray(qid)[mixed])


def test_seeds_make_other_folds_and_unshuffled_ids_stay_in_order():
    qid = np.arange(20)
    assert queries_of(QueryFolds(4), qid) == queries_of(QueryFolds(4), qid)
    assert queries_of(QueryFolds(4, random_state=1), qid) != queries_of(QueryFolds(4), qid)
    assert queries_of(QueryFolds(2, shuffle=False), [3, 1, 2, 4]) == [{1, 2}, {3, 4}]
    for kind in (np.random.default_rng, np.random.RandomState):
        one, other, again = (QueryFolds(4, random_state=kind(seed)) for seed in (1, 2, 1))
        first = queries_of(one, qid)
        assert first == queries_of(again, qid)
        assert first != queries_of(other, qid)
        assert first != queries_of(one, qid)  # it goes on
    alone = QueryFolds(4, random_state=None)
    assert queries_of(alone, qid) != queries_of(alone, qid)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_shuffled_folds_are_those_of_group_k_fold(k):
    qid = np.random.default_rng(k).integers(0, 30, 100)
    theirs = GroupKFold(k, shuffle=True, random_state=7).split(qid, groups=qid)
    for ours, expected in zip(
        QueryFolds(k, random_state=7).split(qid, groups=qid), theirs, strict=True
    ):
        for part, rows in zip(ours, expected, strict=True):
            np.testing.assert_array_equal(part, rows)


def test_wrong_settings_are_answered_with_a_sentence():
    with pytest.raises(UsageError, match="n_splits must be 2 or more, not 1"):
        QueryFolds(1).split(np.zeros(3), groups=[1, 2, 3])
    with pytest.raises(UsageError, match=r"n_splits must be a whole number, not 2\.5"):
        QueryFolds(2.5).split(np.zeros(3), groups=[1, 2, 3])
    with pytest.raises(UsageError, match="QueryFolds needs the query id of each row"):
        QueryFolds().split(np.zeros(3))
    with pytest.raises(DataError, match="qid has 2 values, where 3 are expected"):
        QueryFolds(2).split(np.zeros(3), groups=[1, 9])
    with pytest.raises(DataError, match="sizes of queries are given as group_sizes"):
        QueryFolds(2).split(np.zeros(4), groups=[1, 3])
    with pytest.raises(UsageError, match="random_state must be a whole number"):
        QueryFolds(2, random_state="0").split(None, groups=[1, 2])


def test_it_is_copied_and_shown_as_its_settings():
    folds = QueryFolds(3, random_state=7)
    assert repr(folds) == "QueryFolds(n_splits=3, random_state=7, shuffle=True)"
    assert repr(clone(folds, safe=False)) == repr(folds)


# --- in scikit-learn's tools -----------------------------------------------------------------


@pytest.fixture(scope="module")
def arrays():
    data = small_data(queries=12, documents=8)
    rows = np.random.default_rng(0).permutation(data.n_documents)
    return data.X[rows], data.y[rows], np.repeat(data.qid, data.sizes)[rows]


def by_hand(made, arrays, folds):
    X, y, qid = arrays
    values = []
    for queries in queries_of(folds, qid):
        test = np.isin(qid, list(queries))
        fitted = clone(made).fit(X[~test], y[~test], qid=qid[~test])
        values.append(fitted.score(X[test], y[test], qid=qid[test]))
    return values


def test_one_qid_serves_split_fit_and_score_under_metadata_routing(arrays):
    X, y, qid = arrays
    made, folds = ranker("ranksvm"), QueryFolds(3)
    expected = by_hand(made, arrays, folds)
    with config_context(enable_metadata_routing=True):
        assert cross_val_score(made, X, y, params={"qid": qid}, cv=folds).tolist() == expected
        both = {"qid": qid, "groups": qid}
        found = cross_validate(made, X, y, params=both, cv=folds)["test_score"]
        assert found.tolist() == expected
        search = GridSearchCV(made, {"l2": [1e-3, 1e3]}, cv=folds, error_score="raise")
        search.fit(X, y, qid=qid)
        means = [
            np.mean(by_hand(ranker("ranksvm", **setting), arrays, folds))
            for setting in search.cv_results_["params"]
        ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], means, rtol=1e-12)


def test_groups_are_query_ids_without_metadata_routing(arrays):
    X, y, qid = arrays
    folds = QueryFolds(4)
    found = cross_val_score(Ridge(), X, y, groups=qid, cv=folds)
    expected = []
    for queries in queries_of(folds, qid):
        test = np.isin(qid, list(queries))
        expected.append(Ridge().fit(X[~test], y[~test]).score(X[test], y[test]))
    np.testing.assert_allclose(found, expected)
    search = GridSearchCV(Ridge(), {"alpha": [1.0, 10.0]}, cv=folds).fit(X, y, groups=qid)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    with pytest.raises(UsageError, match="groups=qid"):
        cross_val_score(Ridge(), X, y, cv=folds)


def test_scores_of_held_out_queries_without_metadata_routing(arrays):
    X, y, qid = arrays
    made, folds = ranker("ranksvm"), QueryFolds(3)
    found = cross_val_predict(made, X, y, groups=qid, params={"qid": qid}, cv=folds)
    for queries in queries_of(folds, qid):
        test = np.isin(qid, list(queries))
        fitted = clone(made).fit(X[~test], y[~test], qid=qid[~test])
        np.testing.assert_array_equal(found[test], fitted.predict(X[test]))
