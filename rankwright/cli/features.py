"""``rankwright features``: a feature set to log with, from the names of features."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwright.cli import console


def features(
    names: Annotated[
        list[str],
        typer.Argument(help="Names of features; or a model file or a data file that has them."),
    ],
    to: Annotated[str, typer.Option(help="elasticsearch, opensearch, solr or vespa.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The file; else standard output.")
    ] = None,
    title: Annotated[
        str, typer.Option("--name", help="Name of Solr's feature store or Vespa's rank profile.")
    ] = "rankwright_model",
) -> None:
    """Write a feature set for an engine to log with, to fill in with queries of your own."""
    from rankwright.data.streams import atomic_text
    from rankwright.export.feature_sets import feature_set

    text = feature_set(_names(names), to, title=title)
    if output is None:
        console.out.out(text, end="", highlight=False)
        return
    with atomic_text(output) as stream:
        stream.write(text)
    console.show(f"wrote {output}")


def _names(given: list[str]) -> list[str]:
    """Return names as they are given, or those of the one file that is."""
    if len(given) > 1 or not Path(given[0]).exists():
        return given
    from rankwright.data.files import load_documents
    from rankwright.data.frames import default_names, feature_columns
    from rankwright.ranklib.model_files import is_model, load_model

    if is_model(given[0]):
        ranker = load_model(given[0])
        names = getattr(ranker, "feature_names_in_", default_names(ranker.n_features_in_))
        return list(names)
    return list(feature_columns(load_documents(given[0])))
