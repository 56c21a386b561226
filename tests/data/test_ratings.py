"""Ratings: users are queries, items are documents, grades start at zero."""

from dataclasses import replace

import pandas as pd
import polars as pl
import pytest
from reference.same_data import assert_same
from scipy import sparse

from rankwright.data.ratings import (
    Ratings,
    ratings_of_frame,
    ratings_of_matrix,
    ratings_of_triples,
)
from rankwright.errors import DataError, UsageError

TRIPLES = [("u1", "i2", 5), ("u1", "i1", 3), ("u2", "i2", 1), ("u1", "i3", 4)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "r.ratings"


def check(data):
    """What TRIPLES mean."""
    assert data.qid.tolist() == ["u1", "u2"]
    assert data.doc_id.tolist() == ["i2", "i1", "i3", "i2"]
    assert data.y.tolist() == [4, 2, 3, 0]  # 5, 3, 4, 1 less the lowest
    assert data.feature_names == ("i1", "i2", "i3")
    assert sparse.issparse(data.X)
    assert data.X.toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize("separator", ["::", "\t", ",", ";", " ", "  "])
@pytest.mark.parametrize("more", ["", "978300760"], ids=["", "with a time"])
def test_lines_of_user_item_rating(path, separator, more):
    lines = [separator.join([*map(str, triple), *([more] if more else [])]) for triple in TRIPLES]
    path.write_text("\r\n".join(["", *lines, ""]))
    check(Ratings().read(path))


@pytest.mark.parametrize(
    ("names", "order"),
    [
        ("user,item,rating", (0, 1, 2)),
        ("userId,movieId,rating", (0, 1, 2)),
        ('"Rating","time","Item","User"', (2, None, 1, 0)),
    ],
)
def test_a_line_of_names_says_which_column_is_what(path, names, order):
    lines = [",".join("9" if at is None else str(row[at]) for at in order) for row in TRIPLES]
    path.write_text("\n".join([names, *lines]))
    check(Ratings().read(path))


def test_frames():
    frame = pl.DataFrame(TRIPLES, schema=["who", "what", "stars"], orient="row")
    check(ratings_of_frame(frame, user="who", item="what", rating="stars"))
    check(ratings_of_frame(pd.DataFrame(TRIPLES, columns=["user", "item", "rating"])))
    with pytest.raises(DataError, match="no column 'user'"):
        ratings_of_frame(frame)
    holes = pl.DataFrame({"user": ["a", None], "item": ["b", "c"], "rating": [1, 2]})
    with pytest.raises(DataError, match=r"the user \(column 'user'\) is missing at row 1"):
        ratings_of_frame(holes)


def test_sparse_matrices_and_their_stored_zeros():
    matrix = sparse.coo_array(([5, 3, 0, 4], ([0, 0, 2, 0], [1, 0, 1, 2])), shape=(3, 4))
    data = ratings_of_matrix(matrix)
    assert data.qid.tolist() == [0, 2]
    assert data.doc_id.tolist() == [0, 1, 2, 1]
    assert data.y.tolist() == [3, 5, 4, 0]
    assert data.feature_names == ("0", "1", "2", "3")
    named = ratings_of_matrix(matrix, users=["a", "b", "c"], items=list("wxyz"))
    assert named.qid.tolist() == ["a", "c"]
    assert named.doc_id.tolist() == ["w", "x", "y", "x"]
    with pytest.raises(DataError, match=r"1 users and 4 items are named for a matrix of 3 x 4"):
        ratings_of_matrix(matrix, users=["a"])


def test_numbers_are_ids_too(path):
    path.write_text("1 20 3\n1 3 4\n")
    data = Ratings().read(path)
    assert data.qid.tolist() == [1]
    assert data.feature_names == ("3", "20")


def test_the_shift_can_be_chosen():
    users, items, ratings = zip(*TRIPLES, strict=True)
    assert ratings_of_triples(users, items, ratings, shift=0).y.tolist() == [5, 3, 4, 1]
    assert ratings_of_triples(users, items, ratings, shift=-2).y.tolist() == [7, 5, 6, 3]
    with pytest.raises(DataError, match=r"the rating 1\.0 is below shift=2\.0"):
        ratings_of_triples(users, items, ratings, shift=2)
    with pytest.raises(UsageError, match="shift must be a number, not 'low'"):
        ratings_of_triples(users, items, ratings, shift="low")


def test_the_columns_can_be_fixed():
    data = ratings_of_triples(["u"], ["b"], [1], items=["c", "b", "a"])
    assert data.X.toarray().tolist() == [[0, 1, 0]]
    with pytest.raises(DataError, match="item 'd' is not among the given items"):
        ratings_of_triples(["u"], ["d"], [1], items=["c", "b", "a"])


def test_what_is_written_comes_back(path):
    data = ratings_of_triples(["007", "007", 'a,"b'], ["x", "é", "x"], [0.1, 0, 1 / 3])
    Ratings().write(data, path)
    assert_same(Ratings().read(path), data)


def test_documents_without_items_are_refused(path):
    data = ratings_of_triples(["u"], ["b"], [1])
    with pytest.raises(DataError, match="the data has no doc_id"):
        Ratings().write(replace(data, doc_id=None), path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no ratings"),
        ("user,item,rating\n", "has no ratings"),
        ("u1,i1\n", "line 1: 'user item rating' is expected, not 'u1,i1'"),
        ("u1,i1,3\nu1,i2\n", "line 2: a user, an item and a rating are expected, not 'u1,i2'"),
        ("u1,i1,3\nu1,i2,good\n", "line 2: the rating 'good' is not a number"),
        ("u1,i1,3\n,i2,3\n", "line 2: the user or the item is missing"),
        ("u1,i1,3\nu1,i2\rx,3\n", "line 2: 'u1,i2.*x,3' is not a line of cells"),
        ("u1,i1,3\nu1,i2,nan\n", "rating 1 is nan; ratings must be finite"),
        ("u1,i1,3\nu2,i1,3\nu1,i1,4\n", "user u1 rates item i1 twice .rating 2"),
        ("who,item,rating\n1,2,3\n", "columns are who, item, rating, and none .* like the user"),
    ],
)
def test_errors_are_sentences(path, text, sentence):
    path.write_text(text)
    with pytest.raises(DataError, match=sentence) as error:
        Ratings().read(path)
    assert str(error.value).startswith(str(path))


