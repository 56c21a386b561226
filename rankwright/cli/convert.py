"""``rankwright convert IN OUT``: ranking data from one format to another."""

from __future__ import annotations

import json as json_text
from typing import Annotated, Any

import typer

from rankwright.cli import console
from rankwright.errors import UsageError

_WRITE = "write."


def convert(
    source: Annotated[
        str, typer.Argument(metavar="IN", help="A file, a folder, a data set's name, or - .")
    ],
    target: Annotated[str, typer.Argument(metavar="OUT", help="A file, a store folder, or - .")],
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="FORMAT", help="Format of IN, if not its suffix's."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="FORMAT", help="Format of OUT, if not its suffix's."),
    ] = None,
    qid: Annotated[str | None, typer.Option(help="Column of query ids (tables).")] = None,
    label: Annotated[str | None, typer.Option(help="Column of grades (tables).")] = None,
    zero_based: Annotated[
        bool | None,
        typer.Option("--zero-based/--one-based", help="Lowest feature id of IN (LETOR text)."),
    ] = None,
    absent: Annotated[
        str | None, typer.Option(help="What an unnamed feature is: zero or missing (LETOR text).")
    ] = None,
    dtype: Annotated[str | None, typer.Option(help="float32 or float64.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Any option of the reader, or of the writer as write.KEY; may be repeated.",
        ),
    ] = None,
    json: console.JsonOption = False,
) -> None:
    """Convert ranking data between the formats named by "rankwright list formats"."""
    import warnings
    from dataclasses import asdict

    from rankwright.data import files

    if json and target == "-":
        raise UsageError("--json and OUT '-' both want standard output; name a file for OUT.")
    named = {"qid": qid, "label": label, "zero_based": zero_based, "absent": absent, "dtype": dtype}
    options = {name: value for name, value in named.items() if value is not None}
    for_writer: dict[str, Any] = {}
    for setting in set_ or []:
        key, value = _parsed(setting)
        if key.startswith(_WRITE):
            for_writer[key.removeprefix(_WRITE)] = value
        else:
            options[key] = value
    with warnings.catch_warnings(record=True) as lost:
        warnings.simplefilter("always", UserWarning)
        done = files.convert(
            source, target, from_format=from_, to_format=to, write_options=for_writer, **options
        )
    for message in dict.fromkeys(str(warning.message) for warning in lost):
        console.say(f"warning: {message}")
    if json:
        console.print_json(asdict(done))
    else:
        console.say(
            f"{source} -> {target}: {done.documents:,} documents of {done.queries:,} queries, "
            f"{done.features:,} features."
        )


def _parsed(setting: str) -> tuple[str, Any]:
    """Return key and value of ``key=value``; a value that reads as JSON is what it says."""
    key, equals, text = setting.partition("=")
    if not key or not equals:
        raise UsageError(f"--set takes KEY=VALUE, not '{setting}'.")
    try:
        return key.strip(), json_text.loads(text)
    except ValueError:
        return key.strip(), text
