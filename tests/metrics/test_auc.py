"""AUC: the share of pairs in the right order."""

from small_data import value_of_ranking


def test_it_is_the_share_of_pairs_in_the_right_order():
    right, pairs = 2 + 1, 2 * 2  # of the first relevant document, and of the second
    assert value_of_ranking("auc", 1, 0, 1, 0) == right / pairs


def test_a_tied_pair_counts_one_half():
    assert value_of_ranking("auc", 1, 0, scores=[1, 1]) == 1 / 2
