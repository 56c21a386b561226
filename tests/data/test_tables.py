"""Tables come back bit for bit, in parts as in whole, and say what is wrong with them."""

import gzip
import io
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.same_data import assert_same
from scipy import sparse

from rankwright.data import tables
from rankwright.data.ranking_data import PartsDifferError, RankingData, concatenate
from rankwright.data.tables import Table, TableWriter
from rankwright.errors import DataError, UsageError

FORMATS = ("csv", "tsv", "parquet", "arrow")


@pytest.fixture(params=FORMATS)
def kind(request):
    return request.param


def full_data(**changes):
    arrays = {
        "X": np.array([[-0.0, 0.1, np.nan], [5e-324, 1.7976931348623157e308, 1 / 3], [1, 2, 3]]),
        "y": [0, 2.5, 1],
        "qid": ["007", "007", 'a,"é'],
        "doc_id": ["NA", "", "two\nlines"],
        "group": [3, 3, 4],
        "position": [1, 2, 1],
        "sample_weight": [0.1, 0.2, 0.3],
        "query_weight": [1.5, 2],
        "feature_names": ["price", "clicks", "age"],
    }
    return RankingData.from_arrays(**{**arrays, **changes})


def test_everything_comes_back_bit_for_bit(kind, tmp_path):
    path, data = tmp_path / f"t.{kind}", full_data()
    Table(kind).write(data, path)
    assert_same(Table(kind).read(path), data)
    assert_same(concatenate(list(Table(kind).read_parts(path))), data)


def test_the_least_comes_back_too(kind, tmp_path):
    path = tmp_path / f"t.{kind}"
    data = RankingData.from_arrays(np.array([[1.0], [-0.0]]), [0, 1], qid=[7, 5])
    Table(kind).write(data, path)
    assert_same(Table(kind).read(path), data)


def test_float32_comes_back(kind, tmp_path):
    path = tmp_path / f"t.{kind}"
    values = np.array([0.1, 1 / 3, 1e-45, 3.4028235e38, 16777217, np.nan], np.float32)
    data = RankingData.from_arrays(values.reshape(-1, 2), [0, 0, 0], qid=[1, 1, 1])
    Table(kind).write(data, path)
    assert_same(Table(kind).read(path, dtype="float32"), data)


def test_sparse_features_are_written_dense(kind, tmp_path):
    path = tmp_path / f"t.{kind}"
    X = sparse.csr_array(np.array([[0, 2.0], [0, 0], [np.nan, 0]]))
    data = RankingData.from_arrays(X, [0, 1, 0], qid=[1, 1, 2])
    Table(kind).write(data, path)
    assert_same(Table(kind).read(path), data)


def test_many_sparse_features_are_refused_and_nothing_is_left(kind, tmp_path):
    X = sparse.csr_array((1, 20_000))
    data = RankingData.from_arrays(X, [0], qid=[1])
    with pytest.raises(DataError, match=r"20000 columns is too wide.*'letor' or 'store'"):
        Table(kind).write(data, tmp_path / "t")
    assert list(tmp_path.iterdir()) == []


def test_compressed_tables_come_back(kind, tmp_path):
    data = full_data()
    for suffix in (".gz", ".xz", ".bz2"):
        path = tmp_path / f"t.{kind}{suffix}"
        Table(kind).write(data, path)
        assert_same(Table(kind).read(path), data)
    assert gzip.decompress((tmp_path / f"t.{kind}.gz").read_bytes())


