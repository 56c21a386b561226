from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import rankwright as rw
from rankwright.data.click_files import load_log
from rankwright.data.click_log import ClickLog
from rankwright.data.inspect import inspect
from rankwright.data.ranking_data import (
    DistinctQueries,
    FeatureIds,
    PartsDifferError,
    RankingData,
    UnknownQueryError,
    boundaries_of_sizes,
    concatenate,
    consecutive,
    group_rows,
    parts_of,
    query_weights,
)
from rankwright.errors import DataError
from rankwright.rankers.base import ranker


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
def test_mistakes_are_reported_in_a_sentence(arguments, sentence):
    with pytest.raises(DataError, match=sentence):
        RankingData.from_arrays([[1.0], [2.0]], [0, 1], **arguments)


@pytest.mark.parametrize("grade", [-1, np.nan, np.inf])
def test_a_wrong_grade_is_reported_with_the_callers_row_and_query(grade):
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


def numbered(first, query, *, is_inferred=True):
    return replace(make([query]), feature_ids=FeatureIds(first, is_inferred))


def test_concatenate_refuses_parts_whose_feature_ids_begin_with_0_and_with_1():
    with pytest.raises(
        DataError, match="feature ids of the parts begin with 0 in one file and with 1"
    ):
        concatenate([numbered(1, 7), numbered(0, 8)])
    parts = [numbered(1, 7, is_inferred=False), numbered(0, 8, is_inferred=False)]
    assert concatenate(parts).n_queries == 2  # as the caller asked


def test_concatenate_keeps_the_numbering_of_the_parts_that_have_one():
    parts = [make([6]), numbered(0, 7), numbered(0, 8)]
    assert concatenate(parts).feature_ids == FeatureIds(0, True)
    assert concatenate([make([6])]).feature_ids is None


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_missing_trailing_features_are_zeros_and_unknown_ones_are_refused(form):
    data = RankingData.from_arrays(form(np.ones((2, 2))), [0, 1], qid=[1, 1])
    wide = data.with_n_features(3)
    X = wide.X.toarray() if sparse.issparse(wide.X) else wide.X
    assert X.tolist() == [[1, 1, 0], [1, 1, 0]]
    assert data.with_n_features(2) is data
    with pytest.raises(DataError, match="has 2 features where 1 are expected"):
        data.with_n_features(1)


# --- RankingData by query: one by its id, one after the other, in a line, in a frame ---------


X = np.arange(10.0).reshape(5, 2)
Y = [2, 0, 1, 0, 3]
QID = ["b", "a", "b", "a", "b"]


def data_of(X=X, qid=QID, **columns):
    return RankingData.from_arrays(X, Y, qid=qid, **columns)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_queries_come_in_order_with_their_documents(form):
    data = data_of(form(X), doc_id=list("vwxyz"), query_weight=[2, 5])
    found = list(data.queries())
    assert [query.qid for query in found] == ["b", "a"] == [query.qid for query in data]
    for query, rows in zip(found, ([0, 2, 4], [1, 3]), strict=True):
        features = query.X.toarray() if sparse.issparse(query.X) else query.X
        np.testing.assert_array_equal(features, X[rows])
        assert query.y.tolist() == [Y[row] for row in rows]
        assert query.rows.tolist() == rows
        assert query.doc_id.tolist() == ["vwxyz"[row] for row in rows]
        assert len(query) == len(rows)
    assert [query.weight for query in found] == [2, 5]


def test_rows_that_stay_where_they_are_are_counted():
    data = RankingData.from_arrays(X, Y, group_sizes=[2, 0, 3])
    assert [query.rows.tolist() for query in data] == [[0, 1], [], [2, 3, 4]]
    assert [query.weight for query in data] == [1, 1, 1]
    assert data[0].doc_id is None
    assert repr(data[1]) == "Query(1, 0 documents, no grades)"


def test_dense_features_of_a_query_are_no_copy():
    data = RankingData.from_arrays(X, Y, group_sizes=[2, 3])
    assert np.shares_memory(data[1].X, data.X)


def test_a_query_is_found_by_its_id():
    data = data_of()
    assert len(data) == 2
    assert repr(data["a"]) == "Query('a', 2 documents, grades 0 to 0)"
    assert "a" in data
    assert np.str_("a") in data
    assert "c" not in data
    assert data_of(qid=[7, 3, 7, 3, 7])[3].rows.tolist() == [1, 3]
    assert type(data_of(qid=[7, 3, 7, 3, 7])[3].qid) is int
    mixed = np.array([7, "x", 7, "x", 7], object)
    assert data_of(qid=mixed)["x"].rows.tolist() == [1, 3]
    pairs = np.empty(5, object)
    pairs[:] = [("u", 1), ("u", 2)] * 2 + [("u", 1)]
    assert data_of(qid=pairs)["u", 2].rows.tolist() == [1, 3]
    assert ("u", 3) not in data_of(qid=pairs)
    assert ("u", 2) not in data_of()
    dates = np.array(["2024-01-02", "2024-01-01"] * 2 + ["2024-01-02"], "datetime64[D]")
    assert data_of(qid=dates)[np.datetime64("2024-01-01")].rows.tolist() == [1, 3]


