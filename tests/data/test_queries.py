"""RankingData by query: one by its id, one after the other, in a line, in a frame."""

import numpy as np
import pytest
from scipy import sparse

from rankwright.data.ranking_data import RankingData, UnknownQueryError
from rankwright.errors import DataError

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
