"""A store gives back every array, maps its features, and shows only when complete."""

import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.same_data import assert_same
from scipy import sparse
from store_samples import full_data, write_parts

from rankwright.data.ranking_data import FeatureIds, RankingData, consecutive
from rankwright.data.store import META, Store, is_store
from rankwright.errors import DataError

LAYOUTS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "sparse": sparse.csr_array,
    "sparse float32": lambda X: sparse.csr_array(X.astype(np.float32)),
}


@pytest.fixture(params=LAYOUTS.values(), ids=LAYOUTS)
def data(request):
    return full_data(request.param(full_data().X))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "d.store"


def test_everything_comes_back(data, path):
    Store().write(data, path)
    back = Store().read(path)
    assert_same(back, data)
    assert sparse.issparse(back.X) == sparse.issparse(data.X)


def test_parts_give_the_same_store_as_the_whole(data, path, tmp_path):
    Store().write(data, path)
    write_parts(tmp_path / "parts.store", [data.select([q]) for q in range(data.n_queries)])
    assert_same(Store().read(tmp_path / "parts.store"), data)
    for file in path.iterdir():
        assert (tmp_path / "parts.store" / file.name).read_bytes() == file.read_bytes()


@pytest.mark.parametrize("first", [0, 1])
def test_the_numbering_of_features_in_letor_text_comes_back(data, path, first):
    data = replace(data, feature_ids=FeatureIds(first, True))
    Store().write(data, path)
    assert Store().read(path).feature_ids == data.feature_ids
    assert Store().read_queries(path, 0, 1).feature_ids == data.feature_ids


def test_parts_with_different_numberings_of_features_are_refused(data, path):
    parts = [
        replace(data.select([q]), feature_ids=FeatureIds(first, True))
        for q, first in enumerate((1, 0))
    ]
    with pytest.raises(DataError, match="feature ids of the parts begin with 0 in one file"):
        write_parts(path, parts)
    assert not path.exists()


def test_a_numbering_that_is_neither_from_0_nor_from_1_is_damage(data, path):
    Store().write(replace(data, feature_ids=FeatureIds(1, True)), path)
    meta = json.loads((path / META).read_text())
    (path / META).write_text(json.dumps({**meta, "feature_ids": [2, True]}))
    with pytest.raises(DataError, match="is damaged"):
        Store().read(path)


def test_the_features_are_mapped_and_cannot_be_written(data, path):
    Store().write(data, path)
    X = Store().read(path).X
    arrays = [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
    for array in arrays:
        assert isinstance(array.base, np.memmap)
        assert not array.flags.writeable


def test_mapped_features_can_be_used(data, path):
    Store().write(data, path)
    back = Store().read(path)
    np.testing.assert_array_equal(back.X @ np.ones(2), data.X @ np.ones(2))
    assert_same(back.select([2, 0]), data.select([2, 0]))


def test_arrays_are_plain_npy_files(data, path):
    Store().write(data, path)
    np.testing.assert_array_equal(np.load(path / "y.npy", allow_pickle=False), data.y)
    assert {file.suffix for file in path.iterdir()} == {".npy", ".json"}


def test_queries_without_documents_are_kept(path):
    data = RankingData.from_arrays(np.ones((2, 1)), [0, 1], group_sizes=[0, 1, 0, 1, 0])
    Store().write(data, path)
    assert_same(Store().read(path), data)


def edit_meta(path, **changes):
    meta = json.loads((path / META).read_text())
    (path / META).write_text(json.dumps({**meta, **changes}))


def test_what_is_no_store_is_refused(tmp_path, path):
    with pytest.raises(DataError, match=r"d\.store does not exist"):
        Store().read(path)
    with pytest.raises(DataError, match="is not a store"):
        Store().read(tmp_path)
    (tmp_path / META).write_text('{"format": "another"}')
    assert not is_store(tmp_path)
    with pytest.raises(DataError, match="is not a store"):
        Store().read(tmp_path)


def test_a_store_of_version_1_is_read(path):
    """Version 0.2 wrote the type and shape of every array to meta.json."""
    Store().write(full_data(), path)
    meta = json.loads((path / META).read_text())
    described = {}
    for name in meta["arrays"]:
        array = np.load(path / f"{name}.npy")
        described[name] = {"dtype": array.dtype.str, "shape": list(array.shape)}
    edit_meta(path, version=1, documents=4, queries=3, arrays=described)
    assert_same(Store().read(path), full_data())
    assert Store().row_count(path) == 4


def test_a_later_version_is_refused(path):
    Store().write(full_data(), path)
    edit_meta(path, version=3)
    with pytest.raises(DataError, match="version 3; this release reads 1 to 2"):
        Store().read(path)


@pytest.mark.parametrize("name", ["X", "y", "indptr", "qid", "doc_id"])
def test_missing_cut_and_foreign_arrays_are_named(name, path):
    Store().write(full_data(), path)
    file = path / f"{name}.npy"
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    with pytest.raises(DataError, match=rf"damaged: {name}.npy is not the array that was written"):
        Store().read(path)
    file.write_bytes(b"x" * len(content))
    with pytest.raises(DataError, match=rf"damaged: {name}.npy"):
        Store().read(path)
    file.unlink()
    with pytest.raises(DataError, match=rf"damaged: {name}.npy cannot be read: No such file"):
        Store().read(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"arrays": {}},
        {"arrays": None},
        {"arrays": {"../../etc/passwd": {}}},
        {"features": None},
        {"feature_names": 3},
        {"feature_names": ["one"]},
        {"feature_names": ["price", None]},
        {"feature_names": ["price", True]},
        {"features": -1},
        {"features": True},
        {"arrays": ["X", "y", "indptr"]},
        {"arrays": ["X_data", "X_indptr", "y", "indptr", "qid"]},
        {"categories": {"price": 3}},
    ],
)
def test_a_store_that_describes_itself_wrongly_is_refused(changes, path):
    Store().write(full_data(), path)
    edit_meta(path, **changes)
    with pytest.raises(DataError, match="damaged"):
        Store().read(path)


