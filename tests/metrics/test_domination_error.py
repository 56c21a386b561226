"""Domination error: documents with a lower grade above them."""

from small_data import value_of_ranking


def test_a_document_with_a_lower_grade_above_it_is_an_error():
    assert value_of_ranking("domination_error", 1, 2, 0) == 1 / 2  # of the two above grade 0
    assert value_of_ranking("domination_error", 0, 1, 2) == 2 / 2


def test_a_tie_is_no_error():
    assert value_of_ranking("domination_error", 0, 1, scores=[1, 1]) == 0
