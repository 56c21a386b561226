"""The kernels: what they count, what they read, and which lines they leave to Python."""

import math
import struct

import numpy as np
import pytest
from cases import each
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rankwright.data import letor_kernels as kernels
from rankwright.data.letor_kernels import (
    WRITING,
    Rules,
    past_missing,
    read_line,
    read_number,
    write_number,
)
from rankwright.errors import DataError

LINES = b"""\
# comment
1 qid:7 1:0.0 3:-0 2:5 # x

0 qid:007 4:NaN
2 qid:7 1:4.9e-324
"""


def chunks(text, cuts):
    return np.frombuffer(text, np.uint8), np.array(cuts)


def test_a_survey_counts_what_arrays_need():
    text, cuts = chunks(LINES, [0, len(LINES)])
    counts = np.empty((1, kernels.SURVEYED), np.int64)
    kernels.survey(0, 1, cuts, text, counts)
    (count,) = counts
    assert count[kernels.LINES] == 5
    assert count[kernels.ROWS] == 3
    assert count[kernels.VALUES] == 4  # all but 0.0
    assert count[kernels.HIGHEST_ID] == 4
    assert count[kernels.FEATURES_AT] == LINES.index(b"1 qid:7")
    assert count[kernels.OTHER_IDS] == 1  # 007
    assert count[kernels.COMMENTS] == 1


def test_lines_are_counted_quickly_where_none_is_blank_or_comment():
    content = b"1 qid:1 1:1\n" * 5
    text, cuts = chunks(content + b"\n#\n" + content, [0, 24, 60, 60 + 3 + 60])
    lines, others = np.empty(3, np.int64), np.empty(3, np.int64)
    kernels.count_lines(0, 3, cuts, text, lines, others)
    assert lines.tolist() == [2, 3, 7]
    assert others.tolist() == [0, 0, 2]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_line_that_is_not_sure_is_left_with_its_place(sparse):
    text, cuts = chunks(LINES, [0, len(LINES)])
    first = np.zeros((1, 2), np.int64)
    y, spans = np.full(3, -1.0), np.zeros((3, 4), np.int64)
    out = np.zeros(4 if sparse else 12)
    indices, ends = (np.zeros(4, np.int32), np.zeros(4, np.int32)) if sparse else (None, None)
    rules = (True, 1, 4, np.inf, False)
    kernels.parse(
        0,
        1,
        cuts,
        text,
        1000,
        first,
        kernels.Rules(*rules),
        kernels.Rows(y, out, indices, ends, spans),
        indices,
        ends,
    )
    assert y.tolist()[:2] == [1.0, 0.0]
    assert spans[2, :2].tolist() == [1000 + LINES.index(b"2 qid"), kernels.LEFT_TO_PYTHON]
    assert spans[0].tolist() == [1000 + LINES.index(b"7"), 1, 1000 + LINES.index(b"x"), 1]
    assert spans[1, 3] == kernels.NO_COMMENT
    if sparse:
        assert ends.tolist() == [0, 2, 3, 4]
        assert indices[:3].tolist() == [1, 2, 3]
        assert out[:2].tolist() == [5.0, -0.0]
    else:
        assert out[:4].tolist() == [0.0, 5.0, -0.0, 0.0]
    assert np.isnan(out[2 if sparse else 7])


def test_a_long_line_in_descending_order_is_sorted():
    n = 5000
    line = b"1 qid:1 " + b" ".join(b"%d:%d" % (k, k) for k in range(n, 0, -1)) + b"\n"
    text, cuts = chunks(line, [0, len(line)])
    y, spans, out = np.empty(1), np.zeros((1, 4), np.int64), np.zeros(n)
    indices, ends = np.zeros(n, np.int32), np.zeros(2, np.int32)
    rules = (True, 1, n, np.inf, False)
    first = np.zeros((1, 2), np.int64)
    kernels.parse(
        0,
        1,
        cuts,
        text,
        0,
        first,
        kernels.Rules(*rules),
        kernels.Rows(y, out, indices, ends, spans),
        indices,
        ends,
    )
    assert indices.tolist() == list(range(n))
    assert out.tolist() == list(range(1, n + 1))


def test_runs_of_equal_ids_are_marked():
    ids = [b"a", b"a", b"ab", b"ac", b"ac", b"a"]
    content = b" ".join(ids) + b"\n"
    ends = np.cumsum([len(name) + 1 for name in ids])
    lengths = np.array([len(name) for name in ids])
    spans = np.stack([ends - lengths - 1, lengths, lengths * 0, lengths * 0], axis=1)
    marks = np.empty(6, np.bool_)
    kernels.mark_runs(np.frombuffer(content, np.uint8), spans, marks)
    assert marks.tolist() == [True, False, True, True, False, True]


# --- numbers are read as float reads them and written as repr writes them, to the bit --------


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


@each("text", ["", "+", "-", ".", "-.", "e5", ".e5", "1e", "1e+", "abc", "NULL", "inf"])
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


# --- one line read in Python: what it says, and where its names stand ------------------------


RULES = Rules(has_qid=True, base=1, width=10, top=math.inf, fill=False)


def test_a_line_is_taken_apart():
    line = b"1.5 qid:ab 3:-2e3 1:NULL 2:0.00#docid = D7 inc = 1"
    read = read_line(line, RULES)
    assert read.grade == 1.5
    assert line[read.qid[0] :][: read.qid[1]] == b"ab"
    assert read.columns == [2, 0, 1]
    assert read.values[0] == -2000.0
    assert math.isnan(read.values[1])
    assert read.only_zeros == [False, False, True]
    assert line[read.document[0] :][: read.document[1]] == b"D7"


def test_a_line_without_comment_names_no_document():
    assert read_line(b"1 qid:a", RULES).document is None
    assert read_line(b"1 qid:a #", RULES).document[1] == 0


def test_without_query_ids_the_features_follow_the_grade():
    read = read_line(b"1 2:5", RULES._replace(has_qid=False))
    assert (read.qid[1], read.columns) == (0, [1])


def test_columns_count_from_the_lowest_id():
    assert read_line(b"1 qid:a 0:1 9:1", RULES._replace(base=0)).columns == [0, 9]
    assert read_line(b"1 qid:a 1:1 10:1", RULES).columns == [0, 9]


def test_numbers_of_any_length_are_exact():
    text = "0.1000000000000000055511151231257827021181583404541015625"  # 0.1, written out
    read = read_line(f"1 qid:a 1:{text} 2:{text}1".encode(), RULES)
    assert read.values == [0.1, 0.1]


def test_the_limit_says_what_to_do():
    with pytest.raises(DataError, match=r"^feature id 11 is above all\.$"):
        read_line(b"1 qid:a 11:1", RULES, limit="above all")


def test_what_is_shown_of_a_long_token_is_short():
    with pytest.raises(DataError, match=rf"^feature value '{'z' * 40}…' is not a number\.$"):
        read_line(b"1 qid:a 1:" + b"z" * 1000, RULES)
