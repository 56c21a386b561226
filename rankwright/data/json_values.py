"""JSON values of a file, one after the other, and their conversion to msgspec structs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder
from pathlib import Path
from typing import Any

import msgspec

from rankwright.data.streams import decoded, error_at, open_bytes

_NOT_BLANK = re.compile(r"\S")


def json_values(path: str | Path) -> Iterator[tuple[int, Any]]:
    """Yield the JSON values of a file with the numbers of their first lines.

    Values can follow each other on a line: Elasticsearch ends no response with a line break, so
    ``curl ... >> log.jsonl`` writes a single line.
    """
    with open_bytes(path) as stream:
        text = "".join(decoded(raw, path, number) for number, raw in enumerate(stream, 1))
    decoder, line, end = JSONDecoder(), 1, 0
    while (match := _NOT_BLANK.search(text, end)) is not None:
        line += text.count("\n", end, match.start())
        try:
            value, end = decoder.raw_decode(text, match.start())
        except JSONDecodeError as error:
            reason = f"{_lower_first(error.msg)} in column {error.colno}"
            error_at(path, error.lineno, f"this is not JSON: {reason}")
        except (ValueError, RecursionError) as error:  # numbers of 5,000 digits, deep nesting
            error_at(path, line, f"this is not JSON: {_lower_first(str(error))}")
        yield line, value
        line += text.count("\n", match.start(), end)


def as_struct(value: Any, kind: Any, path: str | Path, line: int, noun: str) -> Any:
    """Return a JSON value as a struct, or raise an error that names the line."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        reason = _lower_first(str(error).replace(" - at ", " at "))
        error_at(path, line, f"this is not {noun}: {reason}")


def _lower_first(message: str) -> str:
    return message[:1].lower() + message[1:].rstrip(".")
