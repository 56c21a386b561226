"""Files are opened whatever they are wrapped in, and errors name them."""

import bz2
import gzip
import io
import lzma
import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from forks import statuses_of_forks
from small_data import small_data

import rankwright as rw
from rankwright.data import load, save, streams
from rankwright.data.click_files import load_log
from rankwright.data.letor import Letor
from rankwright.data.lightgbm import LightGBMText
from rankwright.data.streams import (
    atomic_text,
    check_target,
    decoded,
    make_folder,
    number_at,
    open_bytes,
    open_target,
    plain_suffix,
    reads_file,
    text_lines,
)
from rankwright.data.trec import read_qrels, read_run
from rankwright.errors import DataError, UsageError

PACK = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}


@pytest.mark.parametrize("suffix", PACK)
def test_a_compressed_file_has_the_suffix_of_its_compression(tmp_path, suffix):
    path = tmp_path / f"data.txt{suffix}"
    path.write_bytes(PACK[suffix](b"content"))
    with open_bytes(path) as stream:
        assert stream.read() == b"content"


@pytest.mark.parametrize("suffix", PACK)
def test_files_packed_one_after_the_other_are_one(tmp_path, suffix):
    path = tmp_path / f"data.txt{suffix}"
    path.write_bytes(PACK[suffix](b"one\ntw") + PACK[suffix](b"o\n"))
    with open_bytes(path) as stream:
        assert list(stream) == [b"one\n", b"two\n"]
        assert not reads_file(stream)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("a.zip", r"a\.zip is in a compression format that is not supported; unpack"),
        ("a.7z", r"unpack the archive first \(\.gz, \.xz, \.bz2, \.zst can be read"),
        ("a.txt.Z", "uncompress it first"),
    ],
)
def test_archives_are_to_be_unpacked_first(tmp_path, name, sentence):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match=sentence), open_bytes(tmp_path / name):
        pass


def test_standard_input_is_a_dash_and_stays_open(monkeypatch):
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"content")))
    monkeypatch.setattr(sys, "stdin", stdin)
    with open_bytes("-") as stream:
        assert stream.read() == b"content"
    assert not stdin.buffer.closed


@pytest.mark.parametrize("suffix", PACK)
def test_a_file_cut_short_is_named(tmp_path, suffix):
    path = tmp_path / f"data.txt{suffix}"
    path.write_bytes(PACK[suffix](bytes(range(256)) * 100)[:-20])
    said = pytest.raises(DataError, match=r"data\.txt\.\w+ is damaged or truncated: .*[^.]\.$")
    with said, open_bytes(path) as stream:
        stream.read()


def test_what_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(DataError, match="is a folder; a file is expected"), open_bytes(tmp_path):
        pass
    with pytest.raises(DataError, match="none does not exist"), open_bytes(tmp_path / "none"):
        pass


def test_the_suffix_of_the_format_is_below_that_of_the_compression():
    assert plain_suffix("a/b.TXT.gz") == ".txt"
    assert plain_suffix("b.csv") == ".csv"
    assert plain_suffix("b.xz") == ""


# --- a file that is written shows when it is complete, compressed as its name says -----------


def test_the_file_appears_whole(tmp_path):
    with atomic_text(tmp_path / "a.txt") as stream:
        stream.write("one\n")
        assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "a.txt").read_bytes() == b"one\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_folders_that_take_one_name_at_once_replace_each_other(tmp_path):
    def replace():
        for _ in range(200):
            with streams.partial_beside(tmp_path / "it", folder=True) as partial:
                (made := partial / "made").mkdir()
                (made / "a.txt").write_text("whole")
                streams.replace_folder(made, tmp_path / "it")

    assert statuses_of_forks(3, replace) == [0] * 3
    assert (tmp_path / "it/a.txt").read_text() == "whole"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_cannot_take_a_name_leaves_what_has_it(tmp_path):
    (tmp_path / "it").mkdir()
    (tmp_path / "it/a.txt").write_text("old")
    with pytest.raises(FileNotFoundError):
        streams.replace_folder(tmp_path / "missing", tmp_path / "it")
    assert (tmp_path / "it/a.txt").read_text() == "old"


