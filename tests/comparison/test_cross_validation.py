"""`cross_validate` against the loop written out, for every kind of input and of folds."""

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from small_data import small_data

import rankwright as rw
from rankwright.errors import UsageError

DATA = small_data(queries=18, documents=10)
ROWS = np.random.default_rng(0).permutation(DATA.n_documents)  # queries need not be contiguous
X, Y, QID = DATA.X[ROWS], DATA.y[ROWS], np.repeat(DATA.qid, DATA.sizes)[ROWS]


def by_hand(splitter, made=None):
    """Value of each fold, of each query, and the score of each row."""
    values, per_query, scores = [], {}, np.full(len(Y), np.nan)
    for train, test in splitter.split(X, Y, QID):
        fitted = (made or rw.RankSVM()).fit(X[train], Y[train], qid=QID[train])
        scores[test] = fitted.predict(X[test])
        found = rw.evaluate(Y[test], scores[test], "ndcg@5", qid=QID[test])
        values.append(found["ndcg@5"])
        per_query |= dict(zip(found.qid.tolist(), found.per_query["ndcg@5"].tolist(), strict=True))
    return values, per_query, scores


def test_it_is_the_loop_written_out_without_any_setting():
    assert not get_config()["enable_metadata_routing"]
    values, per_query, scores = by_hand(rw.QueryFolds(4))
    made = rw.RankSVM()
    found = rw.cross_validate(made, X, Y, qid=QID, cv=4, metrics="ndcg@5,map")
    np.testing.assert_allclose(found.values["ndcg@5"], values, rtol=1e-12)
    assert found.mean["ndcg@5"] == pytest.approx(np.mean(values))
    assert found.std["ndcg@5"] == pytest.approx(np.std(values))
    assert dict(zip(found.qid.tolist(), found.per_query["ndcg@5"].tolist(), strict=True)) == (
        pytest.approx(per_query)
    )
    np.testing.assert_allclose(found.scores, scores)
    assert not hasattr(made, "model_")
    with pytest.raises(UsageError, match="return_estimator=True"):
        _ = found.estimators


def test_frames_and_ranking_data_give_the_same():
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(query=QID, grade=Y, title="text")
    expected = rw.cross_validate("ranksvm", X, Y, qid=QID, cv=3).values["ndcg@10"]
    for given, named in (
        ((frame, "grade"), {"qid": "query", "drop": ["title"]}),
        ((rw.RankingData.from_arrays(X, Y, qid=QID),), {}),
    ):
        found = rw.cross_validate(rw.RankSVM(), *given, cv=3, **named)
        np.testing.assert_allclose(found.values["ndcg@10"], expected, rtol=1e-12)


def test_splitters_of_scikit_learn_and_rows_are_taken_where_queries_stay_whole():
    values, _, _ = by_hand(GroupKFold(3))
    rows = list(GroupKFold(3).split(X, Y, QID))
    found = rw.cross_validate(rw.RankSVM(), X, Y, qid=QID, cv=rows, metrics="ndcg@5")
    np.testing.assert_allclose(found.values["ndcg@5"], values, rtol=1e-12)
    splitter = rw.cross_validate(rw.RankSVM(), X, Y, qid=QID, cv=GroupKFold(3), metrics="ndcg@5")
    assert len(splitter.qid) == 18
    once = rw.cross_validate(rw.RankSVM(), X, Y, qid=QID, cv=rows[:1], metrics="ndcg@5")
    assert once.values["ndcg@5"][0] == pytest.approx(values[0])
    assert np.isnan(once.scores).sum() == len(rows[0][0])


def test_a_fold_of_three_parts_is_refused():
    with pytest.raises(UsageError, match=r"each fold of cv is \(train, test\), two arrays of row"):
        rw.cross_validate(rw.RankSVM(), DATA, cv=[([0], [1], [2])])


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
def test_folds_that_cut_queries_are_refused():
    rows = list(KFold(3).split(X))
    for cv in (KFold(3), rows):
        with pytest.raises(UsageError, match=r"these folds cut 18 of 18 queries.*QueryFolds"):
            rw.cross_validate(rw.RankSVM(), X, Y, qid=QID, cv=cv)


