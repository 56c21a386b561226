"""Results of an experiment: figures with intervals next to the printed ones, tests and claims.

The verdict compares a printed figure with the 95 % interval of ours: ``within`` if it lies inside,
otherwise ours is ``better`` or ``worse``. All figures that are compared in this way are metrics of
which more is better. Figures that were printed for other data have no verdict.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

from rankwright.metrics.significance import bootstrap_interval, holm, randomisation
from reproducibility.protocol import Choice, Row, Run, Study, choose_all, evaluate_test

PRINTED = Path(__file__).with_name("printed.csv")
WIDTH, COLUMNS = 110, 5  # of a printed table, without the names of its rows


@dataclass(frozen=True)
class Cell:
    """A figure of a table: ours with its interval, the printed one, and the test.

    ``difference`` and ``p_value`` compare the row with the baseline of the table (paired
    randomisation test over queries, adjusted by Holm's method for the rows of the column).
    """

    study: str
    row: str
    column: str
    ours: float | None = None
    low: float | None = None
    high: float | None = None
    printed: float | None = None
    verdict: str = ""
    difference: float | None = None
    p_value: float | None = None


def printed_figures(experiment: str) -> dict[tuple[str, str], float]:
    """Return what the paper printed, by row and column."""
    with PRINTED.open(encoding="utf-8", newline="") as file:
        return {
            (line["row"], line["column"]): float(line["printed"])
            for line in csv.DictReader(file)
            if line["experiment"] == experiment
        }


def verdict(printed: float, low: float, high: float) -> str:
    """Return how our interval compares with a printed figure of which more is better."""
    return "within" if low <= printed <= high else "better" if low > printed else "worse"


class Report:
    """The table of an experiment, filled study by study.

    Parameters
    ----------
    experiment : str
        Its name in ``printed.csv``.
    run : Run
    baseline : str
        The row that all others are tested against.
    printed_on : str
        The data that the printed figures are of, if it is not ours.
    """

    def __init__(
        self, experiment: str, run: Run, *, baseline: str | None = None, printed_on: str = ""
    ) -> None:
        self.experiment, self.run = experiment, run
        self.baseline, self.printed_on = baseline, printed_on
        self.cells: list[Cell] = []
        self.contrasts: list[Cell] = []
        self.notes: list[str] = []
        self.values: dict[str, dict[str, list[Any]]] = {}

    def add_study(self, study: Study, rows: Sequence[Row]) -> list[dict[str, Choice]]:
        """Choose on validation data, measure on test data once, and return what was chosen."""
        choices = choose_all(study, rows, self.run)
        self.add_values(study.name, evaluate_test(study, choices))
        return choices

    def add_values(self, study: str, values: Mapping[str, Mapping[str, list[Any]]]) -> None:
        """Add a cell for each row and column from the values of all queries, fold by fold."""
        pooled = {
            (row, column): np.concatenate(parts)
            for row, by_column in values.items()
            for column, parts in by_column.items()
        }
        tests = self._tests_against_baseline(pooled)
        for (row, column), x in pooled.items():
            interval = bootstrap_interval(x, seed=self.run.seed)
            figures = interval.mean, interval.low, interval.high
            difference, p_value = tests.get((row, column), (None, None))
            cell = Cell(study, row, column, *figures, difference=difference, p_value=p_value)
            self.cells.append(cell)
            self.values.setdefault(row, {})[column] = values[row][column]

    def _tests_against_baseline(
        self, pooled: Mapping[tuple[str, str], Any]
    ) -> dict[tuple[str, str], tuple[float, float]]:
        tests = {}
        for column in dict.fromkeys(column for _, column in pooled):
            if (self.baseline, column) not in pooled:
                continue
            base = pooled[self.baseline, column]
            results = {
                row: randomisation(x, base, seed=self.run.seed)
                for (row, name), x in pooled.items()
                if name == column and row != self.baseline
            }
            adjusted = holm({row: result.p_value for row, result in results.items()})
            for row, result in results.items():
                tests[row, column] = result.difference, adjusted[row]
        return tests

    def contrast(
        self, row: str, against: str, columns: Sequence[str], *, unpaired: bool = False
    ) -> None:
        """Compare two rows in some columns, with p-values adjusted by Holm's method.

        The test is a paired randomisation test over queries, or Welch's t-test over the means of
        the folds.
        """
        results = {}
        for column in columns:
            a, b = self.values[row][column], self.values[against][column]
            if unpaired:
                a, b = (np.array([np.nanmean(part) for part in x]) for x in (a, b))
                test = stats.ttest_ind(a, b, equal_var=False)
                low, high = test.confidence_interval(0.95)
                results[column] = a.mean() - b.mean(), low, high, test.pvalue
            else:
                a, b = np.concatenate(a), np.concatenate(b)
                interval = bootstrap_interval(a - b, seed=self.run.seed)
                test = randomisation(a, b, seed=self.run.seed)
                results[column] = test.difference, interval.low, interval.high, test.p_value
        adjusted = holm({column: p for column, (*_, p) in results.items()})
        method = "Welch's t-test over draws" if unpaired else "paired randomisation test"
        for column, (difference, low, high, _) in results.items():
            p = adjusted[column]
            winner = row if difference > 0 else against
            outcome = f"{winner} is better" if p <= 0.05 else "no significant difference"
            self.contrasts.append(
                Cell("contrast", f"{row} - {against}", column, difference, low, high, p_value=p)
            )
            self.notes.append(
                f"{column}: {row} - {against} = {difference:+.4f} "
                f"({low:+.4f} to {high:+.4f}, p = {p:.4f}, {method}): {outcome}"
            )

    def claim(
        self, text: str, row: str, columns: Sequence[str], *, above: Sequence[str] = ()
    ) -> None:
        """Count the columns in which a claim of the paper holds: ``row`` is above other rows."""
        ours = {(cell.row, cell.column): cell.ours for cell in self.cells}
        failed = []
        for column in columns:
            others = above or [name for name, c in ours if c == column and name != row]
            best = max(others, key=lambda name: ours[name, column])
            if ours[best, column] >= ours[row, column]:
                failed.append(
                    f"{column} ({best} {ours[best, column]:.4f}, {ours[row, column]:.4f})"
                )
        holds = f"{len(columns) - len(failed)} of {len(columns)} columns"
        exceptions = f"; not in {', '.join(failed)}" if failed else ""
        self.notes.append(f"The paper: {text}. Here in {holds}{exceptions}")

    def table(self) -> list[Cell]:
        """Return all cells with the printed figures; rows of the paper come first."""
        printed = printed_figures(self.experiment)
        study_of = {cell.column: cell.study for cell in self.cells}
        rows = dict.fromkeys([*(row for row, _ in printed), *(cell.row for cell in self.cells)])
        cells = {(cell.row, cell.column): cell for cell in self.cells}
        table = []
        for row in rows:
            for column, study in study_of.items():
                cell = cells.get((row, column))
                figure = printed.get((row, column))
                if figure is not None:
                    cell = replace(cell or Cell(study, row, column), printed=figure)
                    if cell.ours is not None and not self.printed_on:
                        cell = replace(cell, verdict=verdict(figure, cell.low, cell.high))
                if cell is not None:
                    table.append(cell)
        return table

    def write(self, folder: Path) -> Path:
        """Write the cells and the contrasts as a CSV file and return its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.experiment}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, [field.name for field in fields(Cell)])
            writer.writeheader()
            for cell in [*self.table(), *self.contrasts]:
                writer.writerow({name: _text(value) for name, value in asdict(cell).items()})
        return path

    def show(self, title: str, console: Console | None = None) -> None:
        """Print the tables, study by study, then the contrasts and the claims."""
        console = console or Console()
        console.width = max(console.width, WIDTH)
        console.print(f"\n[bold]{self.experiment}[/]: {title}", highlight=False)
        table = self.table()
        for study in dict.fromkeys(cell.study for cell in table):
            cells = {(c.row, c.column): c for c in table if c.study == study}
            columns = list(dict.fromkeys(column for _, column in cells))
            for first in range(0, len(columns), COLUMNS):
                block = columns[first : first + COLUMNS]
                console.print(_block(study, block, cells), highlight=False)
        counts = [cell.verdict for cell in table if cell.verdict]
        if counts:
            each = (f"{counts.count(v)} {v}" for v in ("better", "within", "worse"))
            self._say(console, f"{len(counts)} printed figures: {', '.join(each)}")
        if self.printed_on:
            self._say(console, f"The printed figures are of other data: {self.printed_on}.")
        if self.baseline:
            self._say(console, f"* differs significantly from {self.baseline} (5 %, Holm).")
        for note in self.notes:
            self._say(console, f"- {note}.")

    @staticmethod
    def _say(console: Console, text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)


def _block(study: str, columns: Sequence[str], cells: Mapping[tuple[str, str], Cell]) -> Table:
    table = Table(title=study, title_justify="left")
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right", overflow="fold")
    for row in dict.fromkeys(row for row, _ in cells):
        texts = [_lines(cells.get((row, column))) for column in columns]
        if any(texts):
            table.add_row(row, *texts)
    return table


def _lines(cell: Cell | None) -> str:
    """Return our figure, its interval and the printed figure, below each other."""
    if cell is None:
        return ""
    lines = []
    if cell.ours is not None:
        mark = "*" if cell.p_value is not None and cell.p_value <= 0.05 else ""
        lines = [f"[bold]{mark}{_short(cell.ours)}[/]", f"{_short(cell.low)}–{_short(cell.high)}"]
    if cell.printed is not None:
        lines.append(f"paper {cell.printed:g} {cell.verdict}".rstrip())
    return "\n".join(lines)


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}" if abs(value) < 1 else f"{value:.4g}"


def _text(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value
