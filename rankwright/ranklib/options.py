"""Flags of RankLib's other programs: ``-name value`` pairs and switches, in any case of letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rankwright.errors import UsageError


class Options:
    """What was asked of a program; a flag may come more than once."""

    def __init__(
        self, words: Sequence[str], values: Mapping[str, str], switches: Sequence[str], usage: str
    ) -> None:
        self.usage = usage
        self._defaults = dict(values)
        self._given: dict[str, list[str]] = {}
        self._switches: set[str] = set()
        waiting = list(reversed(words))
        while waiting:
            word = waiting.pop().lower()
            if word in switches:
                self._switches.add(word)
            elif word in values and waiting:
                self._given.setdefault(word, []).append(waiting.pop())
            else:
                raise UsageError(f"'{word}' is not understood: {usage}.")

    def has(self, name: str) -> bool:
        """Whether a flag or a switch was given."""
        return name in self._given or name in self._switches

    def all_of(self, name: str) -> list[str]:
        """Return every value of a flag."""
        return self._given.get(name, [])

    def text(self, name: str) -> str:
        """Return the last value of a flag, or its default."""
        return self._given.get(name, [self._defaults[name]])[-1]

    def whole(self, name: str, least: int = 0) -> int:
        """Return a whole number from ``least`` on."""
        text = self.text(name)
        if not text.isdecimal() or int(text) < least:
            raise UsageError(f"{name} takes a whole number from {least} on: {self.usage}.")
        return int(text)

    def share(self, name: str) -> float:
        """Return a number from 0 to below 1."""
        try:
            share = float(self.text(name))
        except ValueError:
            share = -1.0
        if not 0.0 <= share < 1.0:
            raise UsageError(f"{name} takes a share from 0 to below 1: {self.usage}.")
        return share
