"""Read UBJSON, the binary form of JSON in which XGBoost saves models (``.ubj``)."""

from __future__ import annotations

from typing import Any

import numpy as np

_NUMBERS = {
    b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8",
}  # fmt: skip
_PLAIN = {b"Z": None, b"T": True, b"F": False}
_DEEPEST = 100


def read_ubjson(content: bytes) -> Any:
    """Return what UBJSON holds, typed lists as arrays; ValueError where it is not whole."""
    reader = _Reader(content)
    found = reader.value(reader.taken(1), 0)
    if reader.at != len(content):
        raise ValueError("more follows after the end of the model")
    return found


class _Reader:
    """A place in bytes, from which values are taken one after the other."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def taken(self, n: int) -> bytes:
        found = self.content[self.at : self.at + n]
        if n < 0 or len(found) != n:
            raise ValueError("the file ends too early")
        self.at += n
        return found

    def value(self, mark: bytes, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("lists are nested too deeply")
        if mark in _PLAIN:
            return _PLAIN[mark]
        if mark in _NUMBERS:
            return self._numbers(mark, 1)[0].item()
        if mark == b"S":
            return self._text()
        if mark == b"C":
            return self.taken(1).decode("ascii")
        if mark == b"[":
            return self._list(depth)
        if mark == b"{":
            return self._object(depth)
        raise ValueError(f"there is no UBJSON type {mark!r}")

    def _numbers(self, mark: bytes, n: int) -> Any:
        kind = np.dtype(_NUMBERS[mark])
        return np.frombuffer(self.taken(n * kind.itemsize), kind).astype(kind.newbyteorder("="))

    def _length(self) -> int:
        mark = self.taken(1)
        if mark not in _NUMBERS or mark in b"dD":
            raise ValueError("a length is no whole number")
        n = int(self._numbers(mark, 1)[0])
        if not 0 <= n <= len(self.content):
            raise ValueError("a length is beyond the end of the file")
        return n

    def _text(self) -> str:
        return self.taken(self._length()).decode()

    def _peek(self, mark: bytes) -> bool:
        if self.content[self.at : self.at + 1] != mark:
            return False
        self.at += 1
        return True

    def _list(self, depth: int) -> Any:
        kind = self.taken(1) if self._peek(b"$") else None
        if self._peek(b"#"):
            n = self._length()
            if kind in _NUMBERS:
                return self._numbers(kind, n)
            return [self.value(kind or self.taken(1), depth + 1) for _ in range(n)]
        if kind is not None:
            raise ValueError("a list has a type and no length")
        found = []
        while not self._peek(b"]"):
            found.append(self.value(self.taken(1), depth + 1))
        return found

    def _object(self, depth: int) -> dict[str, Any]:
        kind = self.taken(1) if self._peek(b"$") else None
        found = {}
        if self._peek(b"#"):
            for _ in range(self._length()):
                key = self._text()
                found[key] = self.value(kind or self.taken(1), depth + 1)
            return found
        while not self._peek(b"}"):
            key = self._text()
            found[key] = self.value(self.taken(1), depth + 1)
        return found
