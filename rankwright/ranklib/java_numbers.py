"""Numbers as Java prints and rounds them, which is how RankLib's files have them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]


def java_double(value: float) -> str:
    """Return what ``Double.toString`` prints: ``0.5``, ``1.0``, ``4.56E-4``, ``NaN``."""
    return _java(repr(float(value)))


def java_float(value: float | np.float32) -> str:
    """Return what ``Float.toString`` prints: the fewest digits that identify the float32."""
    with np.errstate(over="ignore"):
        return _java(str(np.float32(value)))


def rounded(value: float, digits: int = 4) -> str:
    """Return ``value`` rounded as RankLib's logs have it: halves go up, no trailing zeros."""
    scale = 10.0**digits
    if not math.isfinite(value):
        return _java(repr(value))
    return java_double(math.floor(value * scale + 0.5) / scale)


def _java(text: str) -> str:
    if text in ("nan", "inf", "-inf"):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[text]
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits, point = whole + fraction, len(whole) + int(exponent or 0)
    point -= len(digits) - len(digits.lstrip("0"))
    digits = digits.strip("0")
    if not digits:
        return f"{sign}0.0"
    if -3 < point <= 7:  # from 0.001 to below 10 million
        padded = digits.ljust(max(point, 0), "0")
        if point <= 0:
            return f"{sign}0.{'0' * -point}{padded}"
        return f"{sign}{padded[:point]}.{padded[point:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
