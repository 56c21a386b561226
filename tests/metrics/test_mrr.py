"""Reciprocal rank of the first relevant document."""

from small_data import value_of_ranking


def test_it_is_one_over_the_rank_of_the_first_relevant_document():
    assert value_of_ranking("mrr", 0, 0, 1, 1) == 1 / 3


def test_below_the_cut_off_it_is_zero():
    assert value_of_ranking("mrr@2", 0, 0, 1) == 0


def test_over_ties_it_is_the_mean_over_their_orders():
    assert value_of_ranking("mrr", 0, 1, scores=[1, 1]) == (1 + 1 / 2) / 2
