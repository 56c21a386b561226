"""What the command line prints: results on standard output, all else on standard error."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    """Print a sentence that is not a result; ``-q`` silences it."""
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


# --- progress: a bar on a terminal, lines elsewhere ------------------------------------------

SECONDS_PER_LINE = 10.0


@contextmanager
def step_progress(name: str, steps: int | None) -> Iterator[Callable[[str], None]]:
    """Yield what takes a line per step; ``steps`` is None where their number is not known."""
    if not err.is_terminal:
        done = 0

        def count(line: str) -> None:
            nonlocal done
            done += 1
            say(f"{done} of {steps}: {line}" if steps else f"{done}: {line}")

        yield count
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[line]}", markup=False),
    )
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(name, total=steps, line="")
        yield lambda line: bar.update(task, advance=1, line=line)


@contextmanager
def round_progress(name: str, rounds: int | None) -> Iterator[Callable[..., None]]:
    """Yield what takes how much is done, a text, and the total where it becomes known.

    Iterations may be quick and many: elsewhere than on a terminal there is a line every
    `SECONDS_PER_LINE`, and none for a fit that is done before.
    """
    if not err.is_terminal:
        yield _lines(name, rounds)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[text]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(name, total=rounds, text="")

        def update(done: int, text: str, total: int | None = rounds) -> None:
            bar.update(task, completed=done, text=text, total=total)

        yield update


def _lines(name: str, rounds: int | None) -> Callable[..., None]:
    """Return what prints a line now and then; time counts from the first call."""
    last: float | None = None

    def update(done: int, text: str, total: int | None = rounds) -> None:
        nonlocal last
        now = time.monotonic()
        if last is None:
            last = now
        elif now - last >= SECONDS_PER_LINE:
            last = now
            say(f"{name}: {done} of {total}, {text}" if total else f"{name}: {done}, {text}")

    return update
