"""LETOR text: lines, ids, features, sources, threads, options and the writer."""

import bz2
import gzip
import io
import lzma
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from rankwright.data import letor
from rankwright.data.letor import Letor, ReadOptions
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError

THREE_LINES = b"""\
2 qid:10 1:0.5 3:-1.25 # first
0 qid:10 2:1e-3 # second
1.5 qid:11 1:7 2:8 3:9
"""


@pytest.fixture
def letor_file(tmp_path):
    def write(content, name="data.txt"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


def test_a_line_is_grade_query_features_and_comment(letor_file):
    data = Letor.read(letor_file(THREE_LINES))
    assert data.y.tolist() == [2.0, 0.0, 1.5]
    assert data.X.tolist() == [[0.5, 0.0, -1.25], [0.0, 0.001, 0.0], [7.0, 8.0, 9.0]]
    assert data.indptr.tolist() == [0, 2, 3]
    assert data.qid.tolist() == [10, 11]
    assert data.doc_id.tolist() == ["first", "second", ""]
    assert data.X.dtype == data.y.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert (data.row, data.feature_names, data.sample_weight) == (None, None, None)


@pytest.mark.parametrize(
    "content",
    [
        THREE_LINES.replace(b"\n", b"\r\n"),
        THREE_LINES.replace(b" ", b"\t"),
        THREE_LINES.replace(b" ", b"   ").replace(b"\n", b" \t \n"),
        b"\xef\xbb\xbf" + THREE_LINES,
        THREE_LINES.rstrip(b"\n"),
        b"# a comment\n\n  \n" + THREE_LINES.replace(b"\n", b"\n\r\n   # more\n"),
        THREE_LINES.replace(b"1:", b"0001:").replace(b" #", b"#"),
    ],
    ids=["crlf", "tabs", "many blanks", "byte order mark", "no last newline", "comments", "zeros"],
)
def test_form_does_not_matter(letor_file, content):
    data, plain = Letor.read(letor_file(content)), Letor.read(letor_file(THREE_LINES, "plain.txt"))
    assert np.array_equal(data.X, plain.X)
    assert np.array_equal(data.y, plain.y)
    assert data.qid.tolist() == plain.qid.tolist()
    assert data.doc_id.tolist() == plain.doc_id.tolist()


# --- query ids -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["3", "-7", "0"], np.array([3, -7, 0])),
        (["9223372036854775807", "-9223372036854775808"], np.array([2**63 - 1, -(2**63)])),
        (["1", "9223372036854775808"], np.array(["1", "9223372036854775808"])),
        (["1", "007"], np.array(["1", "007"])),
        (["1", "-0"], np.array(["1", "-0"])),
        (["1", "+2"], np.array(["1", "+2"])),
        (["käse", "a:b=c"], np.array(["käse", "a:b=c"])),
    ],
)
def test_query_ids_are_integers_only_where_all_are(letor_file, ids, expected):
    data = Letor.read(letor_file("".join(f"1 qid:{name} 1:1\n" for name in ids).encode()))
    assert data.qid.dtype.kind == expected.dtype.kind
    assert data.qid.tolist() == expected.tolist()


def test_rows_of_one_query_are_put_together_and_the_order_of_the_file_is_kept(letor_file):
    content = b"1 qid:a 1:1 #A\n2 qid:b 1:2 #B\n3 qid:a 1:3 #C\n"
    data = Letor.read(letor_file(content))
    assert data.qid.tolist() == ["a", "b"]
    assert data.indptr.tolist() == [0, 2, 3]
    assert data.y.tolist() == [1.0, 3.0, 2.0]
    assert data.X.ravel().tolist() == [1.0, 3.0, 2.0]
    assert data.doc_id.tolist() == ["A", "C", "B"]
    assert data.in_caller_order(data.y).tolist() == [1.0, 2.0, 3.0]


def test_adjacent_lists_are_those_of_ranklib(letor_file):
    path = letor_file(b"1 qid:a 1:1\n2 qid:a 1:2\n2 qid:b 1:2\n3 qid:a 1:3\n")
    data = Letor.read(path, lists="adjacent")
    assert data.qid.tolist() == ["a", "b", "a"]
    assert data.indptr.tolist() == [0, 2, 3, 4]
    assert data.row is None


