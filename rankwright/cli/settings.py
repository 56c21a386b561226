"""``--read key=value``: the option that verbs share."""

from __future__ import annotations

from typing import Annotated

import typer

ReadOption = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="KEY=VALUE",
        help="Any option of the reader, such as zero_based=true; may be repeated.",
    ),
]
