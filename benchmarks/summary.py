"""Store the last ratios in summary.json; write docs/benchmarks.md and its picture from them."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SUMMARY = ROOT / "benchmarks" / "summary.json"
PAGE = ROOT / "docs" / "benchmarks.md"
MARK = "<!-- The table below is written by `make bench BENCH_FLAGS=--record`. -->"
SPEED = ("times as fast as ", "of the time of ")
Summary = dict[str, dict[str, Any]]
Floors = dict[str, dict[str, dict[str, Any]]]


def record(area: str, ratios: dict[str, float], floors: Floors) -> None:
    """Store the ratios of an area that have a limit; renew the page and the picture."""
    summary = json.loads(SUMMARY.read_text(encoding="utf-8"))
    summary[area] = {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "ratios": {name: float(f"{ratios[name]:.4g}") for name in floors[area] if name in ratios},
    }
    SUMMARY.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    write_page(summary, floors)


def write_page(summary: Summary, floors: Floors) -> None:
    """Write the table of the page, below its mark, and the picture."""
    lines = [MARK, "", "| area | task | ratio | limit | measured |", "|---|---|---|---|---|"]
    for area, limits in floors.items():
        measured = summary.get(area, {"ratios": {}})
        for name, limit in limits.items():
            if name in measured["ratios"]:
                ratio = f"{measured['ratios'][name]:.3g} {limit['unit']}"
                where = f"{measured['date']}, {measured['commit']}, {measured['machine']}"
                cells = area, limit["task"], ratio, describe(limit), where
                lines.append(f"| {' | '.join(cells)} |")
    text = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    PAGE.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")
    draw(speeds(summary, floors))


def speeds(summary: Summary, floors: Floors) -> list[tuple[str, float]]:
    """Return a label for each ratio of times, and how many times as fast as the peer we are."""
    bars = []
    for area, limits in floors.items():
        for name, limit in limits.items():
            value = summary.get(area, {"ratios": {}})["ratios"].get(name)
            for prefix in SPEED:
                if value is not None and limit["unit"].startswith(prefix):
                    label = f"{limit['task']} vs {limit['unit'].removeprefix(prefix)}"
                    bars.append((label, value if prefix is SPEED[0] else 1.0 / value))
    return bars


def draw(bars: list[tuple[str, float]]) -> None:
    """Draw how many times as fast as each peer we are, on a logarithmic axis."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "benchmarks", "svg.fonttype": "none"})
    labels, values = zip(*reversed(bars), strict=True)
    figure, axes = plt.subplots(figsize=(8, 0.3 * len(bars) + 1))
    drawn = axes.barh(labels, [value - 1.0 for value in values], left=1.0, color="#4c72b0")
    axes.bar_label(drawn, [f"{value:.3g}" for value in values], padding=3)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.margins(x=0.15)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("times as fast as the other tool")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PAGE.with_suffix(".svg"), bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def describe(limits: dict[str, Any]) -> str:
    """Return the limits of a ratio as text."""
    return ", ".join(f"{kind} {limits[kind]:g}" for kind in ("least", "most") if kind in limits)


def commit() -> str:
    """Return the short name of the commit, or an empty text outside a checkout."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def processor() -> str:
    """Return the model of the processor."""
    cpu = Path("/proc/cpuinfo")
    text = cpu.read_text().partition("model name")[2] if cpu.exists() else ""
    return text.partition("\n")[0].strip("\t :") or platform.machine()
