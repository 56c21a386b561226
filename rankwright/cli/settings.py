"""``--set key=value``, ``--read key=value``: parameters as the command line spells them."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from rankwright.errors import UsageError

ReadOption = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="KEY=VALUE",
        help="Any option of the reader, such as zero_based=true; may be repeated.",
    ),
]


def parse_settings(settings: list[str], flag: str = "--set") -> dict[str, Any]:
    """Return ``key=value`` texts as a dict; values are JSON where they can be, else text."""
    parsed: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise UsageError(f"{flag} takes key=value, not '{setting}'.")
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
