"""Isotonic regression by pooling adjacent violators."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankwright.subproblems.pav import pav

FINITE = st.floats(-100, 100)
PAIRS = st.lists(st.tuples(FINITE, st.floats(0.1, 10)), min_size=1, max_size=12)


def fit(y, w=None):
    y = np.array(y, float)
    w = np.ones(len(y)) if w is None else np.array(w, float)
    x = np.empty(len(y))
    pav(0, len(y), y, w, x, np.empty(len(y)), np.empty(len(y), np.int64))
    return x


def max_min_formula(y, w):
    """x_k = max over i <= k of min over j >= k of the mean of y_i .. y_j."""
    n = range(len(y))

    def mean(i, j):
        return np.average(y[i : j + 1], weights=w[i : j + 1])

    return [max(min(mean(i, j) for j in n if j >= k) for i in n if i <= k) for k in n]


def test_a_rising_sequence_stays():
    assert fit([1.0, 2.0, 2.0, 5.0]).tolist() == [1.0, 2.0, 2.0, 5.0]


def test_a_falling_pair_becomes_its_mean():
    assert fit([3.0, 1.0, 4.0]).tolist() == [2.0, 2.0, 4.0]


def test_a_heavy_value_moves_less():
    assert fit([3.0, 1.0], [3.0, 1.0]).tolist() == [2.5, 2.5]


def test_a_late_low_value_pools_all_before_it():
    assert fit([1.0, 2.0, -3.0]).tolist() == [0.0, 0.0, 0.0]


@given(PAIRS)
def test_it_is_the_max_min_formula(pairs):
    y, w = (np.array(side) for side in zip(*pairs, strict=True))
    np.testing.assert_allclose(fit(y, w), max_min_formula(y, w), atol=1e-9)


@given(PAIRS)
def test_it_works_in_place_and_touches_its_range_alone(pairs):
    y, w = (np.array(side) for side in zip(*pairs, strict=True))
    padded, weights = np.r_[9.0, y, -9.0], np.r_[1.0, w, 1.0]
    weight, first = np.empty(len(padded)), np.empty(len(padded), np.int64)
    pav(1, len(y) + 1, padded, weights, padded, weight, first)
    assert padded.tolist() == [9.0, *fit(y, w).tolist(), -9.0]
