"""Data sets by name, from the embedded digits to the official folds of LETOR."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from rankwright.data import catalog
from rankwright.data.catalog import digits, queries_of_classes
from rankwright.errors import DataError, UsageError


def test_digits_need_no_folder(monkeypatch):
    monkeypatch.delenv("RANKWRIGHT_DATA", raising=False)
    whole = catalog.load("digits")
    assert whole.n_queries == 150
    valid = catalog.load("digits/valid")
    np.testing.assert_array_equal(valid.X, digits().valid.X)
    assert valid.qid[0] == "valid-1"


def test_options_reach_the_digits_and_others_are_named():
    assert catalog.load("digits/test", queries=3, documents=20, seed=4).n_documents == 60
    with pytest.raises(UsageError, match="no option 'dtype'; it takes queries, documents, seed"):
        catalog.load("digits", dtype="float32")


def test_a_set_that_is_not_embedded_asks_for_the_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("RANKWRIGHT_DATA", raising=False)
    with pytest.raises(UsageError, match="RANKWRIGHT_DATA is not set"):
        catalog.load("mq2008")
    monkeypatch.setenv("RANKWRIGHT_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="which is not a folder"):
        catalog.load("mq2008")
    monkeypatch.setenv("RANKWRIGHT_DATA", str(tmp_path))
    with pytest.raises(DataError, match="MQ2008 is not a folder"):
        catalog.load("mq2008")


def test_unknown_names_bring_the_nearest():
    with pytest.raises(UsageError, match="no data set 'mq2007'; did you mean mq2008"):
        catalog.load("mq2007")
    with pytest.raises(UsageError, match="did you mean mq2008/fold1/vali"):
        catalog.load("mq2008/fold1/valid")


def test_every_name_is_described_and_every_set_listed():
    assert set(catalog.descriptions()) == {name for name in catalog.NAMES if "/" not in name}
    assert catalog.NAMES["mq2008/fold5/test"].startswith("fold5/test of LETOR 4.0 MQ2008")


def test_a_damaged_table_is_refused_with_its_name(monkeypatch, tmp_path):
    (tmp_path / "UCI_digits").mkdir()
    (tmp_path / "UCI_digits/optdigits.tra.xz").write_bytes(b"not xz")
    monkeypatch.setenv("RANKWRIGHT_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"optdigits\.tra\.xz"):
        catalog.load("optdigits")


# --- with the real data --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "queries", "documents", "features"),
    [
        ("ohsumed", 106, 16_140, 45),
        ("ohsumed-raw", 106, 16_140, 45),
        ("mq2008", 784, 15_211, 46),
        ("optdigits", 150, 15_000, 64),
        ("pendigits/train", 50, 5_000, 16),
        ("pageblocks/test", 50, 5_000, 10),
    ],
)
def test_sets_have_their_sizes(data_dir, name, queries, documents, features):
    data = catalog.load(name)
    assert (data.n_queries, data.n_documents, data.n_features) == (queries, documents, features)


def test_page_blocks_are_graded_from_zero(data_dir):
    assert set(np.unique(catalog.load("pageblocks").y)) == {0, 1, 2, 3, 4}


def test_parts_and_folds_are_the_official_ones(data_dir, mq2008):
    from rankwright.data.files import load

    vali = catalog.load("mq2008/fold4/vali")
    official = load(mq2008 / "Fold4/vali.txt")
    np.testing.assert_array_equal(vali.X, official.X)
    assert vali.qid.tolist() == official.qid.tolist()
    assert catalog.load("mq2008/S2").qid.tolist() == vali.qid.tolist()
    train = catalog.load("mq2008/fold4/train")
    parts = [catalog.load(f"mq2008/S{i}").qid.tolist() for i in (4, 5, 1)]
    assert train.qid.tolist() == parts[0] + parts[1] + parts[2]


def test_missing_values_of_raw_ohsumed_are_read_as_such(data_dir):
    assert np.isnan(catalog.load("ohsumed-raw").X).sum() == 51_490


# --- the demo data follows its protocol: 50 x 100, grade = class, no document in two parts ---


def test_each_part_has_fifty_queries_of_a_hundred_documents():
    for part in digits():
        assert part.n_queries == 50
        assert (part.sizes == 100).all()
        assert part.n_features == 64


def test_a_grade_is_the_digit_and_the_features_are_its_pixels():
    source = load_digits()
    for part in digits():
        np.testing.assert_array_equal(part.y, source.target[part.doc_id])
        np.testing.assert_array_equal(part.X, source.data[part.doc_id])
    assert part.feature_names == tuple(source.feature_names)


def test_no_document_is_in_two_parts_nor_twice_in_a_query():
    train, valid, test = (set(part.doc_id.tolist()) for part in digits())
    assert not train & valid
    assert not train & test
    assert not valid & test
    for part in digits():
        rows = part.doc_id.reshape(50, 100)
        assert all(len(set(query.tolist())) == 100 for query in rows)


def test_parts_and_queries_have_their_own_ids():
    assert [str(part.qid[0]) for part in digits()] == ["train-1", "valid-1", "test-1"]


def test_the_seed_decides():
    assert digits(seed=1).test.doc_id.tolist() == digits(seed=1).test.doc_id.tolist()
    assert digits(seed=1).test.doc_id.tolist() != digits(seed=2).test.doc_id.tolist()


def test_all_rows_of_a_small_table_are_dealt_half_a_quarter_a_quarter():
    X, classes = np.arange(8.0).reshape(-1, 1), np.arange(8) % 3
    fold = queries_of_classes(X, classes, name="tiny", queries=40, documents=2)
    pools = [set(part.doc_id.tolist()) for part in fold]
    assert [len(pool) for pool in pools] == [4, 2, 2]
    assert set.union(*pools) == set(range(8))


def test_more_documents_than_a_part_has_rows_are_refused():
    with pytest.raises(UsageError, match="449 documents at most"):
        digits(documents=500)
    with pytest.raises(UsageError, match="1 or more"):
        digits(queries=0)
