"""``key=value`` as users write parameters, on the command line and in the names of a comparison."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from rankwright.errors import UsageError

_NAMED = {"None": None, "True": True, "False": False, "inf": float("inf")}


def parse_settings(settings: Iterable[str], where: str = "--set") -> dict[str, Any]:
    """Return ``key=value`` texts as a dict; values are JSON where they can be, else text.

    ``model.num_leaves`` is the parameter num_leaves of the model.
    """
    parsed: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            name = setting.partition(":")[0].strip("= ") or "name"
            raise UsageError(f"{where} takes key=value, not '{setting}'; write {name}=VALUE.")
        name = key.strip().replace("-", "_").replace(".", "__")
        parsed[name] = parse_value(text.strip())
    return parsed


def parse_parameters(settings: Iterable[str], where: str = "--set") -> dict[str, Any]:
    """Return the parameters of a ranker; ``loss=FILE.py`` is the loss that this file defines."""
    parsed = parse_settings(settings, where)
    named = parsed.get("loss")
    if isinstance(named, str) and named.endswith(".py"):
        from rankwright.losses.function import from_file

        parsed["loss"] = from_file(named)
    return parsed


def parse_value(text: str) -> Any:
    """Return a number, true, false, null or list for what looks like one, else the text.

    ``8,4`` is a list as well as ``[8, 4]``.
    """
    value: Any = text
    for written in (text, f"[{text}]") if "," in text else (text,):
        try:
            value = json.loads(written)
            break
        except json.JSONDecodeError:
            continue
    else:
        return _NAMED.get(text, text)
    return tuple(value) if isinstance(value, list) else value


def parse_space(settings: Iterable[str], where: str = "--space") -> dict[str, Any]:
    """Return ``key=LOW:HIGH``, ``key=LOW:HIGH:log`` and ``key=A,B,C`` as a space to search.

    A range is a tuple, choices are a list.
    """
    return {name: _searched(value) for name, value in parse_settings(settings, where).items()}


def _searched(value: Any) -> Any:
    if isinstance(value, str) and ":" in value:
        return tuple(parse_value(part.strip()) for part in value.split(":"))
    if isinstance(value, str) and "," in value:
        return [parse_value(part.strip()) for part in value.split(",")]
    return list(value) if isinstance(value, tuple) else [value]
