"""``--set key=value``: parameters as the command line spells them."""

from __future__ import annotations

import json
from typing import Any

from rankwright.errors import UsageError


def parse_settings(settings: list[str]) -> dict[str, Any]:
    """Return ``key=value`` texts as a dict; values are JSON where they can be, else text."""
    parsed: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise UsageError(f"--set takes key=value, not '{setting}'.")
        parsed[key.strip().replace("-", "_")] = parse_value(text.strip())
    return parsed


def parse_value(text: str) -> Any:
    """Return a number, true, false, null or list for what looks like one, else the text."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        named = {"None": None, "True": True, "False": False, "inf": float("inf")}
        return named.get(text, text)
    return tuple(value) if isinstance(value, list) else value
