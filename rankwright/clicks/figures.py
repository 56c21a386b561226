"""Common style of plots: axes, colours and dashes of lines, legends."""

from __future__ import annotations

from typing import Any

from rankwright.errors import MissingExtraError

COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
)  # Okabe, Ito
DASHES: tuple[Any, ...] = (
    "solid",
    (0, (4, 1.6)),
    (0, (1, 1.2)),
    (0, (6, 1.4, 1, 1.4)),
    (0, (2, 2)),
)
MARKS = ("o", "s", "^", "D", "v", "P", "X")


def new_axes(ax: Any, height: float = 3.4) -> Any:
    """Return the caller's Axes, or new ones."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(5.6, height), layout="constrained")[1]


def line_style(number: int, *, mark: bool = True) -> dict[str, Any]:
    """Return colour, dashes and marker of a line; markers, or dashes, distinguish lines."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[number // len(COLOURS) % len(DASHES)] if mark else
                     DASHES[number % len(DASHES)],
        "linewidth": 1.4,
        **({"marker": MARKS[number % len(MARKS)], "markersize": 4} if mark else {}),
    }  # fmt: skip


def add_legend(ax: Any) -> None:
    """Add a legend to a plot."""
    ax.legend(frameon=False, fontsize="small", handlelength=2.6)


def plain_axes(ax: Any) -> Any:
    """Remove the frame at the top and at the right; return the Axes."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def import_matplotlib() -> None:
    """Raise an error that names the extra if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "drawing a figure") from None
