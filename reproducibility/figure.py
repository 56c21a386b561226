"""A paper's figure run again: measures against trees, cut-offs or the number of training queries.

First comes the table of `reproducibility.table`, in which valid chooses each row's setting
and number of trees. Over cut-offs, such as ndcg@1 to ndcg@10, and over numbers of training queries
the curves are the rows of that table. Over trees, the chosen setting is boosted to the full number,
and the first t of its trees are measured on test for every t asked for; nothing is chosen from
these curves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.core.types import F64
from rankwright.data.split import Fold
from rankwright.data.streams import atomic_path, atomic_text
from rankwright.errors import UsageError
from rankwright.figures import COLOURS, DASHES, MARKS, import_matplotlib
from reproducibility.experiment import Experiment, Row, Study, with_trees
from reproducibility.folds_run import (
    Choice,
    Folds,
    Report,
    Training,
    measured,
    staged_scores,
)
from reproducibility.table import Cell, TableResult, run_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reproducibility.experiment import Row


@dataclass(frozen=True, slots=True)
class Curve:
    """A measure of one row at each x: the mean over all test queries.

    ``over`` says what x is, and ``error`` half the width of a point's 95 % interval.
    """

    study: str
    row: str
    column: str
    convention: str
    over: str
    x: tuple[int, ...]
    ours: tuple[float, ...]
    error: float


@dataclass(frozen=True)
class FigureResult:
    """The curves of a figure, and the table of what valid chose."""

    table: TableResult
    curves: tuple[Curve, ...]

    @property
    def experiment(self) -> Experiment:
        """What was run."""
        return self.table.experiment

    def as_json(self) -> dict[str, Any]:
        """Return the table in the form that every ``reproduce --json`` has, and the curves."""
        return {**self.table.as_json(), "curves": self._curves()}

    def write(self, path: str | Path) -> None:
        """Write the whole record as JSON."""
        record = {**self.table.record(), "curves": self._curves()}
        with atomic_text(path) as stream:
            stream.write(json.dumps(record, indent=2, ensure_ascii=False) + "\n")

    def panels(self) -> dict[tuple[str, str], list[Curve]]:
        """Return the curves that are drawn together, by study and column."""
        found: dict[tuple[str, str], list[Curve]] = {}
        for curve in self.curves:
            found.setdefault((curve.study, curve.column), []).append(curve)
        return found

    def _curves(self) -> list[dict[str, Any]]:
        return [
            {key: getattr(curve, key) for key in ("study", "row", "column", "over", "x", "ours")}
            for curve in self.curves
        ]


def run_curves(
    experiment: Experiment,
    folds: Folds,
    *,
    report: Report = lambda _: None,
    n_jobs: int | None = None,
    seed: int = 0,
) -> FigureResult:
    """Run the experiment as a table, then measure the curves of what was chosen."""
    table = run_table(experiment, folds, report=report, n_jobs=n_jobs, seed=seed)
    curves: list[Curve] = []
    for study in experiment.studies:
        for number, row in enumerate(experiment.rows_of(study)):
            if study.trees:
                choices = [choices[number] for choices in table.choices[study.name]]
                curves += _over_trees(table, row, study, choices, folds[study.name], n_jobs, seed)
                report(f"{study.name}: {row.name} drawn")
            else:
                curves += _over_columns(table, row, study)
    return FigureResult(table, tuple(curves))


def _over_columns(table: TableResult, row: Row, study: Study) -> Iterator[Curve]:
    over = "training queries" if study.train_queries else "cut-off"
    for group in study.groups:
        cells = [table.cell(row.name, column.name) for column in group.columns]
        yield Curve(
            study.name,
            row.name,
            group.title,
            group.columns[0].convention,
            over,
            tuple(column.train_queries or column.cutoff or 0 for column in group.columns),
            tuple(cell.ours or 0.0 for cell in cells),
            _half_width(cells),
        )


def _over_trees(
    table: TableResult,
    row: Row,
    study: Study,
    choices: Sequence[Choice],
    folds: Sequence[Fold],
    n_jobs: int | None,
    seed: int,
) -> Iterator[Curve]:
    found: dict[str, list[list[F64]]] = {c.name: [[] for _ in study.trees] for c in study.columns}
    for choice, fold in zip(choices, folds, strict=True):
        setting = with_trees(choice.setting, study.trees[-1])
        full = Training(row, study, fold.train, n_jobs, seed).fit(setting)
        for at, scores in enumerate(staged_scores(full, fold.test.X, study.trees)):
            for column, per_query in measured(study.columns, fold.test, scores):
                found[column.name][at].append(column.scale * per_query)
    for column in study.columns:
        stages = found[column.name]
        yield Curve(
            study.name,
            row.name,
            column.name,
            column.convention,
            "number of trees",
            study.trees,
            tuple(float(np.nanmean(np.concatenate(parts))) for parts in stages),
            _half_width([table.cell(row.name, column.name)]),
        )


def _half_width(cells: Sequence[Cell]) -> float:
    """Return half the width of the cells' intervals, on average."""
    return sum(((cell.high or 0.0) - (cell.low or 0.0)) / 2 for cell in cells) / len(cells)


