"""Winner takes all by hand, and its modified form."""

import pytest
from reference import metrics as twins
from small_data import lists, value_of_ranking

from rankwright.metrics.evaluation import evaluate


def test_it_is_whether_the_first_document_is_one_of_the_best():
    assert value_of_ranking("wta", 2, 1, 2) == 1
    assert value_of_ranking("wta", 1, 2, 2) == 0


def test_over_ties_it_is_the_share_of_the_best():
    assert value_of_ranking("wta", 2, 1, scores=[1, 1]) == 1 / 2


def test_dorm_mwta_cuts_where_the_next_grade_begins():
    graded, flat = [2, 1, 0, 0], [1, 1, 1, 1, 0, 0]
    data = lists(graded[::-1], flat[::-1])
    name = "wta(modified=true)"
    found = evaluate(data, [4, 3, 2, 1, 6, 5, 4, 3, 2, 1], name)
    third, fifth = twins.ndcg(graded[::-1], None, 3), twins.ndcg(flat[::-1], None, 5)
    assert found.per_query[name].tolist() == pytest.approx([third, fifth])
