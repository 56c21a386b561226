"""Files are opened whatever they are wrapped in, and faults name them."""

import bz2
import gzip
import io
import lzma
import sys

import pyarrow as pa
import pytest

from rankwright.data import source
from rankwright.data.streams import open_bytes, plain_suffix, reads_file
from rankwright.errors import DataError, MissingExtraError

PACK = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("named", [True, False], ids=["named so", "named .txt"])
def test_compression_is_known_by_name_or_by_the_first_bytes(tmp_path, suffix, named):
    path = tmp_path / ("data.txt" + suffix if named else "data.txt")
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


def test_zstandard_needs_pyarrow(tmp_path, monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(source, "import_module", absent)
    path = tmp_path / "data.txt.zst"
    path.write_bytes(PACK[".zst"](b"content"))
    said = pytest.raises(MissingExtraError, match=r"a \.zst file needs pyarrow")
    with said, open_bytes(path):
        pass


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "a.txt",
            b"PK\x03\x04...",
            r"a\.txt is in a compression format that is not supported; unpack",
        ),
        ("a.7z", b"7z\xbc\xaf\x27\x1c", r"unpack the archive first \(\.gz, \.xz, \.bz2, \.zst are"),
        ("a.txt.Z", b"\x1f\x9d\x90", "uncompress it first"),
    ],
)
def test_archives_are_to_be_unpacked_first(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=sentence), open_bytes(tmp_path / name):
        pass


def test_text_that_looks_a_little_like_bz2_is_text(tmp_path):
    path = tmp_path / "data.txt"
    path.write_bytes(b"BZh is not a magic word")
    with open_bytes(path) as stream:
        assert stream.read(3) == b"BZh"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_is_a_dash_and_stays_open(monkeypatch, pack):
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(pack(b"content"))))
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