@pytest.mark.parametrize(
    ("qid", "query", "sentence"),
    [
        (QID, "c", "there is no query 'c'; the ids of the 2 queries are 'b', 'a'."),
        (QID, 0, "there is no query 0; the ids of the 2 queries are 'b', 'a'."),
        ([17, 3, 17, 3, 17], "17", "there is no query '17'; did you mean 17?"),
        (["one", "two"] * 2 + ["one"], "tow", "there is no query 'tow'; did you mean 'two'?"),
        (list(range(5)), 9, "there is no query 9; the ids of the 5 queries are 0, 1, 2, ...."),
        (QID, slice(0, 1), "RankingData[...] takes the id of one query, not slice(0, 1, None)"),
        (QID, np.array(["a", "b"]), "takes the id of one query, not array(['a', 'b']"),
        (QID, ["a", "b"], "takes the id of one query, not ['a', 'b']; select takes the numbers"),
    ],
)
def test_an_id_that_is_not_there_is_answered_with_a_sentence(qid, query, sentence):
    with pytest.raises(UnknownQueryError) as error:
        data_of(qid=qid)[query]
    assert sentence in str(error.value)
    assert isinstance(error.value, KeyError)
    assert isinstance(error.value, DataError)


def test_the_repr_says_what_the_data_has():
    assert repr(data_of()) == (
        "RankingData(2 queries, 5 documents, 2 features (float64), grades 0 to 3)"
    )
    rich = data_of(
        sparse.csr_array(X), doc_id=list("vwxyz"), query_weight=[1, 2], feature_names=["f", "g"]
    )
    assert repr(rich) == (
        "RankingData(2 queries, 5 documents, 2 features (sparse, named), grades 0 to 3, "
        "with query_weight, doc_id)"
    )


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_frame_holds_all_and_is_read_back(backend):
    data = data_of(
        doc_id=list("vwxyz"), query_weight=[2, 5], sample_weight=[1, 2, 3, 4, 5], group=[0] * 5
    )
    optional = {name: name for name in ("doc_id", "query_weight", "sample_weight", "group")}
    again = RankingData.from_frame(data.to_frame(backend), qid="qid", label="label", **optional)
    for name in ("X", "y", "indptr", "qid", *optional):
        np.testing.assert_array_equal(getattr(again, name), getattr(data, name))
    assert again.feature_names == ("f1", "f2")


# --- boundaries of queries, from ids in any order or from sizes, and weights of queries ------


def test_ids_that_stand_together_keep_their_rows():
    indptr, ids, row = group_rows(np.array([7, 7, 3]))
    assert (indptr.tolist(), ids.tolist(), row) == ([0, 2, 3], [7, 3], None)


def test_ids_that_lie_apart_are_put_together_in_order_of_first_appearance():
    indptr, ids, row = group_rows(np.array(["b", "a", "b", "a"]))
    assert (indptr.tolist(), ids.tolist()) == ([0, 2, 4], ["b", "a"])
    assert row.tolist() == [0, 2, 1, 3]


def test_sizes_number_the_queries():
    indptr, ids, row = boundaries_of_sizes([2, 0, 1], 3)
    assert (indptr.tolist(), ids.tolist(), row) == ([0, 2, 2, 3], [0, 1, 2], None)


def test_a_weight_per_row_follows_the_rows():
    indptr, row = np.array([0, 2, 4]), np.array([0, 2, 1, 3])
    assert query_weights([1, 2, 1, 2], 4, indptr, row).tolist() == [1, 2]
    with pytest.raises(DataError, match="the same on all rows of a query"):
        query_weights([1, 1, 2, 2], 4, indptr, row)


# --- data in parts of whole queries, each query in one of them -------------------------------


DATA = RankingData.from_arrays(
    np.arange(10.0).reshape(-1, 1),
    np.zeros(10),
    group_sizes=[3, 0, 4, 1, 2],
    query_weight=[1, 2, 3, 4, 5],
    doc_id=list("abcdefghij"),
)


