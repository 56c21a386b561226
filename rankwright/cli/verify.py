"""``rankwright verify``: replay an export's vectors through an evaluator of its format."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rankwright.cli import console


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
    except ParityError as fault:
        if json:
            console.print_json({"verified": False, "folder": str(folder), "fault": str(fault)})
        sys.stderr.write(f"rankwright: {fault}\n")
        raise typer.Exit(1) from None
    if json:
        console.print_json({"verified": True, "folder": str(folder), **asdict(found)})
        return
    console.show(
        f"{folder} holds: {found.vectors} vectors score as the model does, by {found.evaluator}; "
        f"largest difference {found.largest_difference:.2g}"
    )
