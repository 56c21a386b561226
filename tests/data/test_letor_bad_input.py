"""Bad LETOR text is refused in one sentence that names the file, the line and what to do."""

import gzip
import re

import pytest
from cases import each

from rankwright.data import letor
from rankwright.data.letor import Letor
from rankwright.errors import DataError

GOOD = b"1 qid:1 1:1 2:2 # a\n"

BAD_LINES = {
    "no qid": (b"1 1:1", "qid:<query id> is missing after the grade"),
    "label only": (b"1", "qid:<query id> is missing after the grade"),
    "qid later": (b"1 1:1 qid:1", "qid:<query id> is missing after the grade"),
    "second qid": (b"1 qid:1 qid:2 1:1", "'qid:2' must be directly after the grade"),
    "empty qid": (b"1 qid: 1:1", "the query id after 'qid:' is empty"),
    "value is text": (b"1 qid:1 3:abc", "feature value 'abc' is not a number"),
    "value is empty": (b"1 qid:1 3: 4:1", "feature 3 has no value after the colon"),
    "value is infinite": (b"1 qid:1 3:-Inf", "feature value '-Inf' is infinite"),
    "value overflows": (b"1 qid:1 3:1e999", "feature value '1e999' is too large for float64"),
    "underscore": (b"1 qid:1 3:1_000", "feature value '1_000' is not a number"),
    "hexadecimal": (b"1 qid:1 3:0x10", "feature value '0x10' is not a number"),
    "two points": (b"1 qid:1 3:1.2.3", "feature value '1.2.3' is not a number"),
    "bare exponent": (b"1 qid:1 3:1e", "feature value '1e' is not a number"),
    "bare sign": (b"1 qid:1 3:-", "feature value '-' is not a number"),
    "almost missing": (b"1 qid:1 3:NULLS", "feature value 'NULLS' is not a number"),
    "no colon": (b"1 qid:1 17", "'17' is not <feature id>:<value>"),
    "id is text": (b"1 qid:1 x:1", "feature id 'x' is not a whole number"),
    "id is empty": (b"1 qid:1 :1", "feature id '' is not a whole number"),
    "id is a fraction": (b"1 qid:1 1.5:1", "feature id '1.5' is not a whole number"),
    "negative id": (b"1 qid:1 -3:1", "feature id '-3' is negative; ids start at 1"),
    "id 10^9": (b"1 qid:1 1000000000:1", "feature id 1000000000 is above 67108864"),
    "id of 30 digits": (b"1 qid:1 " + b"7" * 30 + b":1", "7" * 30 + " is above 67108864"),
    "repeated id": (b"1 qid:1 2:1 3:1 2:5", "feature id 2 appears twice"),
    "repeated zero": (b"1 qid:1 2:0 2:0", "feature id 2 appears twice"),
    "negative grade": (b"-1 qid:1 1:1", "grade '-1' is negative; grades must be 0 or more"),
    "NaN grade": (b"nan qid:1 1:1", "grade 'nan' is not a number"),
    "infinite grade": (b"1e400 qid:1 1:1", "grade '1e400' is above 2"),
    "huge grade": (b"9007199254740994 qid:1 1:1", "grade '9007199254740994' is above 2"),
    "header": (b"label qid f1 f2", "grade 'label' is not a number; .* without a header line"),
    "NUL": (
        b"1 qid:1 1:1\x00",
        "byte 0 is a control character, so this is not a text file; text in UTF-16",
    ),
    "NUL in a comment": (b"1 qid:1 1:1 # \x00", "byte 0 is a control character"),
    "control letter": (b"1 qid:\x07 1:1", "byte 7 is a control character, .*; take it out"),
    "binary": (b"\x89PNG\x1a", "byte 26 is a control character"),
    "latin-1": (b"caf\xe9 qid:1 1:1", "byte 233 is not UTF-8"),
    "latin-1 query": (b"1 qid:caf\xe9 1:1", "the query id is not UTF-8"),
}


@pytest.fixture(params=["whole", "chunks", "compressed", "parts"])
def read(request, tmp_path, monkeypatch):
    """Read bytes: as a whole, in many chunks, compressed, and in parts."""
    path = tmp_path / "bad.txt"

    def reader(content, **options):
        path.write_bytes(content)
        if request.param == "chunks":
            monkeypatch.setattr(letor, "_CHUNK", 8)
            return Letor.read(path, n_jobs=2, **options)
        if request.param == "compressed":
            packed = path.with_suffix(".txt.gz")
            packed.write_bytes(gzip.compress(content))
            return Letor.read(packed, **options)
        if request.param == "parts":
            return list(Letor.read_parts(path, part_bytes=8, **options))
        return Letor.read(path, **options)

    return reader


@each(("line", "sentence"), BAD_LINES.values())
def test_the_first_bad_line_is_named(read, line, sentence):
    content = GOOD + b"# comment\n\n" + line + b"\n" + GOOD + b"another bad line\n"
    with pytest.raises(DataError, match=rf"bad\.txt(\.gz)?, line 4: .*{sentence}") as error:
        read(content)
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


@each("line", [line for line, _ in BAD_LINES.values()])
def test_a_bad_last_line_needs_no_newline(read, line):
    with pytest.raises(DataError, match=r"bad\.txt(\.gz)?, line 2: "):
        read(GOOD + line)


