"""A file that is written shows when it is complete, compressed as its name says."""

import os

import pytest

from rankwright.data.streams import atomic_text, check_target, make_folder, open_bytes, open_target
from rankwright.errors import DataError, UsageError


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


# --- bytes, compressed or not --------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2", ".zst"])
def test_a_file_shows_when_it_is_complete(tmp_path, suffix):
    path = tmp_path / f"t.txt{suffix}"
    path.write_bytes(b"old")
    with open_target(path) as stream:
        stream.write(b"new")
        assert path.read_bytes() == b"old"
    with open_bytes(path) as stream:
        assert stream.read() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def failing(path):
    with open_target(path) as stream:
        stream.write(b"half")
        raise RuntimeError


def test_after_a_fault_there_is_the_old_file_or_none(tmp_path):
    with pytest.raises(RuntimeError):
        failing(tmp_path / "t.gz")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "t").write_bytes(b"old")
    with pytest.raises(RuntimeError):
        failing(tmp_path / "t")
    assert (tmp_path / "t").read_bytes() == b"old"


def test_a_device_is_written_to_and_not_replaced():
    with open_target(os.devnull) as stream:
        stream.write(b"gone")
    assert not os.path.isfile(os.devnull)


def test_a_target_is_checked_before_the_work(tmp_path):
    check_target(None, "-o")
    check_target(tmp_path / "a.html", "-o")
    with pytest.raises(UsageError, match="is a folder; -o takes the name of a file"):
        check_target(tmp_path, "-o")
    with pytest.raises(UsageError, match="no is not a folder; make it, or choose another --save"):
        check_target(tmp_path / "no" / "m.rw", "--save")


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="file cannot be made: File exists"):
        make_folder(tmp_path / "file")
