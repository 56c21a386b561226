"""``rankwright rank``: put the documents of a file in order with a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli import console
from rankwright.cli.options import (
    DaskOption,
    FormatOption,
    MemoryOption,
    PartsOption,
    ReadOption,
    ThreadsOption,
    bound_memory,
    client_of,
    features_of,
    in_record,
    on_workers,
    open_with,
    print_peak,
    read_options,
)
from rankwright.errors import UsageError

if TYPE_CHECKING:
    from rankwright.data.ranking_data import RankingData
    from rankwright.distributed.partitions import Partitions


def rank(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Annotated[str, typer.Argument(help="A file, or the name of a data set.")],
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            help="Where the ranking goes, - is standard output: .csv, .tsv, .parquet and .arrow "
            "are tables, .scores one score per line in the order of rows, all else a TREC run.",
        ),
    ] = "-",
    to: Annotated[
        str | None,
        typer.Option(
            "--to", help="trec, csv, tsv, parquet, arrow or scores, where -o does not say."
        ),
    ] = None,
    per_group: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of documents of each group per query.")
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of documents per query: the best ones."),
    ] = None,
    format: FormatOption = None,  # noqa: A002
    read: ReadOption = None,
    tag: Annotated[str, typer.Option(help="The run's name, its last column.")] = "rankwright",
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    dask: DaskOption = None,
    n_parts: PartsOption = None,
    json: console.JsonOption = False,
) -> None:
    """Rank a file's documents, query by query; they need no grades."""
    from rankwright.data.rankings import ranking_format

    if json and output == "-":
        raise UsageError("--json and the run cannot share standard output: give -o FILE.")
    written = ranking_format(output, to)
    if written == "scores" and (per_group or top):
        raise UsageError(
            "a file of scores has every row: leave out --top and --per-group, or write a run."
        )
    if dask is not None and written != "trec":
        raise UsageError(f"--dask writes TREC runs, not {written}; leave --dask out.")
    _check_output(output)
    options = read_options(read, format=format)
    gauge = bound_memory(context, memory)
    client = client_of(context, dask, n_parts)
    how: dict[str, Any] = {"per_group": per_group, "top": top, "tag": tag}
    documents: RankingData | Partitions
    if client is None:
        documents = _locally(model, data, options, threads, output, {"to": written, **how})
    else:
        documents = _on_cluster(client, model, data, n_parts, options, output, how)
    if json:
        counts = {"queries": documents.n_queries, "documents": documents.n_documents}
        console.print_json({"run": output, **counts, **in_record(gauge)})
        return
    if output != "-":
        console.show(f"wrote {output}: {documents.n_queries:,} queries")
    print_peak(gauge)


def _locally(
    model: Path,
    data: str,
    options: dict[str, Any],
    threads: int | None,
    output: str,
    how: dict[str, Any],
) -> RankingData:
    """Rank in this process; return the documents."""
    from rankwright.data.files import load_documents
    from rankwright.data.rankings import write_ranking
    from rankwright.model_files import is_ranklib, load_model

    if is_ranklib(model):
        (ranker,), documents = open_with([model], lambda: load_documents(data, **options))
    else:
        ranker = load_model(model)
        read = load_documents(data, **features_of(ranker), **options)
        documents = read.with_n_features(ranker.n_features_in_)
    ranker.n_jobs = threads
    write_ranking(documents, ranker.predict(documents), output, **how)
    return documents


def _on_cluster(
    client: Any,
    model: Path,
    data: str,
    n_parts: int | None,
    options: dict[str, Any],
    output: str,
    how: dict[str, Any],
) -> Partitions:
    """Rank where the parts of the data are; return the parts."""
    from rankwright.distributed.evaluation import write_run
    from rankwright.model_files import load_model

    ranker = load_model(model)
    parts = on_workers(client, data, n_parts, options, ranker=ranker)
    write_run(ranker, parts, output, **how)
    return parts


def _check_output(output: str) -> None:
    """Say that the run cannot be written before there is one; a device or a pipe may take it."""
    from rankwright.data.streams import check_target

    path = Path(output)
    if output != "-" and not (path.is_char_device() or path.is_fifo()):
        check_target(path, "-o")