@each("content", [b"", b"\n \n\t\r\n", b"# only\n# comments", b"\xef\xbb\xbf", b"#"])
def test_a_file_without_data_lines_is_refused(read, content):
    with pytest.raises(DataError, match=r"bad\.txt(\.gz)? has no data lines\."):
        read(content)


def test_a_file_without_features_is_refused(read):
    with pytest.raises(DataError, match=r"bad\.txt(\.gz)? names no feature on any line"):
        read(b"1 qid:1\n0 qid:1 # 3:4\n")


@pytest.mark.parametrize("comment", [b"", b" # a"])
def test_lines_that_end_in_carriage_returns_alone_are_not_one_line(read, comment):
    """With comments all but the first would be one."""
    line = b"1 qid:1 1:1 2:2" + comment + b"\r"
    error = r"bad\.txt(\.gz)?, line 1: lines end in carriage returns only"
    with pytest.raises(DataError, match=error):
        read(3 * line)
    with pytest.raises(DataError, match=error):
        read(3 * line + b"\n" + GOOD)


def test_a_query_id_above_that_is_not_text_comes_first(read):
    with pytest.raises(DataError, match="line 2: the query id is not UTF-8"):
        read(GOOD + b"1 qid:\xff 1:1\n" + b"1 qid:1 1:x\n")


def test_lines_with_ids_are_refused_where_sizes_are_given(read):
    with pytest.raises(DataError, match="line 2: 'qid:1' is a query id, but the sizes"):
        read(b"1 1:1\n" + GOOD, group_sizes=[2])


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [([1, 2], "has 2 data lines, but the sizes .* add up to 3"), ([2.0], "must be whole numbers")],
)
def test_sizes_that_do_not_fit_are_refused(read, sizes, sentence):
    with pytest.raises(DataError, match=sentence):
        read(b"1 1:1\n0 1:1\n", group_sizes=sizes)


def test_id_zero_comes_with_advice(read):
    sentence = r"line 2: feature id 0 .* pass zero_based=True \(--read zero_based=true\)"
    with pytest.raises(DataError, match=sentence):
        read(GOOD + b"1 qid:1 0:1\n", zero_based=False)


def test_a_value_too_large_for_float32_is_refused(read):
    with pytest.raises(DataError, match="line 2: feature value '-4e38' is too large for float32"):
        read(GOOD + b"1 qid:1 1:-4e38\n", dtype="float32")


def test_ids_up_to_the_limit_are_read(tmp_path):
    path = tmp_path / "wide.txt"
    path.write_bytes(GOOD + b"1 qid:1 67108864:1\n")
    assert Letor.read(path).X.shape == (2, 67_108_864)


def test_a_dense_table_larger_than_memory_is_refused_before_it_is_made(tmp_path):
    path = tmp_path / "wide.txt"
    path.write_bytes(b"1 qid:1 67108864:1\n" * 100_000)
    with pytest.raises(DataError, match=r"would take 50,000 GiB as a dense table.*sparse=True"):
        Letor.read(path, sparse=False)


def test_a_folder_and_a_file_that_is_not_there_are_named(tmp_path):
    with pytest.raises(DataError, match=re.escape(f"{tmp_path} is a folder")):
        Letor.read(tmp_path)
    missing = tmp_path / "missing.txt"
    for read in (Letor.read, lambda path: list(Letor.read_parts(path))):
        with pytest.raises(DataError, match=re.escape(f"{missing} does not exist")):
            read(missing)


@pytest.mark.parametrize("damage", ["cut", "garbage"])
def test_a_damaged_gz_is_named(tmp_path, damage):
    path = tmp_path / "data.txt.gz"
    packed = gzip.compress(GOOD * 1000)
    path.write_bytes(packed[: len(packed) // 2] if damage == "cut" else b"not gz at all")
    for read in (Letor.read, lambda path: list(Letor.read_parts(path))):
        with pytest.raises(DataError, match=rf"{re.escape(str(path))} is damaged or truncated"):
            read(path)


@each(
    "content",
    [
        b"1 qid:1 1:" + b"9" * 100_000 + b"\n",
        b"1" + b"0" * 100_000 + b" qid:1 1:1\n",
        b"1 qid:1 " + b"0" * 100_000 + b"x:1\n",
        b"1 qid:1 1:1e" + b"9" * 100_000 + b"\n",
        b" " * 100_000 + b"x\n",
    ],
)
def test_endless_tokens_are_shown_cut_short(read, content):
    with pytest.raises(DataError, match="line 1: ") as error:
        read(content)
    assert len(str(error.value)) < 500


def test_endless_tokens_that_are_fine_are_read(tmp_path):
    path = tmp_path / "long.txt"
    zeros = b"0" * 100_000
    path.write_bytes(b"1 qid:1 %b1:0.%b1 2:1e-%b1 3:%b7\n" % (zeros, zeros, zeros, zeros))
    assert Letor.read(path).X.tolist() == [[0.0, 0.1, 7.0]]


def test_an_id_of_many_digits_does_not_change_where_ids_start(read):
    """Its product of digits wraps around to a negative number, found by fuzzing."""
    for digits in ("3456789012345678901234567", "9" * 19, "9" * 40):
        sentence = rf"line 2: feature id {digits} is above"
        with pytest.raises(DataError, match=sentence):
            read(b"1 qid:1 0:0.5\n" + f"0 qid:1 {digits}:1\n".encode())
