"""``rankwright reproduce TABLE``: a paper's table or figure run again, beside what it printed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwright.cli import console

if TYPE_CHECKING:
    from rich.table import Table

    from rankwright.experiments.experiment import Column, ColumnGroup, Experiment
    from rankwright.experiments.folds_run import Folds, Report
    from rankwright.experiments.table import Cell, TableResult


def reproduce(
    table: Annotated[
        str, typer.Argument(help="The experiment's name, 'list' for all names, or a TOML file.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(help="Folder that holds the data sets; RANKWRIGHT_DATA by default."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Table: all results as JSON. Figure: its .svg, .png or .pdf, and a .json beside.",
        ),
    ] = None,
    rows: Annotated[
        str | None, typer.Option(help="Run only these rows, such as GBDT,IntervalRank.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything drawn.")] = 0,
    threads: Annotated[int | None, typer.Option(help="Threads; all cores by default.")] = None,
    json: console.JsonOption = False,
) -> None:
    """Run a paper's table or figure again: what it printed, ours, and how sure ours is.

    Everything is chosen on the valid part of each fold, and test is looked at once. Exits with 1
    where ours misses a figure that the experiment expects.
    """
    if table == "list":
        _print_names(json)
        return
    from rankwright.experiments.experiment import experiment

    chosen = experiment(table)
    if rows is not None:
        chosen = chosen.with_rows([name.strip() for name in rows.split(",")])
    figure = None
    if chosen.kind == "figure":
        from rankwright.experiments.figure import check_target

        figure = output or Path(f"{chosen.name}.svg")
        check_target(figure)
    folder = data or _data_folder()
    if chosen.kind == "topics":
        result = _run_topics(chosen, folder, output, seed, threads, json)
    elif figure is None:
        result = _run_table(chosen, _folds(chosen, folder, seed), output, seed, threads, json)
    else:
        result = _run_figure(chosen, _folds(chosen, folder, seed), figure, seed, threads, json)
    missed = result.missed()
    for sentence in missed:
        console.say(f"missed: {sentence}")
    if missed:
        raise typer.Exit(1)


def _data_folder() -> Path | None:
    named = os.environ.get("RANKWRIGHT_DATA")
    return Path(named) if named else None


def _folds(chosen: Experiment, folder: Path | None, seed: int) -> Folds:
    from rankwright.experiments.folds_run import load_folds

    with console.err.status("reading the data"):
        return load_folds(chosen, folder, seed=seed)


def _print_names(json: bool) -> None:
    from rankwright.experiments.experiment import titles

    found = titles()
    if json:
        console.print_json({"experiments": found})
        return
    width = max(map(len, found))
    for name, title in found.items():
        console.out.print(f"[bold]{name:<{width}}[/]  {title}", soft_wrap=True)


def _run_table(
    chosen: Experiment,
    folds: Folds,
    output: Path | None,
    seed: int,
    threads: int | None,
    json: bool,
) -> TableResult:
    from rankwright.experiments.folds_run import fits
    from rankwright.experiments.table import run_table
    from rankwright.experiments.timing import run_timing

    if chosen.kind == "time":
        run, steps = run_timing, sum(study.repeats + 1 for study in chosen.studies)
        steps *= len(chosen.rows)
    else:
        run, steps = run_table, fits(chosen, folds)
    with _progress(chosen.name, steps) as report:
        result = run(chosen, folds, report=report, n_threads=threads, seed=seed)
    _hand_out(result, output, json)
    return result


def _run_topics(
    chosen: Experiment,
    folder: Path | None,
    output: Path | None,
    seed: int,
    threads: int | None,
    json: bool,
) -> TableResult:
    from rankwright.experiments.topic_folds import load_topics
    from rankwright.experiments.topics_run import run_topics, steps

    with console.err.status("reading the data"):
        folds = load_topics(chosen, folder, seed=seed)
    with _progress(chosen.name, steps(chosen, folds)) as report:
        result = run_topics(chosen, folds, report=report, n_threads=threads, seed=seed)
    _hand_out(result, output, json)
    return result


def _hand_out(result: TableResult, output: Path | None, json: bool) -> None:
    if output is not None:
        result.write(output)
    if json:
        console.print_json(result.as_json())
    else:
        _print_result(result)


def _run_figure(
    chosen: Experiment, folds: Folds, figure: Path, seed: int, threads: int | None, json: bool
) -> TableResult:
    from rankwright.experiments.curves import run_curves
    from rankwright.experiments.figure import draw
    from rankwright.experiments.folds_run import fits

    drawn = sum(bool(study.trees) for study in chosen.studies) * len(chosen.rows)
    steps = fits(chosen, folds) + drawn
    with _progress(chosen.name, steps) as report:
        result = run_curves(chosen, folds, report=report, n_threads=threads, seed=seed)
    draw(result, figure)
    result.write(figure.with_suffix(".json"))
    if json:
        console.print_json({**result.as_json(), "figure": str(figure)})
    else:
        _print_result(result.table)
        about = f"curves: {figure}; their values: {figure.with_suffix('.json')}"
        console.out.print(about, soft_wrap=True)
    return result.table


# --- what is printed -------------------------------------------------------------------------


@contextmanager
def _progress(name: str, steps: int) -> Iterator[Report]:
    """Yield what takes a line per step: a bar on a terminal, plain lines elsewhere."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    if not console.err.is_terminal:
        done = 0

        def count(line: str) -> None:
            nonlocal done
            done += 1
            console.say(f"{done} of {steps}: {line}")

        yield count
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[line]}"),
    )
    with Progress(*columns, console=console.err, transient=True) as bar:
        task = bar.add_task(name, total=steps, line="")
        yield lambda line: bar.update(task, advance=1, line=line)


