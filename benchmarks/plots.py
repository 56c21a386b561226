"""Plots of a benchmark run as SVG: readable on light and dark pages, the same bytes each time."""

from __future__ import annotations

from itertools import groupby
from math import floor, log10
from pathlib import Path
from typing import Any

from .findings import OURS, Curve, Record, by_task

INK, GRID, CARD = "#1f2328", "#c9ced6", "#ffffff"  # on a card of its own, so on any page
COLOURS = {OURS: "#0072B2", "LightGBM": "#D55E00", "XGBoost": "#009E73", "CatBoost": "#CC79A7"}
MOST_PANELS = 20
OTHER, OTHERS, MARKS = "#6b7280", ("#E69F00", "#56B4E9", "#000000"), "os^DvPX"


def draw_times(records: list[Record], path: Path) -> None:
    """Draw the seconds of every contender on a log scale, a panel per task; of many, a row."""
    timed = by_task([one for one in records if one.seconds])
    tasks = [(task, sorted(some, key=lambda one: -one.seconds)) for task, some in timed.items()]
    if len(tasks) > MOST_PANELS:
        _draw_rows(tasks, path)
        return
    heights = [len(some) + 1.8 for _, some in tasks]
    figure = _figure(7.6, 0.5 + 0.29 * sum(heights), path.stem)
    axes = figure.subplots(len(tasks), 1, squeeze=False, height_ratios=heights)
    for (task, some), axis in zip(tasks, axes[:, 0], strict=True):
        _panel_of_times(axis, some)
        axis.set_title(task, loc="left", fontsize=9.5, fontweight="bold", color=INK)
    judged = "; after the dot: quality" if any(_is_judged(some) for _, some in tasks) else ""
    axes[-1, 0].set_xlabel(f"seconds, log scale (less is better){judged}")
    _save(figure, path)


def _draw_rows(tasks: list[tuple[str, list[Record]]], path: Path) -> None:
    """Draw a row per task, with a mark for each contender and a line from the first to the last."""
    figure = _figure(7.6, 1.2 + 0.19 * len(tasks), path.stem)
    axis = figure.subplots()
    for place, (_, some) in enumerate(tasks):
        times = [one.seconds for one in some]
        axis.plot([min(times), max(times)], [place, place], color=GRID, linewidth=1.4, zorder=1)
        for one in some:
            ours = one.peer.startswith(OURS)
            axis.plot(one.seconds, place, "o" if ours else "s", markersize=5, label=one.peer,
                      color=COLOURS[OURS] if ours else OTHER)  # fmt: skip
    axis.set_yticks(range(len(tasks)), [task for task, _ in tasks])
    axis.set_ylim(len(tasks) - 0.4, -0.6)  # the first task on top
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.grid(axis="x", color=GRID, linewidth=0.6)
    axis.set_xlabel("seconds, log scale (less is better)")
    marks, names = axis.get_legend_handles_labels()
    once = dict(zip(names, marks, strict=True))
    axis.legend(once.values(), once.keys(), frameon=False, ncols=len(once), loc="lower left",
                bbox_to_anchor=(0, 1))  # fmt: skip
    _save(figure, path)


def _is_judged(records: list[Record]) -> bool:
    """Whether contenders have a quality of their own beside their time."""
    peers = [one for one in records if not one.peer.startswith(OURS)]
    return any(one.quality is not None and not one.same for one in peers)


def _panel_of_times(axis: Any, records: list[Record]) -> None:
    judged = _is_judged(records)
    for place, one in enumerate(records):
        ours = one.peer.startswith(OURS)
        axis.plot(one.seconds, place, "o" if ours else "s", color=COLOURS[OURS] if ours else OTHER,
                  markersize=7 if ours else 6)  # fmt: skip
        quality = f" · {one.quality:.4f}" if judged and one.quality is not None else ""
        axis.annotate(f"{one.seconds:.3g} s{quality}", (one.seconds, place), (7, 0), va="center",
                      textcoords="offset points", fontsize=8, color=INK)  # fmt: skip
    axis.set_yticks(range(len(records)), [one.peer for one in records])
    axis.set_ylim(-0.6, len(records) - 0.4)
    axis.set_xscale("log")
    low, high = _decades([one.seconds for one in records])
    axis.set_xlim(low * 0.9, high * 2.5)  # room for the last figure
    axis.xaxis.set_major_formatter("{x:g}")
    axis.grid(color=GRID, linewidth=0.6)
    axis.tick_params(axis="x", labelsize=8)


def draw_curves(curves: list[Curve], path: Path, *, memory: bool = False) -> None:
    """Draw seconds over size in log-log, or megabytes; a panel per task, slopes in the legends."""
    tasks = [(task, list(some)) for task, some in groupby(curves, key=lambda one: one.task)]
    columns = min(2 if len(tasks) <= 4 else 3, len(tasks))
    rows = -(-len(tasks) // columns)
    figure = _figure(3.9 * columns, 0.4 + 2.8 * rows, path.stem)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, (task, some) in zip(axes, tasks, strict=False):
        for number, one in enumerate(some):
            axis.plot(
                one.sizes,
                one.megabytes if memory else one.seconds,
                color=_colour(one.peer, number),
                marker=MARKS[number % len(MARKS)],
                markersize=4,
                linewidth=1.6,
                label=_named(one, one.memory_slope if memory else one.slope),
            )
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xticks(some[0].sizes, [_count(size) for size in some[0].sizes])
        axis.minorticks_off()
        shown = [one.megabytes if memory else one.seconds for one in some]
        axis.set_ylim(*_decades([value for values in shown for value in values]))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.set_title(task, loc="left", fontsize=9.5, fontweight="bold", color=INK)
        axis.set_xlabel(some[0].axis)
        axis.set_ylabel("megabytes added" if memory else "seconds")
        axis.grid(color=GRID, linewidth=0.6)
        axis.legend(fontsize=7.5, frameon=False)
    for spare in axes[len(tasks) :]:
        spare.set_axis_off()
    _save(figure, path)


def _named(one: Curve, slope: float | None) -> str:
    return one.peer if slope is None else f"{one.peer}, slope {slope:.2f}"


def _colour(peer: str, number: int) -> str:
    """Return a peer's colour, which "LightGBM, its variant" has too; ours is of one line alone."""
    name = peer if peer.startswith(OURS) else peer.partition(",")[0]
    return COLOURS.get(name, OTHERS[number % len(OTHERS)])


def _count(size: float) -> str:
    """Return a size as short as a tick allows: 2000, 104k, 1.2M."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if size >= 10_000 and size >= unit:
            return f"{size / unit:.3g}{letter}"
    return f"{size:g}"


def _decades(values: list[float]) -> tuple[float, float]:
    """Return the powers of ten about the values, so that an axis has two labels or more."""
    return 10.0 ** floor(log10(min(values))), 10.0 ** (floor(log10(max(values))) + 1)


def _figure(width: float, height: float, salt: str) -> Any:
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = salt
    matplotlib.rcParams["font.size"] = 8.5
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text: to be read aloud, and small
    return Figure(figsize=(width, height), layout="constrained", facecolor=CARD)


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    for axis in figure.axes:
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
        axis.set_axisbelow(True)
    figure.savefig(path, format="svg", metadata={"Date": None})
