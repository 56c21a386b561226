"""``--memory SIZE``: the option that verbs share, and what they print of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rankwright.cli import console

if TYPE_CHECKING:
    from rankwright.core.memory import Gauge

MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Bound on anonymous memory, such as 2GB; large files go through a temporary store.",
    ),
]


def bound_memory(context: typer.Context, size: str | None) -> Gauge | None:
    """Bound and measure memory until the verb ends; None where no bound was asked for."""
    if size is None:
        return None
    from rankwright.core.memory import memory_limit

    return context.with_resource(memory_limit(size))


def in_record(gauge: Gauge | None) -> dict[str, int]:
    """Return what ``--json`` tells of memory."""
    return {} if gauge is None else {"peak_anonymous_bytes": gauge.look()}


def print_peak(gauge: Gauge | None) -> None:
    """Print the peak, where memory was bounded."""
    if gauge is not None and gauge.limit is not None:
        from rankwright.core.memory import shown_size

        console.say(
            f"peak anonymous memory {shown_size(gauge.look())} of {shown_size(gauge.limit)}"
        )
