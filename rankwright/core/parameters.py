"""Refuse parameters that make no sense, each with one sentence that says what would."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any

from rankwright.errors import UsageError


def check_above_zero(name: str, value: Any) -> None:
    """Raise unless ``value`` is a finite number above 0."""
    if not (_is_finite(value) and value > 0):
        raise UsageError(f"{name} must be above 0{_and_finite(value)}, not {value}.")


def check_zero_or_more(name: str, value: Any) -> None:
    """Raise unless ``value`` is a finite number from 0."""
    if not (_is_finite(value) and value >= 0):
        raise UsageError(f"{name} must be 0 or more{_and_finite(value)}, not {value}.")


def check_whole(name: str, value: Any, least: int) -> None:
    """Raise unless ``value`` is a whole number from ``least``."""
    if not (_is_finite(value) and float(value).is_integer()):
        raise UsageError(f"{name} must be a whole number, {least} or more, not {value}.")
    if value < least:
        raise UsageError(f"{name} must be {least} or more, not {value}.")


def check_choice(name: str, value: Any, known: Iterable[str]) -> None:
    """Raise unless ``value`` is one of ``known``."""
    names = list(known)
    if value not in names:
        raise UsageError(f"{name} must be {either(names)}, not '{value}'.")


def either(names: list[str]) -> str:
    """Return "a, b or c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def both(names: list[str]) -> str:
    """Return "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def _and_finite(value: Any) -> str:
    return " and finite" if isinstance(value, Real) and value == math.inf else ""