def test_sizes_of_the_queries_may_be_given_for_a_file_without_ids(letor_file):
    path = letor_file(b"1 1:1\n2 1:2 # x\n0\n")
    data = Letor.read(path, group_sizes=[2, 0, 1])
    assert data.indptr.tolist() == [0, 2, 2, 3]
    assert data.X.ravel().tolist() == [1.0, 2.0, 0.0]
    assert data.doc_id.tolist() == ["", "x", ""]


# --- names of documents ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("comment", "name"),
    [
        ("#docid = GX008-86-4444840 inc = 1 prob = 0.08", "GX008-86-4444840"),
        ("# docid=7", "7"),
        ("#\tdocid  =  7\r", "7"),
        ("# free text ", "free text"),
        ("#docid", "docid"),
        ("#docid =", "docid ="),
        ("#docids = 7", "docids = 7"),
        ("#", ""),
        ("# a # b", "a # b"),
        ("# naïve café", "naïve café"),
    ],
)
def test_comments_name_documents(letor_file, comment, name):
    data = Letor.read(letor_file(f"1 qid:1 1:1 {comment}\n0 qid:1 1:1\n".encode()))
    assert data.doc_id.tolist() == [name, ""]


def test_without_comments_there_are_no_names(letor_file):
    assert Letor.read(letor_file(b"# top\n1 qid:1 1:1\n")).doc_id is None


def test_bytes_that_are_not_utf8_are_replaced_in_comments(letor_file):
    data = Letor.read(letor_file(b"1 qid:1 1:1 # caf\xe9\n"))
    assert data.doc_id.tolist() == ["caf\ufffd"]


def test_one_endless_comment_does_not_take_memory_for_all(letor_file):
    long = "x" * 1_000_000
    data = Letor.read(letor_file(f"1 qid:1 1:1 # {long}\n".encode() + b"1 qid:1 1:1 # y\n" * 999))
    assert data.doc_id[0] == long
    assert data.doc_id[1:].tolist() == ["y"] * 999


# --- features --------------------------------------------------------------------------------


def test_values_may_be_missing(letor_file):
    data = Letor.read(letor_file(b"1 qid:1 1:NULL 2:null 3:NaN 4:nan 5:NA 6:0\n"))
    assert np.isnan(data.X).tolist() == [[True] * 5 + [False]]


def test_features_that_a_line_does_not_name_are_zero_or_missing(letor_file):
    path = letor_file(b"1 qid:1 2:5\n0 qid:1\n0 qid:1 3:0\n")
    assert Letor.read(path).X.tolist() == [[0, 5, 0], [0, 0, 0], [0, 0, 0]]
    missing = Letor.read(path, absent="missing").X
    assert np.isnan(missing).tolist() == [[True, False, True], [True] * 3, [True, True, False]]


def test_ids_may_come_in_any_order(letor_file):
    path = letor_file(b"1 qid:1 3:3 1:1 5:0 4:4 2:2\n")
    assert Letor.read(path).X.tolist() == [[1, 2, 3, 4, 0]]
    csr = Letor.read(path, sparse=True).X
    assert (csr.indices.tolist(), csr.data.tolist()) == ([0, 1, 2, 3], [1, 2, 3, 4])
    assert csr.has_canonical_format


def test_ids_start_at_zero_if_a_feature_has_id_zero(letor_file):
    assert Letor.read(letor_file(b"1 qid:1\n1 qid:1 0:5 1:6\n1 qid:1 1:7\n")).X.shape == (3, 2)
    assert Letor.read(letor_file(b"1 qid:1 1:5\n")).X.tolist() == [[5]]
    assert Letor.read(letor_file(b"1 qid:1 1:5 # 0:7\n")).X.tolist() == [[5]]
    assert Letor.read(letor_file(b"1 qid:1 1:5\n"), zero_based=True).X.tolist() == [[0, 5]]
    later = letor_file(b"1 qid:1 1:5\n0 qid:1 0:3\n")
    assert Letor.read(later).X.tolist() == [[0, 5], [3, 0]]
    assert Letor.starts_at_zero(later)
    assert not Letor.starts_at_zero(letor_file(THREE_LINES))


def test_the_number_of_features_may_be_given(letor_file):
    path = letor_file(b"1 qid:1 2:5\n")
    assert Letor.read(path, n_features=3).X.tolist() == [[0, 5, 0]]
    with pytest.raises(DataError, match="line 1: feature id 2 is too high for n_features=1"):
        Letor.read(path, n_features=1)
    assert Letor.read(letor_file(b"1 qid:1\n"), n_features=0).X.shape == (1, 0)


