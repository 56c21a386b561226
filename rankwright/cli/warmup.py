"""``rankwright warmup``: compile all kernels once."""

from __future__ import annotations

from typing import Annotated

import typer

from rankwright.cli import console
from rankwright.errors import counted


def warmup(
    jobs: Annotated[
        int | None, typer.Option(help="Number of processes; by default one per CPU.")
    ] = None,
    json: console.JsonOption = False,
) -> None:
    """Compile all kernels now, for example in the build of a container."""
    import time

    from rankwright.comparison.warmup import warmup as compile_all
    from rankwright.core.kernel_cache import kernels_folder

    start = time.perf_counter()
    parts = compile_all(n_jobs=jobs)
    seconds, folder = time.perf_counter() - start, str(kernels_folder())
    if json:
        console.print_json({"parts": parts, "folder": folder, "seconds": seconds})
        return
    console.say(f"{counted(parts, 'part')} compiled in {seconds:.0f} s, kept in {folder}.")
