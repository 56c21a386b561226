"""``rankwright explain``: why documents stand where they do, or why one is above another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwright.cli import console
from rankwright.cli.settings import ReadOption
from rankwright.key_values import parse_settings


def explain(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Annotated[str, typer.Argument(help="A file, or the name of a data set.")],
    query: Annotated[str, typer.Option(help="The id of the query.")],
    docs: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Two documents, by name, or by number in the query from 1."),
    ] = None,
    doc: Annotated[str | None, typer.Option(help="One document.")] = None,
    against: Annotated[
        Path | None, typer.Option(help="Another model file: why the document moved since.")
    ] = None,
    read: ReadOption = None,
    json: console.JsonOption = False,
) -> None:
    """Explain a ranking: of a query, of two documents, or of one under two models."""
    from rankwright.cli.model import open_model, open_with
    from rankwright.data.files import load
    from rankwright.errors import UsageError
    from rankwright.explanation import explain as explained

    if doc is not None and docs is not None:
        raise UsageError("give --doc or --docs, not both.")
    options = parse_settings(read or [], "--read")
    ranker, documents = open_with(model, lambda: load(data, **options))
    wide = documents.n_features
    found = explained(
        ranker,
        documents,
        query=query,
        docs=[doc] if doc is not None else docs,
        against=None if against is None else open_model(against, n_features=wide),
    )
    if json:
        console.print_json(found.to_dict())
    else:
        console.out.print(str(found), markup=False, soft_wrap=True)