@pytest.mark.parametrize(
    ("made", "takes_qid"),
    [(make_pipeline(StandardScaler(), rw.RankSVM()), True), (Ridge(), False)],
)
def test_estimators_of_scikit_learn(made, takes_qid):
    found = rw.cross_validate(made, X, Y, qid=QID, cv=3, return_estimator=True)
    for (train, test), fold in zip(rw.QueryFolds(3).split(X, Y, QID), found.folds, strict=True):
        if takes_qid:
            scaler = StandardScaler().fit(X[train])
            fitted = rw.RankSVM().fit(scaler.transform(X[train]), Y[train], qid=QID[train])
            scores = fitted.predict(scaler.transform(X[test]))
        else:
            scores = Ridge().fit(X[train], Y[train]).predict(X[test])
        np.testing.assert_allclose(found.scores[test], scores, atol=1e-6)
        assert type(fold.estimator) is type(made)
    assert len(found.estimators) == 3


def by_name(last):
    """A pipeline that chooses its columns by their names."""
    columns = ColumnTransformer(
        [("scaled", StandardScaler(), ["b", "a"]), ("kind", OneHotEncoder(), ["kind"])]
    )
    return make_pipeline(columns, last)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow", "data"])
@pytest.mark.parametrize("last", [rw.RankSVM(), Ridge()], ids=["ranker", "ridge"])
def test_pipelines_choose_columns_of_a_frame_by_name(backend, last):
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(query=QID, grade=Y)
    frame["kind"] = pd.Categorical(np.where(X[:, 2] > 0, "new", "old"))
    features = frame.drop(columns=["query", "grade"])
    expected = np.full(len(Y), np.nan)
    for train, test in rw.QueryFolds(3).split(X, Y, QID):
        made = by_name(clone(last))
        with config_context(enable_metadata_routing=True):
            routed = {"qid": QID[train]} if isinstance(last, rw.RankSVM) else {}
            made.fit(features.iloc[train], Y[train], **routed)
        expected[test] = made.predict(features.iloc[test])
    if backend == "data":
        given = rw.RankingData.from_frame(frame, qid="query", label="grade")
        found = rw.cross_validate(by_name(last), given, cv=3)
    else:
        given = nw.from_native(frame)
        given = {"pandas": frame, "polars": given.to_polars(), "pyarrow": given.to_arrow()}[backend]
        found = rw.cross_validate(by_name(last), given, "grade", qid="query", cv=3)
    np.testing.assert_allclose(found.scores, expected, atol=1e-5)


def test_a_pipeline_sees_the_types_of_the_columns():
    frame = pd.DataFrame({"count": (10 * X[:, 0]).astype(int), "value": X[:, 1]})
    chosen = ColumnTransformer([("whole", StandardScaler(), make_column_selector("count"))])
    of_type = ColumnTransformer(
        [("whole", StandardScaler(), make_column_selector(dtype_include=int))]
    )
    expected, found = (
        rw.cross_validate(make_pipeline(one, Ridge()), frame, Y, qid=QID, cv=3).scores
        for one in (chosen, of_type)
    )
    np.testing.assert_array_equal(found, expected)


def test_it_prints_and_becomes_frames():
    found = rw.cross_validate(rw.RankSVM(), DATA, cv=3, metrics="ndcg@5,map")
    head, first, second = str(found).splitlines()
    assert head == "CrossValidation (RankSVM, 3 folds, 18 queries, convention standard)"
    assert first.split()[0] == "ndcg@5"
    assert f"{found.mean['map']:.4f} ± {found.std['map']:.4f}" in second
    folds = found.to_frame()
    assert list(folds) == ["fold", "queries", "ndcg@5", "map", "fit_seconds", "predict_seconds"]
    assert folds["queries"].tolist() == [6, 6, 6]
    queries = found.to_frame("query", backend="polars")
    assert queries.columns == ["qid", "fold", "ndcg@5", "map"]
    means = queries.group_by("fold").mean().sort("fold")["map"].to_list()
    assert means == pytest.approx(folds["map"].tolist())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"cv": 1}, "n_splits must be 2 or more"),
        ({"cv": 19}, "18 queries cannot be cut into 19 folds"),
        ({"cv": "five"}, "cv is the number of folds"),
        ({"cv": []}, "cv has no folds"),
        ({"metrics": "ndgc"}, "ndgc"),
    ],
)
def test_what_makes_no_sense_is_refused(given, says):
    with pytest.raises(ValueError, match=says):
        rw.cross_validate(rw.RankSVM(), DATA, **given)
    with pytest.raises(UsageError, match="takes a ranker, its name or a scikit-learn estimator"):
        rw.cross_validate(3, DATA)
