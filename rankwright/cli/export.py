"""``rankwright export``: a saved model for another system, with vectors that prove it.

``rankwright verify`` replays the vectors through an evaluator of the format.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rankwright.cli import console


def export(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    to: Annotated[str, typer.Option(help="The target; 'rankwright list exports' shows them.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.")],
    name: Annotated[
        str, typer.Option(help="What the model is called in the other system.")
    ] = "rankwright_model",
    force: Annotated[
        bool, typer.Option("--force", help="Write beside other files of the folder.")
    ] = False,
    json: console.JsonOption = False,
) -> None:
    """Write a model for a search engine, a runtime or a language."""
    from rankwright import registry
    from rankwright.errors import UsageError

    if to not in registry.names("exports"):
        raise UsageError(registry.unknown("export", to, registry.names("exports")))
    from rankwright.export.folder import export_model
    from rankwright.model_files import load_model

    about = export_model(load_model(model), to, output, name=name, force=force)
    if json:
        console.print_json({"folder": str(output), **about})
        return
    console.show(
        f"wrote {output}: {about['model']} model for {to}, {about['parity']['vectors']} parity "
        f"vectors; missing values: {about['missing']}"
    )
    for note in about["notes"]:
        console.say(note)


def verify(
    folder: Annotated[Path, typer.Argument(help="The folder of an export.")],
    json: console.JsonOption = False,
) -> None:
    """Check that an export scores as its model does; exit 1 if it does not."""
    from dataclasses import asdict

    from rankwright.export.folder import verify_export
    from rankwright.export.target import ParityError

    try:
        found = verify_export(folder)
    except ParityError as error:
        if json:
            console.print_json({"verified": False, "folder": str(folder), "fault": str(error)})
        sys.stderr.write(f"rankwright: {error}\n")
        raise typer.Exit(1) from None
    if json:
        console.print_json({"verified": True, "folder": str(folder), **asdict(found)})
        return
    console.show(
        f"{folder} holds: {found.vectors} vectors score as the model does, by {found.evaluator}; "
        f"largest difference {found.largest_difference:.2g}"
    )
