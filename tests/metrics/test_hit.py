"""Hit rate: whether a relevant document is in the first ranks."""

import pytest
from small_data import value_of_ranking


def test_it_is_whether_a_relevant_document_is_in_the_first_ranks():
    assert value_of_ranking("hit@1", 0, 1) == 0
    assert value_of_ranking("hit@2", 0, 1) == 1


def test_over_ties_it_is_the_chance_of_one():
    assert value_of_ranking("hit@2", 0, 0, 0, 1, scores=[1] * 4) == pytest.approx(2 / 4)
