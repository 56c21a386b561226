"""The lines of a model text, one after the other, with a sentence for what is wrong in one."""

from __future__ import annotations

import math
from typing import NoReturn

from rankwright.errors import DataError, quoted

_MOST = 1 << 26  # as for the features of a data file
_DIGITS = 100


class TextLines:
    """Goes through a text line by line; blank lines are passed over."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self._lines = text.removeprefix("\ufeff").splitlines()
        self._at = 0  # of the line to come
        self._last = 0  # number of the line that was taken last, from 1

    def peek(self) -> str | None:
        """Return the next line without its blanks at the ends, or None after the last."""
        while self._at < len(self._lines) and not self._lines[self._at].strip():
            self._at += 1
        return self._lines[self._at].strip() if self._at < len(self._lines) else None

    def next_line(self, wanted: str) -> str:
        """Take the next line; ``wanted`` says what the text lacks if there is none."""
        line = self.peek()
        if line is None:
            raise DataError(f"{self.name} ends where {wanted} is expected; is it truncated?")
        self._at += 1
        self._last = self._at
        return line

    def end(self) -> None:
        """Refuse a text that goes on."""
        if self.peek() is not None:
            rest = self.next_line("nothing")
            self.fail(f"nothing is expected after the model, but there is {quoted(rest)}")

    def place(self) -> str:
        """Return the file and the number of the last line taken."""
        return f"{self.name}, line {self._last}"

    def fail(self, what: str) -> NoReturn:
        """Raise the sentence for a fault in the last line taken."""
        raise DataError(f"{self.place()}: {what}.")

    def whole(self, text: str, what: str, least: int = 0) -> int:
        """Return a whole number from ``least`` on."""
        if not (text.isascii() and text.isdecimal()) or len(text) > _DIGITS or int(text) < least:
            self.fail(f"{what} {quoted(text)} is not a whole number from {least} on")
        if int(text) > _MOST:
            self.fail(f"{what} {text} is beyond {_MOST}, the highest that is taken")
        return int(text)

    def number(self, text: str, what: str) -> float:
        """Return a finite number."""
        try:
            value = float(text if "_" not in text else "")
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self.fail(f"{what} {quoted(text)} is not a number")
        return value
