"""Recall: the share of the relevant documents in the first ranks."""

from small_data import value_of_ranking


def test_it_is_the_share_of_the_relevant_documents():
    assert value_of_ranking("recall@1", 1, 0, 1) == 1 / 2
    assert value_of_ranking("recall@3", 1, 0, 1) == 1
