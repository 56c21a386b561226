"""``rankwright demo``: a panel of rankers on embedded data, a table and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwright.cli import console


def demo(
    report: Annotated[Path, typer.Option("-o", "--report", help="Where the report goes.")] = Path(
        "report.html"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the data and of every ranker.")] = 0,
    json: console.JsonOption = False,
) -> None:
    """Compare rankers of every family on handwritten digits; print a table and write a report."""
    from rankwright.cli.compare import comparison_table
    from rankwright.cli.progress import step_progress
    from rankwright.experiments.demo import panel, run_demo

    with step_progress("demo", len(panel())) as step:
        found, floors = run_demo(report, seed=seed, report=step)
    if json:
        means = {
            label: {name: interval.mean for name, interval in measured.items()}
            for label, measured in found.intervals.items()
        }
        console.print_json({"metrics": {**floors, **means}, "report": str(report)})
        return
    table = comparison_table(found)
    for name, measured in floors.items():
        table.add_row(f"[dim]{name}[/]", *(f"[dim]{measured[m]:.4f}[/]" for m in found.metrics))
    console.out.print(table)
    console.out.print(found.about(), soft_wrap=True, markup=False)
    console.out.print(f"Report: {report}")
