"""Penalties on weights: a number, or "auto", which is chosen on valid data."""

from __future__ import annotations

import numpy as np

from rankwright.core.types import Callback
from rankwright.errors import UsageError

PATH = tuple(float(10.0**power) for power in np.arange(3.0, -7.0, -1.0))


def check_penalty(name: str, value: float | str, callback: Callback) -> None:
    """Refuse a penalty that is neither a number from 0 nor one that valid data can choose."""
    if value == "auto" and callback.valid is None:
        raise UsageError(f"{name}='auto' is chosen on validation data: give eval_set, or a number.")
    if value != "auto" and (isinstance(value, str) or not float(value) >= 0.0):
        raise UsageError(f"{name} must be 0 or more, or 'auto', not {value}.")


def ridges(l2: float | str) -> tuple[float, ...]:
    """Return the l2 penalties to try: the one given, or for "auto" 1000, 100, …, 1e-6."""
    return PATH if l2 == "auto" else (float(l2),)
