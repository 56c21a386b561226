"""Rankers on frames: columns go by their names, and what is no feature is ignored."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from small_data import small_data

import rankwright as rw
from rankwright import clicks
from rankwright.errors import DataError, UsageError

DATA = small_data(queries=12, documents=8, features=4)
QID = np.repeat(DATA.qid, DATA.sizes)
FEATURES = ["price", "age", "bm25", "length"]


def frame_of(kind=pd.DataFrame):
    columns = {name: DATA.X[:, number] for number, name in enumerate(FEATURES)}
    names = {
        "query": [f"q{q}" for q in QID],
        "doc": [f"d{row}" for row in range(len(QID))],
        "title": ["a title"] * len(QID),
        "grade": DATA.y,
    }
    return kind({**names, **columns})


FRAME = frame_of()
FITTED = rw.RankSVM().fit(FRAME, "grade", qid="query", drop=["title"])
ALONE = rw.RankSVM().fit(DATA.X, DATA.y, qid=QID)


def test_fit_takes_features_and_drop_and_finds_documents():
    assert list(FITTED.feature_names_in_) == FEATURES
    np.testing.assert_array_equal(FITTED.coef_, ALONE.coef_)
    some = rw.RankSVM().fit(FRAME, "grade", qid="query", features=["bm25", "price"])
    by_hand = rw.RankSVM().fit(DATA.X[:, [2, 0]], DATA.y, qid=QID)
    assert list(some.feature_names_in_) == ["bm25", "price"]
    np.testing.assert_array_equal(some.coef_, by_hand.coef_)


def test_fit_takes_features_and_drop_beside_arrays_and_of_ranking_data():
    beside = rw.RankSVM().fit(FRAME, DATA.y, qid=QID, features=FEATURES)
    np.testing.assert_array_equal(beside.coef_, ALONE.coef_)
    left = FRAME.drop(columns=["query", "doc", "title", "grade"])
    without = rw.RankSVM().fit(left, DATA.y, qid=QID, drop="age,length")
    data = rw.RankingData.from_arrays(DATA.X, DATA.y, qid=QID, feature_names=FEATURES)
    of_data = rw.RankSVM().fit(data, drop=["age", "length"], eval_set=data.select(slice(4)))
    assert list(without.feature_names_in_) == list(of_data.feature_names_in_) == ["price", "bm25"]
    np.testing.assert_array_equal(without.coef_, of_data.coef_)


def test_names_that_are_usual_need_not_be_given():
    found = rw.RankSVM().fit(FRAME, "grade", drop=["title"])
    np.testing.assert_array_equal(found.coef_, ALONE.coef_)
    found = rw.RankSVM().fit(FRAME, qid="query", drop=["title"])
    np.testing.assert_array_equal(found.coef_, ALONE.coef_)


def test_weights_may_be_columns():
    weight = np.where(QID % 2, 1.0, 3.0)
    weighted = FRAME.assign(trust=weight)
    named = rw.RankSVM().fit(weighted, "grade", qid="query", sample_weight="trust", drop=["title"])
    given = rw.RankSVM().fit(FRAME, "grade", qid="query", sample_weight=weight, drop=["title"])
    by_hand = rw.RankSVM().fit(DATA.X, DATA.y, qid=QID, sample_weight=weight)
    np.testing.assert_array_equal(named.coef_, by_hand.coef_)
    np.testing.assert_array_equal(given.coef_, by_hand.coef_)
    assert (by_hand.coef_ != ALONE.coef_).any()


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_predict_rank_and_score_ignore_other_columns_and_their_order(kind):
    frame = frame_of(kind)
    mixed = frame[["title", "length", "query", "bm25", "age", "doc", "grade", "price"]]
    expected = ALONE.predict(DATA.X)
    np.testing.assert_array_equal(FITTED.predict(mixed), expected)
    best = ALONE.rank(DATA.X, qid=QID)
    for ranking in (FITTED.rank(mixed), FITTED.rank(mixed, qid="query")):
        np.testing.assert_array_equal(ranking.order, best.order)
        assert ranking.doc_id.tolist() == [f"d{row}" for row in best.order]
    value = ALONE.score(DATA.X, DATA.y, qid=QID)
    assert FITTED.score(mixed, "grade", qid="query") == value
    assert FITTED.score(mixed, mixed["grade"], qid=mixed["query"]) == value


def test_validation_frames_may_have_more_columns():
    wide = (FRAME[:40].assign(note="text"), "grade", "query")
    found = rw.LambdaMART(n_estimators=3, min_child_samples=3).fit(
        FRAME, "grade", qid="query", drop=["title"], eval_set=wide
    )
    assert len(found.evals_result_["valid"]["ndcg@10"]) == 3


@pytest.mark.parametrize(
    "use",
    [
        lambda frame: FITTED.predict(frame),
        lambda frame: FITTED.rank(frame),
        lambda frame: FITTED.score(frame, "grade", qid="query"),
        lambda frame: rw.explain(FITTED, frame, query="q1"),
    ],
)
def test_a_missing_feature_is_one_sentence(use):
    with pytest.raises(DataError, match=r"^the feature 'age' of the fitted ranker is missing"):
        use(FRAME.drop(columns="age"))


def test_text_among_the_features_says_what_to_do():
    with pytest.raises(DataError, match=r"'title'.*features=\.\.\..*drop=\['title'\]"):
        rw.RankSVM().fit(FRAME, "grade", qid="query")
    with pytest.raises(DataError, match=r"'title'.*drop=\['title'\]"):
        rw.RankSVM().fit(FRAME[["title", *FEATURES]], DATA.y, qid=QID)
    with pytest.raises(DataError, match="no column 'titel'; did you mean title"):
        rw.RankSVM().fit(FRAME, "grade", qid="query", drop=["titel"])


def test_explanations_of_a_frame_are_those_of_its_data():
    data = rw.RankingData.from_frame(
        FRAME, qid="query", label="grade", doc_id="doc", drop=["title"]
    )
    for docs in (None, ["d9", "d11"]):
        expected = str(rw.explain(FITTED, data, query="q1", docs=docs))
        assert str(rw.explain(FITTED, FRAME, query="q1", docs=docs)) == expected
    renamed = FRAME.rename(columns={"query": "search"}).drop(columns="grade")
    assert "query q1" in str(rw.explain(FITTED, renamed, query="q1", qid="search"))
    assert rw.importance(FITTED, "shap", data=FRAME) == rw.importance(FITTED, "shap", data=data)
    with pytest.raises(UsageError, match=r"explain takes RankingData, or a frame.*of 3 parts"):
        rw.explain(FITTED, (DATA.X, DATA.y, QID), query=1)


@pytest.mark.parametrize("kind", ["boolean", "bool[pyarrow]", "object"])
def test_missing_booleans_are_missing_in_fit_and_predict(kind):
    seen = pd.Series([True, False, None] * (len(QID) // 3)).astype(kind)
    frame = pd.DataFrame({"price": DATA.X[:, 0], "seen": seen})
    number = frame.assign(seen=[1.0, 0.0, np.nan] * (len(QID) // 3))
    by_name = rw.LambdaMART(n_estimators=3).fit(
        frame.assign(grade=DATA.y, query=QID), "grade", qid="query"
    )
    by_array = rw.LambdaMART(n_estimators=3).fit(frame, DATA.y, qid=QID)
    for fitted in (by_name, by_array):
        np.testing.assert_array_equal(fitted.predict(frame), by_array.predict(number))


def test_masked_arrays_are_never_used_with_the_hidden_values():
    X = np.ma.masked_array(DATA.X, mask=DATA.X > 1)
    nan = np.where(DATA.X > 1, np.nan, DATA.X)
    fitted = rw.LambdaMART(n_estimators=3).fit(X, DATA.y, qid=QID)
    expected = rw.LambdaMART(n_estimators=3).fit(nan, DATA.y, qid=QID).predict(nan)
    np.testing.assert_array_equal(fitted.predict(X), expected)
    with pytest.raises(DataError, match="has missing values"):
        rw.RankSVM().fit(X, DATA.y, qid=QID)
    ones = np.ma.masked_array(np.ones(len(QID)), mask=QID == 3)
    sizes = np.ma.masked_array(DATA.sizes, mask=DATA.qid == 3)
    for arguments in (
        {"y": np.ma.masked_array(DATA.y, mask=DATA.y == 1), "qid": QID},
        {"y": DATA.y, "qid": np.ma.masked_array(QID, mask=QID == 3)},
        {"y": DATA.y, "qid": QID, "sample_weight": ones},
        {"y": DATA.y, "qid": QID, "query_weight": ones},
        {"y": DATA.y, "group_sizes": sizes},
    ):
        with pytest.raises(DataError, match="is masked; leave out such rows"):
            rw.RankSVM().fit(DATA.X, **arguments)
    for y, scores in ((ones, DATA.X[:, 0]), (DATA.y, ones)):
        with pytest.raises(DataError, match="is masked; leave out such rows"):
            rw.evaluate(y, scores, "ndcg", qid=QID)


# --- validation data that is the training data ------------------------------------------------


def as_frame(data):
    columns = {f"f{n}": data.X[:, n] for n in range(data.n_features)}
    return pd.DataFrame({**columns, "grade": data.y, "query": np.repeat(data.qid, data.sizes)})


def fit_to_itself(kind):
    data = small_data(queries=6, documents=5)
    rows = np.repeat(data.qid, data.sizes)
    if kind == "same object":
        return rw.RankSVM().fit(data, eval_set=data)
    if kind == "arrays":
        return rw.RankSVM().fit(data.X, data.y, qid=rows, eval_set=(data.X.copy(), data.y, rows))
    if kind == "sparse":
        X = sparse.csr_matrix(data.X)
        return rw.RankSVM().fit(X, data.y, qid=rows, eval_set=(X.copy(), data.y, rows))
    if kind == "frame":
        valid = as_frame(data)
        valid = valid.iloc[::-1], valid["grade"][::-1], valid["query"][::-1]
        return rw.RankSVM().fit(as_frame(data), "grade", qid="query", eval_set=valid)
    if kind == "shuffled":
        return rw.GBDT(n_estimators=2).fit(data, eval_set=data.select([3, 1, 0, 2, 5, 4]))
    if kind == "several":
        return rw.RankSVM().fit(data, eval_set={"other": small_data(seed=1), "train": data})
    assert kind == "ratings"
    X = sparse.csr_matrix(np.tile(np.eye(4), (6, 1)))
    ratings = rw.RankingData.from_arrays(X, np.arange(24) % 4, qid=np.repeat(np.arange(6), 4))
    return rw.MMMF(max_iter=2).fit(ratings, eval_set=ratings)


@pytest.mark.parametrize(
    "kind", ["same object", "arrays", "sparse", "frame", "shuffled", "several", "ratings"]
)
def test_validation_data_that_is_the_training_data_is_reported(kind):
    with pytest.warns(UserWarning, match="eval_set holds the same queries as the training data"):
        fit_to_itself(kind)


def test_training_data_may_be_looked_at_besides_validation_data():
    data, valid = small_data(queries=6), small_data(queries=6, seed=1)
    rw.RankSVM().fit(data, eval_set=[data, valid])  # the last one selects


# --- the column of query ids is remembered ---------------------------------------------------

SEARCHES = FRAME.rename(columns={"query": "search"}).drop(columns="doc")
OF_SEARCHES = rw.RankSVM().fit(SEARCHES, "grade", qid="search", drop=["title"])


@pytest.mark.parametrize("reloaded", [False, True])
def test_rank_finds_queries_in_the_column_of_the_training_data(tmp_path, reloaded):
    ranker = OF_SEARCHES
    if reloaded:
        ranker.save(tmp_path / "model.rw")
        ranker = rw.load_model(tmp_path / "model.rw")
    assert ranker.qid_column_ == "search"
    expected = ALONE.rank(DATA.X, qid=QID).order
    np.testing.assert_array_equal(ranker.rank(SEARCHES).order, expected)
    # a column with a usual name does not replace it
    other = SEARCHES.assign(query="one text")
    np.testing.assert_array_equal(ranker.rank(other).order, expected)
    np.testing.assert_array_equal(ranker.rank(pl.from_pandas(SEARCHES)).order, expected)


def test_score_explain_and_importance_find_queries_in_that_column():
    value = ALONE.score(DATA.X, DATA.y, qid=QID)
    assert OF_SEARCHES.score(SEARCHES, "grade") == value
    assert "query q1" in str(rw.explain(OF_SEARCHES, SEARCHES, query="q1"))
    expected = rw.importance(FITTED, data=FRAME)
    assert rw.importance(OF_SEARCHES, data=SEARCHES) == expected
    assert rw.importance(FITTED, data=SEARCHES, qid="search") == expected


def test_rank_refuses_a_frame_without_the_column_of_query_ids():
    without = SEARCHES.drop(columns="search")
    with pytest.raises(DataError, match=r"column 'search', which the frame does not.*qid=\[0\]"):
        OF_SEARCHES.rank(without)
    np.testing.assert_array_equal(
        OF_SEARCHES.rank(without, qid=QID).order, OF_SEARCHES.rank(SEARCHES).order
    )
    assert len(OF_SEARCHES.rank(without, qid=[0] * len(without)).qid) == 1
    OF_SEARCHES.predict(without)  # scores do not depend on queries


def test_the_column_of_query_ids_is_remembered_from_data_and_forgotten_in_the_next_fit(tmp_path):
    SEARCHES.drop(columns="title").to_csv(tmp_path / "train.csv", index=False)
    data = rw.load(tmp_path / "train.csv", qid="search", label="grade")
    ranker = rw.RankSVM().fit(data)
    assert ranker.qid_column_ == "search"
    assert ranker.fit(data.select([3, 1, 2])).qid_column_ == "search"
    assert ranker.fit(DATA.X, DATA.y, qid=QID).qid_column_ is None
    frame = rw.RankingData.from_frame(SEARCHES, qid="search", label="grade", drop=["title"])
    assert rw.RankSVM().fit(frame).qid_column_ == "search"


def test_models_of_whole_lists_predict_by_that_column():
    pytest.importorskip("torch")
    model = rw.models.Network(hidden_layer_sizes=(4,), list_context=1, epochs=1)
    ranker = rw.Ranker("ranknet", model).fit(SEARCHES, "grade", qid="search", drop=["title"])
    expected = ranker.predict(SEARCHES, qid="search")
    np.testing.assert_array_equal(ranker.predict(SEARCHES), expected)
    with pytest.raises(UsageError, match="query of each row"):
        ranker.predict(SEARCHES.drop(columns="search"))


# --- ids beside a frame whose grades are an array ---------------------------------------------


@pytest.mark.parametrize("name", ["qid", "Query_ID", "group_id", "docid", "doc_id", "query_weight"])
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_ids_are_refused_as_features_where_grades_are_an_array(kind, name):
    frame = kind({name: QID, **{f: DATA.X[:, number] for number, f in enumerate(FEATURES)}})
    refusal = (
        rf"column '{name}' of X is named like .*; leave it out of X \(in fit: drop=\['{name}'\]"
    )
    with pytest.raises(DataError, match=refusal):
        rw.RankSVM().fit(frame, DATA.y, qid=QID)
    with pytest.raises(DataError, match=refusal):
        rw.RankSVM().fit(frame, DATA.y, group_sizes=DATA.sizes)
    with pytest.raises(DataError, match=refusal):
        rw.cross_validate(rw.RankSVM(), frame, DATA.y, qid=QID, cv=2)
    with pytest.raises(DataError, match=refusal):
        rw.train_valid_test_split(frame, DATA.y, qid=QID)
    with pytest.raises(DataError, match=refusal):
        rw.RankingData.from_arrays(frame, DATA.y, qid=QID)
    left = rw.RankSVM().fit(frame, DATA.y, qid=QID, drop=[name])
    np.testing.assert_array_equal(left.coef_, ALONE.coef_)
    np.testing.assert_array_equal(left.predict(frame), ALONE.predict(DATA.X))
    assert left.score(frame, DATA.y, qid=QID) == ALONE.score(DATA.X, DATA.y, qid=QID)
    chosen = rw.RankSVM().fit(frame, DATA.y, qid=QID, features=[name, "bm25"])
    assert list(chosen.feature_names_in_) == [name, "bm25"]
    assert len(chosen.predict(frame)) == len(QID)


# --- refusals name the feature and show little of a long value ---------------------------------


def test_a_lazy_frame_is_to_be_collected():
    lazy = pl.from_pandas(FRAME).lazy()
    for use in (
        lambda: rw.RankSVM().fit(lazy, "grade", qid="query"),
        lambda: rw.RankSVM().fit(lazy, DATA.y, qid=QID),
        lambda: FITTED.predict(lazy),
        lambda: FITTED.rank(lazy),
        lambda: rw.explain(FITTED, lazy, query="q1"),
        lambda: rw.importance(FITTED, data=lazy),
        lambda: rw.cross_validate("ranksvm", lazy, "grade", qid="query"),
        lambda: rw.evaluate(lazy, "price", qid="query"),
    ):
        with pytest.raises(DataError, match=r"X is a lazy frame; collect it first: X.collect\(\)"):
            use()


@pytest.mark.parametrize("value", [np.inf, np.nan, {"a": 1}], ids=["inf", "nan", "dict"])
@pytest.mark.parametrize(
    "use",
    [
        lambda X: rw.RankSVM().fit(X, DATA.y, qid=QID),
        lambda X: rw.RankSVM().fit(X.assign(grade=DATA.y, query=QID), "grade"),
        lambda X: rw.RankSVM().fit(X, DATA.y, group_sizes=DATA.sizes),
        lambda X: rw.RankSVM(solver="online").partial_fit(X, DATA.y, qid=QID),
        lambda X: rw.RankSVM().fit(FRAME, "grade", drop=["title"], eval_set=(X, DATA.y, QID)),
        lambda X: FITTED.predict(X),
        lambda X: FITTED.rank(X, qid=QID),
        lambda X: FITTED.score(X, DATA.y, qid=QID),
        lambda X: rw.explain(FITTED, X.assign(query=QID), query="0"),
    ],
)
def test_a_wrong_value_is_told_by_the_name_of_its_feature(use, value):
    X = pd.DataFrame(DATA.X, columns=FEATURES)
    X["bm25"] = X["bm25"].astype(object)
    X.at[3, "bm25"] = value
    if not isinstance(value, dict):
        X["bm25"] = X["bm25"].astype(float)
    with pytest.raises(DataError, match="'bm25'") as raised:
        use(X)
    assert "feature column 2" not in str(raised.value)


def test_a_wrong_value_of_an_array_is_told_by_its_column():
    X = DATA.X.copy()
    X[3, 2] = np.inf
    with pytest.raises(DataError, match="row 3, feature column 2"):
        rw.RankSVM().fit(X, DATA.y, qid=QID)


def test_long_values_are_shortened_in_refusals():
    long = "word " * 20_000
    frame = FRAME.assign(title=long)
    for use in (
        lambda: rw.RankSVM().fit(frame, "grade", qid="query"),
        lambda: rw.RankSVM().fit(frame[["title", *FEATURES]], DATA.y, qid=QID),
        lambda: rw.RankSVM().fit(np.full((len(QID), 2), long, object), DATA.y, qid=QID),
        lambda: rw.RankSVM().fit(DATA.X, [long] * len(QID), qid=QID),
        lambda: rw.RankSVM().fit(FRAME.assign(grade=long), "grade", drop=["title"]),
        lambda: DATA[long],
        lambda: rw.explain(FITTED, FRAME, query=long),
        lambda: rw.load(long[:250]),
        lambda: rw.ranker(long),
    ):
        with pytest.raises((DataError, UsageError)) as raised:
            use()
        assert len(str(raised.value)) < 1000


def test_a_message_of_any_length_is_bounded_and_keeps_its_end():
    text = str(DataError("a value is wrong: " + "x" * 100_000 + "; leave it out."))
    assert len(text) < 5000
    assert text.startswith("a value is wrong: x")
    assert text.endswith("x; leave it out.")


def test_the_column_of_query_ids_is_remembered_where_relevance_is_learned_from_clicks():
    table = SEARCHES.drop(columns="title").assign(
        doc=[f"d{row}" for row in range(len(QID))], position=np.arange(len(QID)) % 8 + 1
    )
    table["grade"] = (table["grade"] > 0).astype(float)
    columns = {"qid": "search", "label": "grade", "doc_id": "doc"}
    shown = rw.RankingData.from_frame(table, position="position", **columns)
    power = rw.clicks.Propensity.power(1, positions=8)
    assert rw.RankSVM().fit(shown, propensity=power).qid_column_ == "search"
    documents = rw.RankingData.from_frame(table.drop(columns="position"), **columns)
    log = rw.clicks.ClickLog.from_arrays(
        query=table["search"],
        document=table["doc"],
        click=table["grade"],
        session=table["search"],
        features=documents,
    )
    ranker = rw.RankSVM().fit(log, propensity=power)
    assert ranker.qid_column_ == "search"
    assert len(ranker.rank(SEARCHES).qid) == DATA.n_queries


def test_cofirank_predicts_for_the_users_in_the_column_of_the_training_data():
    frame = SEARCHES.drop(columns="title")
    ranker = rw.CofiRank(n_factors=2).fit(frame, "grade", qid="search")
    expected = ranker.predict(SEARCHES, qid=SEARCHES["search"])
    np.testing.assert_array_equal(ranker.predict(SEARCHES), expected)
    np.testing.assert_array_equal(ranker.predict(SEARCHES, qid="search"), expected)


@pytest.mark.parametrize(
    "column",
    [
        {"y": DATA.y},
        {"qid": QID},
        {"group_sizes": DATA.sizes},
        {"sample_weight": np.ones(len(QID))},
        {"query_weight": np.ones(12)},
    ],
    ids=lambda column: next(iter(column)),
)
def test_columns_next_to_ranking_data_are_refused(column):
    (name,) = column
    log = clicks.simulate(DATA, 1, sessions=2)
    for data, more in ((DATA, {}), (log, {"propensity": "joint"})):
        with pytest.raises(UsageError, match=f"have their own {name}; leave {name}="):
            rw.RankSVM().fit(data, **more, **column)
    if name == "qid":
        with pytest.raises(UsageError, match="have their own qid"):
            ALONE.rank(DATA, qid=QID)
