"""``rankwright rank``: put the documents of a file in order with a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwright.cli import console
from rankwright.cli.memory import MemoryOption, bound_memory, in_record, print_peak
from rankwright.cli.settings import ReadOption
from rankwright.key_values import parse_settings


def rank(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Annotated[str, typer.Argument(help="A file, or the name of a data set.")],
    output: Annotated[
        str, typer.Option("-o", "--output", help="Where the TREC run goes; - is standard output.")
    ] = "-",
    per_group: Annotated[
        int | None, typer.Option(help="At most so many documents of each group per query.")
    ] = None,
    top: Annotated[
        int | None, typer.Option(min=1, help="Only the best so many documents of each query.")
    ] = None,
    read: ReadOption = None,
    tag: Annotated[str, typer.Option(help="The run's name, its last column.")] = "rankwright",
    threads: Annotated[int | None, typer.Option(help="Threads; all cores by default.")] = None,
    memory: MemoryOption = None,
    json: console.JsonOption = False,
) -> None:
    """Rank a file's documents, query by query, as a TREC run."""
    from rankwright.cli.model import open_with
    from rankwright.data.files import load
    from rankwright.data.scores import write_run
    from rankwright.errors import UsageError

    if json and output == "-":
        raise UsageError("--json and the run cannot share standard output: give -o FILE.")
    options = parse_settings(read or [], "--read")
    gauge = bound_memory(context, memory)
    ranker, documents = open_with(model, lambda: load(data, **options))
    ranker.n_threads = threads
    scores = ranker.predict(documents)
    write_run(documents, scores, output, tag=tag, per_group=per_group, top=top)
    if json:
        counts = {"queries": documents.n_queries, "documents": documents.n_documents}
        console.print_json({"run": output, **counts, **in_record(gauge)})
    elif output != "-":
        console.out.print(f"wrote {output}: {documents.n_queries} queries", soft_wrap=True)
    if not json:
        print_peak(gauge)
