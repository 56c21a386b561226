"""Delimited text reads the same with pyarrow and with Python's own csv."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwright.data import delimited
from rankwright.data.delimited import DelimitedSink, column_names, read_batches, read_columns
from rankwright.errors import DataError


@pytest.fixture(params=["pyarrow", "csv"])
def engine(request, monkeypatch):
    if request.param == "csv":
        monkeypatch.setattr(delimited, "has_pyarrow", lambda: False)
    return request.param


def columns(text, names, *, as_text=(), separator=","):
    column = read_columns(io.BytesIO(text), separator, names, list(as_text))
    return [column(name).tolist() for name in names]


def test_numbers_booleans_and_missing_cells(engine):
    text = b"a,b,c\n1.5,true,\n,false,\nNaN,true,\nNULL,false,\nNA,true,\n"
    a, b, c = columns(text, ["a", "b", "c"])
    nan = np.nan
    np.testing.assert_array_equal(a, [1.5, nan, nan, nan, nan])
    np.testing.assert_array_equal(b, [1, 0, 1, 0, 1])
    np.testing.assert_array_equal(c, [nan] * 5)


def test_booleans_as_pandas_and_spreadsheets_write_them(engine):
    text = b"a,b,c\nTrue,TRUE,1\nFalse,FALSE,true\n"
    assert columns(text, ["a", "b", "c"]) == [[1, 0], [1, 0], [1, 1]]


def test_text_columns_stay_as_they_are_written(engine):
    text = 'q\tx\n007\t1\nNA\t2\n""\t3\n"a\tb"\t4\n"say ""é"""\t5\n"two\nlines"\t6\n'.encode()
    q, x = columns(text, ["q", "x"], as_text=["q"], separator="\t")
    assert q == ["007", "NA", "", "a\tb", 'say "é"', "two\nlines"]
    assert x == [1, 2, 3, 4, 5, 6]


def test_a_column_with_one_word_comes_as_text(engine):
    (a,) = columns(b"a\n1\ntwo\n", ["a"])
    assert "two" in a


def test_byte_order_mark_carriage_returns_and_blank_lines(engine):
    text = b"\xef\xbb\xbfa,b\r\n1,2\r\n\r\n3,4\r\n"
    assert column_names(io.BytesIO(text), ",") == ["a", "b"]
    assert columns(text, ["a", "b"]) == [[1, 3], [2, 4]]


def test_the_sign_of_zero_and_extremes_are_kept(engine):
    (a,) = columns(b"a\n-0\n5e-324\n1.7976931348623157e308\n0.1\n", ["a"])
    wanted = [-0.0, 5e-324, 1.7976931348623157e308, 0.1]
    assert np.array(a).tobytes() == np.array(wanted).tobytes()


@pytest.mark.parametrize("text", [b"a,b\n1,2\n3\n", b"a,b\n1,2\n3,4,5\n"])
def test_lines_of_another_length_are_refused(engine, text):
    with pytest.raises(DataError, match=r"(?i)2 (columns|are expected)"):
        columns(text, ["a", "b"])


def test_digits_grouped_with_underscores_are_not_numbers(engine):
    assert columns(b"a\n1_000\n", ["a"]) == [["1_000"]]


def test_bytes_that_are_not_text_are_refused():
    with pytest.raises(DataError, match="not UTF-8 text"):
        column_names(io.BytesIO(b"\xff\xfe\x00a,b\n"), ",")
    with pytest.raises(DataError, match="it is empty"):
        column_names(io.BytesIO(b""), ",")
    with pytest.raises(DataError, match="'a' is used twice"):
        column_names(io.BytesIO(b"a,b,a\n"), ",")


@pytest.mark.parametrize(
    ("text", "separator", "sentence"),
    [
        (
            b"qid;label;x\n",
            ",",
            "separated by ';'; save it with commas between cells and points in",
        ),
        (b"qid\tlabel\tx\n", ",", r"separated by '\\t'; read it as tsv"),
        (b"qid,label,x\n", "\t", "separated by ','; read it as csv"),
        (b"qid|label|x\n", ",", r"separated by '\|'; save it with commas"),
    ],
)
def test_another_separator_is_reported(text, separator, sentence):
    with pytest.raises(DataError, match=sentence):
        column_names(io.BytesIO(text), separator)


def written(columns):
    stream = io.BytesIO()
    DelimitedSink(stream, ",").write(columns)
    return stream.getvalue()


def test_blocks_are_written_below_one_line_of_names(engine):
    stream = io.BytesIO()
    sink = DelimitedSink(stream, ",")
    sink.write({"a": np.array([1, 2])})
    sink.write({"a": np.array([3])})
    assert stream.getvalue().replace(b'"', b"") == b"a\n1\n2\n3\n"


def test_float32_is_written_in_its_own_digits(engine):
    assert b"0.1\n" in written({"a": np.array([0.1], np.float32)})


@pytest.mark.parametrize("with_pyarrow", [True, False])
@given(
    values=st.lists(st.floats(allow_infinity=False), min_size=1),
    names=st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=5),
)
def test_any_number_and_text_comes_back(with_pyarrow, values, names):
    with pytest.MonkeyPatch.context() as patch:
        if not with_pyarrow:
            patch.setattr(delimited, "has_pyarrow", lambda: False)
        array = np.array(values)
        text = written({"x": array, "t": np.array([names] * len(values))})
        column = read_columns(io.BytesIO(text), ",", ["x", "t"], ["t"])
        np.testing.assert_array_equal(column("x"), array)
        assert (
            np.signbit(column("x")[array == 0]).tolist() == np.signbit(array[array == 0]).tolist()
        )
        assert column("t").tolist() == [names] * len(values)


def test_batches_have_numbers_booleans_and_text_from_the_first_line_on():
    raw = io.BytesIO(b"skipped\nquery,seen,price,left\n7,true,1.5,x\n7,false,2,y\n")
    raw.readline()
    (batch,) = read_batches(raw, ",", ["query", "seen", "price"], ["query"])
    assert [str(kind) for kind in batch.schema.types] == ["string", "bool", "double"]
    assert batch.to_pydict() == {"query": ["7", "7"], "seen": [True, False], "price": [1.5, 2.0]}
