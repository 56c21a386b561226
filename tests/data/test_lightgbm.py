"""LightGBM's files: sizes of queries beside the text; LightGBM itself reads what we write."""

import gzip

import lightgbm
import numpy as np
import pytest
from reference.same_data import assert_same
from scipy import sparse

import rankwright
from rankwright.data import delimited
from rankwright.data.formats import format_of
from rankwright.data.lightgbm import LightGBMText
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError


@pytest.fixture
def train(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("0 0:1.5 2:3\n2 1:2\n1 0:1\n")
    (tmp_path / "train.txt.query").write_text("2\n1\n")
    return path


def beside(path, kind, text):
    path.with_name(f"{path.name}.{kind}").write_text(text)


def test_sizes_beside_the_text_make_queries(train):
    data = LightGBMText().read(train)
    assert data.indptr.tolist() == [0, 2, 3]
    assert data.qid.tolist() == [0, 1]
    assert data.y.tolist() == [0, 2, 1]
    assert data.X.tolist() == [[1.5, 0, 3], [0, 2, 0], [1, 0, 0]]


def test_ids_count_from_zero_as_in_lightgbm_even_if_none_is_zero(train):
    train.write_text("0 1:1\n2 1:2\n1 2:3\n")
    assert LightGBMText().read(train).X.tolist() == [[0, 1, 0], [0, 2, 0], [0, 0, 3]]
    assert LightGBMText().read(train, zero_based=False).X.tolist() == [[1, 0], [2, 0], [0, 3]]


def test_weights_and_positions_are_read_where_they_are_there(train):
    beside(train, "weight", "0.5\n1\n2\n")
    beside(train, "position", "1\n2\n1\n")
    data = LightGBMText().read(train)
    assert data.sample_weight.tolist() == [0.5, 1, 2]
    assert data.position.tolist() == [1, 2, 1]


def test_xgboost_has_sizes_in_a_group_file_and_weights_by_query(train):
    train.with_name("train.txt.query").unlink()
    beside(train, "group", "2\n1\n")
    beside(train, "weight", "0.5\n2\n")
    data = rankwright.load(train)
    assert data.indptr.tolist() == [0, 2, 3]
    assert data.query_weight.tolist() == [0.5, 2.0]
    assert data.sample_weight is None
    beside(train, "weight", "0.5\n2\n1\n")
    with pytest.raises(DataError, match=r"txt\.weight has 3 lines for 2 queries"):
        rankwright.load(train)


def test_load_finds_out_by_itself(train):
    assert format_of(train) == "lightgbm"
    assert rankwright.load(train).n_queries == 2
    train.write_text("0 qid:7 1:1\n2 qid:7 1:2\n1 qid:7 2:3\n")
    assert format_of(train) == "letor"
    assert rankwright.load(train).qid.tolist() == [7]


def test_compressed_text_has_its_sizes_beside_either_name(train):
    packed = train.with_name("train.txt.gz")
    packed.write_bytes(gzip.compress(train.read_bytes()))
    assert rankwright.load(packed).n_queries == 2
    beside(packed, "query", "1\n1\n1\n")
    assert rankwright.load(packed).n_queries == 3


@pytest.mark.parametrize("engine", ["pyarrow", "csv"])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("suffix", "separator"), [("csv", ","), ("tsv", "\t")])
def test_csv_has_the_grade_first(tmp_path, monkeypatch, engine, named, suffix, separator):
    if engine == "csv":
        monkeypatch.setattr(delimited, "has_pyarrow", lambda: False)
    path = tmp_path / f"t.{suffix}"
    text = "0,1.5,\n2,NaN,4\n" if not named else "target,a,b\n0,1.5,\n2,NaN,4\n"
    path.write_text(text.replace(",", separator))
    beside(path, "query", "1\n1\n")
    data = rankwright.load(path)
    assert data.y.tolist() == [0, 2]
    np.testing.assert_array_equal(data.X, [[1.5, np.nan], [np.nan, 4]])
    assert data.feature_names == (("a", "b") if named else None)


