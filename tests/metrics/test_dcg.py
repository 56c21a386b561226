"""DCG: gains, discounted by rank."""

from math import log2

import pytest
from small_data import value_of_ranking


def test_gains_are_discounted_by_the_logarithm_of_the_rank():
    by_hand = 3 / log2(2) + 0 / log2(3) + 1 / log2(4)
    assert value_of_ranking("dcg@3", 2, 0, 1, 3) == pytest.approx(by_hand)
    assert value_of_ranking("dcg", 2, 0, 1, 3) == pytest.approx(by_hand + 7 / log2(5))


def test_a_tie_has_its_mean_gain_on_each_of_its_ranks():
    by_hand = (3 + 1) / 2 * (1 / log2(2) + 1 / log2(3))
    assert value_of_ranking("dcg", 2, 1, scores=[1, 1]) == pytest.approx(by_hand)
