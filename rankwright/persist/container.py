"""Model file: a zip of named parts with a receipt.

``receipt.json`` lists the SHA-256 of every other part, and the comment of the zip is the digest of
the receipt. Dates are fixed and parts are sorted by name, so equal models have equal bytes. Sizes
are checked before parts are unpacked, and digests before parts are parsed.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankwright.data.streams import atomic_path, missing_file, refuse_address, refuse_device
from rankwright.errors import RankwrightError

FORMAT = 3
_RECEIPT = "receipt.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MOST_BYTES = 4 << 30
_MOST_RATIO = 200  # deflate reaches about 1000 on zeros; models stay below 20

_FIRST_BYTES = 200
_FOREIGN = {  # the beginning of a file, and advice
    rb"## ": "a model of RankLib, which only rankwright.load_model and the command line read",
    rb"CBM1": (
        "CatBoost's binary format: save the model as JSON with "
        "model.save_model('model.json', format='json')"
    ),
    rb"\x80[\x02-\x05]|\x1f\x8b|x[\x01\x9c\xda]": (
        "a pickle, or compressed, and is not opened, since a pickle can run any code; "
        "save the fitted ranker with ranker.save(path), or import a fitted model of LightGBM, "
        "XGBoost or CatBoost with rankwright.import_model(model)"
    ),
    rb"\s*\{": (
        "JSON, but not a model as XGBoost or CatBoost save it; save a model of LightGBM as text "
        "with booster.save_model('model.txt')"
    ),
    rb"\s*[-+.\d]\S* qid:": (
        "ranking data and not a model file, so the two arguments may be swapped"
    ),
}


class ModelFileError(RankwrightError, ValueError):
    """A model file is damaged, foreign, or of another version."""


def write_parts(path: str | Path, receipt: Mapping[str, Any], parts: Mapping[str, bytes]) -> None:
    """Write the parts and their receipt to a file that appears when it is complete."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in parts.items()}
    full = {"format": FORMAT, **receipt, "parts": digests}
    text = json.dumps(full, indent=1, sort_keys=True, allow_nan=False).encode() + b"\n"
    with atomic_path(path) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name, content in sorted({**parts, _RECEIPT: text}.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
        archive.comment = hashlib.sha256(text).hexdigest().encode()


def read_parts(path: str | Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the receipt and the other parts of a model file after checking them."""
    refuse_address(path)
    refuse_device(path)
    path = Path(path)
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder; name the model file in it.")
    try:
        with zipfile.ZipFile(path) as archive:
            _refuse_bombs(path, archive)
            parts = {entry.filename: _content(archive, entry) for entry in archive.infolist()}
            signed = archive.comment.decode("ascii", "replace")
    except ModelFileError:
        raise
    except FileNotFoundError:
        raise ModelFileError(missing_file(path)) from None
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, OSError, NotImplementedError) as e:
        raise ModelFileError(
            _foreign(path) or f"{path} is not a model file, or is damaged: {e}."
        ) from None
    except Exception as error:  # zlib.error and the like, of an altered stream
        raise ModelFileError(f"{path} is damaged: {error}.") from None
    return _checked_receipt(path, parts, signed), parts


def _foreign(path: Path) -> str | None:
    """Return an error sentence for a file of another tool; None for unknown files."""
    try:
        with path.open("rb") as stream:
            first = stream.read(_FIRST_BYTES)
    except OSError:
        return None
    if not first:
        return f"{path} is empty; save the model again."
    kinds = (kind for beginning, kind in _FOREIGN.items() if re.match(beginning, first))
    kind = next(kinds, None)
    return None if kind is None else f"{path} is {kind}."


def _checked_receipt(path: Path, parts: dict[str, bytes], signed: str) -> dict[str, Any]:
    text = parts.pop(_RECEIPT, None)
    if text is None:
        raise ModelFileError(
            f"{path} is a zip without a receipt, not a model file; unpack it if it holds data."
        )
    if hashlib.sha256(text).hexdigest() != signed:
        raise ModelFileError(f"{path} was altered: its receipt does not match its seal.")
    try:
        receipt: dict[str, Any] = json.loads(text)
        format_number, digests = receipt["format"], dict(receipt["parts"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ModelFileError(f"{path} has a receipt that cannot be read.") from None
    if format_number != FORMAT:
        raise ModelFileError(
            f"{path} has format {format_number}, this version of Rankwright reads {FORMAT}: "
            "use the version that wrote it "
            f"(pip install rankwright=={receipt.get('rankwright', 'unknown')}), or train again."
        )
    if set(digests) != set(parts):
        raise ModelFileError(f"{path} was altered: its parts are not the parts of its receipt.")
    for name, digest in digests.items():
        if hashlib.sha256(parts[name]).hexdigest() != digest:
            raise ModelFileError(f"{path} was altered: part {name} does not match its digest.")
    return receipt


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return a part; no more is unpacked than the size in the directory."""
    with archive.open(entry) as part:
        return part.read(entry.file_size)


def _refuse_bombs(path: Path, archive: zipfile.ZipFile) -> None:
    entries = archive.infolist()
    size = sum(entry.file_size for entry in entries)
    # The directory may claim any packed size, and parts may overlap; the file itself cannot lie.
    packed = max(1, min(path.stat().st_size, sum(entry.compress_size for entry in entries)))
    if len(entries) > 1000 or size > _MOST_BYTES or size / packed > _MOST_RATIO:
        raise ModelFileError(
            f"{path} would unpack {packed} bytes to {size} in {len(entries)} parts; "
            "no model is like that, so it is refused."
        )
