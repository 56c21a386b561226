import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rankwright.data.ranking_data import RankingData, concatenate
from rankwright.errors import DataError


def make(qid, **more):
    n = len(qid)
    X = np.arange(2.0 * n).reshape(n, 2)
    return RankingData.from_arrays(X, np.arange(n) % 3, qid=qid, **more)


def test_sorted_rows_stay_where_they_are():
    data = make([7, 7, 3, 3, 3])
    assert data.indptr.tolist() == [0, 2, 5]
    assert data.qid.tolist() == [7, 3]
    assert data.row is None


def test_unsorted_rows_are_grouped_in_order_of_first_appearance():
    data = make(["b", "a", "b", "a"], doc_id=["w", "x", "y", "z"])
    assert data.qid.tolist() == ["b", "a"]
    assert data.doc_id.tolist() == ["w", "y", "x", "z"]
    assert data.X[:, 0].tolist() == [0.0, 4.0, 2.0, 6.0]
    assert data.row.tolist() == [0, 2, 1, 3]


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=30))
def test_results_go_back_to_the_callers_rows(qid):
    data = make(qid)
    assert data.in_caller_order(data.y).tolist() == [i % 3 for i in range(len(qid))]
    for q, name in enumerate(data.qid):
        rows = data.in_caller_order(data.query_of_row() == q)
        assert rows.tolist() == [value == name for value in qid]


@pytest.mark.parametrize(
    "qid",
    [
        [1, 1, 2],
        ["x", "x", "y"],
        np.array(["x", "x", "y"], object),
        pd.Categorical(["x", "x", "y"]),
        pd.Series([1.0, 1.0, 2.0]),
        np.array([b"x", b"x", b"y"]),
    ],
)
def test_query_ids_of_any_type(qid):
    assert make(qid).sizes.tolist() == [2, 1]


@pytest.mark.parametrize(
    "qid",
    [
        ["a", None, "b"],
        [1.0, np.nan, 2.0],
        pd.Series(["a", None, "b"], dtype="string"),
        pd.Series([1, None, 2], dtype="Int64"),
        pd.to_datetime(pd.Series(["2026-01-01", None, "2026-01-02"])),
        pd.Categorical(["a", None, "b"]),
    ],
    ids=["None", "NaN", "NA of text", "NA of numbers", "NaT", "NA of categories"],
)
def test_a_missing_query_id_is_no_query(qid):
    with pytest.raises(DataError, match="the query id is missing at row 1"):
        RankingData.from_arrays(np.ones((3, 1)), [0, 1, 2], qid=qid)


def test_ids_that_are_no_ids_are_refused():
    qid = np.empty(2, object)
    qid[:] = [[1], [2]]
    with pytest.raises(DataError, match=r"the query id at row 0 is \[1\]; an id is a text"):
        RankingData.from_arrays(np.ones((2, 1)), [0, 1], qid=qid)


def test_ids_beyond_whole_numbers_stay_as_they_are():
    data = RankingData.from_arrays(np.ones((3, 1)), [0, 1, 2], qid=[1.0, np.inf, 1e300])
    assert data.qid.tolist() == [1.0, np.inf, 1e300]


def test_group_sizes_instead_of_ids():
    data = RankingData.from_arrays(np.ones((3, 1)), [0, 1, 2], group_sizes=[1, 0, 2])
    assert data.indptr.tolist() == [0, 1, 1, 3]
    assert data.qid.tolist() == [0, 1, 2]


def test_query_weights_per_query_or_per_row():
    per_query = make([5, 4, 5], query_weight=[2, 3])
    per_row = make([5, 4, 5], query_weight=[2, 3, 2])
    assert per_query.query_weight.tolist() == per_row.query_weight.tolist() == [2, 3]


def test_document_weights_follow_their_rows():
    assert make([1, 2, 1], sample_weight=[1, 2, 3]).sample_weight.tolist() == [1, 3, 2]


