"""What the command line prints: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import sys
from typing import Annotated, Any

import typer
from rich.console import Console

_PLAIN_WIDTH = 120

out = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False)
err = Console(stderr=True, width=None if sys.stderr.isatty() else _PLAIN_WIDTH, highlight=False)

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else.")
]


def print_json(value: Any) -> None:
    """Print one JSON object; a number that is not finite becomes null."""
    sys.stdout.write(json.dumps(_finite(value), indent=2, ensure_ascii=False) + "\n")


def show(line: str, style: str | None = None) -> None:
    """Print a line of a result as it stands: not wrapped, and with brackets that it has."""
    out.print(line, style=style, soft_wrap=True, markup=False)


def say(sentence: str) -> None:
    """Tell the user something that is not a result; ``-q`` silences it."""
    err.print(sentence, soft_wrap=True, markup=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return _finite(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
