"""Precision by hand."""

import pytest
from small_data import lists, value_of_ranking

from rankwright.metrics.evaluation import evaluate


def test_it_is_the_share_of_relevant_documents_in_the_first_ranks():
    assert value_of_ranking("p@2", 1, 0, 1) == 1 / 2
    assert value_of_ranking("p", 1, 0, 1) == pytest.approx(2 / 3)


def test_precision_of_a_short_list():
    data, s = lists([1, 1]), [1, 2]
    assert evaluate(data, s, "p@5")["p@5"] == 2 / 5
    assert evaluate(data, s, "p@5", convention="ranklib")["p@5"] == 1