def test_wide_and_thin_files_are_read_as_csr(letor_file):
    def kind(width, given, **options):
        ids = range(width - given + 1, width + 1)
        line = " ".join(f"{name}:1" for name in ids)
        zeros = " ".join(f"{name}:0.00" for name in range(1, width - given + 1))
        path = letor_file(f"1 qid:1 {zeros} {line}\n".encode())
        return "csr" if sparse.issparse(Letor.read(path, **options).X) else "dense"

    assert kind(257, 51) == "csr"
    assert kind(257, 52) == "dense"
    assert kind(256, 1) == "dense"
    assert kind(257, 1, sparse=False) == "dense"
    assert kind(257, 1, absent="missing") == "dense"
    assert kind(3, 3, sparse=True) == "csr"


def test_csr_omits_written_zeros(letor_file):
    path = letor_file(b"1 qid:1 1:0 2:0.000 3:-0 4:NaN 5:+0 6:2\n1 qid:2 2:4.9e-324 1:0 3:5\n")
    csr, dense = Letor.read(path, sparse=True).X, Letor.read(path).X
    assert csr.indices.tolist() == [3, 5, 1, 2]
    assert csr.indptr.tolist() == [0, 2, 4]
    assert csr.shape == dense.shape == (2, 6)
    assert np.signbit(dense[0]).tolist() == [False, False, True, False, False, False]


def test_float32_is_the_rounding_of_float64(letor_file):
    values = ["0.1", "16777217", "1e-45", "3.4028235677973362e38", "-2.5"]
    line = " ".join(f"{k}:{value}" for k, value in enumerate(values, 1))
    data = Letor.read(letor_file(f"1 qid:1 {line}\n".encode()), dtype="float32")
    assert data.X.dtype == np.float32
    assert data.X.tolist() == np.array([[float(v) for v in values]]).astype(np.float32).tolist()


def test_many_values_of_all_lengths_are_read_as_python_reads_them(letor_file):
    rng = np.random.default_rng(5)
    forms = [f".{digits}{kind}" for digits in (1, 9, 17, 25) for kind in "ef"]
    texts = [format(x, form) for x in rng.normal(size=40) for form in forms]
    line = " ".join(f"{k}:{text}" for k, text in enumerate(texts, 1))
    data = Letor.read(letor_file(f"1 qid:1 {line}\n".encode()))
    assert data.X.tolist() == [[float(text) for text in texts]]


# --- sources ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("suffix", "module"), [(".gz", gzip), (".xz", lzma), (".bz2", bz2)])
def test_compressed_files_are_read(letor_file, suffix, module):
    plain = Letor.read(letor_file(THREE_LINES))
    data = Letor.read(letor_file(module.compress(THREE_LINES), f"data.txt{suffix}"))
    assert np.array_equal(data.X, plain.X)
    assert data.doc_id.tolist() == plain.doc_id.tolist()
    assert data.qid.tolist() == plain.qid.tolist()


def test_standard_input_is_a_dash(monkeypatch):
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(THREE_LINES)))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert Letor.read("-").y.tolist() == [2.0, 0.0, 1.5]


def test_chunks_may_differ_in_width_names_and_kinds_of_ids(letor_file, monkeypatch):
    content = (
        b"1 qid:1 1:-0 2:7\n" * 3
        + b"2 qid:1 300:1 1:2\n2 qid:x 1:1\n# only a comment\n"
        + b"0 qid:x 5:NaN # named\n0 qid:x 1:0\n"
    )
    for options in ({}, {"sparse": False}, {"absent": "missing"}, {"lists": "adjacent"}):
        whole = Letor.read(letor_file(content), **options)
        with monkeypatch.context() as patch:
            patch.setattr(letor, "_CHUNK", 20)
            chunks = Letor.read(letor_file(content), **options)
        a, b = (x.toarray() if sparse.issparse(x) else x for x in (whole.X, chunks.X))
        assert type(whole.X) is type(chunks.X)
        assert a.tobytes() == b.tobytes()
        assert whole.qid.tolist() == chunks.qid.tolist() == ["1", "x"]
        assert whole.indptr.tolist() == chunks.indptr.tolist() == [0, 4, 7]
        assert whole.doc_id.tolist() == chunks.doc_id.tolist() == [""] * 5 + ["named", ""]