def test_a_failure_leaves_what_was_there(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(RuntimeError), atomic_text(tmp_path / "a.txt") as stream:
        stream.write("new")
        raise RuntimeError
    assert (tmp_path / "a.txt").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_does_not_exist_is_reported_in_a_sentence(tmp_path):
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


def test_after_an_error_there_is_the_old_file_or_none(tmp_path):
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


def test_a_symbolic_link_stays_and_its_file_is_written(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "there.txt").write_text("old")
    for name in ("there.txt", "new.txt"):  # the second link names a file that does not exist yet
        link = tmp_path / f"link-{name}"
        link.symlink_to(Path("far") / name)
        check_target(link, "-o")
        with open_target(link) as stream:
            stream.write(b"text")
        assert link.is_symlink()
        assert (tmp_path / "far" / name).read_text() == "text"
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere" / "file")
    with (
        pytest.raises(DataError, match=r"make the folder .*nowhere first"),
        open_target(tmp_path / "lost"),
    ):
        pass
    data = small_data(queries=2)
    save(data, tmp_path / "far" / "data.store")
    (tmp_path / "link.store").symlink_to(tmp_path / "far" / "data.store")
    save(small_data(queries=3), tmp_path / "link.store")
    assert (tmp_path / "link.store").is_symlink()
    assert load(tmp_path / "far" / "data.store").n_queries == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_a_full_device_is_named():
    why = "/dev/full cannot be written: No space left on device; "
    with pytest.raises(DataError, match=why), open_target("/dev/full") as stream:
        stream.write(b"text")


def test_a_target_is_checked_before_the_work(tmp_path):
    check_target(None, "-o")
    check_target(tmp_path / "a.html", "-o")
    with pytest.raises(UsageError, match="is a folder; -o takes the name of a file"):
        check_target(tmp_path, "-o")
    with pytest.raises(UsageError, match="no is not a folder; make it, or choose another --save"):
        check_target(tmp_path / "no" / "m.rw", "--save")


def test_a_folder_that_cannot_be_made_is_reported(tmp_path):
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="file cannot be made: File exists"):
        make_folder(tmp_path / "file")


# --- lines of text files come without their ends and marks; an error names file and line ------