def test_equal_data_gives_equal_bytes(kind, tmp_path):
    for name in ("a", "b"):
        Table(kind).write(full_data(), tmp_path / f"{name}.gz")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_rows_that_lie_apart_are_grouped(kind, tmp_path):
    path = tmp_path / f"t.{kind}"
    frame = pd.DataFrame({"qid": ["b", "a", "b"], "label": [1, 2, 3], "x": [1.0, 2, 3]})
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "arrow":
        frame.to_feather(path)
    else:
        frame.to_csv(path, sep="\t" if kind == "tsv" else ",", index=False)
    (data,) = [Table(kind).read(path)]
    (part,) = Table(kind).read_parts(path)
    for one in (data, part):
        assert one.qid.tolist() == ["b", "a"]
        assert one.row.tolist() == [0, 2, 1]
        assert one.X.ravel().tolist() == [1, 3, 2]


def test_parts_hold_whole_queries_however_the_rows_are_cut(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_ROWS_PER_BATCH", 4)
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 64)
    sizes = [1, 7, 2, 3, 1, 9, 4]
    qid = np.repeat(np.arange(len(sizes)), sizes)
    data = RankingData.from_arrays(np.arange(27.0).reshape(-1, 1), np.zeros(27), qid=qid)
    path = tmp_path / f"t.{kind}"
    with Table(kind).open_writer(path) as writer:
        for query in range(data.n_queries):
            writer.append(data.select([query]))
    parts = list(Table(kind).read_parts(path))
    assert len(parts) > 2
    assert_same(concatenate(parts), data)


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_ids_have_one_type_in_all_parts(form, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 64)
    separator = "," if form == "csv" else "\t"
    rows = [f"{i},{i % 2},{i}" for i in range(40)] + ["last,0,1"]
    text = "\n".join(["qid,label,x", *rows]).replace(",", separator)
    path = tmp_path / f"t.{form}"
    path.write_text(text)
    parts = list(Table(form).read_parts(path))
    assert len(parts) > 2
    assert {part.qid.dtype.kind for part in parts} == {"U"}


def test_booleans_and_words_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 64)
    path = tmp_path / "t.csv"
    rows = [f"{i},0,{['true', 'false', ''][i % 3]},{i}" for i in range(40)]
    path.write_text("\n".join(["qid,label,new,x", *rows]))
    parts = list(Table("csv").read_parts(path))
    assert len(parts) > 2
    assert_same(concatenate(parts), Table("csv").read(path))
    path.write_text("\n".join(["qid,label,new,x", *rows, "99,0,true,abc"]))
    with pytest.raises(DataError, match=r"t\.csv: column 'x' is not numeric \(it holds 'abc'\)"):
        list(Table("csv").read_parts(path))


def test_ids_of_mixed_types_are_refused(kind, tmp_path):
    data = full_data(group=np.array([1, "a", 2.5], object))
    with pytest.raises(DataError, match="a column cannot be written"):
        Table(kind).write(data, tmp_path / "t")


def test_columns_can_be_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("session,stars,title,a,b,w\n1,3,one,5,6,.5\n1,0,two,7,8,1\n")
    data = Table("csv").read(
        path, qid="session", label="stars", doc_id="title", features="b,a", sample_weight="w"
    )
    assert data.X.tolist() == [[6, 5], [8, 7]]
    assert data.feature_names == ("b", "a")
    assert data.doc_id.tolist() == ["one", "two"]
    assert data.sample_weight.tolist() == [0.5, 1]
    unlabelled = Table("csv").read(path, qid="session", label="", drop=["title", "stars"])
    assert unlabelled.y.tolist() == [0, 0]
    assert unlabelled.feature_names == ("a", "b", "w")


