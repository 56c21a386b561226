"""Squared error up to a constant per query."""

import numpy as np
import pytest

from rankwright.data.ranking_data import RankingData
from rankwright.losses.query_offset import QueryOffset


def parts(y, s, *, sizes=None, targets="linear", **arrays):
    data = RankingData.from_arrays(
        np.zeros((len(y), 1)), y, group_sizes=sizes or [len(y)], **arrays
    )
    grad, curv = np.full(len(y), np.nan), np.full(len(y), np.nan)
    bound = QueryOffset(targets).bind(data)
    return bound.grad_curv(np.asarray(s, float), grad, curv), grad, curv


def test_errors_count_from_their_mean():
    # s - y = 3, 0, 3 with mean 2
    value, grad, curv = parts([0, 1, 2], [3.0, 1.0, 5.0])
    assert value == pytest.approx((1 + 4 + 1) / 2)
    assert grad == pytest.approx([1.0, -2.0, 1.0])
    assert curv.tolist() == [1.0, 1.0, 1.0]


def test_the_mean_is_weighted():
    # s - y = 3, 0 with weights 1 and 2: mean 1
    value, grad, curv = parts([0, 1], [3.0, 1.0], sample_weight=[1.0, 2.0])
    assert value == pytest.approx((4 + 2 * 1) / 2)
    assert grad == pytest.approx([2.0, -2.0])
    assert curv.tolist() == [1.0, 2.0]


def test_each_query_has_its_own_level():
    y, s = [0, 1, 0, 1], np.array([0.0, 1.0, 7.0, 8.0])
    assert parts(y, s, sizes=[2, 2])[0] == 0.0
    assert parts(y, s + 1e6, sizes=[2, 2])[0] == 0.0
    assert parts(y, s)[0] > 0.0


def test_targets_may_be_gains():
    assert parts([0, 3], [0.0, 7.0], targets="gain")[0] == 0.0


def test_a_query_of_one_grade_counts_nothing():
    value, grad, curv = parts([2, 2, 0, 1], [5.0, 1.0, 0.0, 1.0], sizes=[2, 2])
    assert value == 0.0
    assert not grad.any()
    assert curv.tolist() == [0.0, 0.0, 1.0, 1.0]


def test_it_is_the_minimum_over_offsets():
    rng = np.random.default_rng(0)
    y, s, w = rng.integers(0, 3, 9), rng.normal(size=9), rng.uniform(0.5, 2.0, 9)
    value = parts(y, s, sample_weight=w)[0]
    offsets = np.linspace(-5, 5, 20_001)[:, None]
    assert value == pytest.approx((w / 2 * (s - y - offsets) ** 2).sum(axis=1).min(), rel=1e-6)
