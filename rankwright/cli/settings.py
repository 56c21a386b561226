"""``--read key=value`` and ``--set key=value``: the options that verbs share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rankwright.errors import UsageError
from rankwright.key_values import parse_settings

ReadOption = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="KEY=VALUE",
        help="Any option of the reader, such as zero_based=true; may be repeated.",
    ),
]

_OPTIONS = {"seed": "--seed", "n_threads": "--threads", "convention": "--convention"}


def ranker_settings(settings: list[str] | None, **given: Any) -> dict[str, Any]:
    """Return the parameters that ``--set`` and options such as ``--model`` give a ranker."""
    own = {name: value for name, value in given.items() if value is not None}
    parsed = parse_settings(settings or [])
    for name in parsed:
        if name in _OPTIONS:
            option = _OPTIONS[name]
            raise UsageError(f"{name} is set by {option}; write {option} {parsed[name]}.")
        if name in own:
            raise UsageError(f"{name} is given twice, by --{name} and by --set; leave one out.")
    return {**own, **parsed}
