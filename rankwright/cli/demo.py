"""``rankwright demo``: a panel of rankers on embedded data, a table and a report."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from rankwright.cli import console

if TYPE_CHECKING:
    from rich.table import Table

    from rankwright.comparison.result import Comparison


def demo(
    report: Annotated[Path, typer.Option("-o", "--report", help="HTML file of the report.")] = Path(
        "report.html"
    ),
    seed: Annotated[int, typer.Option(help="Random seed of the data and of every ranker.")] = 0,
    json: console.JsonOption = False,
) -> None:
    """Compare rankers of every family on handwritten digits; print a table and write a report."""
    from rankwright.cli.compare import say_compiling
    from rankwright.cli.progress import step_progress
    from rankwright.comparison.demo import TITLE, panel, run_demo
    from rankwright.comparison.report import write_report
    from rankwright.data.target import check_target

    check_target(report, "-o")
    with TemporaryDirectory() as cache:  # the demo shows fits, not what a cache holds
        with step_progress("demo", len(panel())) as step:
            found, floors = run_demo(cache, seed=seed, report=step)
        write_report(found, report, title=TITLE)
    if json:
        means = {
            label: {name: interval.mean for name, interval in measured.items()}
            for label, measured in found.intervals.items()
        }
        console.print_json({"metrics": {**floors, **means}, "report": str(report)})
        return
    console.out.print(demo_table(found, floors))
    console.show(found.about())
    say_compiling(found)
    console.show(f"Report: {report}")


def demo_table(found: Comparison, floors: dict[str, dict[str, float]]) -> Table:
    """Return the table of the comparison, and below it what a ranker must beat."""
    from rankwright.cli.compare import comparison_table

    table = comparison_table(found)
    for name, measured in floors.items():
        table.add_row(f"[dim]{name}[/]", *(f"[dim]{measured[m]:.4f}[/]" for m in found.metrics))
    return table
