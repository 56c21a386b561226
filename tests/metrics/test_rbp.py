"""Rank-biased precision of a patient and an impatient reader."""

import pytest
from small_data import value_of_ranking


def test_a_reader_goes_on_with_probability_p():
    p = 0.5
    by_hand = (1 - p) * (1 + 0 * p + p**2)
    assert value_of_ranking("rbp(p=0.5)", 1, 0, 1) == pytest.approx(by_hand)
    assert value_of_ranking("rbp(p=0.5)@2", 1, 0, 1) == pytest.approx(1 - p)
