"""``rankwright explain``: why documents stand where they do, or why one is above another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli import console
from rankwright.cli.options import (
    FormatOption,
    ReadOption,
    open_with,
    read_options,
    read_options_for,
)

if TYPE_CHECKING:
    from rankwright.data.ranking_data import RankingData


def explain(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Annotated[str, typer.Argument(help="A file, or the name of a data set.")],
    query: Annotated[str, typer.Option(help="The id of the query.")],
    docs: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Two documents: by name, or else by number in the query from 1."),
    ] = None,
    doc: Annotated[str | None, typer.Option(help="One document, by name or number.")] = None,
    against: Annotated[
        Path | None, typer.Option(help="Another model file: why the document moved since.")
    ] = None,
    format: FormatOption = None,  # noqa: A002
    read: ReadOption = None,
    json: console.JsonOption = False,
) -> None:
    """Explain a ranking: of a query, of two documents, or of one under two models.

    The documents need no grades; where they have some, these are shown.
    """
    from rankwright.errors import UsageError
    from rankwright.explanation import explain as explained

    if doc is not None and docs is not None:
        raise UsageError("give --doc or --docs, not both.")
    options = read_options(read, format=format)
    models = [model] if against is None else [model, against]
    rankers, documents = open_with(
        models, lambda ranker: _load(data, read_options_for(ranker, data, options))
    )
    found = explained(
        rankers[0],
        documents,
        query=query,
        docs=[doc] if doc is not None else docs,
        against=None if against is None else rankers[1],
    )
    if json:
        console.print_json(found.to_dict())
    else:
        console.show(str(found))


def _load(path: str, options: dict[str, Any]) -> RankingData:
    """Read documents with their grades, or without where they have none."""
    from rankwright.data.files import load, load_documents
    from rankwright.errors import DataError, UsageError
    from rankwright.rankers.inputs import without_grades

    try:
        return load(path, **options)
    except (DataError, UsageError) as error:  # UsageError: a feature log without judgments
        try:
            return without_grades(load_documents(path, **options))
        except (DataError, UsageError):
            raise error from None
