"""``rankwright compare``: rankers on the same folds, with intervals, tests and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwright.cli import console
from rankwright.cli.settings import (
    ConventionOption,
    ReadOption,
    SeedOption,
    ThreadsOption,
    read_options,
)

if TYPE_CHECKING:
    from rich.table import Table

    from rankwright.experiments.comparison import Comparison


def compare(
    data: Annotated[
        str,
        typer.Argument(help="A file, a folder of LETOR folds, or the name of a data set."),
    ],
    rankers: Annotated[
        str,
        typer.Option(
            help="Such as gbdt,lambdamart:num_leaves=7,small=ranksvm:l2=0.1 (name=ranker:key=value)"
        ),
    ],
    tune: Annotated[
        int,
        typer.Option(metavar="N", help="Tune each ranker with N trials, on valid; 0: as given."),
    ] = 0,
    metrics: Annotated[
        str, typer.Option(help="What is reported; the first one counts wins and losses.")
    ] = "ndcg@10,ndcg@5,ndcg@1,map",
    select: Annotated[str, typer.Option(help="The metric that chooses on valid.")] = "ndcg@10",
    convention: ConventionOption = "standard",
    baseline: Annotated[
        str | None, typer.Option(help="What the others are tested against; the first by default.")
    ] = None,
    folds: Annotated[int, typer.Option(help="Folds to cut, where the data has none.")] = 5,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write a report to this HTML file.")
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder of fits done before; a user-wide one by default."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Fits at a time, each in a process; by default one a fold.")
    ] = None,
    read: ReadOption = None,
    seed: SeedOption = 0,
    threads: ThreadsOption = None,
    json: console.JsonOption = False,
) -> None:
    """Compare rankers: metrics with intervals, paired tests, wins, time and size.

    Every choice is made on the valid part of a fold, and test is looked at once. Fits are kept:
    adding a ranker fits that one alone, and a comparison that was killed goes on where it was. A
    ranker that cannot take the data is named with the reason; exit 2 only if none can.

    There is no --memory: fits run in processes of their own, and --jobs 1 runs one at a time.
    """
    from rankwright.cli.progress import step_progress
    from rankwright.data.target import check_target
    from rankwright.experiments.compare import compare as run

    check_target(output, "-o")
    with step_progress("compare", None) as report:
        found = run(
            data,
            rankers,
            metrics=metrics,
            convention=convention,
            select=select,
            baseline=baseline,
            folds=folds,
            tune=tune,
            read=read_options(read),
            cache=cache,
            jobs=jobs,
            report=report,
            random_state=seed,
            n_jobs=threads,
        )
    if output is not None:
        from rankwright.report import write_report

        write_report(found, output)
    if json:
        console.print_json({**found.as_json(), "report": None if output is None else str(output)})
        return
    _print(found)
    if output is not None:
        console.show(f"report: {output}")


def say_compiling(found: Comparison) -> None:
    """Say how long kernels were compiled; the seconds of fits are without it."""
    if found.compile_seconds >= 0.05:
        console.say(
            f"Compiling took {found.compile_seconds:.1f} s, once; the seconds of fits are without."
        )


def comparison_table(found: Comparison) -> Table:
    """Return the means with their intervals, wins, time and size."""
    from rich.markup import escape
    from rich.table import Table

    from rankwright.experiments.comparison_table import rows

    head, *body = rows(found)
    table = Table(box=None, pad_edge=False)
    table.add_column(head[0], overflow="fold")
    for name in head[1:]:
        table.add_column(name, justify="right")
    for label, *cells in body:
        values = [_dimmed(cell) for cell in cells]
        table.add_row(escape(label), *values)
    return table


def _print(found: Comparison) -> None:
    console.out.print(comparison_table(found))
    for label, why in found.failures.items():
        console.show(f"{label}: {why}")
    console.show(found.about())
    say_compiling(found)


def _dimmed(cell: str) -> str:
    value, newline, interval = cell.partition("\n")
    return f"{value}\n[dim]{interval}[/]" if newline else value