def test_arrays_that_do_not_fit_together_are_refused(path, tmp_path):
    Store().write(full_data(), path)
    short = RankingData.from_arrays(np.ones((1, 2)), [0], qid=["a"])
    Store().write(short, tmp_path / "short.store")
    os.replace(tmp_path / "short.store" / "y.npy", path / "y.npy")
    wanted = r"has the shape \(4,\); \(documents\) is expected with documents = 1; write it again"
    with pytest.raises(DataError, match=wanted):
        Store().read(path)


def put(path, name, at, value):
    """Change one number in an array of a store."""
    array = np.load(path / f"{name}.npy", mmap_mode="r+")
    array[at] = value
    array.flush()


def test_numbers_that_would_lead_kernels_astray_are_refused_with_the_array(path):
    data = full_data(sparse.csr_array(full_data().X))
    for name, at, value, said in (
        ("X_indices", 1, 2, "has 2 at number 1; its values must be 0 or more and 1 or less"),
        ("X_indices", 6, -1, "has -1 at number 6"),
        ("X_indptr", 2, 99, "falls from 99 to 5 at number 3"),
        ("X_indptr", 4, 9, "goes from 0 to 9; it must go from 0 to 7"),
        ("indptr", 1, 4, "falls from 4 to 3 at number 2"),
        ("indptr", 3, 5, "goes from 0 to 5; it must go from 0 to 4"),
        ("y", 1, np.nan, "has nan at number 1; its values must be finite and 0 or more"),
        ("y", 3, -1.0, "has -1.0 at number 3"),
        ("y", 0, 1e308, r"has 1e\+308 at number 0"),
        ("sample_weight", 2, np.inf, "has inf at number 2"),
        ("query_weight", 0, -0.5, "has -0.5 at number 0"),
    ):
        Store().write(data, path)
        put(path, name, at, value)
        with pytest.raises(DataError, match=f"d.store is damaged: the array '{name}' {said}"):
            Store().read(path)


def test_text_that_python_could_not_read_is_refused(path):
    for letter in (0x110000, 0xFFFFFFFF, 0xD800):
        Store().write(full_data(), path)
        content = bytearray((path / "doc_id.npy").read_bytes())
        width = np.load(path / "doc_id.npy").dtype.itemsize
        content[-width : 4 - width or None] = letter.to_bytes(4, "little")
        (path / "doc_id.npy").write_bytes(content)
        with pytest.raises(DataError, match="'doc_id' has a text at number 3 that is not Unicode"):
            Store().read(path)


def test_documents_in_several_topics_come_back(path):
    data = full_data(group=np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 2.0], [1.0, 1.0]]))
    Store().write(data, path)
    assert_same(Store().read(path), data)
    put(path, "group", (1, 0), -1.0)
    with pytest.raises(DataError, match=r"'group' has -1.0 at number 2"):
        Store().read(path)


def test_some_queries_are_opened_without_the_others(data, path):
    Store().write(data, path)
    for lo, hi in ((0, 3), (1, 2), (1, 3), (2, 2)):
        part = Store().read_queries(path, lo, hi)
        assert_same(part, consecutive(data, lo, hi))
    put(path, "y", 0, np.nan)
    assert Store().read_queries(path, 1, 3).n_documents == 2
    with pytest.raises(DataError, match="'y' has nan"):
        Store().read_queries(path, 0, 1)


def test_boundaries_of_some_queries_are_checked_before_they_are_followed(path):
    data = full_data(sparse.csr_array(full_data().X))
    for name, at, value in (
        ("indptr", 1, -3),
        ("indptr", 1, 10**12),
        ("indptr", 3, 2**62),
        ("X_indptr", 2, -7),
        ("X_indptr", 4, 10**8),
        ("X_indices", 6, 10**8),
    ):
        Store().write(data, path)
        put(path, name, at, value)
        with pytest.raises(DataError, match="damaged"):
            Store().read_queries(path, 1, 3)


def test_an_array_of_objects_is_never_unpickled(path):
    Store().write(full_data(), path)
    np.save(path / "qid.npy", np.array([print, "b", "c"], object), allow_pickle=True)
    with pytest.raises(DataError, match=r"damaged: qid\.npy is not the array .* Python objects"):
        Store().read(path)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["X_data", "X_indices", "X_indptr", "y", "indptr", "qid", META]),
    place=st.integers(0, 191),
    byte=st.integers(0, 255),
)
def test_a_damaged_header_gives_data_or_a_sentence(tmp_path, name, place, byte):
    path = tmp_path / "h.store"
    shutil.rmtree(path, ignore_errors=True)
    Store().write(full_data(sparse.csr_array(full_data().X)), path)
    file = path / (name if name == META else f"{name}.npy")
    content = bytearray(file.read_bytes())
    content[place % len(content)] = byte
    file.write_bytes(content)
    data, reported = None, ""
    try:
        data = Store().read(path)
    except DataError as error:
        reported = str(error)
    if data is None:
        assert "h.store" in reported
    else:
        assert data.X.shape[0] == len(data.y) == data.indptr[-1]
        assert len(data.qid) == data.n_queries
