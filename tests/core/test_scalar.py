import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.losses import mixed

from rankwright.core.scalar import hash_step, hash_uniform, log1p_exp, log1p_unit, sigmoid


@settings(deadline=None)  # the first call compiles
@given(st.floats(-700, 700))
def test_log1p_exp_and_sigmoid_are_the_textbook_where_that_is_exact(x):
    assert log1p_exp(x) == pytest.approx(float(np.logaddexp(0.0, x)), rel=1e-14)
    assert sigmoid(x) == pytest.approx(math.exp(-float(np.logaddexp(0.0, -x))), rel=1e-12)


def test_far_out_nothing_overflows():
    assert log1p_exp(1e5) == 1e5
    assert log1p_exp(-1e5) == 0.0
    assert (sigmoid(1e5), sigmoid(-1e5), sigmoid(0.0)) == (1.0, 0.0, 0.5)


@settings(deadline=None)  # the first call compiles
@given(st.floats(0, 1))
def test_log1p_unit_is_log1p_to_nearly_the_last_digit(r):
    assert log1p_unit(r) == pytest.approx(math.log1p(r), rel=3e-15)


@settings(deadline=None)  # the first call compiles
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**63 - 1))
def test_the_hash_is_splitmix_on_whole_numbers(state, word):
    mixed_in = mixed(state, word)
    assert int(hash_step(np.uint64(state), word)) == mixed_in
    assert hash_uniform(np.uint64(mixed_in)) == (mixed_in >> 11) / 2**53
