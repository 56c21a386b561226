"""Drawing curves: one panel per study and measure, colours that the colour-blind tell apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwright.data.target import atomic_path
from rankwright.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reproducibility.curves import Curve, FigureResult
    from reproducibility.experiment import Row

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
_DASHES: tuple[Any, ...] = (
    "solid",
    (0, (4, 1.6)),
    (0, (1, 1.2)),
    (0, (6, 1.4, 1, 1.4)),
    (0, (2, 2)),
)
_MARKS = ("o", "s", "^", "D", "v", "P", "X")


def check_drawable(path: Path) -> None:
    """Say before any work whether a figure can be drawn to ``path``."""
    if path.suffix.lower() not in _ENDINGS:
        raise UsageError(f"a figure ends in {', '.join(_ENDINGS)}; '{path.name}' does not.")
    _matplotlib()


def draw(result: FigureResult, path: Path) -> None:
    """Draw every curve of ``result`` to an SVG, PNG or PDF file, alike to the byte each time."""
    _matplotlib()
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
            color=_COLOURS[family % len(_COLOURS)],
            linestyle=_DASHES[_place(row, rows) % len(_DASHES)],
            marker=_MARKS[family % len(_MARKS)],
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


def _matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtraError("matplotlib", "report", "drawing a figure") from None
