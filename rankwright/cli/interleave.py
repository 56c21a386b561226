"""``rankwright interleave``: lists from the rankings of several models, and who wins on them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rankwright.cli import console
from rankwright.cli.clicks import LogArgument, LogFormatOption, check_picture, write_picture
from rankwright.cli.options import (
    FormatOption,
    ReadOption,
    SeedOption,
    ThreadsOption,
    open_with_documents,
    read_options,
    set_option,
)
from rankwright.comparison.key_values import parse_settings
from rankwright.errors import UsageError


class _ListsByDefault(TyperGroup):
    """Takes model files for arguments of ``lists``, which need not be written."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put ``lists`` before what is not a command."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["lists", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="interleave",
    cls=_ListsByDefault,
    help="Interleave the rankings of two or more models, and see whose documents are clicked.\n\n"
    "`rankwright interleave A.rw B.rw DATA` gives lists, `rankwright interleave score LOG` the "
    "verdict.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
def lists(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL MODEL... DATA",
            help="Two or more model files, then a file of documents or the name of a data set.",
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            help="Where the lists go, - is standard output: .jsonl has a list per line, .csv, "
            ".tsv, .parquet and .arrow a row per document.",
        ),
    ] = "-",
    method: Annotated[
        str,
        typer.Option(help="team_draft or probabilistic; of two models also optimised."),
    ] = "team_draft",
    k: Annotated[int, typer.Option(help="Length of the lists.")] = 10,
    sessions: Annotated[int, typer.Option(help="Lists for each query.")] = 1,
    set_: Annotated[
        list[str] | None, set_option("Another parameter of the method, such as tau=1")
    ] = None,
    seed: SeedOption = 0,
    format: FormatOption = None,  # noqa: A002
    read: ReadOption = None,
    threads: ThreadsOption = None,
    json: console.JsonOption = False,
) -> None:
    """Interleave the rankings of models: a list for each query and session.

    A list of JSON lines becomes a click log when `"clicks": [0, 1, ...]` is added to its lines;
    `rankwright interleave score` reads that.
    """
    from rankwright.clicks.interleaving import interleave, interleaving_method
    from rankwright.data.click_files import save_lists, written_format
    from rankwright.data.streams import check_target

    if len(paths) < 3:
        raise UsageError("give two or more model files, and the data to rank: A.rw B.rw DATA.")
    if json and output == "-":
        raise UsageError("--json and the lists cannot share standard output: give -o FILE.")
    *models, data = paths
    chosen = interleaving_method(method, k=k, **parse_settings(set_ or []))
    chosen.check(len(models))
    if output != "-":
        written_format(output)
        check_target(output, "-o")
    rankers, documents = open_with_documents(models, data, read_options(read, format=format))
    scores = {}
    with console.round_progress("interleave", len(models)) as update:
        for number, (name, ranker) in enumerate(zip(_names(models), rankers, strict=True)):
            ranker.n_jobs = threads
            scores[name] = ranker.predict(documents)
            update(number + 1, name)
    found = interleave(
        documents, scores, chosen, sessions=sessions, random_state=seed, n_jobs=threads
    )
    save_lists(found, output)
    if json:
        assert found.interleaving is not None
        shape = {"sessions": found.n_sessions, "documents": found.n_impressions}
        console.print_json({"lists": output, **shape, "interleaving": found.interleaving.to_dict()})
    elif output != "-":
        console.show(f"wrote {output}: {found.n_sessions:,} lists")


@app.command()
def score(
    log: LogArgument,
    alpha: Annotated[
        float,
        typer.Option(help="How often, at most, a winner is named where there is none."),
    ] = 0.05,
    unit: Annotated[
        str, typer.Option(help="What counts once: session, query or user.")
    ] = "session",
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the interval by the number of sessions (.png, .svg or .pdf)."),
    ] = None,
    format: LogFormatOption = None,  # noqa: A002
    read: ReadOption = None,
    json: console.JsonOption = False,
) -> None:
    """Say who wins on interleaved lists that users have clicked on.

    The test may be repeated as the log grows, every day or every minute: the chance of a wrong
    winner over all looks together is at most alpha. Intervals hold at all looks too. With
    --unit query or user the test is valid for one look, at the whole log.
    """
    from rankwright.clicks.interleaving_score import plot_interleaving, score_interleaving
    from rankwright.data.click_files import load_log

    check_picture(plot)
    lists = load_log(log, **read_options(read, format=format))
    found = score_interleaving(lists, alpha=alpha, unit=unit)
    if plot is not None:
        write_picture(plot_interleaving(found).figure, plot)
    if json:
        console.print_json(found.to_dict())
        return
    console.show(str(found))
    if plot is not None:
        console.say(f"wrote {plot}")


def _names(models: list[str]) -> list[str]:
    """Return the names of the files, or where two are the same, their paths."""
    names = [Path(one).name for one in models]
    if len(set(names)) == len(names):
        return names
    if len(set(models)) < len(models):
        raise UsageError("a model is given twice: there is nothing to find out.")
    return models