def test_the_index_that_pandas_writes_is_no_feature(tmp_path):
    frame = pd.DataFrame({"qid": [1, 1], "label": [0, 1], "x": [1.0, 2]}, index=[10, 20])
    frame.to_parquet(tmp_path / "t.parquet")
    assert Table("parquet").read(tmp_path / "t.parquet").feature_names == ("x",)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "it is empty"),
        ("qid,label,x\n", "there are no rows"),
        ("qid,label,x\n1,0\n", "(?i)3 (columns|are expected)"),
        ("qid,label,x\n1,0,2\n,1,3\n", r"query id \(column 'qid'\) is missing at row 1"),
        ("qid,label,x\n1,0,2\n1,,3\n", r"grade \(column 'label'\) is missing at row 1"),
        ("qid,label,x\n1,-1,2\n", "row 0 .query 1. has -1"),
        ("qid,label,x\n1,good,2\n", r"grade \(column 'label'\) must be a number; row 0 .*'good'"),
        ("qid,label,x\n1,0,abc\n", r"'x' \(it holds 'abc'\)"),
        ("qid,label,x\n1,0,inf\n", "infinite at row 0"),
        ("qid,label,x,x\n1,0,1,2\n", "'x' is used twice"),
        ("1,0,5\n1,1,6\n", "no query id column found"),
        (",qid,label\n0,1,2\n", "a column has no name"),
        ("a,b\n1,2\n", r"the columns are 'a', 'b'\. Specify it"),
    ],
)
def test_errors_in_csv_are_sentences_with_the_file(text, sentence, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=sentence) as error:
        Table("csv").read(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize("content", [b"", b"PAR1", b"ARROW1", b"qid,label\n1,2\n", bytes(200)])
def test_foreign_bytes_are_refused(form, content, tmp_path):
    path = tmp_path / f"t.{form}"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"t\.\w+ (is damaged|cannot be read)"):
        Table(form).read(path)


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1), byte=st.integers(0, 255), cut=st.booleans())
def test_a_damaged_file_gives_data_or_a_sentence(form, tmp_path, place, byte, cut):
    path = tmp_path / f"t.{form}"
    Table(form).write(full_data(), path)
    content = bytearray(path.read_bytes())
    at = int(place * (len(content) - 1))
    content[at] = byte
    path.write_bytes(content[:at] if cut else content)
    try:
        found = Table(form).read(path)
    except DataError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert isinstance(found, RankingData)


def test_a_binary_file_called_csv_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"\x00\xff\xfe" * 50)
    with pytest.raises(DataError, match="not UTF-8"):
        Table("csv").read(path)


def test_missing_files_and_folders_are_named(kind, tmp_path):
    with pytest.raises(DataError, match=r"none does not exist"):
        Table(kind).read(tmp_path / "none")
    with pytest.raises(DataError, match=r"is a folder; a file is expected"):
        Table(kind).read(tmp_path)


def test_another_dtype_is_refused(kind, tmp_path):
    Table(kind).write(full_data(), tmp_path / "t")
    with pytest.raises(UsageError, match="dtype must be 'float32' or 'float64', not 'int8'"):
        Table(kind).read(tmp_path / "t", dtype="int8")


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_ids_that_text_cannot_keep_are_warned_about(form, tmp_path):
    write = Table(form).write
    with pytest.warns(UserWarning, match="qid: these ids will be read back as numbers"):
        write(full_data(qid=["7", "7", "8"]), tmp_path / "t")
    days = np.array(["2024-01-01", "2024-01-01", "2024-01-02"], "datetime64[D]")
    with pytest.warns(UserWarning, match="qid: these ids will be read back as text"):
        write(full_data(qid=days), tmp_path / "t")


def test_standard_input_is_read_and_standard_output_written(monkeypatch, capfdbinary):
    csv = b"qid,label,x\n1,0,5\n1,2,6\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(csv)))
    data = Table("csv").read("-")
    assert data.X.ravel().tolist() == [5, 6]
    Table("csv").write(data, "-")
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == b'"qid","label","x"\n1,0,5\n1,2,6\n'


