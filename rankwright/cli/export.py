"""``rankwright export``: a saved model for another system, with vectors that prove it.

``rankwright verify`` replays the vectors through an evaluator of the format.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli import console

if TYPE_CHECKING:
    from rankwright.export.folder import ReleaseCheck


def export(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    to: Annotated[str, typer.Option(help="The target; 'rankwright list exports' shows them.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.")],
    name: Annotated[
        str, typer.Option(help="What the model is called in the other system.")
    ] = "rankwright_model",
    engine_version: Annotated[
        str | None,
        typer.Option(help="The version of the engine, such as 2.19; the newest by default."),
    ] = None,
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
    from rankwright.ranklib.model_files import load_model

    about = export_model(
        load_model(model), to, output, name=name, engine_version=engine_version, force=force
    )
    if json:
        console.print_json({"folder": str(output), **about})
        return
    console.show(
        f"wrote {output}: {about['model']} model for {to}, {about['parity']['vectors']} parity "
        f"vectors; missing values: {about['missing']}"
    )
    if "engine" in about:
        engine = about["engine"]
        console.show(f"right on {engine['name']} {engine['oldest_version']} and later")
    for note in about["notes"]:
        console.say(note)


def verify(
    folder: Annotated[Path, typer.Argument(help="The folder of an export.")],
    engine: Annotated[
        str | None,
        typer.Option(
            help="An engine and its version, such as opensearch:2.17, and a table of all versions."
        ),
    ] = None,
    json: console.JsonOption = False,
) -> None:
    """Check that an export scores as its model does; exit 1 if it does not."""
    from dataclasses import asdict

    from rankwright.export.folder import check_releases, verify_export
    from rankwright.export.target import ParityError

    checked: list[ReleaseCheck] = []
    try:
        if engine is not None:
            checked = check_releases(folder)
        found = verify_export(folder, engine=engine)
    except ParityError as error:
        _show(checked, {"verified": False, "folder": str(folder), "fault": str(error)}, json)
        sys.stderr.write(f"rankwright: {error}\n")
        raise typer.Exit(1) from None
    _show(checked, {"verified": True, "folder": str(folder), **asdict(found)}, json)
    if json:
        return
    console.show(
        f"{folder} holds: {found.vectors} vectors score as the model does, by {found.evaluator}; "
        f"largest difference {found.largest_difference:.2g}"
    )


def _show(checked: list[ReleaseCheck], result: dict[str, Any], json: bool) -> None:
    """Print a result as JSON, or which engines and versions an export is right on as a table."""
    from dataclasses import asdict

    from rich.table import Table

    if json:
        releases = {"releases": [asdict(own) for own in checked]} if checked else {}
        console.print_json({**result, **releases})
    elif checked:
        table = Table(box=None, pad_edge=False)
        for column in ("engine", "versions", "", "right", "wrong vectors", "a missing value"):
            table.add_column(column, justify="right" if column == "wrong vectors" else "left")
        for own in checked:
            wrong = "refused" if own.error else f"{own.wrong} of {own.vectors}"
            right = "yes" if own.right else "no"
            table.add_row(own.engine, own.versions, own.setup, right, wrong, own.missing)
        console.out.print(table)
