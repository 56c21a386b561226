"""ERU: grades above neutral, halved every alpha - 1 ranks."""

import pytest
from small_data import value_of_ranking


def test_grades_above_neutral_are_halved_every_alpha_minus_one_ranks():
    name = "eru(alpha=3,d=1)"
    by_hand = (3 - 1) + 0 + (2 - 1) * 2 ** (-2 / 2)
    assert value_of_ranking(name, 3, 0, 2) == pytest.approx(by_hand)


def test_normalised_it_is_a_share_of_that_of_the_best_list():
    name = "eru(alpha=2,normalised=true)"
    assert value_of_ranking(name, 1, 2) == pytest.approx((1 + 2 / 2) / (2 + 1 / 2))
