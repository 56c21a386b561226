"""Average precision: precision at the rank of each relevant document."""

from itertools import permutations

import pytest
from small_data import value_of_ranking


def test_it_is_the_mean_of_precision_at_each_relevant_document():
    assert value_of_ranking("map", 1, 0, 1) == pytest.approx((1 / 1 + 2 / 3) / 2)


def test_a_relevant_document_below_the_cut_off_counts_zero():
    assert value_of_ranking("map@2", 1, 0, 1) == pytest.approx((1 / 1 + 0) / 2)


def test_over_ties_it_is_the_mean_over_their_orders():
    orders = [value_of_ranking("map", *grades) for grades in set(permutations([1, 0, 1]))]
    tied = value_of_ranking("map", 1, 0, 1, scores=[1, 1, 1])
    assert tied == pytest.approx(sum(orders) / len(orders))