def test_types_of_parquet_columns(tmp_path):
    table = pa.table(
        {
            "qid": pa.array(["a", "b", "a"]).dictionary_encode(),
            "label": pa.array([1, 0, 2], pa.int8()),
            "clicked": [True, None, False],
            "price": pa.array([1, 2, 3], pa.decimal128(5, 2)),
            "age": pa.array([None, 1, 2], pa.int64()),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    data = Table("parquet").read(tmp_path / "t.parquet")
    assert data.qid.tolist() == ["a", "b"]
    np.testing.assert_array_equal(data.X, [[1, 1, np.nan], [0, 3, 2], [np.nan, 2, 1]])


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_parts_end_where_queries_do(form, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_ROWS_PER_BATCH", 2)
    qid = [1, 1, 1, 2, 3, 3]
    table = pa.table({"qid": qid, "label": [0.0] * 6, "f": [float(i) for i in range(6)]})
    path = tmp_path / "t"
    if form == "parquet":
        pa.parquet.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    parts = list(Table(form).read_parts(path))
    assert [part.qid.tolist() for part in parts] == [[1], [2], [3]]
    assert np.concatenate([part.X[:, 0] for part in parts]).tolist() == list(range(6))


# --- parts of one table must fit together ----------------------------------------------------


def part(qid, **more):
    return RankingData.from_arrays(np.ones((1, 1)), [0], qid=[qid], **more)


@pytest.mark.parametrize(
    ("first", "second", "column"),
    [
        (part(1), part("a"), "qid"),
        (part(1), part(2, doc_id=["d"]), "doc_id"),
        (part(1, doc_id=["d"]), part(2, doc_id=[3]), "doc_id"),
        (part(1, feature_names=["x"]), part(2), "x|f1"),
    ],
)
def test_parts_with_other_columns_are_refused(first, second, column):
    writer = TableWriter("csv", io.BytesIO())
    writer.append(first)
    with pytest.raises(PartsDifferError, match=f"differ in column '({column})'"):
        writer.append(second)


def test_text_of_any_width_is_one_type():
    stream = io.BytesIO()
    writer = TableWriter("csv", stream)
    writer.append(part("a"))
    writer.append(part("longer"))
    assert stream.getvalue().splitlines()[1:] == [b'"a",0,1', b'"longer",0,1']


def test_a_query_comes_once():
    writer = TableWriter("csv", io.BytesIO())
    writer.append(part(1))
    with pytest.raises(PartsDifferError, match="query 1 appears twice"):
        writer.append(part(1))


def test_a_feature_that_looks_like_something_else_is_warned_about():
    writer = TableWriter("csv", io.BytesIO())
    with pytest.warns(UserWarning, match="'Weight' is read as the sample_weight"):
        writer.append(part(1, feature_names=["Weight"]))


# --- text tables -----------------------------------------------------------------------------


def read_text(tmp_path, text, separator=",", **options):
    path = tmp_path / ("t.csv" if separator == "," else "t.tsv")
    path.write_bytes(text)
    return Table("csv" if separator == "," else "tsv").read(path, **options)


def test_numbers_booleans_and_missing_cells(tmp_path):
    rows = ["1.5,true,,", ",false,,TRUE", "NaN,true,,False", "NULL,false,,1", "NA,true,,true"]
    text = "\n".join(["qid,label,a,b,c,d", *(f"1,0,{row}" for row in rows)])
    nan = np.nan
    np.testing.assert_array_equal(
        read_text(tmp_path, text.encode()).X.T,
        [[1.5, nan, nan, nan, nan], [1, 0, 1, 0, 1], [nan] * 5, [nan, 1, 0, 1, 1]],
    )


def test_ids_of_text_tables_are_read_as_they_are_written(tmp_path):
    rows = ["007\t1", "NA\t2", '""\t3', '"a\tb"\t4', '"say ""é"""\t5', '"two\nlines"\t6']
    text = "\n".join(["doc_id\tx\tqid\tlabel", *(f"{row}\t1\t0" for row in rows)])
    data = read_text(tmp_path, text.encode(), "\t")
    assert data.doc_id.tolist() == ["007", "NA", "", "a\tb", 'say "é"', "two\nlines"]
    assert data.X.ravel().tolist() == [1, 2, 3, 4, 5, 6]


def test_byte_order_mark_carriage_returns_and_blank_lines(tmp_path):
    data = read_text(tmp_path, b"\xef\xbb\xbfqid,label,b\r\n1,2,5\r\n\r\n3,4,6\r\n")
    assert (data.qid.tolist(), data.y.tolist(), data.feature_names) == ([1, 3], [2, 4], ("b",))


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("1,2", r"Row #3: Expected 3 columns, got 2: 1,2\."),
        ("1,2,3,4", r"Row #3: Expected 3 columns, got 4: 1,2,3,4\."),
        ("1,2,1_000", "feature column is not numeric: 'x'"),
    ],
)
def test_damaged_rows_are_refused(tmp_path, row, sentence):
    with pytest.raises(DataError, match=rf"t\.csv: .*{sentence}"):
        read_text(tmp_path, f"qid,label,x\n1,0,5\n{row}\n".encode())


def test_a_word_after_the_first_block_is_refused_with_its_column(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 64)
    text = "qid,label,unused,x\n" + "1,0,2,\n" * 40 + "1,0,word,0.5\n1,0,3,word\n"
    with pytest.raises(DataError, match=r"column 'x' is not numeric \(it holds 'word'\)"):
        read_text(tmp_path, text.encode(), drop="unused")
    shorter = text.removesuffix("1,0,3,word\n").encode()
    X = read_text(tmp_path, shorter, drop="unused").X  # an empty first block contains numbers
    assert X[-1, 0] == 0.5
    assert np.isnan(X[:-1]).all()


@pytest.mark.parametrize(
    ("names", "separator", "sentence"),
    [
        (b"qid;label;x", ",", "is one column, 'qid;label;x'; save it with commas between cells"),
        (b"qid\tlabel\tx", ",", "is one column"),
        (b"qid,label,x", "\t", "is one column"),
        (b"qid|label|x", ",", "is one column"),
    ],
)
def test_another_separator_is_reported(tmp_path, names, separator, sentence):
    with pytest.raises(DataError, match=sentence):
        read_text(tmp_path, names + b"\n", separator)


def test_columns_are_read_with_ids_as_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"q,d,s,unused\n1,07,1,x\n1,8,2.5,y\n")
    roles = {"qid": "q", "doc_id": "d", "score": "s"}
    columns = Table("csv").read_columns(path, lambda names: roles)
    assert {role: values.tolist() for role, values in columns.items()} == {
        "qid": ["1", "1"],
        "doc_id": ["07", "8"],
        "score": [1, 2.5],
    }