def test_an_unknown_layout_is_refused(path):
    with pytest.raises(UsageError, match="layout must be 'triples' or 'jester', not 'wide'"):
        Ratings().read(path, layout="wide")


def test_jesters_matrix(path):
    path.write_text("2,-10,99,10\n0,99,99,99\n1,99,0.5,99\n")
    data = Ratings().read(path, layout="jester")
    assert data.qid.tolist() == [1, 3]
    assert data.doc_id.tolist() == [1, 3, 2]
    assert data.y.tolist() == [0, 20, 10.5]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("2,-10,99,10\n3,1,99,99\n", "line 2: it says 3 ratings and has 1"),
        ("2,a,99\n", "is not a matrix of numbers"),
        ("2,1,2\n1,1\n", "is not a matrix of numbers"),
    ],
)
def test_errors_in_jesters_matrix(path, text, sentence):
    path.write_text(text)
    with pytest.raises(DataError, match=sentence):
        Ratings().read(path, layout="jester")


def test_jester_itself(data_dir):
    """Users, jokes and ratings as its README counts them."""
    data = Ratings().read(data_dir / "Jester1" / "jester-data-1.csv.xz", layout="jester")
    assert (data.n_queries, data.n_features, data.n_documents) == (24_983, 100, 1_810_455)
    assert data.y.min() == 0
    assert (data.X.sum(axis=1) == 1).all()
    first = dict(zip(data.doc_id[:3].tolist(), data.y[:3].tolist(), strict=True))
    lowest = -9.95
    assert first == pytest.approx({1: -7.82 - lowest, 2: 8.79 - lowest, 3: -9.66 - lowest})
