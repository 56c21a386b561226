"""Zip bombs: what a file claims to hold, and what it does hold, are both limited."""

import hashlib
import json
import struct
import zipfile

import pytest

from rankwright.persist.container import ModelFileError, read_parts, write_parts

ZEROS = b"\0" * 20_000_000


def zipped(path, parts, packing=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", packing) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def directory(path, *, packed=None, unpacked=None):
    """Change the sizes that the zip's directory claims for its first entry."""
    whole = bytearray(path.read_bytes())
    at = whole.index(b"PK\x01\x02")
    if packed is not None:
        whole[at + 20 : at + 24] = struct.pack("<I", packed)
    if unpacked is not None:
        whole[at + 24 : at + 28] = struct.pack("<I", unpacked)
    path.write_bytes(whole)


def test_a_part_that_unpacks_a_thousandfold_is_refused(tmp_path):
    zipped(tmp_path / "m.rw", {"bomb": ZEROS})
    with pytest.raises(ModelFileError, match="no model is like that"):
        read_parts(tmp_path / "m.rw")


def test_a_false_packed_size_hides_nothing(tmp_path):
    zipped(tmp_path / "m.rw", {"bomb": ZEROS})
    directory(tmp_path / "m.rw", packed=10_000_000)
    with pytest.raises(ModelFileError, match="no model is like that"):
        read_parts(tmp_path / "m.rw")


def test_no_more_is_unpacked_than_was_claimed(tmp_path):
    import tracemalloc

    zipped(tmp_path / "m.rw", {"bomb": ZEROS})
    directory(tmp_path / "m.rw", unpacked=1000)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="damaged"):
        read_parts(tmp_path / "m.rw")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < len(ZEROS) / 10


def test_a_claim_of_more_than_any_model_is_refused_before_anything_is_read(tmp_path):
    zipped(tmp_path / "m.rw", {"bomb": b"abc"})
    directory(tmp_path / "m.rw", unpacked=0xFFFFFFF0, packed=0xFFFFFFF0)
    with pytest.raises(ModelFileError, match="no model is like that"):
        read_parts(tmp_path / "m.rw")


def test_too_many_parts_are_refused(tmp_path):
    zipped(tmp_path / "m.rw", {f"{number}.txt": b"" for number in range(1001)})
    with pytest.raises(ModelFileError, match="in 1001 parts"):
        read_parts(tmp_path / "m.rw")


@pytest.mark.parametrize(
    "text",
    [b"[" * 100_000, b"{}", b"[]", b"7", b"{", b"\xff", b'{"format": 1, "parts": 3}'],
    ids=["nested", "empty", "list", "number", "cut", "bytes", "parts"],
)
def test_a_receipt_that_is_none_is_refused(tmp_path, text):
    zipped(tmp_path / "m.rw", {"receipt.json": text}, zipfile.ZIP_STORED)
    with zipfile.ZipFile(tmp_path / "m.rw", "a") as archive:
        archive.comment = hashlib.sha256(text).hexdigest().encode()
    with pytest.raises(ModelFileError, match="receipt that cannot be read"):
        read_parts(tmp_path / "m.rw")


def test_what_is_no_bomb_is_read(tmp_path):
    text = json.dumps(list(range(10_000))).encode()
    write_parts(tmp_path / "m.rw", {}, {"long.txt": text})
    assert read_parts(tmp_path / "m.rw")[1] == {"long.txt": text}