def test_the_grade_of_csv_can_be_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,target\n5,1\n6,0\n")
    beside(path, "query", "2\n")
    data = LightGBMText().read(path, label="target")
    assert (data.y.tolist(), data.X.ravel().tolist()) == ([1, 0], [5, 6])
    with pytest.raises(DataError, match="no column 'targets'; did you mean target"):
        LightGBMText().read(path, label="targets")


def test_csv_with_query_ids_is_not_lightgbms(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"QID",label,x\n1,0,5\n')
    beside(path, "query", "1\n")
    assert format_of(path) != "lightgbm"


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        ("query", "2\n2\n", r"3 data lines, but the sizes of the queries add up to 4"),
        ("query", "2\none\n", r"train\.txt\.query, line 2: the size of a query is a whole number"),
        ("query", "2\n-1\n", r"train\.txt\.query, line 2: the size of a query is a whole number"),
        ("query", f"2\n{'9' * 20}\n", r"train\.txt\.query, line 2: the size of a query is a whole"),
        ("weight", "1\n1\n", r"train\.txt\.weight has 2 lines for 3 documents"),
        ("weight", "1\nx\n1\n", r"train\.txt\.weight, line 2: the weight 'x' is not a number"),
        ("weight", "1\n-1\n1\n", r"train\.txt\.weight, line 2: a weight is finite and 0 or more"),
        ("position", "1\n", r"train\.txt\.position has 1 lines for 3 documents"),
    ],
)
def test_errors_beside_the_text_are_named(train, kind, text, sentence):
    beside(train, kind, text)
    with pytest.raises(DataError, match=sentence):
        LightGBMText().read(train)


def test_csv_of_another_length_than_its_sizes_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1,2\n")
    beside(path, "query", "2\n")
    with pytest.raises(DataError, match="has 1 rows, but the sizes of the queries add up to 2"):
        LightGBMText().read(path)


def test_without_sizes_there_are_no_queries(train):
    train.with_name("train.txt.query").unlink()
    with pytest.raises(DataError, match=r"train\.txt\.query does not exist"):
        LightGBMText().read(train)


def full_data(layout=np.asarray, **more):
    X = np.array([[0, 0.1, -2], [1 / 3, 0, 0], [0, 0, 0], [5e-324, 1e300, 0]])
    return RankingData.from_arrays(
        layout(X), [0, 2, 1, 0], group_sizes=[1, 0, 3], sample_weight=[0.1, 1, 2, 3], **more
    )


@pytest.mark.parametrize("suffix", ["txt", "csv", "tsv", "txt.gz"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_what_is_written_comes_back(tmp_path, suffix, layout):
    path, data = tmp_path / f"t.{suffix}", full_data(layout, position=[1, 1, 2, 3])
    LightGBMText().write(data, path)
    assert_same(LightGBMText().read(path), data)
    assert_same(rankwright.load(path), data)


def test_files_of_an_earlier_writing_do_not_stay(tmp_path):
    path = tmp_path / "t.txt"
    LightGBMText().write(full_data(position=[1, 1, 2, 3]), path)
    LightGBMText().write(full_data(), path)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "t.txt", "t.txt.query", "t.txt.weight",
    ]  # fmt: skip


def test_an_error_leaves_no_file(tmp_path):
    data = full_data(feature_names=["label", "b", "c"])
    with pytest.raises(DataError, match="a feature is named 'label'"):
        LightGBMText().write(data, tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataError, match="cannot go to standard output"):
        LightGBMText().write(data, "-")


@pytest.mark.parametrize("suffix", ["txt", "csv"])
def test_lightgbm_reads_the_same(tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    rng = np.random.default_rng(0)
    data = RankingData.from_arrays(
        np.round(rng.normal(size=(60, 3)), 3),
        rng.integers(0, 3, 60),
        group_sizes=[10, 20, 30],
        sample_weight=rng.random(60).astype(np.float32),
    )
    LightGBMText().write(data, path)
    loaded = lightgbm.Dataset(str(path), params={"verbose": -1}).construct()
    assert loaded.num_feature() == 3
    np.testing.assert_array_equal(loaded.get_label(), data.y)
    np.testing.assert_array_equal(loaded.get_group(), data.sizes)
    np.testing.assert_array_equal(loaded.get_weight(), data.sample_weight)
