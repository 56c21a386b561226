"""What must hold for all data: written and read back bit for bit; read as the slow twin reads."""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from reference import letor_reader as twin
from reference.same_data import assert_same, bits
from scipy import sparse

from rankwright.data.letor import Letor
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError

relaxed = settings(  # the first example compiles; files are overwritten, example after example
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

words = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=" #"), min_size=1)
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\n"))


def writable_name(name):
    return name == name.strip(" \t\r") and not re.match("docid[ \t\r]*=[ \t\r]*[^ \t\r]", name)


@st.composite
def ranking_data(draw):
    n, d = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    values = st.floats(width=np.dtype(dtype).itemsize * 8, allow_infinity=False)
    X = draw(arrays.arrays(dtype, (n, d), elements=st.one_of(st.just(0.0), values)))
    grades = st.floats(0, 2.0**53) | st.integers(0, 4).map(float)
    ids = st.integers(-(2**63), 2**63 - 1) | words.filter(lambda name: not name.isdigit())
    qid = draw(st.lists(ids, min_size=n, max_size=n))
    if not all(isinstance(name, int) for name in qid):
        qid = [f"q{name}" for name in qid]
    doc_id = draw(st.none() | st.lists(names.filter(writable_name), min_size=n, max_size=n))
    return RankingData.from_arrays(
        X,
        draw(st.lists(grades, min_size=n, max_size=n)),
        qid=np.array(qid),
        doc_id=None if doc_id is None else np.array(doc_id, dtype=str),
    )


@relaxed
@given(ranking_data(), st.booleans(), st.sampled_from(["", ".gz"]))
def test_dense_data_is_written_and_read_back_bit_for_bit(tmp_path, data, zeros, suffix):
    path = tmp_path / f"data.txt{suffix}"
    Letor.write(data, path, zeros=zeros)
    back = Letor.read(path, dtype=data.X.dtype)
    assert_same(back, data, but=["X"])
    assert bits(back.X) == bits(data.X if zeros else np.where(data.X == 0, 0, data.X))
    assert back.X.dtype == data.X.dtype


@relaxed
@given(ranking_data(), st.none() | st.booleans(), st.booleans())
def test_sparse_data_is_written_and_read_back_bit_for_bit(tmp_path, data, zeros, zero_based):
    X = sparse.csr_array(data.X)
    csr = RankingData(X, data.y, data.indptr, data.qid, doc_id=data.doc_id)
    path = tmp_path / "data.txt"
    Letor.write(csr, path, zeros=zeros, zero_based=zero_based)
    back = Letor.read(path, dtype=X.dtype, sparse=True)
    assert_same(back, csr, but=["X"])
    assert back.X.shape == X.shape
    assert back.X.indptr.tolist() == X.indptr.tolist()
    assert back.X.indices.tolist() == X.indices.tolist()
    assert bits(back.X.data) == bits(X.data)


# --- against the slow twin -------------------------------------------------------------------

numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"[+-]?[0-9]{0,22}\.?[0-9]{0,22}([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(["NULL", "null", "NaN", "nan", "NA", "0", "-0", "1_0", "inf", "", "0x1"]),
)
blanks = st.sampled_from([" ", "\t", "  ", " \r "])
comments = st.sampled_from(["", "#", " # text ", "#docid = D1 x", "#docid=", " # é # 2 "])


@st.composite
def lines(draw):
    gap = draw(blanks)
    grade = draw(st.integers(0, 4).map(str) | numbers)
    qid = draw(st.sampled_from(["qid:1", "qid:2", "qid:x", "qid:007", "qid:é", "qid:", "q"]))
    ids = draw(st.lists(st.integers(0, 9) | st.sampled_from([300, 2**26 + 1, "x"]), max_size=4))
    features = [f"{name}:{draw(numbers)}" for name in ids]
    return gap.join([grade, qid, *features]) + draw(comments)


def check(path, content):
    path.write_bytes(content)
    try:
        table = twin.read(content)
    except twin.BadLineError as bad:
        where = "" if bad.line is None else rf", line {bad.line}: "
        with pytest.raises(DataError, match=re.escape(path.name) + where):
            Letor.read(path)
        return
    data = Letor.read(path, lists="adjacent", sparse=False)
    assert bits(data.X) == bits(table.matrix())
    assert data.y.tolist() == table.grades
    assert list(map(str, np.repeat(data.qid, data.sizes).tolist())) == table.queries
    named = any(name is not None for name in table.documents)
    assert (data.doc_id is not None) == named
    if named:
        assert data.doc_id.tolist() == [name or "" for name in table.documents]


@relaxed
@given(st.lists(lines(), min_size=1, max_size=5), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_lines_are_read_or_refused_as_by_the_twin(tmp_path, some, newline):
    check(tmp_path / "lines.txt", newline.join(some).encode())


PACKED = (  # the first bytes of compressed files and archives
    *(b"\x1f\x8b\x08", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"Rar!"),
    *(b"\x1f\x9d", b"\x04\x22\x4d\x18", b"7z\xbc\xaf\x27\x1c"),
)


@relaxed
@given(st.binary(max_size=60))
@example(b"1 qid:1 1:1")
@example(b"1:1 qid:1 1:1\n")
@example(b"1 qid:1 1:1#\xff")
def test_any_bytes_are_read_or_refused_as_by_the_twin(tmp_path, content):
    assume(not content.startswith(PACKED))
    check(tmp_path / "bytes.txt", content)


@relaxed
@given(st.lists(st.sampled_from([*b" \t\n\r#:-+.eqid0129NaUL\x00\xc3\xff"]), max_size=40))
def test_any_letters_of_the_grammar_are_read_or_refused_as_by_the_twin(tmp_path, letters):
    check(tmp_path / "letters.txt", b"1 qid:1 1:1\n" + bytes(letters))