# --- drawing ---------------------------------------------------------------------------------
# Drawing curves: one panel per study and measure, colours that the colour-blind tell apart.


_ENDINGS = (".svg", ".png", ".pdf")


def check_drawable(path: Path) -> None:
    """Say before any work whether a figure can be drawn to ``path``."""
    if path.suffix.lower() not in _ENDINGS:
        raise UsageError(f"a figure ends in {', '.join(_ENDINGS)}; '{path.name}' does not.")
    import_matplotlib()


def draw(result: FigureResult, path: Path) -> None:
    """Draw every curve of ``result`` to an SVG, PNG or PDF file, alike to the byte each time."""
    import_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    panels = result.panels()
    rows = [[key for key in panels if key[0] == s.name] for s in result.experiment.studies]
    wide = max(map(len, rows))
    with rc_context({"svg.hashsalt": result.experiment.name, "font.size": 9}):
        figure = Figure(figsize=(1.5 + 3.9 * wide, 0.9 + 2.9 * len(rows)), layout="constrained")
        axes = figure.subplots(len(rows), wide, squeeze=False)
        for keys, line in zip(rows, axes, strict=True):
            for key, axis in zip(keys, line[: len(keys)], strict=True):
                _panel(axis, panels[key], result.experiment.rows)
            for spare in line[len(keys) :]:
                spare.set_axis_off()
        lines = {line.get_label(): line for axis in axes.flat for line in axis.get_lines()}
        names = [row.name for row in result.experiment.rows if row.name in lines]
        figure.legend(
            [lines[name] for name in names], names,
            loc="outside right center", frameon=False, handlelength=3.2,
        )  # fmt: skip
        figure.suptitle(result.experiment.title, fontsize=11)
        kind = path.suffix.lower()[1:]
        dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
        with atomic_path(path) as partial:
            figure.savefig(partial, format=kind, dpi=160, metadata=dated.get(kind))


def _panel(axis: Any, curves: Sequence[Curve], rows: Sequence[Row]) -> None:
    families = list(dict.fromkeys(row.family for row in rows))
    by_name = {row.name: row for row in rows}
    for curve in curves:
        row = by_name[curve.row]
        family = families.index(row.family)
        axis.plot(
            curve.x,
            curve.ours,
            label=row.name,
            color=COLOURS[family % len(COLOURS)],
            linestyle=DASHES[_place(row, rows) % len(DASHES)],
            marker=MARKS[family % len(MARKS)],
            markersize=3.2,
            markevery=max(1, len(curve.x) // 6),
            linewidth=1.5,
        )
    first = curves[0]
    error = sum(curve.error for curve in curves) / len(curves)
    axis.set_title(f"{first.study}: {first.column}", fontsize=9.5, loc="left")
    axis.set_xlabel(f"{first.over} (95 % of a point: ±{error:.3f})")
    timed = first.convention == "time"
    axis.set_ylabel(
        "seconds, mean over folds" if timed else f"mean over test queries ({first.convention})"
    )
    axis.set_xlim(0, first.x[-1])
    axis.grid(color="0.9", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)


def _place(row: Row, rows: Sequence[Row]) -> int:
    """Return the place of a row within its family."""
    return [other.name for other in rows if other.family == row.family].index(row.name)
