"""Isotonic regression by pooling adjacent violators."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankwright.losses.pav import pav, pav_additive, pav_additive_simplex, simplex_shift

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


def test_the_pools_are_reported_by_where_they_begin():
    y, first = np.array([9.0, 1.0, 3.0, 2.0, 2.5, 7.0]), np.zeros(6, np.int64)
    x = np.empty(6)
    end = pav(1, 6, y, np.ones(6), x, np.empty(6), first)
    assert first[1:end].tolist() == [1, 2, 5]
    assert x[1:].tolist() == [1.0, 2.5, 2.5, 2.5, 7.0]


# --- margins between exponentials --------------------------------------------------------------

STEPS = st.lists(
    st.tuples(st.floats(-5, 5), st.floats(0.1, 5), st.sampled_from([0.0, 0.3, 2.0])),
    min_size=1,
    max_size=10,
)


def laid_out(steps):
    """Scores, weights, margins' running sum from 0, and where each run of it ends."""
    y, w, t = (np.array(side) for side in zip(*steps, strict=True))
    d = np.cumsum(t) - t[0]
    return y, w, d, np.searchsorted(d, d, side="right")


def additive(steps, shift=0.0):
    y, w, d, stop = laid_out(steps)
    x, first = np.empty(len(y)), np.empty(len(y), np.int64)
    scratch = [np.empty(len(y)) for _ in range(3)]
    end = pav_additive(0, len(y), y, shift, w, d, stop, x, *scratch, first)
    return x, np.split(np.arange(len(y)), first[1:end])


@given(STEPS, st.floats(-2, 2))
def test_a_pool_of_additive_margins_balances_its_logarithms(steps, shift):
    y, w, d, _ = laid_out(steps)
    x, pools = additive(steps, shift)
    assert (np.diff(x) >= 0).all()
    for pool in pools:
        pull = w[pool] * (y[pool] + shift - np.log(np.exp(x[pool]) + d[pool]))
        assert abs(pull.sum()) <= 1e-10 * (w[pool] @ (1 + np.abs(y[pool])))
        assert (np.cumsum(pull) >= -1e-9 * w[pool].sum()).all()  # multipliers of the constraints


@given(STEPS)
def test_without_margins_the_additive_form_is_the_plain_one(steps):
    plain = [(y, w, 0.0) for y, w, _ in steps]
    y, w, _, _ = laid_out(plain)
    np.testing.assert_allclose(additive(plain)[0], fit(y, w), atol=1e-12)


@given(STEPS, st.sampled_from([0.0, 0.01]))
def test_additive_margins_fit_into_the_simplex(steps, floor):
    y, w, d, stop = laid_out(steps)
    scale = 0.5 / max(1.0, w @ d, w.sum() / 50)
    w = w * scale  # room for the margins and the floor
    n = len(y)
    x, first = np.empty(n), np.empty(n, np.int64)
    scratch = [np.empty(n) for _ in range(3)]
    pav_additive_simplex(0, n, y - y.max(), w, d, stop, floor, x, *scratch, first)
    assert abs(w @ (np.maximum(np.exp(x), floor) + d) - 1.0) < 1e-12


@given(STEPS, st.sampled_from([-np.inf, -6.0]))
def test_the_shift_onto_the_simplex_heeds_the_floor(steps, floor):
    y, w, d, _ = laid_out(steps)
    x = np.sort(y)
    w = w * 0.5 / max(1.0, w @ np.exp(-6.0 + d))
    shift = simplex_shift(0, len(y), x, d, w, floor, np.empty(len(y)))
    assert abs(w @ np.exp(np.maximum(x + shift, floor) + d) - 1.0) < 1e-12
