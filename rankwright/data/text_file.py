"""Text files read line by line: UTF-8, blank lines passed over, faults that name file and line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from rankwright.data.source import display_name, open_bytes
from rankwright.errors import DataError, quoted

_BYTE_ORDER_MARK = "\ufeff"


def text_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield the number (from 1) and the text of each line that is not blank, without its end."""
    with open_bytes(path) as stream:
        for number, raw in enumerate(stream, 1):
            text = decoded(raw, path, number).rstrip("\r\n")
            if text.strip():
                yield number, text


def decoded(raw: bytes, path: str | Path, line: int | None = None) -> str:
    """Return bytes of a file, or of one line of it, as text; a byte order mark is left out."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        where = "" if line is None else f", line {line}"
        raise DataError(f"{display_name(path)}{where} is not text in UTF-8.") from None
    return text.removeprefix(_BYTE_ORDER_MARK) if line in (None, 1) else text


def number_at(text: str, path: str | Path, line: int, what: str) -> float:
    """Return the number that ``text`` writes, or say which line of the file is at fault."""
    try:
        return float(text if "_" not in text else "")  # Python would take 1_000
    except ValueError:
        fault_at(path, line, f"{what} {quoted(text)} is not a number")


def fault_at(path: str | Path, line: int, what: str) -> NoReturn:
    """Raise the sentence for a fault in one line of a file."""
    raise DataError(f"{display_name(path)}, line {line}: {what}.")