# --- threads ---------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"sparse": True}, {"absent": "missing"}])
def test_threads_do_not_change_a_bit(letor_file, monkeypatch, options):
    monkeypatch.setattr(letor, "_CHUNK", 100)
    rng = np.random.default_rng(0)
    lines = [
        f"{g} qid:{q} " + " ".join(f"{k}:{x!r}" for k, x in enumerate(xs.tolist(), 1)) + f" #{g}"
        for g, q, xs in zip(
            rng.integers(0, 5, 300), rng.integers(0, 9, 300), rng.normal(size=(300, 5)), strict=True
        )
    ]
    path = letor_file("\n".join(lines).encode())
    one, *others = (Letor.read(path, n_jobs=n, **options) for n in (1, 2, 5))
    for other in others:
        for a, b in ((one.X, other.X), (one.y, other.y), (one.doc_id, other.doc_id)):
            a, b = (x.toarray() if sparse.issparse(x) else x for x in (a, b))
            assert a.tobytes() == b.tobytes()
        assert one.indptr.tolist() == other.indptr.tolist()


# --- other readers and real data -------------------------------------------------------------


def test_scikit_learn_reads_the_same_from_mq2008(mq2008):
    path = mq2008 / "Fold1" / "train.txt"
    X, y, qid = load_svmlight_file(str(path), query_id=True)
    data = Letor.read(path)
    assert np.array_equal(data.X, X.toarray())
    assert np.array_equal(data.y, y)
    assert np.array_equal(np.repeat(data.qid, data.sizes), qid)
    assert data.doc_id[0] == "GX008-86-4444840"


def test_the_missing_values_of_ohsumed_are_found(data_dir):
    folder = data_dir / "OHSUMED_LETOR3" / "Feature-null"
    parts = [Letor.read(folder / f"S{k}.txt.xz") for k in range(1, 6)]
    assert sum(part.n_queries for part in parts) == 106
    assert sum(part.n_documents for part in parts) == 16_140
    assert {part.n_features for part in parts} == {45}
    assert sum(int(np.isnan(part.X).sum()) for part in parts) == 51_490


def test_ranklib_reads_as_many_lists_and_documents(golden_dir):
    data = Letor.read(golden_dir / "ranklib" / "train.txt")
    scored = (golden_dir / "ranklib" / "train.txt").read_text().splitlines()
    assert data.n_documents == len(scored)
    assert data.doc_id[0] == "doc-1000-0"


