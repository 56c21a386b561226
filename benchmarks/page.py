"""The page of a benchmark run, written from its JSON files: tables, plots, and where we lose.

``write(folder)`` writes ``folder.md`` beside the folder, and the plots into it.
"""

from __future__ import annotations

import json
import os
from itertools import groupby
from pathlib import Path
from typing import Any

from .findings import OURS, Curve, Findings, Record, by_task

ORDER = ("quality", "start", "busy", "load", "logs", "metrics", "trees", "linear", "additive",
         "networks", "gpu", "factorization", "ascent", "scoring", "batch", "imported",
         "training_memory", "memory", "growth", "dask")  # fmt: skip
CLOSE, CLOSE_QUALITY = 1.05, 0.001  # less than this apart is called equal
HEAD = """# Benchmarks

Generated from the files in `{folder}/` by `make bench`, which measures everything again: Rankwright
and every peer in one run, on the same data in memory, with the sizes and threads that the settings
name. Contenders take turns and the least time of several runs counts, with these exceptions: slow
peers (CatBoost's training, fastrank, LIBLINEAR on pairs) run once; factorization and memory time
one fit; growth curves take one tool after the other; the areas interval and losses use medians;
RankLib's figures are recorded from an earlier run, not measured. Quality is NDCG@10 by the standard
convention on held-out queries unless a column says otherwise; a table without such a column
compares time or memory alone. A time ratio says how many times as long a contender takes as
Rankwright: above 1, Rankwright is faster.
"""


