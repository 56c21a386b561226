"""The parser: numbers as `float` reads them, and lines in Python."""

import math
import struct

import numpy as np
import pytest
from cases import each
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rankwright.data.letor_kernels import Rules, read_line, read_number
from rankwright.errors import DataError

# --- numbers, to the bit -----------------------------------------------------------------------


def read(text):
    """Return the value and its end, or None if the number is left to Python."""
    buffer = np.frombuffer(text.encode() + b"\n", np.uint8)
    value, end, parsed = read_number(buffer, 0)
    return (value, end) if parsed else None


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
        value, end = got
        assert bits(value) == bits(float(text))
        assert end == len(text)


@settings(deadline=None)  # the first example compiles
@given(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False))
def test_every_double_is_read_from_its_repr(x):
    got = read(repr(x))
    assert got is not None
    assert bits(got[0]) == bits(x)


@each("text", ["", "+", "-", ".", "-.", "e5", ".e5", "1e", "1e+", "abc", "NULL", "inf"])
def test_what_is_no_number_is_not_read(text):
    assert read(text) is None


@pytest.mark.parametrize("text", ["4.9e-324", "1e-310", "12345678901234567890", "1e1234567"])
def test_subnormal_numbers_and_many_digits_are_left_to_python(text):
    assert read(text) is None


@pytest.mark.parametrize("text", ["0.00000000000000000000001", "00000000000000000000000.5"])
def test_leading_zeros_are_not_counted_as_digits(text):
    assert read(text) == (float(text), len(text))


@pytest.mark.parametrize(("text", "end"), [("1.5x", 3), ("1.5.5", 3), ("1-2", 1), ("0x10", 1)])
def test_reading_stops_where_the_number_does(text, end):
    assert read(text)[1] == end


# --- lines in Python ---------------------------------------------------------------------------


RULES = Rules(grades=True, has_qid=True, first_id=1, width=10, limit=math.inf)


def parse(line, **changes):
    return read_line(line, RULES._replace(**changes), "beyond the last one")


def test_a_line_is_parsed():
    line = b"1.5 qid:ab 3:-2e3 1:NULL 2:0.00#docid = D7 inc = 1"
    parsed = parse(line)
    assert parsed.grade == 1.5
    assert parsed.columns == [0, 1, 2]
    assert math.isnan(parsed.values[0])
    assert parsed.values[1:] == [0.0, -2000.0]
    assert parsed.stored == [True, False, True]
    query_start, query_end, doc_start, doc_end = parsed.spans
    assert line[query_start:query_end] == b"ab"
    assert line[doc_start:doc_end] == b"D7"


def test_a_line_without_comment_has_no_document_id():
    assert parse(b"1 qid:a").spans[2:] == (-1, -1)
    assert parse(b"1 qid:a #").spans[2:] == (9, 9)


def test_a_line_may_lack_the_grade_or_the_query_id():
    assert parse(b"1 2:5", has_qid=False).columns == [1]
    assert parse(b"qid:a 2:5", grades=False).grade == 0.0
    assert parse(b"3 qid:a 2:5", grades=False).grade == 3.0


def test_columns_count_from_the_first_id():
    assert parse(b"1 qid:a 0:1 9:1", first_id=0).columns == [0, 9]
    assert parse(b"1 qid:a 1:1 10:1").columns == [0, 9]


def test_numbers_of_any_length_are_exact():
    text = "0.1000000000000000055511151231257827021181583404541015625"  # 0.1, written out
    assert parse(f"1 qid:a 1:{text} 2:{text}1".encode()).values == [0.1, 0.1]


def test_an_id_beyond_the_last_column_is_refused_with_a_reason():
    with pytest.raises(DataError, match=r"^feature id 11 is beyond the last one\.$"):
        parse(b"1 qid:a 11:1")


def test_long_tokens_are_shortened_in_messages():
    with pytest.raises(DataError, match=rf"^feature value '{'z' * 40}…' is not a number\.$"):
        parse(b"1 qid:a 1:" + b"z" * 1000)
