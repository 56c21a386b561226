"""The best list of a query, ties, and the weights of ranks."""

from math import log2

import numpy as np
import pytest
from small_data import lists

from rankwright import RankingData
from rankwright.metrics.ranked import Judged, Ranked, rank_weights


def test_the_best_list_has_the_grades_of_each_query_from_the_highest_down():
    y = np.random.default_rng(0).integers(0, 5, 60).astype(float)
    data = RankingData.from_arrays(np.zeros((60, 1)), y, group_sizes=[1, 0, 39, 20])
    best = [np.sort(y[a:b])[::-1] for a, b in zip(data.indptr[:-1], data.indptr[1:], strict=True)]
    assert Judged(data).ideal.tolist() == np.concatenate(best).tolist()


# --- ties ----------------------------------------------------------------------------------------


def test_tied_ranks_end_together_and_strict_ones_by_themselves():
    data = lists([0, 2, 0], [1, 1], [0, 1])
    scores, judged = np.array([5.0, 3, 3, 1, 1, 2, 1]), Judged(data)
    found = Ranked(judged, scores, "mean")
    assert found.ends.tolist() == [1, 3, 3, 5, 5, 6, 7]
    assert found.blocks(mean=True) is found.ends
    assert found.blocks(mean=False).tolist() == []
    assert found.tied_queries() == 1  # in the second the grades are equal
    strict = Ranked(judged, scores, np.arange(7.0), strict=True)
    assert strict.ends.tolist() == [1, 2, 3, 4, 5, 6, 7]
    apart = Ranked(judged, np.arange(7.0), "mean")
    assert apart.blocks(mean=True).tolist() == []
    assert apart.tied_queries() == 0


# --- weights of ranks, by each rule for the discount ---------------------------------------------


def test_the_discounts_by_hand():
    assert rank_weights("log2", 3) == pytest.approx([1 / log2(2), 1 / log2(3), 1 / log2(4)])
    assert rank_weights("letor", 3) == pytest.approx([1, 1, 1 / log2(3)])
    assert rank_weights("reciprocal", 3) == pytest.approx([1, 1 / 2, 1 / 3])


def test_a_table_is_shared_and_cannot_be_changed():
    assert rank_weights("log2", 3) is rank_weights("log2", 3)
    with pytest.raises(ValueError, match="read-only"):
        rank_weights("log2", 3)[0] = 0.0
