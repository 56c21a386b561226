"""``rankwright cite``: BibTeX of Rankwright, of a ranker, a loss or a metric."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rankwright.cli import console


def cite(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Rankers, losses or metrics, such as intervalrank; none: Rankwright."),
    ] = None,
    json: console.JsonOption = False,
) -> None:
    """Print BibTeX: of Rankwright, or of the papers of rankers, losses and metrics."""
    from rankwright.citation import cite as bibtex
    from rankwright.citation import keys_of

    text = bibtex(*names or ())
    if json:
        keys = [key for name in names or () for key in keys_of(name)] or ["rankwright"]
        console.print_json({"keys": list(dict.fromkeys(keys)), "bibtex": text})
        return
    sys.stdout.write(text + "\n")
