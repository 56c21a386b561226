"""F1: the harmonic mean of precision and recall."""

import pytest
from small_data import value_of_ranking


def test_it_is_the_harmonic_mean_of_precision_and_recall():
    precision, recall = 1 / 2, 1 / 3
    by_hand = 2 * precision * recall / (precision + recall)
    assert value_of_ranking("f1@2", 1, 0, 1, 1) == pytest.approx(by_hand)


def test_without_a_relevant_document_in_the_first_ranks_it_is_zero():
    assert value_of_ranking("f1@1", 0, 1) == 0