def write(folder: Path) -> Path:
    """Write the page and the plots of the results in ``folder``; return the page's path."""
    from .plots import draw_curves, draw_times

    areas = read(folder)
    for area, found in areas.items():
        lists = Findings.from_json(found)
        if any(one.seconds for one in lists.records):
            draw_times(lists.records, folder / f"{area}.svg")
        for axis, curves in _by_axis(lists.curves):
            draw_curves(curves, folder / f"{area}-{_slug(axis)}.svg")
            if with_memory := [one for one in curves if one.megabytes]:
                draw_curves(with_memory, folder / f"{area}-{_slug(axis)}-memory.svg", memory=True)
    target = folder.with_name(f"{folder.name}.md")
    partial = target.with_name(f"{target.name}.part")
    partial.write_text(page(areas, folder.name), encoding="utf-8")
    os.replace(partial, target)
    return target


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the results of a folder by area, the well-known areas first."""
    found = {path.stem: json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")}
    place = {area: number for number, area in enumerate(ORDER)}
    return dict(sorted(found.items(), key=lambda item: (place.get(item[0], 99), item[0])))


def page(areas: dict[str, dict[str, Any]], folder: str = "benchmarks") -> str:
    """Return the text of the page; plots are in ``folder``."""
    lines = [HEAD.format(folder=folder)]
    if not areas:
        return f"{lines[0]}\nNo results are kept there: `make bench` makes them.\n"
    lines += _machine(list(areas.values()))
    lines += _summary(areas)
    for area, found in areas.items():
        lines += _area(area, found, folder)
    return "\n".join(lines).rstrip() + "\n"


# --- the whole run ---------------------------------------------------------------------------


def _machine(results: list[dict[str, Any]]) -> list[str]:
    reported = {}
    for found in results:
        m = found["machine"]
        memory = f", {m['memory_gigabytes']} GB" if m.get("memory_gigabytes") else ""
        text = f"{m['cores']} cores of {m['cpu']}{memory}, {m['system']}, Python {m['python']}"
        reported.setdefault(f"{text}, Rankwright {found['rankwright']}", []).append(found)
    lines = []
    for text, those in reported.items():
        dates = sorted({found["date"] for found in those})
        when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        which = "" if len(reported) == 1 else f" ({', '.join(found['area'] for found in those)})"
        minutes = sum(found["seconds"] for found in those) / 60
        lines += [f"Measured {when} on {text}{which}, in {minutes:.0f} minutes.", ""]
    return lines


def _summary(areas: dict[str, dict[str, Any]]) -> list[str]:
    """Return where we lose, who was not there, and what failed, over all areas."""
    lost, absent, failed = [], [], []
    for area, found in areas.items():
        lists = Findings.from_json(found)
        for task, records in by_task(lists.records).items():
            lost += [f"- {task} ([{area}](#{area})): {text}" for text in losses(records)]
        for axis, curves in _by_axis(lists.curves):
            reported = slower_curves(curves)
            lost += [f"- {task} over {axis} ([{area}](#{area})): {text}" for task, text in reported]
        absent += [f"- {peer} ({area}): {why.rstrip('.')}." for peer, why in lists.absent.items()]
        failed += [f"- {peer} ({area}): {why}" for peer, why in lists.failed.items()]
        failed += [f"- {area}: {text}" for text in _missed(found)]
    lines = ["## Where Rankwright loses", "", *(lost or ["Nowhere in this run."]), ""]
    if absent:
        lines += ["## Not measured", "", *absent, ""]
    if failed:
        lines += ["## Failed", "", *failed, ""]
    return lines


def _missed(found: dict[str, Any]) -> list[str]:
    missed = []
    for name, bounds in found["floors"].items():
        value = found["figures"].get(name)
        if value is not None and not (
            bounds.get("least", value) <= value <= bounds.get("most", value)
        ):
            allowed = " and ".join(f"at {kind} {limit:g}" for kind, limit in bounds.items())
            missed.append(f"`{name}` is {value:.4g}; it should be {allowed}.")
    return missed


# --- an area ---------------------------------------------------------------------------------


def _area(area: str, found: dict[str, Any], folder: str) -> list[str]:
    lists = Findings.from_json(found)
    lines = [f"## {area}", "", found["about"].strip(), ""]
    for task, records in by_task(lists.records).items():
        lines += [f"### {task}", "", *_table(records), "", _verdict(records), ""]
    if any(one.seconds for one in lists.records):
        lines += [f"![Seconds of every contender, {area}]({folder}/{area}.svg)", ""]
    for axis, curves in _by_axis(lists.curves):
        lines += [f"### Growth with {axis}", "", *_slopes(curves), ""]
        lines += [f"**{task}: {text}**\n" for task, text in slower_curves(curves)]
        lines += [f"![Seconds over {axis}]({folder}/{area}-{_slug(axis)}.svg)", ""]
        if any(one.megabytes for one in curves):
            lines += [f"![Megabytes over {axis}]({folder}/{area}-{_slug(axis)}-memory.svg)", ""]
    for peer, why in lists.absent.items():
        lines += [f"Not measured: {peer}, as {why.rstrip('.')}.", ""]
    for peer, why in lists.failed.items():
        lines += [f"Failed: {peer}: {why}", ""]
    if found["figures"]:
        lines += _figures(found)
    return lines


def _table(records: list[Record]) -> list[str]:
    ours = next((one for one in records if one.peer == OURS), None)
    measures = {one.measure for one in records if one.quality is not None}
    with_memory = any(one.peak_megabytes is not None for one in records)
    heads = ["contender", "version", "seconds", "time ratio"]
    heads += [", ".join(sorted(measures))] if measures else []
    heads += ["peak MB"] if with_memory else []
    heads += ["settings"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for one in sorted(records, key=lambda r: (r.seconds is None, r.seconds, -(r.quality or 0.0))):
        ratio = one.seconds / ours.seconds if ours and ours.seconds and one.seconds else None
        said = "; ".join(text for text in (one.settings, one.same, one.note) if text)
        cells = [one.peer, one.version, _number(one.seconds), _number(ratio)]
        cells += ["" if one.quality is None else f"{one.quality:.4f}"] if measures else []
        cells += [_number(one.peak_megabytes)] if with_memory else []
        lines.append(f"| {' | '.join([*cells, said.replace('|', chr(92) + '|')])} |")
    return lines


def losses(records: list[Record]) -> list[str]:
    """Return a sentence for each peer that beats us at a task, and in which ways."""
    ours = next((one for one in records if one.peer == OURS), None)
    if ours is None:
        return []
    reported = []
    for one in records:
        if one.peer.startswith(OURS) or one.peer.endswith(" alone"):  # of a part of the work
            continue
        ways = []
        ratio = _over(ours.seconds, one.seconds)
        if ratio > CLOSE:
            ways.append(f"is {_times(ratio)}x faster")
        ratio = _over(ours.peak_megabytes, one.peak_megabytes)
        if ratio > CLOSE:
            ways.append(f"needs {_times(ratio)}x less memory")
        if one.quality is not None and ours.quality is not None and not one.same:
            more = one.quality - ours.quality
            if more > CLOSE_QUALITY:
                ways.append(f"is {more:.4f} better ({one.measure})")
        if ways:
            reported.append(f"{one.peer} {' and '.join(ways)} here.")
    return reported


def slower_curves(curves: list[Curve]) -> list[tuple[str, str]]:
    """Return task and sentence wherever a peer is faster at the largest size."""
    reported = []
    for one in curves:
        ours = next((c for c in curves if c.task == one.task and c.peer == OURS), None)
        ratio = 0.0 if ours is None else _over(ours.seconds[-1], one.seconds[-1])
        if ratio > CLOSE and not one.peer.startswith(OURS):
            at = f"{one.sizes[-1]:g} {one.axis}"
            reported.append((one.task, f"{one.peer} is {_times(ratio)}x faster at {at}."))
    return reported


def _verdict(records: list[Record]) -> str:
    """Return in words who wins."""
    ours = next((one for one in records if one.peer == OURS), None)
    peers = [one for one in records if not one.peer.startswith(OURS)]
    if not peers:
        return "No peer was measured at this task."
    if ours is None:
        return "Rankwright has several rows here, and none that the others are compared with."
    lost = losses(records)
    if lost:
        return " ".join(f"**{text}**" for text in lost)
    slowest_first = sorted(peers, key=lambda one: -_over(one.seconds, ours.seconds))
    reported = [
        f"{_times(_over(one.seconds, ours.seconds))}x as long ({one.peer})"
        for one in slowest_first
        if one.seconds
    ]
    times = f"; the others take {', '.join(reported)}" if reported else ""
    return f"No other tool is ahead of Rankwright here{times}."


def _slopes(curves: list[Curve]) -> list[str]:
    with_memory = any(one.megabytes for one in curves)
    heads = ["task", "contender", "version", "sizes", "seconds", "slope"]
    heads += ["added MB", "slope of memory"] if with_memory else []
    heads += ["settings"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for one in curves:
        sizes = ", ".join(f"{size:g}" for size in one.sizes)
        seconds = ", ".join(_number(value) for value in one.seconds)
        cells = [one.task, one.peer, one.version, sizes, seconds, f"{one.slope:.2f}"]
        if with_memory:
            fitted = "" if one.memory_slope is None else f"{one.memory_slope:.2f}"
            cells += [", ".join(_number(value) for value in one.megabytes), fitted]
        lines.append(f"| {' | '.join([*cells, one.settings])} |")
    return lines


def _figures(found: dict[str, Any]) -> list[str]:
    lines = ["| figure | value | floor |", "|---|---|---|"]
    for name, value in found["figures"].items():
        bounds = found["floors"].get(name, {})
        floor = ", ".join(f"{kind} {limit:g}" for kind, limit in bounds.items())
        lines.append(f"| `{name}` | {_number(value)} | {floor} |")
    return [*lines, ""]


# --- small things ----------------------------------------------------------------------------


def _by_axis(curves: list[Curve]) -> list[tuple[str, list[Curve]]]:
    return [(axis, list(some)) for axis, some in groupby(curves, key=lambda one: one.axis)]


def _over(above: float | None, below: float | None) -> float:
    return above / below if above and below else 0.0


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 2 else f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"


def _slug(text: str) -> str:
    return text.replace(" ", "-")
