"""``python -m reproducibility``: a paper's table or figure, or all, beside the printed one."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwright.cli import console
from rankwright.cli.console import step_progress
from rankwright.cli.main import run
from rankwright.cli.options import SeedOption, ThreadsOption

if TYPE_CHECKING:
    from rich.table import Table

    from reproducibility.experiment import Column, ColumnGroup
    from reproducibility.figure import FigureResult
    from reproducibility.table import Cell, TableResult


app = typer.Typer(
    name="reproducibility",
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
def reproduce(
    table: Annotated[
        str,
        typer.Argument(help="The experiment's name, 'list' for all names, 'all', or a TOML file."),
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
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep a JSON file per experiment here; for 'all', docs/reproduction by default.",
        ),
    ] = None,
    rows: Annotated[
        str | None, typer.Option(help="Run only these rows, such as GBDT,IntervalRank.")
    ] = None,
    seed: SeedOption = 0,
    threads: ThreadsOption = None,
    json: console.JsonOption = False,
) -> None:
    """Reproduce a table or figure of a paper: the printed values, ours, and their intervals.

    Models are selected on the validation part of each fold; the test part is used once. 'all' runs
    every experiment that has no result in DIR yet and writes the page DIR.md from the results.
    Exits with 1 where ours misses a figure that the experiment expects, or one of all fails.
    """
    if table == "list":
        _print_names(json)
        return
    folder = data or _data_folder()
    is_file = results is not None and results.exists() and not results.is_dir()
    _refuse(is_file, f"--results {results}", "that is a file, and results go to a folder")
    if table == "all":
        _refuse(output is not None, "-o", "results go to the folder --results, the page beside it")
        _refuse(rows is not None, "--rows", "it belongs to one table")
        _run_all(results or Path("docs/reproduction"), folder, seed, threads, json)
        return
    _refuse(rows is not None and results is not None, "--rows", "--results keeps whole tables")
    _run_one(table, rows, folder, output, results, seed, threads, json)


def _refuse(given: bool, option: str, why: str) -> None:
    from rankwright.errors import UsageError

    if given:
        raise UsageError(f"{option} cannot be given here: {why}.")


def _data_folder() -> Path | None:
    named = os.environ.get("RANKWRIGHT_DATA")
    return Path(named) if named else None


def _run_one(
    name: str,
    rows: str | None,
    folder: Path | None,
    output: Path | None,
    results: Path | None,
    seed: int,
    threads: int | None,
    json: bool,
) -> None:
    from rankwright.data.streams import check_target
    from reproducibility.experiment_file import experiment
    from reproducibility.figure import FigureResult
    from reproducibility.reproduction import Results, run_experiment, summary

    chosen = experiment(name)
    if rows is not None:
        chosen = chosen.with_rows([name.strip() for name in rows.split(",")])
    if chosen.kind == "figure":
        from reproducibility.figure import check_drawable

        output = output or Path(f"{chosen.name}.svg")
        check_drawable(output)
    check_target(output, "-o")
    started = time.perf_counter()
    result = run_experiment(chosen, folder, progress=step_progress, n_jobs=threads, seed=seed)
    if results is not None:
        seconds = time.perf_counter() - started
        Results(results).keep(summary(result, seconds=seconds, seed=seed))
    if isinstance(result, FigureResult):
        assert output is not None
        _hand_out_figure(result, output, json)
    else:
        _hand_out(result, output, json)
    missed = (result.table if isinstance(result, FigureResult) else result).missed()
    for sentence in missed:
        console.say(f"missed: {sentence}")
    if missed:
        raise typer.Exit(1)


def _run_all(target: Path, folder: Path | None, seed: int, threads: int | None, json: bool) -> None:
    from rankwright.data.streams import atomic_text
    from reproducibility.experiment_file import overview
    from reproducibility.reproduction import Results, overall, page, run_all

    results, failures = Results(target), dict[str, str]()

    def failed(name: str, sentence: str) -> None:
        failures[name] = sentence
        console.say(f"{name} failed: {sentence}")

    run_all(results, folder, progress=step_progress, failed=failed, n_jobs=threads, seed=seed)
    found, of_all = results.read(), overview()
    written = target.with_name(f"{target.name}.md")
    with atomic_text(written) as stream:
        stream.write(page(found, of_all))
    verdicts = {name: overall(found[name]) for name in of_all if name in found}
    if json:
        console.print_json(
            {"page": str(written), "results": str(target), "verdicts": verdicts, "failed": failures}
        )
    else:
        _print_verdicts(verdicts, failures, list(of_all))
        console.show(f"page: {written}")
    if failures or any(one["missed"] for one in found.values()):
        raise typer.Exit(1)


def _print_verdicts(verdicts: dict[str, str], failures: dict[str, str], names: list[str]) -> None:
    width = max(map(len, names))
    for name in names:
        said = f"failed: {failures[name]}" if name in failures else verdicts.get(name, "not run")
        console.show(f"{name:<{width}}  {said}")


def _print_names(json: bool) -> None:
    from reproducibility.experiment_file import overview

    found = overview()
    if json:
        titles = {name: about["title"] for name, about in found.items()}
        console.print_json({"experiments": titles, "about": found})
        return
    width = max(map(len, found))
    for name, about in found.items():
        console.out.print(f"[bold]{name:<{width}}[/]  {about['title']}", soft_wrap=True)
        minutes = about["minutes"]
        time_taken = "" if minutes is None else f"; about {minutes:g} min on two cores"
        line = f"{'':<{width}}  {about['kind']}; {about['paper']}{time_taken}"
        console.show(line, style="dim")


def _hand_out(result: TableResult, output: Path | None, json: bool) -> None:
    if output is not None:
        result.write(output)
    if json:
        console.print_json(result.as_json())
    else:
        _print_result(result)


def _hand_out_figure(result: FigureResult, figure: Path, json: bool) -> None:
    from reproducibility.figure import draw

    draw(result, figure)
    result.write(figure.with_suffix(".json"))
    if json:
        console.print_json({**result.as_json(), "figure": str(figure)})
    else:
        _print_result(result.table)
        about = f"curves: {figure}; their values: {figure.with_suffix('.json')}"
        console.show(about)


# --- what is printed -------------------------------------------------------------------------


def _print_result(result: TableResult) -> None:
    chosen = result.experiment
    console.show(chosen.title, "bold")
    for study in chosen.studies:
        for group in study.groups:
            console.out.print(_group_table(result, group, f"{study.name}: {group.title}"))
        queries = result.queries[study.name]
        about = (
            f"{study.name}: median, least and most of {study.repeats} fits to {queries} queries; "
            "metrics are on the training data."
            if chosen.kind == "time"
            else f"{study.name}: selected on validation data by {study.select} "
            f"({study.convention}); mean and 95 % bootstrap interval over {queries} "
            f"{'topics' if chosen.kind == 'topics' else 'test queries'}."
        )
        console.show(about)
    if chosen.printed:
        console.show(f"In parentheses: {chosen.paper}.")
    if chosen.baseline in {row.name for row in chosen.rows}:
        console.show(
            f"▲ ▼: significantly above or below {chosen.baseline} (paired randomisation test over "
            "queries, 5 %, Holm's correction over the rows of a column)."
        )
    for contrast in result.contrasts:
        console.show(contrast.sentence)


def _group_table(result: TableResult, group: ColumnGroup, title: str) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("")
    for column in group.columns:
        table.add_column(column.name, justify="right", overflow="fold")  # long names, never cut
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


if __name__ == "__main__":
    run(app)