def test_sparse_rows_are_regrouped_like_dense_ones():
    X = np.arange(6.0).reshape(3, 2)
    dense = RankingData.from_arrays(X, [0, 1, 2], qid=[1, 2, 1])
    thin = RankingData.from_arrays(sparse.coo_array(X), [0, 1, 2], qid=[1, 2, 1])
    assert (thin.X.toarray() == dense.X).all()


def test_fractional_grades_and_missing_features_are_welcome():
    data = RankingData.from_arrays([[np.nan], [1.0]], [0.5, 31.7], qid=[1, 1])
    assert data.y.tolist() == [0.5, 31.7]
    assert np.isnan(data.X[0, 0])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "give the query of each row as qid="),
        ({"qid": [1, 1], "group_sizes": [2]}, "not both"),
        ({"qid": [1]}, "qid has 1 values, where 2 are expected"),
        ({"qid": [1, None]}, "query id is missing at row 1"),
        ({"qid": [1, np.nan]}, "query id is missing at row 1"),
        ({"group_sizes": [3]}, "add up to 3, but there are 2 rows"),
        ({"group_sizes": [1.5, 0.5]}, "whole numbers"),
        ({"qid": [1, 1], "query_weight": [-1]}, "query_weight must be finite and 0 or more"),
        ({"qid": [1, 1], "query_weight": [1, 2]}, "the same on all rows of a query"),
        ({"qid": [1, 1], "sample_weight": [0, 0]}, "every sample_weight is zero"),
        ({"qid": [1, 1], "sample_weight": [1, np.nan]}, "sample_weight must be finite"),
        ({"qid": [1, 1], "feature_names": ["a", "b"]}, "2 feature names for 1 features"),
    ],
)
def test_mistakes_are_told_in_a_sentence(arguments, sentence):
    with pytest.raises(DataError, match=sentence):
        RankingData.from_arrays([[1.0], [2.0]], [0, 1], **arguments)


@pytest.mark.parametrize("grade", [-1, np.nan, np.inf])
def test_a_wrong_grade_is_told_with_the_callers_row_and_query(grade):
    with pytest.raises(DataError, match=r"row 1 \(query b\) has"):
        RankingData.from_arrays([[1.0], [2.0], [3.0]], [0, grade, 1], qid=["a", "b", "a"])


def test_names_used_twice_are_refused():
    with pytest.raises(DataError, match="'a' is used twice"):
        RankingData.from_arrays([[1.0, 2.0]], [0], qid=[1], feature_names=["a", "a"])


def test_no_rows_are_refused():
    with pytest.raises(DataError, match=r"0 sample\(s\)"):
        RankingData.from_arrays(np.empty((0, 2)), [], qid=[])


def test_select_takes_queries_in_the_order_asked():
    data = make([1, 1, 2, 3, 3], doc_id=list("abcde"), query_weight=[1, 2, 3])
    part = data.select([2, 0])
    assert part.qid.tolist() == [3, 1]
    assert part.doc_id.tolist() == ["d", "e", "a", "b"]
    assert part.query_weight.tolist() == [3, 1]
    assert data.select(np.array([False, True, False])).doc_id.tolist() == ["c"]


def test_concatenate_undoes_select():
    data = make([1, 1, 2, 3, 3], doc_id=list("abcde"))
    again = concatenate([data.select([0]), data.select([1, 2])])
    assert again.indptr.tolist() == data.indptr.tolist()
    assert (again.X == data.X).all()
    assert again.doc_id.tolist() == list("abcde")


def test_concatenate_refuses_a_query_in_two_parts():
    data = make([1, 1, 2])
    with pytest.raises(DataError, match="query 2 is in more than one part"):
        concatenate([data.select([1]), data.select([1])])


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_missing_trailing_features_are_zeros_and_unknown_ones_are_refused(form):
    data = RankingData.from_arrays(form(np.ones((2, 2))), [0, 1], qid=[1, 1])
    wide = data.with_n_features(3)
    X = wide.X.toarray() if sparse.issparse(wide.X) else wide.X
    assert X.tolist() == [[1, 1, 0], [1, 1, 0]]
    assert data.with_n_features(2) is data
    with pytest.raises(DataError, match="has 2 features where 1 are expected"):
        data.with_n_features(1)
