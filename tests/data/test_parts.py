"""Data in parts of whole queries, each query in one of them."""

import numpy as np
import pytest

from rankwright.data.ranking_data import (
    DistinctQueries,
    PartsDifferError,
    RankingData,
    consecutive,
    parts_of,
)

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
