"""bpref: non-relevant documents above each relevant one."""

from small_data import value_of_ranking


def test_each_relevant_document_loses_by_those_above_it():
    R, N = 2, 3
    by_hand = ((1 - 0 / min(R, N)) + (1 - 1 / min(R, N))) / R
    assert value_of_ranking("bpref", 1, 0, 1, 0, 0) == by_hand


def test_no_more_than_r_of_those_above_count():
    assert value_of_ranking("bpref", 0, 0, 0, 1) == 1 - 1 / 1
