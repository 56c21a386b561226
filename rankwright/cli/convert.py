"""``rankwright convert IN OUT``, ``rankwright synthetic SHAPE OUT``: data or models to files."""

from __future__ import annotations

from typing import Annotated

import typer

from rankwright.cli import console
from rankwright.cli.options import (
    ReadOption,
    SeedOption,
    ThreadsOption,
    read_options,
)
from rankwright.comparison.key_values import parse_settings
from rankwright.errors import UsageError, counted


def convert(
    source: Annotated[
        str, typer.Argument(metavar="IN", help="A file, a folder, a data set's name, or - .")
    ],
    target: Annotated[str, typer.Argument(metavar="OUT", help="A file, a store folder, or - .")],
    from_: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FORMAT", help="Format of IN; by default from its file extension."
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="FORMAT", help="Format of OUT; by default from its file extension."
        ),
    ] = None,
    qid: Annotated[str | None, typer.Option(help="Column of query ids (tables).")] = None,
    label: Annotated[str | None, typer.Option(help="Column of grades (tables).")] = None,
    zero_based: Annotated[
        bool | None,
        typer.Option("--zero-based/--one-based", help="Lowest feature id of IN (LETOR text)."),
    ] = None,
    absent: Annotated[
        str | None,
        typer.Option(help="Value of absent features: zero or missing (LETOR text, feature logs)."),
    ] = None,
    judgments: Annotated[
        str | None,
        typer.Option(help="Judgment list with the grades of the documents (feature logs)."),
    ] = None,
    dtype: Annotated[str | None, typer.Option(help="float32 or float64.")] = None,
    read: ReadOption = None,
    write: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Any option of the writer; may be repeated."),
    ] = None,
    categories: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Columns of the type category (models of LightGBM)."),
    ] = None,
    json: console.JsonOption = False,
) -> None:
    """Convert ranking data between formats, or a model of another tool to a model file.

    "rankwright list formats" shows the formats. --categories names columns of the frame that a
    model of LightGBM was trained on, separated by commas.
    """
    import warnings
    from dataclasses import asdict

    from rankwright.data import files
    from rankwright.ranklib.model_files import is_model

    if json and target == "-":
        raise UsageError("--json and OUT '-' both write to standard output; name a file for OUT.")
    options = read_options(
        read,
        qid=qid,
        label=label,
        zero_based=zero_based,
        absent=absent,
        judgments=judgments,
        dtype=dtype,
    )
    for_writer = parse_settings(write or [], "--write")
    if categories is not None or is_model(source):
        if options or for_writer or from_ or to:
            raise UsageError(
                "the options of data do not apply to a model file, which has only --categories."
            )
        _convert_model(source, target, categories, json=json)
        return
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
            f"{source} -> {target}: {counted(done.documents, 'document')} of "
            f"{counted(done.queries, 'query')}, {counted(done.features, 'feature')}."
        )


def _convert_model(source: str, target: str, categories: str | None, *, json: bool) -> None:
    """Write a model of any tool as a model file of Rankwright."""
    from rankwright.ranklib.model_files import load_model

    if target == "-":
        raise UsageError("a model file is not text; name a file for OUT.")
    ranker = load_model(source, categories=None if categories is None else categories.split(","))
    ranker.save(target)
    features, names = ranker.n_features_in_, list(getattr(ranker, "categories_", {}))
    if json:
        console.print_json(
            {"source": source, "target": target, "features": features, "categories": names}
        )
        return
    columns = f", {counted(len(names), 'column')} of categories" if names else ""
    console.say(f"{source} -> {target}: a model of {counted(features, 'feature')}{columns}.")


def synthetic(
    shape: Annotated[str, typer.Argument(help="`rankwright list shapes` shows the names.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="A file or a store folder.")],
    queries: Annotated[
        int | None, typer.Option(help="How many queries, instead of the shape's own number.")
    ] = None,
    first: Annotated[
        int,
        typer.Option(min=0, help="Number of queries to skip, such as those of a training set."),
    ] = 0,
    seed: SeedOption = 0,
    threads: ThreadsOption = None,
    json: console.JsonOption = False,
) -> None:
    """Generate synthetic ranking data in the shape of a well-known set."""
    from rankwright.data.files import save
    from rankwright.data.synthetic_data import synthetic as generate

    count = None if queries is None else first + queries
    data = generate(shape, queries=count, seed=seed, n_jobs=threads)
    if first >= data.n_queries:
        raise UsageError(f"there are {data.n_queries} queries; --first must be lower.")
    data = data.select(range(first, data.n_queries))
    save(data, target)
    if json:
        record = {"source": shape, "target": target, "queries": data.n_queries}
        console.print_json(record | {"documents": data.n_documents, "features": data.n_features})
        return
    console.say(
        f"{shape} -> {target}: {counted(data.n_documents, 'document')} of "
        f"{counted(data.n_queries, 'query')}, {counted(data.n_features, 'feature')}."
    )
