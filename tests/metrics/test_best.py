"""BEST: the highest grade in the first ranks."""

import pytest
from small_data import value_of_ranking


def test_it_is_the_highest_grade_in_the_first_ranks():
    assert value_of_ranking("best@2", 0, 1, 3) == 1
    assert value_of_ranking("best@3", 0, 1, 3) == 3


def test_over_ties_it_is_the_mean_of_the_highest_of_those_that_may_come_first():
    pairs = [max(0, 1), max(0, 3), max(1, 3)]
    assert value_of_ranking("best@2", 0, 1, 3, scores=[1, 1, 1]) == pytest.approx(sum(pairs) / 3)
