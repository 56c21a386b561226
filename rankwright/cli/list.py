"""``rankwright list KIND``: components by name."""

from __future__ import annotations

from importlib import import_module
from inspect import getdoc
from typing import Annotated

import typer

from rankwright import registry
from rankwright.cli import console
from rankwright.errors import PluginError, UsageError


def list_names(
    kind: Annotated[
        str, typer.Argument(help=f"{', '.join(registry.KINDS)}, conventions, data or shapes.")
    ],
    json: console.JsonOption = False,
) -> None:
    """List available components, a line on each: rankers, losses, metrics, data sets, ..."""
    entries = _entries(kind)
    if json:
        console.print_json({kind: entries})
        return
    width = max(map(len, entries))
    for name, line in entries.items():
        console.out.print(f"[bold]{name:<{width}}[/]  ", end="")
        console.show(line)


def _entries(kind: str) -> dict[str, str]:
    if kind in registry.KINDS:
        return {name: _line_on(kind, name) for name in sorted(registry.names(kind))}
    others = {
        "conventions": ("rankwright.metrics.convention", "descriptions"),
        "data": ("rankwright.data.catalog", "descriptions"),
        "shapes": ("rankwright.data.synthetic_data", "descriptions"),
    }
    if kind not in others:
        known = [*registry.KINDS, *others]
        raise UsageError(registry.unknown("kind of thing to list called", kind, known))
    module, function = others[kind]
    described: dict[str, str] = getattr(import_module(module), function)()
    return described


def _line_on(kind: str, name: str) -> str:
    """Return the first line of a part's docstring; of plug-ins with their package."""
    package = registry.package_of(kind, name)
    try:
        if kind == "formats":
            from rankwright.data.formats import format_named

            text = format_named(name).description
        else:
            text = getdoc(registry.resolve(kind, name)) or ""
    except PluginError as error:
        return f"broken: {error}"
    line = text.partition("\n")[0]
    return line if package is None else f"{line} [{package}]".strip()
