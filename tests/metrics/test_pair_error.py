"""All-pairs error: pairs of different grade in the wrong order."""

import pytest
from small_data import value_of_ranking


def test_it_is_the_share_of_pairs_of_different_grade_in_the_wrong_order():
    assert value_of_ranking("pair_error", 1, 2, 0) == pytest.approx(1 / 3)
    assert value_of_ranking("pair_error", 1, 1, 2) == 2 / 2  # the pair of equal grades is none


def test_a_tied_pair_counts_one_half():
    assert value_of_ranking("pair_error", 1, 0, scores=[1, 1]) == 1 / 2
