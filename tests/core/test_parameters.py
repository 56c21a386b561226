import math

import numpy as np
import pytest

from rankwright.core.parameters import (
    check_above_zero,
    check_choice,
    check_whole,
    check_zero_or_more,
    either,
)
from rankwright.errors import UsageError


@pytest.mark.parametrize("value", [1e-9, 3, np.float32(2), np.int64(4)])
def test_numbers_above_zero_of_any_type_pass(value):
    check_above_zero("sigma", value)
    check_zero_or_more("sigma", value)


def test_zero_is_zero_or_more():
    check_zero_or_more("l2", 0)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (0.0, "ranknet's sigma must be above 0, not 0.0."),
        (-1, "ranknet's sigma must be above 0, not -1."),
        (math.nan, "ranknet's sigma must be above 0, not nan."),
        (math.inf, "ranknet's sigma must be above 0 and finite, not inf."),
        ("high", "ranknet's sigma must be above 0, not high."),
        (None, "ranknet's sigma must be above 0, not None."),
    ],
)
def test_what_is_no_finite_number_above_zero_is_refused(value, sentence):
    with pytest.raises(UsageError) as fault:
        check_above_zero("ranknet's sigma", value)
    assert str(fault.value) == sentence


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (-0.5, "l2 must be 0 or more, not -0.5."),
        (math.inf, "l2 must be 0 or more and finite, not inf."),
        ("big", "l2 must be 0 or more, not big."),
    ],
)
def test_what_is_no_finite_number_from_zero_is_refused(value, sentence):
    with pytest.raises(UsageError) as fault:
        check_zero_or_more("l2", value)
    assert str(fault.value) == sentence


@pytest.mark.parametrize("value", [2, 2.0, np.int32(5)])
def test_whole_numbers_pass_however_they_are_written(value):
    check_whole("k", value, 2)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (1, "k must be 2 or more, not 1."),
        (2.5, "k must be a whole number, 2 or more, not 2.5."),
        (math.inf, "k must be a whole number, 2 or more, not inf."),
        ("10", "k must be a whole number, 2 or more, not 10."),
    ],
)
def test_what_is_no_whole_number_from_the_least_is_refused(value, sentence):
    with pytest.raises(UsageError) as fault:
        check_whole("k", value, 2)
    assert str(fault.value) == sentence


def test_a_word_is_one_of_those_known():
    check_choice("form", "hinge", ("squared", "hinge"))
    with pytest.raises(UsageError, match="form must be squared, hinge or log, not 'cubic'"):
        check_choice("form", "cubic", ("squared", "hinge", "log"))


def test_either_lists_words_as_people_do():
    assert either(["a"]) == "a"
    assert either(["a", "b"]) == "a or b"
    assert either(["a", "b", "c"]) == "a, b or c"
