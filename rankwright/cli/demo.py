"""``rankwright demo``: a panel of rankers on embedded data, a table and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwright.cli import console

if TYPE_CHECKING:
    from rich.table import Table

    from rankwright.data.ranking_data import RankingData
    from rankwright.experiments.demo import Row


def demo(
    report: Annotated[Path, typer.Option("-o", "--report", help="Where the report goes.")] = Path(
        "report.html"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the data and of every ranker.")] = 0,
    json: console.JsonOption = False,
) -> None:
    """Rank the embedded digits with a panel of rankers; print a table and write a report."""
    from rankwright.experiments.demo import run_demo
    from rankwright.report.page import write_report

    test, incoming = run_demo(seed=seed)
    rows = []
    with console.err.status("ranking the digits") as status:
        for row in incoming:
            rows.append(row)
            status.update(f"{row.name} done")
    title = "Rankwright demo: handwritten digits as queries"
    write_report(report, title=title, data=test, rows=rows, metric="ndcg@10")
    if json:
        metrics = {row.name: dict(row.evaluation) for row in rows}
        console.print_json({"metrics": metrics, "report": str(report)})
        return
    console.out.print(demo_table(test, rows))
    console.out.print(f"Report: {report}")


def demo_table(test: RankingData, rows: list[Row]) -> Table:
    """Return the panel as a table: means on test with their 95 % bootstrap intervals."""
    from rich.table import Table

    first = rows[0].evaluation
    table = Table(
        title="Handwritten digits as queries: test",
        caption=(
            f"{test.n_queries} queries, {test.n_documents} documents; convention "
            f"{first.convention.name}; mean and 95 % bootstrap interval over queries"
        ),
    )
    table.add_column("ranker")
    for name in first:
        table.add_column(name, justify="right")
    for row in rows:
        cells = []
        for name, value in row.evaluation.items():
            low, high = row.interval(name)
            cells.append(f"{value:.4f}\n[dim]{low:.3f} – {high:.3f}[/]")
        table.add_row(f"{row.name}\n[dim]{row.about}[/]", *cells)
    return table
