"""Under a bound on memory a large file comes through a temporary store, with the same data."""

import tempfile

import numpy as np
import pytest
from reference.same_data import assert_same

from rankwright.core.memory import anonymous_bytes, memory_limit
from rankwright.data import formats
from rankwright.data.files import load, save
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def everything_is_large(tmp_path, monkeypatch):
    """Let small files count as large; temporary files go to a folder that can be looked at."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setattr(formats, "_EASY_SHARE", 1 << 60)
    yield
    assert list(scratch.iterdir()) == []


def some_data(n=60):
    X = RNG.normal(size=(n, 4)).round(2)
    return RankingData.from_arrays(X, RNG.integers(0, 3, n), qid=np.repeat(np.arange(n // 6), 6))


def is_mapped(array):
    """Whether a file stands behind an array."""
    while array is not None:
        if isinstance(array, np.memmap):
            return True
        array = getattr(array, "base", None)
    return False


@pytest.mark.parametrize("name", ["t.txt", "t.txt.gz", "t.csv"])
def test_the_same_data_come_with_mapped_features(tmp_path, name):
    save(some_data(), tmp_path / name)
    whole = load(tmp_path / name)
    with memory_limit("90GB"):
        mapped = load(tmp_path / name)
    assert is_mapped(mapped.X)
    assert not is_mapped(whole.X)
    assert_same(mapped, whole)


def test_queries_whose_rows_lie_apart_are_put_together(tmp_path):
    file = tmp_path / "t.txt"
    file.write_text("1 qid:1 1:1\n0 qid:2 1:2\n2 qid:1 1:3\n")
    with memory_limit("90GB"):
        data = load(file)
    assert data.y.tolist() == [1.0, 2.0, 0.0]
    assert data.row.tolist() == [0, 2, 1]  # where each was in the file


def test_an_error_in_the_file_is_reported_as_without_a_bound(tmp_path):
    file = tmp_path / "t.txt"
    file.write_text("1 qid:1 1:1\n0 qid:1 1:oops\n")
    with pytest.raises(DataError) as without:
        load(file)
    with memory_limit("90GB"), pytest.raises(DataError) as within:
        load(file)
    assert str(within.value) == str(without.value)


def test_a_file_that_fits_easily_is_read_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "_EASY_SHARE", 4)
    save(some_data(), tmp_path / "t.txt")
    with memory_limit(2 * anonymous_bytes() + 10**8):
        assert not is_mapped(load(tmp_path / "t.txt").X)
