"""``rankwright synthetic SHAPE OUT``: synthetic data in the shape of a well-known set."""

from __future__ import annotations

from typing import Annotated

import typer

from rankwright.cli import console
from rankwright.cli.memory import MemoryOption, bound_memory, in_record, print_peak
from rankwright.cli.settings import SeedOption, ThreadsOption


def synthetic(
    context: typer.Context,
    shape: Annotated[str, typer.Argument(help="`rankwright list shapes` shows the names.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="A file or a store folder.")],
    queries: Annotated[
        int | None, typer.Option(help="How many queries, instead of the shape's own number.")
    ] = None,
    first: Annotated[
        int, typer.Option(help="Number of queries to skip, such as those of a training set.")
    ] = 0,
    seed: SeedOption = 0,
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    json: console.JsonOption = False,
) -> None:
    """Generate synthetic ranking data of any size, written part by part."""
    from dataclasses import asdict

    from rankwright.data.files import save_parts
    from rankwright.data.synthetic_data import synthetic_parts

    gauge = bound_memory(context, memory)
    parts = synthetic_parts(shape, first=first, queries=queries, seed=seed, n_jobs=threads)
    done = save_parts(parts, target)
    if json:
        console.print_json({**asdict(done), "source": shape, **in_record(gauge)})
        return
    console.say(
        f"{shape} -> {target}: {done.documents:,} documents of {done.queries:,} queries, "
        f"{done.features:,} features."
    )
    print_peak(gauge)
