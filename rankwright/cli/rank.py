"""``rankwright rank``: put the documents of a file in order with a saved model."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rankwright.cli import console
from rankwright.cli.options import (
    DaskOption,
    FormatOption,
    PartsOption,
    ReadOption,
    ThreadsOption,
    client_of,
    features_of,
    on_workers,
    read_options,
)
from rankwright.errors import UsageError, counted

if TYPE_CHECKING:
    from rankwright.core.types import F64
    from rankwright.data.files import DocumentParts
    from rankwright.data.ranking_data import RankingData


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
    dask: DaskOption = None,
    n_parts: PartsOption = None,
    json: console.JsonOption = False,
) -> None:
    """Rank a file's documents, query by query; they need no grades.

    Stores, Parquet and Arrow files are read, scored and written part by part where the output is
    a file, so they may be larger than memory.
    """
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
    client = client_of(context, dask, n_parts)
    how: dict[str, Any] = {"per_group": per_group, "top": top, "tag": tag}
    if client is None:
        ranked = rank_file(model, data, options, threads, output, {"to": written, **how})
    else:
        ranked = _on_cluster(client, model, data, n_parts, options, output, how)
    if json:
        console.print_json({"run": output, **ranked._asdict()})
        return
    if output != "-":
        console.show(f"wrote {output}: {counted(ranked.queries, 'query')}")


class Ranked(NamedTuple):
    """How much was ranked."""

    queries: int
    documents: int


def rank_file(
    model: Path,
    data: str,
    options: dict[str, Any],
    threads: int | None,
    output: str,
    how: dict[str, Any],
) -> Ranked:
    """Rank in this process, part by part where the output is a file.

    ``options`` are those of the reader, ``how`` those of `rankwright.data.rankings.open_ranking`.
    """
    from rankwright.data.files import DocumentParts, document_parts, load_documents
    from rankwright.data.ranking_data import PartsDifferError
    from rankwright.ranklib.model_files import is_ranklib, load_model

    ranker = None if is_ranklib(model) else load_model(model)
    wanted = options if ranker is None else {**features_of(ranker), **options}

    def scores_of(part: RankingData) -> tuple[RankingData, F64]:
        nonlocal ranker
        if ranker is None:  # whose text names only the features that it uses
            ranker = load_model(model, n_features=part.n_features)
        ranker.n_jobs = threads
        wide = part.with_n_features(ranker.n_features_in_)
        return wide, ranker.predict(wide)

    if _is_file(output):  # one that fails half way leaves nothing there
        try:
            return _in_parts(document_parts(data, **wanted), scores_of, output, how)
        except PartsDifferError:
            pass  # together they may do
    whole = DocumentParts(None, iter([load_documents(data, **wanted)]))
    return _in_parts(whole, scores_of, output, how)


def _in_parts(
    documents: DocumentParts,
    scores_of: Callable[[RankingData], tuple[RankingData, F64]],
    output: str,
    how: dict[str, Any],
) -> Ranked:
    """Write the ranking of documents that come part by part; the next part is read meanwhile."""
    from rankwright.core.parallel import read_ahead
    from rankwright.data.rankings import open_ranking

    queries = done = 0
    parts = read_ahead(documents.parts)
    first = next(parts)  # an error in the data comes before one in the output
    with (
        open_ranking(output, **how) as append,
        console.round_progress("ranking", documents.rows) as update,
    ):
        for part in chain([first], parts):
            append(*scores_of(part))
            queries, done = queries + part.n_queries, done + part.n_documents
            update(done, "documents")
    return Ranked(queries, done)


def _on_cluster(
    client: Any,
    model: Path,
    data: str,
    n_parts: int | None,
    options: dict[str, Any],
    output: str,
    how: dict[str, Any],
) -> Ranked:
    """Rank where the parts of the data are."""
    from rankwright.distributed.evaluation import write_run
    from rankwright.ranklib.model_files import load_model

    ranker = load_model(model)
    parts = on_workers(client, data, n_parts, options, ranker=ranker)
    write_run(ranker, parts, output, **how)
    return Ranked(parts.n_queries, parts.n_documents)


def _check_output(output: str) -> None:
    """Say that the run cannot be written before there is one; a device or a pipe may take it."""
    from rankwright.data.streams import check_target

    if _is_file(output):
        check_target(Path(output), "-o")


def _is_file(output: str) -> bool:
    path = Path(output)
    return output != "-" and not (path.is_char_device() or path.is_fifo())