# --- options of the LETOR reader that cannot be are refused before any file is opened --------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"dtype": "int8"}, "dtype must be one of 'float64', 'float32', not 'int8'"),
        ({"absent": "none"}, "absent must be one of 'zero', 'missing', not 'none'"),
        ({"lists": "x"}, "lists must be one of 'by_id', 'adjacent', not 'x'"),
        ({"zero_based": "no"}, "zero_based must be one of 'auto', True, False, not 'no'"),
        ({"absent": "missing", "sparse": True}, "makes a dense table; leave out sparse=True"),
        ({"n_features": -1}, "n_features must be 0 or more, not -1"),
    ],
)
def test_wrong_options_are_refused(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        ReadOptions(**options)


def test_types_may_be_given_as_numpy_has_them():
    assert ReadOptions(dtype=np.float32).dtype == "float32"


# --- what the LETOR writer writes, to the letter; that it reads back is in the properties ----


def data_of(X, **parts):
    parts = {"y": np.zeros(len(X) if isinstance(X, list) else X.shape[0]), **parts}
    parts.setdefault("qid", np.ones(len(parts["y"]), int))
    return RankingData.from_arrays(np.array(X) if isinstance(X, list) else X, **parts)


@pytest.fixture
def written(tmp_path):
    def write(data, **options):
        path = tmp_path / "out.txt"
        Letor.write(data, path, **options)
        return path.read_text(encoding="utf-8")

    return write


def test_numbers_are_as_short_as_they_can_be(written):
    data = data_of([[0.1, 3.0, -0.0, np.nan, 1e-7, 1e22]], y=[2.0], qid=["a"])
    assert written(data) == "2 qid:a 1:0.1 2:3 3:-0 4:NaN 5:1e-7 6:1e22\n"


def test_a_float32_is_as_short_as_a_float32_can_be(written):
    X = np.array([[0.1, 16777216.0, 1e-40, 3.4028235e38]], np.float32)
    assert written(data_of(X)) == "0 qid:1 1:0.1 2:16777216 3:1e-40 4:3.4028235e38\n"


def test_documents_are_named_in_comments(written):
    data = data_of([[1.0], [2.0], [3.0]], doc_id=["D 1", "", "ü"])
    assert written(data) == "0 qid:1 1:1 # D 1\n0 qid:1 1:2 #\n0 qid:1 1:3 # ü\n"


def test_zeros_are_written_or_not(written):
    X = np.array([[0.0, 1.0, 0.0], [-0.0, 0.0, 0.0]])
    assert written(data_of(X)) == "0 qid:1 1:0 2:1 3:0\n0 qid:1 1:-0 2:0 3:0\n"
    assert written(data_of(X), zeros=False) == "0 qid:1 2:1 3:0\n0 qid:1\n"
    csr = sparse.csr_array(X)
    assert written(data_of(csr)) == "0 qid:1 2:1 3:0\n0 qid:1\n"
    assert written(data_of(csr), zeros=True) == "0 qid:1 1:0 2:1 3:0\n0 qid:1 1:0 2:0 3:0\n"


def test_the_first_line_tells_where_ids_start_and_end(written):
    csr = sparse.csr_array(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
    assert written(data_of(csr), zero_based=True) == "0 qid:1 0:0 1:1 2:0\n0 qid:1 0:1\n"


def test_rows_are_written_query_after_query(written):
    data = data_of([[1.0], [2.0], [3.0]], qid=["a", "b", "a"])
    assert written(data) == "0 qid:a 1:1\n0 qid:a 1:3\n0 qid:b 1:2\n"


def test_parts_are_written_one_after_the_other(tmp_path):
    path = tmp_path / "out.txt"
    thin = sparse.csr_array(np.array([[1.0, 0.0]]))
    with Letor.open_writer(path) as writer:
        writer.append(data_of(thin, qid=["a"]))
        writer.append(data_of(thin, qid=["b"]))
    assert path.read_text() == "0 qid:a 1:1 2:0\n0 qid:b 1:1\n"


def test_a_dash_is_standard_output(capfdbinary):
    Letor.write(data_of([[1.0]]), "-")
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == b"0 qid:1 1:1\n"


def test_equal_data_makes_equal_compressed_bytes(tmp_path):
    paths = tmp_path / "a.txt.gz", tmp_path / "b.txt.gz"
    for path in paths:
        Letor.write(data_of([[1.0]]), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert Letor.read(paths[0]).X.tolist() == [[1.0]]


@pytest.mark.parametrize("name", ["", "a b", "a#b", "a\nb", "\ud800", "a\x00b", "\tq"])
def test_query_ids_that_would_not_read_back_are_refused(tmp_path, name):
    data = data_of([[1.0], [2.0]], qid=np.array(["ok", name], object))
    with pytest.raises(DataError, match=r"query id .* cannot be written as LETOR text"):
        Letor.write(data, tmp_path / "out.txt")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [" a", "a\t", "a\nb", "docid = 7", "docid=7", "\ud800", "a\x00b"])
def test_doc_ids_that_would_not_read_back_are_refused(tmp_path, name):
    (tmp_path / "out.txt").write_text("older")
    data = data_of([[1.0], [2.0]], doc_id=np.array(["docid", name], object))
    with pytest.raises(DataError, match=r"doc id .* of row 1 cannot be written"):
        Letor.write(data, tmp_path / "out.txt")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["older"]


def test_two_lists_of_one_id_in_a_row_are_refused(tmp_path):
    data = data_of([[1.0], [2.0]], qid=None, group_sizes=[1, 1])
    twins = RankingData(data.X, data.y, data.indptr, np.array(["a", "a"]))
    with pytest.raises(DataError, match="two lists in a row have the query id a"):
        Letor.write(twins, tmp_path / "out.txt")


def test_infinite_features_are_refused(tmp_path):
    data = RankingData(np.array([[np.inf]]), np.zeros(1), np.array([0, 1]), np.array([1]))
    with pytest.raises(DataError, match="a feature is infinite"):
        Letor.write(data, tmp_path / "out.txt")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match="cannot be written"):
        Letor.write(data_of([[1.0]]), tmp_path / "none" / "out.txt")