def _print_result(result: TableResult) -> None:
    chosen = result.experiment
    console.out.print(f"[bold]{chosen.title}[/]", soft_wrap=True)
    for study in chosen.studies:
        for group in study.groups:
            console.out.print(_group_table(result, group, f"{study.name}: {group.title}"))
        queries = result.queries[study.name]
        about = (
            f"{study.name}: median, least and most of {study.repeats} fits to {queries} queries; "
            "measures are on the training data."
            if chosen.kind == "time"
            else f"{study.name}: chosen on valid by {study.select} ({study.convention}); mean and "
            f"95 % bootstrap interval over {queries} "
            f"{'topics' if chosen.kind == 'topics' else 'test queries'}."
        )
        console.out.print(about, soft_wrap=True)
    if chosen.printed:
        console.out.print(f"In parentheses: {chosen.paper}.", soft_wrap=True, markup=False)
    if chosen.baseline in {row.name for row in chosen.rows}:
        console.out.print(
            f"▲ ▼: above or below {chosen.baseline} beyond luck (paired randomisation test over "
            "queries, 5 %, Holm's correction over the rows of a column).",
            soft_wrap=True,
        )


def _group_table(result: TableResult, group: ColumnGroup, title: str) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("")
    for column in group.columns:
        table.add_column(column.name, justify="right")
    by_place = {(cell.row, cell.column): cell for cell in result.cells}
    for row in result.experiment.row_names:
        cells = [by_place.get((row, column.name)) for column in group.columns]
        if any(cells):
            texts = [_cell_text(*pair) for pair in zip(cells, group.columns, strict=True)]
            table.add_row(row, *texts)
    return table


def _cell_text(cell: Cell | None, column: Column) -> str:
    """Return ours with its interval and, in parentheses, what the paper printed."""
    if cell is None:
        return ""
    counted = column.metric in ("iterations", "active")
    digits = 0 if counted else 4 if column.scale <= 1 else 2
    bounds = max(0, digits - 1)
    lines = []
    if cell.ours is not None and cell.low is not None and cell.high is not None:
        mark = "" if not cell.significant else "▲ " if (cell.difference or 0.0) > 0 else "▼ "
        lines.append(f"{mark}[bold]{cell.ours:.{digits}f}[/]")
        lines.append(f"[dim]{cell.low:.{bounds}f}–{cell.high:.{bounds}f}[/]")
    if cell.paper is not None:
        lines.append(f"({cell.paper:.{digits}f})")
    return "\n".join(lines)
