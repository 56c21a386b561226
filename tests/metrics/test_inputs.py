"""`evaluate` on arrays and frames: against scikit-learn, NumPy, and the same data grouped first."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

import rankwright
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, MissingExtraError, UsageError
from rankwright.metrics.evaluation import evaluate

Y = [2, 0, 1, 0, 3, 0]
SCORES = [0.9, 0.1, 0.2, 0.8, 0.4, 0.3]
QID = ["b", "a", "b", "a", "b", "c"]


def first_relevant(y, scores, qid):
    """1 / rank of the first document with a grade, by query: NumPy, one query at a time."""
    found = {}
    for query in dict.fromkeys(qid):
        here = np.array(qid) == query
        grades = np.array(y)[here][np.argsort(-np.array(scores)[here], kind="stable")]
        found[query] = 1 / (1 + np.argmax(grades > 0)) if grades.any() else 0.0
    return found


# --- arrays ----------------------------------------------------------------------------------


def test_scores_stay_with_their_grades():
    found = evaluate([0, 1, 2, 0], [0.3, 0.1, 0.8, 0.2], "mrr", qid=["b", "a", "b", "a"])
    assert found.per_query["mrr"].tolist() == [1, 1 / 2]  # b: 0.8 is right; a: 0.2 is not


def test_rows_may_come_in_any_order():
    found = evaluate(Y, SCORES, "mrr,p@1", qid=QID)
    assert found.qid.tolist() == ["b", "a", "c"]
    assert found.per_query["mrr"].tolist() == list(first_relevant(Y, SCORES, QID).values())
    assert found["p@1"] == 1 / 3


rows = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 10**6)),
    min_size=2,
    max_size=40,
    unique_by=lambda row: row[2],  # no ties
)


@given(rows, st.sampled_from([None, 1, 3]))
def test_ndcg_is_that_of_scikit_learn(rows, k):
    qid, y, scores = (np.array(column) for column in zip(*rows, strict=True))
    name = "ndcg" if k is None else f"ndcg@{k}"
    found = evaluate(y, scores, name, qid=qid, convention="sklearn", n_jobs=1)
    for query, value in zip(found.qid, found.per_query[name], strict=True):
        here = qid == query
        if here.sum() == 1:
            assert math.isnan(value)  # scikit-learn refuses a list of one
        else:
            assert value == pytest.approx(ndcg_score([y[here]], [scores[here]], k=k), abs=1e-12)


@given(rows, st.randoms(use_true_random=False))
def test_shuffled_rows_give_the_same_values(rows, random):
    mixed = random.sample(rows, len(rows))
    frames = []
    for some in (rows, mixed):
        qid, y, scores = zip(*some, strict=True)
        found = evaluate(y, scores, "map,ndcg@3", qid=qid, n_jobs=1).to_frame()
        frames.append(found.sort_values("qid", ignore_index=True))
    pd.testing.assert_frame_equal(*frames)


FORMS = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "column": lambda values: np.array(values)[:, None],
    "pandas": pd.Series,
    "polars": pl.Series,
    "arrow": pa.array,
    "chunked": lambda values: pa.chunked_array([values[:2], values[2:]]),
}


@pytest.mark.parametrize("form", FORMS)
def test_any_array_will_do(form):
    make = FORMS[form]
    found = evaluate(make(Y), make(SCORES), "ndcg@2,map", qid=make(QID))
    assert dict(found) == dict(evaluate(Y, SCORES, "ndcg@2,map", qid=QID))


def test_categories_and_sizes_are_queries():
    found = evaluate(Y, SCORES, "mrr", qid=pd.Categorical(QID))
    assert found["mrr"] == evaluate(Y, SCORES, "mrr", qid=QID)["mrr"]
    sized = evaluate(Y, SCORES, "mrr", group_sizes=[4, 0, 2])
    np.testing.assert_array_equal(sized.per_query["mrr"], [1, 0, 1])
    assert sized.qid.tolist() == [0, 1, 2]


def test_weights_groups_and_document_ids_follow_their_rows():
    weights = {"b": 5.0, "a": 1.0, "c": 2.0}
    expected = first_relevant(Y, SCORES, QID)
    mean = sum(weights[q] * expected[q] for q in weights) / sum(weights.values())
    per_row = [weights[q] for q in QID]
    assert evaluate(Y, SCORES, "mrr", qid=QID, query_weight=per_row)["mrr"] == pytest.approx(mean)
    per_query = list(weights.values())  # in order of first appearance
    assert evaluate(Y, SCORES, "mrr", qid=QID, query_weight=per_query)["mrr"] == pytest.approx(mean)
    host = ["x", "h", "y", "h", "x", "h"]  # of b, row 4 (grade 3) is below row 0 of its host
    name = "dcg(max_per_group=1,gain=linear)"
    found = evaluate(Y, SCORES, name, qid=QID, group=host).per_query[name]
    assert found[0] == pytest.approx(2 + 1 / math.log2(3))
    tied = evaluate(
        [1, 0, 0, 1], [1] * 4, "mrr", qid=[1, 2, 1, 2], doc_id=list("zxay"), convention="trec_eval"
    )
    assert tied.per_query["mrr"].tolist() == [1, 1]  # z before a, y before x


def test_ranking_data_gives_what_its_arrays_give():
    data = RankingData.from_arrays(np.zeros((6, 1)), Y, qid=QID)
    own_order = np.array(SCORES)[data.row]
    found = evaluate(data, own_order, "dcg,ndcg@2")
    assert dict(found) == dict(evaluate(Y, SCORES, "dcg,ndcg@2", qid=QID))
    assert found.qid.tolist() == ["b", "a", "c"]


def test_without_queries_all_rows_are_one_and_a_warning_says_so():
    with pytest.warns(UserWarning, match="no qid was given: all rows are taken as one query") as w:
        found = evaluate(Y, SCORES, "ndcg@3", convention="sklearn")
    assert w[0].filename == __file__
    assert found["ndcg@3"] == pytest.approx(ndcg_score([Y], [SCORES], k=3))
    assert evaluate(Y, SCORES, "ndcg@3", group_sizes=[6]).n_queries == 1  # and here it is meant


class MeanRanker:
    def predict(self, X):
        return np.mean(X, axis=1)


def test_a_tuple_as_eval_set_takes_it_has_the_grades_and_the_queries():
    expected = evaluate(Y, SCORES, "ndcg@1,map", qid=QID)
    for X in (np.zeros((6, 2)), pd.DataFrame({"a": Y})):
        found = evaluate((X, Y, QID), SCORES, "ndcg@1,map")
        assert dict(found) == dict(expected)
        assert found.qid.tolist() == expected.qid.tolist()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((Y, SCORES[:5], "map"), "one score per row: 6 are expected, not 5"),
        ((Y[:5], SCORES, "map"), "qid has 6 values, where 5 are expected"),
        ((Y, [*SCORES[:5], math.nan], "map"), r"the score of row 5 \(query c\) is NaN"),
        ((Y, [1, math.nan, 1, 1, 1, 1], "map"), r"the score of row 1 \(query a\) is NaN"),
        (([2, 0, math.nan, 0, 1, 0], SCORES, "map"), r"row 2 \(query b\) has nan"),
        (([2, 0, 1, -1, 1, 0], SCORES, "map"), r"grades must be .* row 3 \(query a\) has -1"),
        ((["good"] * 6, SCORES, "map"), "y must be numbers; row 0 holds 'good'"),
        ((Y, ["good"] * 6, "map"), "scores must be numbers"),
        (((Y, QID), SCORES, "map"), "is a tuple of 2 parts; give the grades alone"),
        ((([[1]], Y, QID), SCORES, "map"), r"\(X, y, qid\) has the queries; omit qid"),
        (
            (MeanRanker(), SCORES, "map"),
            "the first argument is a MeanRanker; give what it predicts",
        ),
        ((Y, MeanRanker(), "map"), "the scores argument is a MeanRanker; give what it predicts"),
        (([[1, 2], [3]], SCORES, "map"), "lists of different lengths"),
        ((np.zeros((2, 3)), SCORES, "map"), r"shape \(2, 3\).*put all queries end to end"),
        (("test.txt", SCORES, "map"), "is a text .test.txt.; read a file with rankwright.load"),
        ((None, SCORES, "map"), "the grades are None"),
        ((7, SCORES, "map"), "the grades are int, where an array is expected"),
        (
            (Y, "score", "map"),
            "scores='score' names a column, but the first argument is not a frame",
        ),
        (([], [], "map"), "there is no row to evaluate"),
        ((Y, SCORES, QID), "'b' is not the name of a measure|there is no metric 'b'"),
        ((Y, SCORES, [1, 2]), "a metric is a name, a Metric or a function .* not 1"),
    ],
)
def test_wrong_arrays_are_answered_with_a_sentence(arguments, sentence):
    qid = QID if arguments[1] else []
    with pytest.raises((DataError, UsageError), match=sentence):
        evaluate(*arguments, qid=qid)


def test_arguments_that_do_not_belong_together_are_refused():
    data = RankingData.from_arrays(np.zeros((6, 1)), Y, qid=QID)
    with pytest.raises(UsageError, match="RankingData has its own qid; leave"):
        evaluate(data, SCORES, "map", qid=QID)
    with pytest.raises(UsageError, match="grades are given twice"):
        evaluate(Y, SCORES, "map", y=Y, qid=QID)
    with pytest.raises(DataError, match="not both"):
        evaluate(Y, SCORES, "map", qid=QID, group_sizes=[6])
    with pytest.raises(UsageError, match="qid='query' names a column"):
        evaluate(Y, SCORES, "map", qid="query")
    with pytest.raises(DataError, match="sizes of queries are given as group_sizes"):
        evaluate(Y, SCORES, "map", qid=[4, 2])


def test_series_whose_indexes_differ_in_order_are_refused():
    y, scores = pd.Series(Y), pd.Series(SCORES)
    with pytest.raises(DataError, match=r"index of scores is that of y in another order.*y\.index"):
        evaluate(y, scores.sort_values(), "map", qid=QID)
    shifted = pd.Series(SCORES, index=range(10, 16))  # another index altogether: by place
    assert dict(evaluate(y, shifted, "map", qid=QID)) == dict(evaluate(Y, SCORES, "map", qid=QID))


# --- frames ----------------------------------------------------------------------------------

FRAME = pd.DataFrame(
    {"grade": Y, "score": SCORES, "query": QID, "host": list("xhyhxh"), "w": [5, 1, 5, 1, 5, 2]}
)
BACKENDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy().collect(),
    "arrow": pa.Table.from_pandas,
}


@pytest.mark.parametrize("backend", BACKENDS)
def test_frames_are_taken_by_the_names_of_their_columns(backend):
    frame = BACKENDS[backend](FRAME)
    names = "mrr,ndcg(max_per_group=1)@2"
    found = evaluate(frame, "score", names, y="grade", qid="query", query_weight="w", group="host")
    arrays = evaluate(Y, SCORES, names, qid=QID, query_weight=FRAME["w"], group=list(FRAME["host"]))
    assert dict(found) == dict(arrays)
    assert found.qid.tolist() == ["b", "a", "c"]


def test_arrays_may_stand_beside_columns():
    found = evaluate(FRAME, np.array(SCORES), "mrr", y="grade", qid=QID)
    assert dict(found) == dict(evaluate(Y, SCORES, "mrr", qid=QID))


def test_wrong_columns_are_answered_with_a_sentence():
    with pytest.raises(UsageError, match=r"column of the grades is not named.*y='grade'"):
        evaluate(FRAME, "score", "map", qid="query")
    with pytest.raises(DataError, match="there is no column 'scores'; did you mean score"):
        evaluate(FRAME, "scores", "map", y="grade", qid="query")
    with pytest.raises(DataError, match="there is no column 'qid'"):
        evaluate(FRAME, "score", "map", y="grade", qid="qid")
    with pytest.warns(UserWarning, match="no qid was given"):
        evaluate(FRAME, "score", "map", y="grade")
    missing = FRAME.astype({"query": object}).copy()
    missing.loc[3, "query"] = None
    with pytest.raises(DataError, match="the query id is missing at row 3"):
        evaluate(missing, "score", "map", y="grade", qid="query")
    with pytest.raises(DataError, match=r"index of scores is that of frame in another order"):
        evaluate(FRAME, FRAME["score"].sort_values(), "map", y="grade", qid="query")


# --- the result ------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_frame_has_a_row_for_each_query(backend):
    found = evaluate(Y, SCORES, "mrr,auc", qid=QID)
    frame = found.to_frame(backend)
    names = frame.column_names if backend == "pyarrow" else list(frame.columns)
    assert names == ["qid", "mrr", "auc"]
    assert list(np.asarray(frame["qid"])) == ["b", "a", "c"]
    for name in ("mrr", "auc"):
        np.testing.assert_array_equal(np.asarray(frame[name]), found.per_query[name])
    assert np.isnan(np.asarray(frame["auc"])[2])  # c has one document: left out


def test_without_pandas_a_sentence_says_what_to_install(monkeypatch):
    import narwhals

    def not_there(*_, **__):
        raise ModuleNotFoundError("no module")

    monkeypatch.setattr(narwhals, "from_dict", not_there)
    found = evaluate(Y, SCORES, "mrr", qid=QID)
    with pytest.raises(UsageError, match="pandas is not installed: pip install pandas"):
        found.to_frame()
    with pytest.raises(MissingExtraError, match="pyarrow"):
        found.to_frame("pyarrow")


def test_the_public_name_is_this_function():
    assert rankwright.evaluate is evaluate
