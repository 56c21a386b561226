"""Ratings: users are queries, items are documents, grades start at zero."""

import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from rankwright.data.ratings import (
    ratings_of_frame,
    ratings_of_matrix,
    ratings_of_triples,
)
from rankwright.errors import DataError, UsageError

TRIPLES = [("u1", "i2", 5), ("u1", "i1", 3), ("u2", "i2", 1), ("u1", "i3", 4)]


def check(data):
    """What TRIPLES mean."""
    assert data.qid.tolist() == ["u1", "u2"]
    assert data.doc_id.tolist() == ["i2", "i1", "i3", "i2"]
    assert data.y.tolist() == [4, 2, 3, 0]  # 5, 3, 4, 1 less the lowest
    assert data.feature_names == ("i1", "i2", "i3")
    assert sparse.issparse(data.X)
    assert data.X.toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]]


def test_triples():
    check(ratings_of_triples(*zip(*TRIPLES, strict=True)))


@pytest.mark.parametrize(
    ("triples", "sentence"),
    [
        ([("u1", "i1", 3), ("u1", "i2", float("nan"))], "rating 1 is nan; ratings must be finite"),
        (
            [("u1", "i1", 3), ("u2", "i1", 3), ("u1", "i1", 4)],
            "user u1 rates item i1 twice .rating 2",
        ),
    ],
)
def test_errors_are_sentences(triples, sentence):
    with pytest.raises(DataError, match=sentence):
        ratings_of_triples(*zip(*triples, strict=True))


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
