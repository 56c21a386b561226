import hashlib
import json
import zipfile

import pytest

from rankwright.persist.container import ModelFileError, read_parts, write_parts

RECEIPT = {"ranker": "gbdt", "rankwright": "0.1.0"}
PARTS = {"arrays.safetensors": b"abc" * 10, "lightgbm.txt": b"tree"}


@pytest.fixture
def path(tmp_path):
    write_parts(tmp_path / "m.rw", RECEIPT, PARTS)
    return tmp_path / "m.rw"


def rewrite(path, change):
    """Write the zip anew with its parts and comment changed, as a tamperer would."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
        comment = archive.comment
    parts, comment = change(parts, comment)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
        archive.comment = comment


def test_what_is_written_is_read(path):
    receipt, parts = read_parts(path)
    assert parts == PARTS
    assert receipt["ranker"] == "gbdt"
    assert receipt["parts"]["lightgbm.txt"] == hashlib.sha256(b"tree").hexdigest()


def test_equal_content_is_equal_bytes(path, tmp_path):
    write_parts(tmp_path / "other.rw", RECEIPT, dict(reversed(PARTS.items())))
    assert (tmp_path / "other.rw").read_bytes() == path.read_bytes()


def test_every_truncation_is_refused(path):
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match=str(path)):
            read_parts(path)


def test_every_altered_byte_is_refused_or_harmless(path):
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            receipt, parts = read_parts(path)
        except ModelFileError:
            continue
        assert parts == PARTS  # a bit of the zip's own bookkeeping
        assert receipt["ranker"] == "gbdt"


def swapped_part(parts, comment):
    return {**parts, "lightgbm.txt": b"forged"}, comment


def extra_part(parts, comment):
    return {**parts, "more.txt": b""}, comment


def altered_receipt(parts, comment):
    receipt = {**json.loads(parts["receipt.json"]), "ranker": "other"}
    return {**parts, "receipt.json": json.dumps(receipt).encode()}, comment


def no_receipt(parts, comment):
    return {"lightgbm.txt": b"tree"}, comment


def of_format(number):
    def change(parts, comment):
        text = json.dumps({**json.loads(parts["receipt.json"]), "format": number}).encode()
        return {**parts, "receipt.json": text}, hashlib.sha256(text).hexdigest().encode()

    return change


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (swapped_part, "part lightgbm.txt does not match its digest"),
        (extra_part, "its parts are not the parts of its receipt"),
        (altered_receipt, "its receipt does not match its seal"),
        (no_receipt, "a zip without a receipt"),
        (of_format(99), "has format 99, this version .* reads 3: use the version that wrote it"),
        (of_format(1), r"has format 1, .* use the version that wrote it .*rankwright==0\.1\.0\)"),
    ],
)
def test_tampering_is_reported(path, change, sentence):
    rewrite(path, change)
    with pytest.raises(ModelFileError, match=sentence):
        read_parts(path)


def test_a_zip_bomb_is_refused_before_it_unpacks(path):
    rewrite(path, lambda parts, comment: ({**parts, "bomb": b"\0" * 50_000_000}, comment))
    with pytest.raises(ModelFileError, match="no model is like that"):
        read_parts(path)


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(ModelFileError, match="does not exist"):
        read_parts(tmp_path / "none.rw")


def test_files_of_other_tools_are_named(tmp_path):
    found = {"empty": b"", "catboost": b"CBM1" + bytes(20), "unknown": b"\x01\x02\x03"}
    said = {}
    for name, content in found.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelFileError) as reported:
            read_parts(tmp_path / name)
        said[name] = str(reported.value)
    assert said["empty"].endswith("empty is empty; save the model again.")
    assert "catboost is CatBoost's binary format" in said["catboost"]
    assert "is not a model file, or is damaged: " in said["unknown"]