def test_lines_are_numbered_and_blank_ones_passed_over(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone \r\n\r\n \t\nt\xc3\xa9n")
    assert list(text_lines(path)) == [(1, "one "), (4, "tén")]


def test_only_the_first_line_has_a_byte_order_mark():
    assert decoded(b"\xef\xbb\xbfa", "a.txt") == "a"
    assert decoded(b"\xef\xbb\xbfa", "a.txt", 1) == "a"
    assert decoded(b"\xef\xbb\xbfa", "a.txt", 2) == "\ufeffa"


def test_errors_name_the_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\ncaf\xe9\n")
    with pytest.raises(DataError, match=r"a\.txt, line 2 is not text in UTF-8\.$"):
        list(text_lines(path))
    with pytest.raises(DataError, match=r"a\.txt, line 7: the score '1_0' is not a number\.$"):
        number_at("1_0", path, 7, "the score")


def test_a_run_saved_on_windows_keeps_its_first_query(tmp_path):
    """With the mark taken for a letter, the first line would be a query of its own."""
    (tmp_path / "a.run").write_bytes(b"\xef\xbb\xbf1 Q0 a 1 2 t\r\n1 Q0 b 2 1 t\r\n")
    (tmp_path / "a.qrels").write_bytes(b"\xef\xbb\xbf1 0 a 2\r\n1 0 b 1\r\n")
    assert read_run(tmp_path / "a.run") == {"1": {"a": 2.0, "b": 1.0}}
    assert read_qrels(tmp_path / "a.qrels") == {"1": {"a": 2.0, "b": 1.0}}


def test_sizes_saved_on_windows_are_read(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"1 0:1\r\n0 0:2\r\n2 0:3\r\n")
    (tmp_path / "a.txt.query").write_bytes(b"\xef\xbb\xbf2\r\n1\r\n")
    assert LightGBMText().read(tmp_path / "a.txt").sizes.tolist() == [2, 1]


# --- files that unpack to far more than data do, and devices ------------------------------------

LETOR = b"0 qid:1 1:0.5 2:0\n"
JUDGED = b"q1 0 d1 1\n"
READ = {
    "letor": (LETOR, rw.load, ".txt"),
    "letor, in parts": (LETOR, lambda path: list(Letor.read_parts(path)), ".txt"),
    "csv": (b"qid,label,a\n1,0,0\n", rw.load, ".csv"),
    "run": (b"q1 Q0 d1 1 2.0 tag\n", read_run, ".run"),
    "judgments": (JUDGED, read_qrels, ".qrels"),
    "click log": (b'{"query": "a", "results": ["x"], "clicks": []}\n', load_log, ".jsonl"),
    "feature log": (b'{"query": "a"}\n', None, ".json"),
}


@pytest.mark.parametrize("reader", READ)
@pytest.mark.parametrize("suffix", PACK)
def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(tmp_path, monkeypatch, reader, suffix):
    monkeypatch.setattr(streams, "_UNPACKED_FREELY", 1 << 18)
    content, read, ending = READ[reader]
    if reader == "feature log":
        (tmp_path / "judged.qrels").write_bytes(JUDGED)
        read = partial(rw.load, format="feature_log", judgments=str(tmp_path / "judged.qrels"))
    path = tmp_path / f"bomb{ending}{suffix}"
    path.write_bytes(PACK[suffix](b" " * (1 << 24) + b"\n" + content))
    with pytest.raises(DataError, match=rf"bomb{ending}{suffix} unpacks to more than 250 times"):
        read(path)


def test_a_gzip_of_a_megabyte_stops_early(tmp_path):
    path = tmp_path / "bomb.txt.gz"
    with gzip.open(path, "wb", compresslevel=6) as stream:
        for _ in range(160):
            stream.write(bytes(1 << 20))
    read = 0
    with pytest.raises(DataError, match="unpack it first"), open_bytes(path) as stream:
        while piece := stream.read(1 << 20):
            read += len(piece)
    assert read < 1 << 28


@pytest.mark.parametrize("suffix", PACK)
def test_repetitive_data_are_read(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(streams, "_UNPACKED_FREELY", 1 << 16)
    rng = np.random.default_rng(0)
    lines = [
        b"%d qid:%d 1:0.%d 2:0 3:0 4:0 5:0 6:0 7:0 8:0 9:0 10:0\n" % (row % 3, row // 40, value)
        for row, value in enumerate(rng.integers(1, 10, 20_000))
    ]
    path = tmp_path / f"data.txt{suffix}"
    content = b"".join(lines)
    packed = PACK[suffix](content)
    path.write_bytes(packed)
    assert 20 < len(content) / len(packed) < 250
    assert rw.load(path).n_documents == 20_000


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there are no such devices")
def test_devices_are_no_input(tmp_path):
    for name in ("/dev/zero", "/dev/null", "/dev/urandom"):
        for read, options in (
            (rw.load, {"format": "letor"}),
            (rw.load, {"format": "csv"}),
            (load_log, {"format": "jsonl"}),
            (read_run, {}),
        ):
            with pytest.raises(DataError, match=f"^{name} is a device; name a file or a pipe"):
                read(name, **options)
        with pytest.raises(DataError, match=f"^{name} is a device"):
            rw.load_model(name)
    link = tmp_path / "data.txt"
    link.symlink_to("/dev/zero")
    with pytest.raises(DataError, match="is a device"):
        rw.load(link)
