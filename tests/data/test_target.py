import pytest

from rankwright.data.target import atomic_text
from rankwright.errors import DataError


def test_the_file_appears_whole(tmp_path):
    with atomic_text(tmp_path / "a.txt") as stream:
        stream.write("one\n")
        assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "a.txt").read_bytes() == b"one\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_failure_leaves_what_was_there(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(RuntimeError), atomic_text(tmp_path / "a.txt") as stream:
        stream.write("new")
        raise RuntimeError
    assert (tmp_path / "a.txt").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_does_not_exist_is_told_in_a_sentence(tmp_path):
    with (
        pytest.raises(DataError, match="cannot be written: No such file"),
        atomic_text(tmp_path / "no" / "a.txt") as stream,
    ):
        stream.write("x")


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(DataError, match="is a folder"), atomic_text(tmp_path):
        pass
