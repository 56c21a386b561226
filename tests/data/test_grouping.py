"""Boundaries of queries, from ids in any order or from sizes, and weights of queries."""

import numpy as np
import pytest

from rankwright.data.ranking_data import boundaries_of_sizes, group_rows, query_weights
from rankwright.errors import DataError


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
