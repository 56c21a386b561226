"""Numbers are read as ``float`` reads them and written as ``repr`` writes them, to the bit."""

import math
import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rankwright.data.letor_kernels import WRITING, past_missing, read_number, write_number


def read(text):
    """Return value and end as `read_number` has them; None where it leaves the text to Python."""
    buffer = np.frombuffer(text.encode() + b"\n", np.uint8)
    value, end, known, zeros = read_number(buffer, 0)
    return (value, end, zeros) if known else None


def write(x, dtype="float64"):
    out = np.zeros(64, np.uint8)
    end = write_number(float(x), WRITING[dtype], out, 0)
    return None if end < 0 else out[:end].tobytes().decode()


def bits(x):
    return struct.pack("<d", x)


decimals = st.builds(
    lambda sign, whole, point, fraction, exponent: f"{sign}{whole}{point}{fraction}{exponent}",
    st.sampled_from(["", "-", "+"]),
    st.from_regex(r"[0-9]{1,25}", fullmatch=True),
    st.sampled_from(["", "."]),
    st.from_regex(r"[0-9]{0,25}", fullmatch=True),
    st.one_of(st.just(""), st.integers(-330, 330).map(lambda e: f"e{e}")),
)


@settings(deadline=None)  # the first example compiles
@given(decimals)
@example("9007199254740993")  # 2^53 + 1: halfway, to even
@example("9007199254740995")
@example("1e23")
@example("8.5e22")
@example("1.7976931348623157e308")
@example("1.7976931348623159e308")
@example("2.2250738585072014e-308")
@example("0.000000000000000000000000000000012345678901234567")
@example("9999999999999999999")
@example("18446744073709551615e-300")
@example("3.5844466002796428e+298")
@example("-0")
@example("0e400")
@example("1e-400")
def test_what_is_read_is_what_float_reads(text):
    got = read(text)
    if got is not None:
        value, end, zeros = got
        assert bits(value) == bits(float(text))
        assert end == len(text)
        assert zeros == (not text.strip("+0."))


@settings(deadline=None)  # the first example compiles
@given(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False))
def test_every_double_is_read_from_its_repr(x):
    got = read(repr(x))
    assert got is not None
    assert bits(got[0]) == bits(x)


@pytest.mark.parametrize(
    "text", ["", "+", "-", ".", "-.", "e5", ".e5", "1e", "1e+", "abc", "NULL", "inf"]
)
def test_what_is_no_number_is_not_read(text):
    assert read(text) is None


@pytest.mark.parametrize("text", ["9007199254740993.0000000001", "4.9e-324", "1e-310"])
def test_numbers_nearly_halfway_or_very_small_are_left_to_python(text):
    assert read(text) is None


def test_most_long_numbers_are_read():
    text = "0.12345678901234567890123456789"
    assert read(text) == (float(text), len(text), False)


@pytest.mark.parametrize(("text", "end"), [("1.5x", 3), ("1.5.5", 3), ("1-2", 1), ("0x10", 1)])
def test_reading_stops_where_the_number_does(text, end):
    assert read(text)[1] == end


@pytest.mark.parametrize("word", ["NULL", "null", "NaN", "nan", "NA"])
def test_words_for_missing_are_known(word):
    for rest, end in (("", len(word)), ("X", len(word))):
        buffer = np.frombuffer((word + rest + "\n").encode(), np.uint8)
        assert past_missing(buffer, 0) == end
    assert past_missing(np.frombuffer(b"None\n", np.uint8), 0) == 0


@settings(deadline=None)  # the first example compiles
@given(st.floats(allow_nan=False, allow_infinity=False))
@example(0.1)
@example(5e-324)
@example(1e23)
@example(9007199254740993.0)
@example(2.0**60)
@example(1e16)
@example(123456789012345680.0)
@example(0.0001)
@example(0.00001)
@example(100.0)
@example(-0.0)
def test_what_is_written_is_what_repr_writes(x):
    assert write(x) in (None, repr(x).removesuffix(".0"))


def test_hardly_any_number_is_left_to_python():
    rng = np.random.default_rng(0)
    samples = [*rng.normal(size=2000).tolist(), *np.round(rng.random(2000), 6).tolist()]
    samples += [float(k) for k in range(-1000, 1000)] + [2.0**k for k in range(-20, 50)]
    samples += [float(f"1e{k}") for k in range(-200, 23)]
    assert [write(x) for x in samples] == [repr(x).removesuffix(".0") for x in samples]


@settings(deadline=None)  # the first example compiles
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
@example(16777216.0)
@example(float(np.float32(0.1)))
@example(float(np.finfo(np.float32).max))
@example(float(np.float32(9.8e-45)))
def test_floats_are_written_in_the_digits_numpy_finds(x):
    text = write(x, "float32")
    if text is not None:
        shortest = float(str(np.float32(x)))
        assert float(text) == shortest or np.float32(shortest) != np.float32(x)
        assert np.float32(float(text)) == np.float32(x)
        assert math.copysign(1, float(text)) == math.copysign(1, x)


def test_missing_and_infinite_values():
    assert write(math.nan) == "NaN"
    assert write(math.inf) is None
