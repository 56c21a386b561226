"""LETOR text read slowly, line by line and in plain Python: the twin of rankwright.data.letor."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import numpy as np

NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
OLD_MAC = re.compile(rb"qid:[^\r]*\r[ \t]*[^ \t\r]+[ \t]+qid:")  # lines that \r alone ends
BLANKS = " \t\r"
MAX_FEATURE_ID = 1 << 26


class BadLineError(Exception):
    """The line with this number (from 1) cannot be read; None is the file as a whole."""

    def __init__(self, line: int | None) -> None:
        super().__init__(line)
        self.line = line


@dataclass
class Table:
    """The contents of a file, a row per data line."""

    grades: list[float] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    features: list[dict[int, float]] = field(default_factory=list)
    documents: list[str | None] = field(default_factory=list)

    @property
    def base(self) -> int:
        """Return the first feature id: 0 if any line has it, else 1."""
        return 0 if any(0 in row for row in self.features) else 1

    def matrix(self, *, absent: float = 0.0, dtype: str = "float64") -> np.ndarray:
        """Return the features as a dense table."""
        base = self.base
        width = max(max(row, default=base - 1) for row in self.features) + 1 - base
        X = np.full((len(self.features), width), absent)
        for x, row in zip(X, self.features, strict=True):
            for name, value in row.items():
                x[name - base] = value
        return X.astype(dtype)


def read(content: bytes) -> Table:
    """Return what ``content`` says, or raise `BadLineError` on its first bad line."""
    table = Table()
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if number == 1 and OLD_MAC.search(line):
            raise BadLineError(number)
        if line.strip(BLANKS.encode())[:1] not in (b"", b"#"):
            try:
                _add(table, line)
            except ValueError:
                raise BadLineError(number) from None
    if not table.grades or not any(table.features):
        raise BadLineError(None)
    return table


def _add(table: Table, line: bytes) -> None:
    head, sharp, comment = line.partition(b"#")
    _require(b"\0" not in line)
    text = head.decode()
    _require(not any(letter < " " and letter not in BLANKS for letter in text))
    tokens = [token for token in re.split(f"[{BLANKS}]", text) if token]
    grade = _number(tokens[0])
    _require(0 <= grade <= 2.0**53)
    _require(len(tokens) > 1 and tokens[1].startswith("qid:") and tokens[1] != "qid:")
    features: dict[int, float] = {}
    for token in tokens[2:]:
        name, colon, value = token.partition(":")
        _require(bool(colon) and re.fullmatch("[0-9]+", name) is not None)
        _require(len(name.lstrip("0")) < 20 and int(name.lstrip("0") or "0") <= MAX_FEATURE_ID)
        name_id = int(name.lstrip("0") or "0")
        _require(name_id not in features)
        missing = value in ("NULL", "null", "NaN", "nan", "NA")
        features[name_id] = math.nan if missing else _number(value)
        _require(not math.isinf(features[name_id]))
    table.grades.append(grade)
    table.queries.append(tokens[1].removeprefix("qid:"))
    table.features.append(features)
    table.documents.append(_document(comment) if sharp else None)


def _number(token: str) -> float:
    _require(NUMBER.fullmatch(token) is not None)
    return float(token)


def _document(comment: bytes) -> str:
    text = comment.decode(errors="replace").strip(BLANKS)
    named = re.match(f"docid[{BLANKS}]*=[{BLANKS}]*([^{BLANKS}]+)", text)
    return named[1] if named else text


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError
