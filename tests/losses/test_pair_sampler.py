"""Sampled pairs: who may be sampled, how often, and that weights are copies."""

from collections import Counter

import numpy as np
import pytest

from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import document_weight, order_weight
from rankwright.losses.pair_sampler import PairSampler, sample_pair


def draws_of(y, sizes, **more):
    data = RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=sizes, **more)
    return PairSampler.of(data, order_weight(data), document_weight(data))


def frequencies(draws, n=20_000):
    counts = Counter(sample_pair(0, t, draws) for t in range(n))
    return {pair: count / n for pair, count in counts.items()}


def test_a_query_a_dominating_document_and_one_below_it_each_at_equal_chance():
    found = frequencies(draws_of([2, 1, 0, 0, 1, 1, 0], [4, 2, 1]))
    expected = {(0, 1): 1 / 6, (0, 2): 1 / 6, (0, 3): 1 / 6, (1, 2): 1 / 4, (1, 3): 1 / 4}
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, abs=0.015)


def test_queries_and_documents_are_drawn_by_weight():
    weights = np.array([1.0, 0.0, 3.0, 1.0, 2.0, 1.0])
    draws = draws_of([1, 1, 0, 0, 1, 0], [4, 2], sample_weight=weights, query_weight=[3.0, 1.0])
    expected = {(0, 2): 3 / 4 * 3 / 4, (0, 3): 3 / 4 * 1 / 4, (4, 5): 1 / 4}
    found = frequencies(draws)
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, abs=0.015)


def test_a_lowest_grade_of_weight_zero_dominates_none():
    draws = draws_of([2, 1, 0], [3], sample_weight=[1.0, 1.0, 0.0])
    assert frequencies(draws, 200).keys() == {(0, 1)}


def test_a_weight_of_two_draws_as_two_copies_side_by_side():
    once = draws_of([1, 0, 0], [3], sample_weight=[1.0, 2.0, 1.0])
    twice = draws_of([1, 0, 0, 0], [4])
    row = [0, 1, 1, 2]
    for t in range(500):
        i, j = sample_pair(7, t, twice)
        assert sample_pair(7, t, once) == (row[i], row[j])


def test_a_draw_depends_on_seed_and_number_alone():
    draws = draws_of([1, 0, 0, 1, 0, 2], [6])
    pairs = [sample_pair(3, t, draws) for t in range(50)]
    assert [sample_pair(3, t, draws) for t in reversed(range(50))] == pairs[::-1]
    assert [sample_pair(4, t, draws) for t in range(50)] != pairs


def test_without_any_order_there_is_nothing_to_draw():
    assert not draws_of([1, 1, 0], [2, 1]).has_pairs
    assert draws_of([1, 1, 0], [1, 2]).has_pairs
