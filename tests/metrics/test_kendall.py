"""Kendall's tau-b between scores and grades."""

import pytest
from scipy.stats import kendalltau
from small_data import value_of_ranking


def test_it_is_one_in_the_order_of_grades_and_minus_one_against_it():
    assert value_of_ranking("kendall", 2, 1, 0) == 1
    assert value_of_ranking("kendall", 0, 1, 2) == -1


def test_with_ties_in_both_it_is_that_of_scipy():
    grades, scores = [2, 1, 1, 0, 3], [1, 1, 2, 0, 2]
    expected = kendalltau(scores, grades).statistic
    assert value_of_ranking("kendall", *grades, scores=scores) == pytest.approx(expected)
