"""Damaged copies of bytes, drawn by Hypothesis: pieces moved, numbers and values replaced."""

import json
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

PIECES = [b" ", b"\n", b"\t", b",", b":", b"#", b"<split>", b"</split>", b"0", b"-1", b"1e999"]
PIECES += [b"nan", b"9" * 20, b"\0", b"\xff", b'"', b"{", b"}", b"null", b"-0.5", b"1 2 3"]
NUMBERS = [b"-1", b"0", b"1", b"99999", b"-99999", b"9" * 30, b"nan", b"inf", b"1e999", b"x", b""]
VALUES = [None, True, -1, 0, 1, 3, 2**31, 2**63, 10**18, 1e300, "", "x", "<f8", "O", [], {}, [[]]]
INTEGERS = [-1, 0, 1, 2, 7, 255, 2**31 - 1, -(2**31), 2**62, -(2**63)]
FLOATS = [np.nan, np.inf, -np.inf, 1e308, -1.0, 0.0, 5e-324]
TYPES = ["int8", "int32", "int64", "uint8", "bool", "float16", "float32", "float64"]
_NUMBER = re.compile(rb"-?\d[\d.e+-]*")


# --- whole inputs and their parts --------------------------------------------------------------


def split_files(path):
    """Return the content of a file, or of every file of a folder, by name."""
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    return {str(one.relative_to(path)): one.read_bytes() for one in files}


def join_files(path, parts):
    """Write what `split_files` returned."""
    for name, content in parts.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


@dataclass(frozen=True)
class Attack:
    """A kind of input that is read from disk.

    Attributes
    ----------
    write : callable
        Writes whole inputs, files or folders, to an empty folder and returns their paths.
    use : callable
        Reads an input and uses it in every way; raises a `RankwrightError` to refuse it.
    split, join : callable
        Return the parts of an input by name, and write an input of such parts, with the digests
        that they then have.
    """

    write: Callable[[Path], Sequence[Path]]
    use: Callable[[Path], object]
    split: Callable[[Path], dict[str, bytes]] = split_files
    join: Callable[[Path, dict[str, bytes]], None] = join_files


class Parts(dict):
    """Parts of an input, which a report of a failure does not print byte by byte."""

    def __repr__(self):
        return f"parts of {', '.join(f'{len(self[name])} bytes: {name}' for name in self)}"


@st.composite
def damaged_parts(draw, parts):
    """Return parts of which one to three are damaged, or one is dropped."""
    parts = Parts(parts)
    if len(parts) > 1 and draw(st.integers(0, 19)) == 0:
        del parts[draw(st.sampled_from(sorted(parts)))]
        return parts
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(sorted(parts)))
        parts[name] = draw(damaged(parts[name]))
    return parts


# --- damage ------------------------------------------------------------------------------------


@st.composite
def damaged(draw, content):
    """Return a damaged copy: as bytes or words, and as JSON, text or arrays if it is that."""
    change = draw(st.sampled_from([edit_bytes, change_words, *_for_format(content)]))
    return change(draw, content)


def _for_format(content):
    if content.lstrip()[:1] in (b"{", b"["):
        return [change_json, change_number]
    if content[8:10] == b'{"':
        return [change_arrays, change_arrays]
    return [change_number, change_line] if content[:1000].isascii() else []


def edit_bytes(draw, content):
    """Flip a bit; cut off, insert, remove or repeat some bytes; or join two pieces."""
    at = draw(st.integers(0, len(content)))
    end = min(len(content), at + draw(st.sampled_from([0, 1, 2, 9, 60])))
    piece = draw(st.sampled_from(PIECES) | st.binary(min_size=1, max_size=4))
    flipped = bytes(byte ^ 1 << draw(st.integers(0, 7)) for byte in content[at : at + 1])
    other = draw(st.integers(0, len(content)))
    middle = draw(
        st.sampled_from([flipped, piece, b"", content[at:end] * 2, content[at:end] * 300])
    )
    if draw(st.integers(0, 9)) == 0:
        return content[:at]
    if draw(st.integers(0, 9)) == 0:
        return content[:at] + content[other:]
    return content[:at] + middle + content[max(end, at + len(flipped)) :]


def change_words(draw, content):
    """Replace aligned words, such as numbers of arrays, lengths and offsets, by odd numbers."""
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        size = draw(st.sampled_from([1, 2, 4, 8]))
        at = size * draw(st.integers(0, max(0, len(content) // size - 1)))
        if size == 8 and draw(st.booleans()):
            word = struct.pack("<d", draw(st.sampled_from(FLOATS)))
        else:
            word = (draw(st.sampled_from(INTEGERS)) % (1 << 8 * size)).to_bytes(size, "little")
        changed[at : at + size] = word
    return bytes(changed[: len(content)])


def change_json(draw, content):
    """Replace, drop or repeat a value of JSON."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):  # damaged before, or not JSON
        return edit_bytes(draw, content)
    return json.dumps(_changed(draw, value)).encode()


def _changed(draw, value):
    if isinstance(value, dict) and value and draw(st.integers(0, 9)):
        key = draw(st.sampled_from(sorted(value)))
        if draw(st.integers(0, 4)) == 0:
            return {name: one for name, one in value.items() if name != key}
        return {**value, key: _changed(draw, value[key])}
    if isinstance(value, list) and value and draw(st.integers(0, 9)):
        at = draw(st.integers(0, len(value) - 1))
        if draw(st.integers(0, 4)) == 0:
            return value * draw(st.sampled_from([0, 2, 300]))
        return [*value[:at], _changed(draw, value[at]), *value[at + 1 :]]
    return draw(st.sampled_from(VALUES))


def change_number(draw, content):
    """Replace a number of a text."""
    found = _NUMBER.search(content, draw(st.integers(0, len(content))))
    if found is None:
        return edit_bytes(draw, content)
    number = draw(st.sampled_from(NUMBERS))
    return content[: found.start()] + number + content[found.end() :]


def change_line(draw, content):
    """Drop, repeat or move a line of a text."""
    lines = content.split(b"\n")
    line = lines.pop(draw(st.integers(0, len(lines) - 1)))
    for _ in range(draw(st.integers(0, 2))):
        lines.insert(draw(st.integers(0, len(lines))), line)
    return b"\n".join(lines)


def change_arrays(draw, content):
    """Drop an array of a safetensors file, or change its shape, type or a number."""
    try:
        arrays = load_arrays(content)
    except Exception:  # damaged before
        return edit_bytes(draw, content)
    if not arrays:
        return edit_bytes(draw, content)
    name = draw(st.sampled_from(sorted(arrays)))
    changes = [*array_changes(arrays.pop(name), draw(st.integers(0, 2**32)))]
    _, array = draw(st.sampled_from([("dropped", None), *changes]))
    return save_arrays(arrays if array is None else {**arrays, name: array})


def array_changes(array, at):
    """Yield labels and copies of another shape, of another type, or with another number."""
    changed = {
        "empty": array[:0],
        "shorter": array[:-1],
        "longer": np.concatenate([array, array[-1:], array[-1:]]),
        "with an axis more": array[None],
        "flat": array.ravel(),
        "turned": array.T,
    }
    with np.errstate(all="ignore"):
        changed |= {f"as {kind}": array.astype(kind) for kind in TYPES if array.dtype != kind}
        if array.size and array.dtype.kind in "iuf":
            for value in FLOATS if array.dtype.kind == "f" else INTEGERS:
                copy = array.copy()
                copy.flat[at % array.size] = np.array(value).astype(array.dtype)
                changed[f"with {value}"] = copy
    for label, copy in changed.items():
        yield label, np.ascontiguousarray(copy)