def test_blocks_of_columns_are_written_below_one_header(tmp_path):
    path = tmp_path / "t.csv"
    with Table("csv").open_columns(path) as writer:
        writer.write({"a": np.array([1, 2]), "b": np.array([0.1, 1], np.float32)})
        writer.write({"a": np.array([3]), "b": np.array([2], np.float32)})
        with pytest.raises(PartsDifferError, match="differ in column 'a'"):  # in another order
            writer.write({"b": np.array([2], np.float32), "a": np.array([3])})
    assert path.read_bytes() == b'"a","b"\n1,0.1\n2,1\n3,2\n'


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(st.floats(allow_infinity=False), min_size=1),
    name=st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=5),
)
def test_any_number_and_text_comes_back_from_text(tmp_path, values, name):
    path, array = tmp_path / "t.csv", np.array(values)
    Table("csv").write_columns({"x": array, "doc_id": np.array([name] * len(values))}, path)
    columns = Table("csv").read_columns(path, lambda names: {"x": "x", "doc_id": "doc_id"})
    np.testing.assert_array_equal(columns["x"], array)
    signs = [np.signbit(numbers[array == 0]).tolist() for numbers in (columns["x"], array)]
    assert signs[0] == signs[1]
    assert columns["doc_id"].tolist() == [name] * len(values)
