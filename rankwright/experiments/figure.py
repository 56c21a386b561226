"""Drawing curves: one panel per study and measure, colours that the colour-blind tell apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwright.data.target import atomic_path
from rankwright.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from rankwright.experiments.curves import FigureResult
    from rankwright.experiments.experiment import Column, Row, Study

_ENDINGS = (".svg", ".png", ".pdf")
_COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
)  # Okabe, Ito
_DASHES: tuple[Any, ...] = ("solid", (0, (4, 1.6)), (0, (1, 1.2)))
_MARKS = ("o", "s", "^", "D", "v", "P", "X")


def check_target(path: Path) -> None:
    """Say before any work whether a figure can be drawn to ``path``."""
    if path.suffix.lower() not in _ENDINGS:
        raise UsageError(f"a figure ends in {', '.join(_ENDINGS)}; '{path.name}' does not.")
    _matplotlib()


def draw(result: FigureResult, path: Path) -> None:
    """Draw every curve of ``result`` to an SVG, PNG or PDF file, alike to the byte each time."""
    _matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    studies = result.experiment.studies
    wide = max(len(study.columns) for study in studies)
    with rc_context({"svg.hashsalt": result.experiment.name, "font.size": 9}):
        figure = Figure(figsize=(1.5 + 3.9 * wide, 0.9 + 2.9 * len(studies)), layout="constrained")
        axes = figure.subplots(len(studies), wide, squeeze=False)
        for study, line in zip(studies, axes, strict=True):
            for column, axis in zip(study.columns, line[: len(study.columns)], strict=True):
                _panel(axis, result, study, column)
            for spare in line[len(study.columns) :]:
                spare.set_axis_off()
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center", frameon=False, handlelength=3.2)
        figure.suptitle(result.experiment.title, fontsize=11)
        kind = path.suffix.lower()[1:]
        dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
        with atomic_path(path) as partial:
            figure.savefig(partial, format=kind, dpi=160, metadata=dated.get(kind))


def _panel(axis: Any, result: FigureResult, study: Study, column: Column) -> None:
    families = list(dict.fromkeys(row.family for row in result.experiment.rows))
    for row in result.experiment.rows:
        curve = next(
            c
            for c in result.curves
            if (c.study, c.row, c.column) == (study.name, row.name, column.name)
        )
        family = families.index(row.family)
        axis.plot(
            curve.trees,
            curve.ours,
            label=row.name,
            color=_COLOURS[family % len(_COLOURS)],
            linestyle=_DASHES[_place(row, result.experiment.rows) % len(_DASHES)],
            marker=_MARKS[family % len(_MARKS)],
            markersize=3.2,
            markevery=max(1, len(curve.trees) // 6),
            linewidth=1.5,
        )
    axis.set_title(f"{study.name}: {column.name}", fontsize=9.5, loc="left")
    axis.set_xlabel(f"number of trees (95 % of a point: ±{_half_width(result, column):.3f})")
    axis.set_ylabel(f"mean over test queries ({column.convention})")
    axis.set_xlim(0, study.trees[-1])
    axis.grid(color="0.9", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)


def _half_width(result: FigureResult, column: Column) -> float:
    """Return half the width of the intervals of a column, on average over the rows."""
    found = [
        (cell.high - cell.low) / 2
        for cell in result.table.cells
        if cell.column == column.name and cell.low is not None and cell.high is not None
    ]
    return sum(found) / len(found)


def _place(row: Row, rows: tuple[Row, ...]) -> int:
    """Return the place of a row within its family."""
    return [other.name for other in rows if other.family == row.family].index(row.name)


def _matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtraError("matplotlib", "report", "drawing a figure") from None
