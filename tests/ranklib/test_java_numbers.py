"""Numbers as Java prints them, and float32 comparisons carried over to float64."""

import numpy as np
import pytest
from cases import each
from hypothesis import assume, given
from hypothesis import strategies as st

from rankwright.models.thresholds import highest_rounded_to, not_above
from rankwright.ranklib.java_numbers import (
    java_double,
    java_float,
    rounded,
)

singles = st.floats(width=32, allow_nan=False, allow_infinity=False)


@each(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1, "1.0"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (9.99e-4, "9.99E-4"),
        (1e-10, "1.0E-10"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-12345678.9, "-1.23456789E7"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_print_as_in_java(value, text):
    assert java_double(value) == text


def test_floats_print_with_the_digits_that_float32_has():
    assert java_float(0.1) == "0.1"
    assert java_double(np.float32(0.1)) == "0.10000000149011612"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_number_reads_back(value):
    assert float(java_double(value)) == value


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.75, 1, "0.8"), (-0.25, 1, "-0.2"), (0.62, 4, "0.62"), (2.504e-5, 5, "3.0E-5")],
)
def test_rounding_goes_up_at_halves(value, digits, text):
    assert rounded(value, digits) == text


@given(singles, st.integers(-3, 3))
def test_a_threshold_in_float64_sends_every_number_where_float32_does(threshold, halves):
    assume(abs(threshold) < 1e38)  # the next float32 above is finite
    t = np.array([threshold], np.float32)
    x = t.astype(np.float64) + halves * np.spacing(t).astype(np.float64) / 2
    with np.errstate(over="ignore"):
        goes_left = x.astype(np.float32) <= t
    assert (x <= highest_rounded_to(t)) == goes_left


@given(singles)
def test_the_threshold_comes_back(threshold):
    t = np.array([threshold], np.float32)
    assert not_above(highest_rounded_to(t)) == t


@given(st.floats(-1e30, 1e30), singles)
def test_float32_features_compare_alike_with_a_threshold_and_what_is_written_for_it(cut, x):
    threshold = np.array([cut])
    assert (x <= threshold) == (np.float32(x) <= not_above(threshold))
