"""Files of LightGBM and XGBoost: sizes of queries, weights and positions in files of their own."""

import gzip

import lightgbm
import numpy as np
import pytest

import rankwright
from rankwright.data.formats import format_of
from rankwright.data.lightgbm import LightGBMText
from rankwright.errors import DataError, UsageError


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


def test_without_sizes_there_are_no_queries(train):
    train.with_name("train.txt.query").unlink()
    with pytest.raises(DataError, match=r"train\.txt\.query does not exist"):
        LightGBMText().read(train)


def test_lightgbm_reads_the_same(train):
    beside(train, "weight", "0.5\n1\n2\n")
    data = LightGBMText().read(train)
    theirs = lightgbm.Dataset(str(train), params={"verbose": -1}).construct()
    assert theirs.num_feature() == data.n_features
    np.testing.assert_array_equal(theirs.get_label(), data.y)
    np.testing.assert_array_equal(theirs.get_group(), data.sizes)
    np.testing.assert_array_equal(theirs.get_weight(), data.sample_weight)


def test_nothing_is_written(train, tmp_path):
    with pytest.raises(UsageError, match="is read, not written; write LETOR text"):
        rankwright.data.save(LightGBMText().read(train), tmp_path / "a.txt", format="lightgbm")
