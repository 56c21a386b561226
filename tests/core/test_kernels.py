import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.losses import mixed

from rankwright.core.kernels import (
    copy_values,
    hash_step,
    hash_uniform,
    log1p_exp,
    query_seed,
    sigmoid,
    take,
    twice_artanh,
)
from rankwright.core.order import first_of_runs, numbers_of_runs

INDPTR = np.array([0, 2, 2, 7, 8])


def test_seed_round_and_query_number_each_make_another_seed():
    clocks = [[7, 0, 0], [8, 0, 0], [7, 1, 0]]
    seeds = {int(query_seed(np.array(c, np.uint64), q)) for c in clocks for q in range(3)}
    assert len(seeds) == 9


def test_a_part_of_the_queries_draws_as_if_among_all():
    whole, part = np.array([7, 2, 0], np.uint64), np.array([7, 2, 5], np.uint64)
    assert query_seed(whole, 6) == query_seed(part, 1)


def test_a_run_of_equal_values_ends_where_its_query_does():
    grades = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 2.0, 2.0, 2.0])
    assert first_of_runs(grades, INDPTR).tolist() == [1, 0, 1, 1, 0, 1, 0, 1]
    number, of_query = numbers_of_runs(grades, INDPTR)
    assert number.tolist() == [0, 0, 0, 1, 1, 2, 2, 0]
    assert of_query.tolist() == [0, 1, 1, 4, 5]


def test_no_documents_have_no_runs():
    assert len(first_of_runs(np.empty(0), np.array([0, 0]))) == 0


# --- scalar ----------------------------------------------------------------------------------


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
@given(st.floats(0, 1 / 3))
def test_twice_artanh_is_exact_to_nearly_the_last_digit(u):
    assert twice_artanh(u) == pytest.approx(2.0 * math.atanh(u), rel=3e-15)


@settings(deadline=None)  # the first call compiles
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**63 - 1))
def test_the_hash_is_splitmix_on_whole_numbers(state, word):
    mixed_in = mixed(state, word)
    assert int(hash_step(np.uint64(state), word)) == mixed_in
    assert hash_uniform(np.uint64(mixed_in)) == (mixed_in >> 11) / 2**53


# --- copies ----------------------------------------------------------------------------------


SOURCE = np.array([3.0, 1.0, 2.0])


def test_values_are_copied_and_what_is_behind_them_stays():
    target = np.zeros(5)
    copy_values(SOURCE, target[1:])
    assert target.tolist() == [0.0, 3.0, 1.0, 2.0, 0.0]


def test_places_may_repeat_and_leave_some_out():
    target = np.zeros(4)
    take(SOURCE, np.array([2, 0, 2]), target)
    assert target.tolist() == [2.0, 3.0, 2.0, 0.0]
