"""NDCG by hand, against scikit-learn, and where conventions differ."""

from math import log2

import numpy as np
import pytest
from small_data import lists, value_of_ranking

from rankwright.metrics.evaluation import evaluate


def test_it_is_dcg_over_that_of_the_best_list():
    dcg = 1 / log2(2) + 0 / log2(3) + 3 / log2(4)
    best = 3 / log2(2) + 1 / log2(3) + 0 / log2(4)
    assert value_of_ranking("ndcg", 1, 0, 2) == pytest.approx(dcg / best)
    assert value_of_ranking("ndcg@1", 1, 0, 2) == pytest.approx(1 / 3)


def test_the_example_of_the_course_ndcg_prefers_f():
    """Truth ABC with grades 6, 4, 3; f ranks ACB and h ranks BAC."""
    data = lists([6, 4, 3])
    f = evaluate(data, [4, 2, 3], "ndcg")["ndcg"]
    h = evaluate(data, [4, 6, 3], "ndcg")["ndcg"]
    ideal = 63 + 15 / log2(3) + 7 / 2
    assert f == pytest.approx((63 + 7 / log2(3) + 15 / 2) / ideal)
    assert h == pytest.approx((15 + 63 / log2(3) + 7 / 2) / ideal)
    assert f > h


def test_a_short_list_scores_0_under_letor4_and_ndcg_without_k_is_a_mean():
    data = lists([1, 0], [0, 1, 2])
    found = evaluate(data, [2, 1, 3, 2, 1], "ndcg@3,ndcg,p@3", convention="letor4").per_query
    dcg = [0, 1, 1 + 3 / log2(3)]
    ideal = [3, 3 + 1, 3 + 1]
    assert found["ndcg@3"].tolist() == [0, pytest.approx(dcg[2] / ideal[2])]
    mean = np.mean([d / i for d, i in zip(dcg, ideal, strict=True)])
    assert found["ndcg"].tolist() == [1, pytest.approx(mean)]
    assert found["p@3"].tolist() == [1 / 3, 2 / 3]