def test_parts_hold_whole_queries_as_views():
    parts = list(parts_of(DATA, rows=4))
    assert [part.sizes.tolist() for part in parts] == [[3, 0], [4], [1, 2]]
    assert [part.qid.tolist() for part in parts] == [[0, 1], [2], [3, 4]]
    assert all(np.shares_memory(part.X, DATA.X) for part in parts)


def test_consecutive_queries_keep_all_they_have():
    part = consecutive(DATA, 2, 4)
    assert part.X[:, 0].tolist() == [3, 4, 5, 6, 7]
    assert part.doc_id.tolist() == list("defgh")
    assert part.query_weight.tolist() == [3, 4]


def test_a_query_is_in_one_part_alone():
    queries = DistinctQueries()
    for part in parts_of(DATA, rows=4):
        queries.add(part)
    with pytest.raises(PartsDifferError, match="query 2 appears twice"):
        queries.add(consecutive(DATA, 2, 3))


def test_grades_go_up_to_where_doubles_hold_every_whole_number():
    data = RankingData.from_arrays(np.ones((2, 1)), [0, 2.0**53], qid=[1, 1])
    assert data.y[1] == 2.0**53
    with pytest.raises(DataError, match=r"at most 2\^53; row 1 \(query 7\) has 1e\+308\. Divide"):
        RankingData.from_arrays(np.ones((2, 1)), [0, 1e308], qid=[7, 7])
    with pytest.raises(DataError, match=r"grades must be finite and 0 or more; row 0"):
        RankingData.from_arrays(np.ones((2, 1)), [np.inf, 1], qid=[7, 7])


def test_features_that_nearly_all_lack_values_are_not_worked_on():
    wide = sparse.csr_array(([1.0, 1.0], ([0, 1], [0, 2**26 - 1])), shape=(2, 2**26))
    data = RankingData.from_arrays(wide, [0, 1], qid=[1, 1])
    for work in (data.check_width, lambda: inspect(data), lambda: ranker("memr").fit(data)):
        with pytest.raises(DataError, match=r"67,108,864 features but only 2 values that are not"):
            work()
    hashed = sparse.csr_array(np.ones((64, 300)))
    hashed.resize(64, 2**20 + 1)
    RankingData.from_arrays(hashed, np.zeros(64), qid=np.zeros(64)).check_width()


# --- ids that differ only by a NUL character at their end, which NumPy's texts drop --------------


def _read(tmp_path, name, content, read=rw.load, **options):
    (tmp_path / name).write_bytes(content)
    return read(tmp_path / name, **options)


@pytest.mark.parametrize(
    "build",
    [
        lambda ids, _: RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=ids),
        lambda ids, _: RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=np.array(ids, object)),
        lambda ids, _: RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=pd.Series(ids)),
        lambda ids, _: RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[0, 0], doc_id=ids),
        lambda ids, _: rw.RankSVM().fit(
            pd.DataFrame({"q": ids, "a": [0.0, 1.0], "y": [0, 1]}), "y", qid="q"
        ),
        lambda ids, _: rw.RankSVM().fit(
            pl.DataFrame({"q": ids, "a": [0.0, 1.0], "y": [0, 1]}), "y", qid="q"
        ),
        lambda ids, _: rw.evaluate([0, 1], [0.0, 1.0], "ndcg", qid=ids),
        lambda ids, _: rw.evaluate_run(
            {one: {"d": 1.0} for one in ids}, {one: {"d": 1} for one in ids}, "ndcg"
        ),
        lambda ids, _: ClickLog.from_arrays(
            query=ids, document=["a", "b"], click=[0, 1], session=[1, 2]
        ),
        lambda ids, _: ClickLog.from_arrays(
            query=["a", "b"], document=["a", "b"], click=[0, 1], session=ids
        ),
        lambda _, path: _read(path, "a.csv", b"qid,label,a\nq,0,1\nq\0,1,2\n"),
        lambda _, path: _read(
            path,
            "a.jsonl",
            b'{"session": 1, "query": "q", "documents": ["a"], "clicks": [0]}\n'
            b'{"session": 2, "query": "q\\u0000", "documents": ["a"], "clicks": [0]}\n',
            load_log,
        ),
    ],
)
def test_ids_that_numpy_would_cut_are_refused(tmp_path, build):
    with pytest.raises(DataError, match=r"ends in a NUL character.*remove it from the ids"):
        build(["q", "q\0"], tmp_path)


def test_ids_that_hold_a_nul_elsewhere_stay_apart():
    data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=["a\0b", "a\0c"])
    assert data.qid.tolist() == ["a\0b", "a\0c"]
    mixed = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=["a", 1])
    assert mixed.n_queries == 2
