"""A store is written part by part, and shows whole or not at all."""

import numpy as np
import pytest
from reference.same_data import assert_same
from scipy import sparse
from store_samples import full_data, write_parts

from rankwright.data.ranking_data import PartsDifferError, RankingData
from rankwright.data.store import Store
from rankwright.errors import DataError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "d.store"


def test_only_what_is_there_is_written(path):
    data = RankingData.from_arrays(np.ones((2, 1)), [0, 1], qid=[1, 1])
    Store().write(data, path)
    assert {file.stem for file in path.glob("*.npy")} == {"X", "y", "indptr", "qid"}
    assert_same(Store().read(path), data)


def test_ids_of_parts_become_one_type(path):
    def part(qid, doc_id):
        return RankingData.from_arrays(np.ones((1, 1)), [0], qid=[qid], doc_id=[doc_id])

    write_parts(path, [part(1, "a"), part("b", "a longer name"), part(3, "c")])
    back = Store().read(path)
    assert back.qid.tolist() == ["1", "b", "3"]
    assert back.doc_id.tolist() == ["a", "a longer name", "c"]


def test_sparse_parts_may_bring_features(path):
    def part(qid, width):
        X = sparse.csr_array(np.eye(1, width, width - 1))
        return RankingData.from_arrays(X, [0], qid=[qid])

    write_parts(path, [part(1, 2), part(2, 5)])
    assert Store().read(path).X.toarray().tolist() == [[0, 1, 0, 0, 0], [0, 0, 0, 0, 1]]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"qid": [1]}, "query 1 appears twice"),
        ({"X": np.ones((1, 3))}, "have 1 and 3 features"),
        ({"doc_id": ["d"]}, "parts of the data differ in doc_id"),
        ({"qid": np.array(["2024-01-01"], "datetime64[D]")}, "types that cannot be combined"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes, sentence, path, tmp_path):
    arrays = {"X": np.ones((1, 1)), "y": [0], "qid": [2]}
    first = RankingData.from_arrays(np.ones((1, 1)), [0], qid=[1])
    second = RankingData.from_arrays(**{**arrays, **changes})
    with pytest.raises(PartsDifferError, match=sentence):
        write_parts(path, [first, second])
    assert list(tmp_path.iterdir()) == []


def test_ids_of_mixed_types_are_refused(path):
    data = full_data(group=np.array([1, "a", None, 2], object))
    with pytest.raises(DataError, match=r"group contains .* mixed types.*convert them to text"):
        Store().write(data, path)


def test_an_error_leaves_nothing_and_the_old_store_as_it_was(tmp_path, path):
    old = full_data()
    Store().write(old, path)

    def interrupted():
        yield full_data(y=[9, 9, 9, 9])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_parts(path, interrupted())
    assert list(tmp_path.iterdir()) == [path]
    assert_same(Store().read(path), old)


def test_a_store_can_be_replaced_even_by_itself(tmp_path, path):
    Store().write(full_data(), path)
    opened = Store().read(path)
    Store().write(opened, path)
    assert list(tmp_path.iterdir()) == [path]
    assert_same(Store().read(path), full_data())
    assert_same(opened, full_data())


def test_foreign_folders_and_files_are_left_as_they_are(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("text")
    with pytest.raises(DataError, match=r"mine is a folder but not a store, and was not changed"):
        Store().write(full_data(), folder)
    with pytest.raises(DataError, match=r"thesis.txt is a file; a store is a folder"):
        Store().write(full_data(), folder / "thesis.txt")
    assert (folder / "thesis.txt").read_text() == "text"


def test_an_empty_folder_is_filled(path):
    path.mkdir()
    Store().write(full_data(), path)
    assert_same(Store().read(path), full_data())


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none/d.store cannot be written: No such file"):
        Store().write(full_data(), tmp_path / "none" / "d.store")


def test_a_writer_that_lives_is_not_disturbed(tmp_path, path):
    with Store().open_writer(path) as slow:
        slow.append(full_data().select([0]))
        Store().write(full_data(), path)
        assert_same(Store().read(path), full_data())
        slow.append(full_data().select([1]))
    assert_same(Store().read(path), full_data().select([0, 1]))
    assert list(tmp_path.iterdir()) == [path]


def test_writing_nothing_is_refused(path, tmp_path):
    with pytest.raises(DataError, match="there is nothing to write"), Store().open_writer(path):
        pass
    assert list(tmp_path.iterdir()) == []
