"""Run benchmarks: ``python -m benchmarks [AREA ...] [--list] [--record]``.

Each area runs in a process of its own, prints its table and compares its ratios with the limits of
``floors.toml``. The exit status is 1 if a ratio is beyond its limit or a tool fails, and 2 if an
area is not known. ``--record`` writes the ratios to ``summary.json`` and renews docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from pathlib import Path
from typing import Any

from .contest import Results, Row, call_area, one_line, version
from .data_sets import UnavailableError
from .summary import describe, record
from .timing import in_new_process

HERE = Path(__file__).resolve().parent
FLOORS = HERE / "floors.toml"


def main(arguments: list[str] | None = None) -> int:
    """Run the areas; return the exit status."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="Benchmarks against peers.")
    parser.add_argument("areas", nargs="*", metavar="AREA", help="default: all")
    parser.add_argument("--list", action="store_true", help="list the areas")
    parser.add_argument("--record", action="store_true", help="store the ratios and their page")
    options = parser.parse_args(arguments)
    floors = tomllib.loads(FLOORS.read_text(encoding="utf-8"))
    if options.list:
        for area in floors:
            print(f"{area:14s} {first_line(area)}")
        return 0
    for area in options.areas:
        if area not in floors:
            print(f"unknown area {area!r}; the areas are {', '.join(floors)}", file=sys.stderr)
            return 2
    faults = []
    for area in options.areas or floors:
        print(f"--- {area}: {first_line(area)}", flush=True)
        results = run_area(area)
        print_table(results)
        faults += check(area, results, floors[area])
        if options.record and results.ratios:
            record(area, results.ratios, floors)
    for fault in faults:
        print(f"FAULT {fault}")
    return 1 if faults else 0


def first_line(area: str) -> str:
    """Return the first line of an area's docstring."""
    tree = ast.parse((HERE / f"{area}.py").read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0]


def run_area(area: str) -> Results:
    """Return the results of an area, run in a new process."""
    try:
        return in_new_process(call_area, area)
    except UnavailableError as error:
        return Results(absent={"the area": str(error)})
    except Exception as error:  # a process that crashed raises BrokenProcessPool
        module = (getattr(error, "name", None) or "").partition(".")[0]
        if isinstance(error, ModuleNotFoundError) and module not in ("rankwright", "benchmarks"):
            return Results(absent={"the area": f"{module} is not installed"})
        return Results(failed={"the area": one_line(error)})


def print_table(results: Results) -> None:
    """Print a line for each tool, with the tasks as headings."""
    task = None
    for row in results.rows:
        if row.task != task:
            task = row.task
            print(task)
        print(f"  {row.tool:34s} {version(row.tool):12s} {amounts(row)}  [{row.settings}]")
    for tool, reason in results.absent.items():
        print(f"  without {tool}: {reason}")


def amounts(row: Row) -> str:
    """Return time, quality and memory as text."""
    text = "" if row.seconds is None else f"{row.seconds:10.4g} s"
    text += "" if row.quality is None else f"  {row.quality:.4f} {row.measure}"
    return text + ("" if row.megabytes is None else f"  {row.megabytes:.0f} MB")


def check(area: str, results: Results, floors: dict[str, dict[str, Any]]) -> list[str]:
    """Print each ratio with its limit; return a sentence for each fault."""
    faults = [f"{area}: {tool} failed: {reason}" for tool, reason in results.failed.items()]
    for name, value in results.ratios.items():
        limits = floors.get(name, {})
        ok = limits.get("least", value) <= value <= limits.get("most", value)  # False for NaN
        print(f"  {name:44s} {value:10.3f}   {describe(limits)}{'' if ok else '   BEYOND'}")
        if not ok:
            faults.append(f"{area}: {name} is {value:.4g}, the limit is {describe(limits)}")
    if not results.absent and not results.failed:
        missing = floors.keys() - results.ratios.keys()
        faults += [f"{area}: {name} has a limit and was not measured" for name in sorted(missing)]
    return faults


if __name__ == "__main__":
    sys.exit(main())
